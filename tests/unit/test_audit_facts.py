"""Audit confirms recalled facts, or refutes them; what nobody asked is ignored."""

from __future__ import annotations

from sabot.audit.v1 import correction_events_pb2 as audit
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import correction_events_pb2 as settlement
from services.audit.domain.core import CORE, AuditState
from tests.unit.correction_facts import C1
from tests.unit.deciding import Deciding, by
from tests.unit.table_facts import R1, T

DIGEST, OTHER = bytes(range(32)), bytes(32)


def asked() -> tuple[Deciding[AuditState], entry_pb2.Position]:
    game = Deciding(CORE).given(
        by(
            settlement.FactsRecalled(
                correction_id=C1, table_id=T, round_id=R1, count=9, digest=DIGEST
            ),
            partner="",
        )
    )
    at = game.last.position
    return game, entry_pb2.Position(segment=at.segment, sequence=at.sequence, index=at.index)


def found(at: entry_pb2.Position, count: int = 9, digest: bytes = DIGEST) -> audit.ConfirmFacts:
    return audit.ConfirmFacts(correction_id=C1, count=count, digest=digest, asked_by=at)


IGNORED = log.InputIgnored(reason=log.IGNORED_REASON_UNKNOWN)
CONFIRMED = audit.FactsConfirmed(correction_id=C1, table_id=T, round_id=R1, digest=DIGEST)


def test_facts_that_the_log_has_are_confirmed_once() -> None:
    game, at = asked()
    game.when(found(at)).then(CONFIRMED)
    game.when(found(at)).then(IGNORED)
    assert not game.state.asked


def test_facts_that_differ_are_refuted() -> None:
    for count, digest in ((9, OTHER), (8, DIGEST), (0, b"")):
        game, at = asked()
        game.when(found(at, count, digest)).then(
            audit.FactsRefuted(
                correction_id=C1, table_id=T, round_id=R1, recalled=DIGEST, found=digest
            )
        )
        game.when(found(at)).then(IGNORED)
    assert CORE.alarms[audit.FactsRefuted] == "facts_refuted"


def test_what_nobody_asked_is_ignored() -> None:
    Deciding(CORE).when(found(entry_pb2.Position())).then(IGNORED)
    game, at = asked()
    late = entry_pb2.Position(segment=1, sequence=at.sequence + 1)
    game.when(found(late)).then(IGNORED)
    game.when(found(at)).then(CONFIRMED)
