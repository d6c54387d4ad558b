"""A paid round of roulette as facts to be recalled: 17 was confirmed, and 20 it was (OPS-01)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import correction_events_pb2 as table_corrections
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import catalogue
from services.kernel.event import Position
from services.settlement.domain.core import CORE
from services.settlement.domain.correcting import dry_run_digest
from services.settlement.domain.facts import NOTHING_YET, Facts, digest_with, take
from tests.unit.deciding import Deciding, by
from tests.unit.table_facts import R1, T, round_opened, spec

C1 = "correction-1"
OPS_BETS: dict[str, tuple[str, str]] = {
    "a": ("straight", "17"),
    "b": ("straight", "20"),
    "c": ("black", ""),
    "d": ("odd", ""),
    "e": ("even", ""),
}
"""By account: bet and position; the stake of each is 10.00."""
STAKE = 1_000


def spin(number: int) -> table_corrections.CorrectedOutcome:
    return table_corrections.CorrectedOutcome(
        result=rules.Result(roulette=rules.RouletteResult(number=number))
    )


VOID = table_corrections.CorrectedOutcome(voided=True)


def opened(rule_set: rule_set_pb2.RuleSet | None = None, revision: int = 1) -> table.TableOpened:
    of = spec()
    of.rule_set.CopyFrom(rule_set or catalogue.roulette())
    return table.TableOpened(spec=of, revision=revision)


def paid_round(
    bets: Mapping[str, Sequence[tuple[str, str, int]]] | None = None,
    outcome: table_corrections.CorrectedOutcome | None = None,
    rule_set: rule_set_pb2.RuleSet | None = None,
) -> list[Message]:
    """The facts of a round as the cores themselves write them, in order. `bets`: by account, each
    (bet, position, stake)."""
    told: Mapping[str, Sequence[tuple[str, str, int]]]
    told = {who: [(*bet, STAKE)] for who, bet in OPS_BETS.items()} if bets is None else bets
    result = (outcome or spin(17)).result
    game = Deciding(CORE, careful=False).given(opened(rule_set), round_opened())
    number = 0
    for account, wagers in told.items():
        placed: list[bet_pb2.Bet] = []
        for bet, position, stake in wagers:
            number += 1
            made = bet_pb2.Bet(bet_id=f"{R1}-b{number}", bet=bet, position=position)
            made.stake_minor = stake
            placed.append(made)
        reserved = wallet.StakeReserved(
            account_id=account, table_id=T, round_id=R1, currency_code="EUR", bets=placed
        )
        game.given(by(reserved, partner="acme"))
    accepted = table.ResultAccepted(table_id=T, round_id=R1, result=result)
    game.when(by(accepted, partner=""))
    return [opened(rule_set), round_opened(), accepted, *game.answers]


def places(facts: Sequence[Message], first: int = 1) -> list[tuple[Position, Message]]:
    """Facts with the places at which the log has them."""
    return [(Position(1, first + 10 * at, 0), fact) for at, fact in enumerate(facts)]


def recalled(facts: Sequence[tuple[Position, Message]]) -> list[corrections.RecalledFact]:
    return [
        corrections.RecalledFact(
            position=entry_pb2.Position(segment=at.segment, sequence=at.sequence, index=at.index),
            type=str(body.DESCRIPTOR.full_name),
            body=body.SerializeToString(deterministic=True),
        )
        for at, body in facts
    ]


def digest_of(facts: Sequence[corrections.RecalledFact]) -> bytes:
    digest = NOTHING_YET
    for fact in facts:
        at = Position(fact.position.segment, fact.position.sequence, fact.position.index)
        digest = digest_with(digest, at, fact.type, fact.body)
    return digest


def taken(facts: Sequence[Message]) -> Facts:
    """What facts come to."""
    found = Facts()
    for fact in recalled(places(facts)):
        at = Position(fact.position.segment, fact.position.sequence, fact.position.index)
        take(found, T, R1, at, fact.type, fact.body)
    return found


def dry_run(facts: Sequence[Message], outcome: table_corrections.CorrectedOutcome) -> bytes:
    return dry_run_digest(taken(facts), R1, outcome)


def approved(
    outcome: table_corrections.CorrectedOutcome, dry: bytes, version: int = 1, name: str = C1
) -> table_corrections.CorrectionApproved:
    return table_corrections.CorrectionApproved(
        correction_id=name,
        table_id=T,
        round_id=R1,
        outcome=outcome,
        dry_run=dry,
        version=version,
        reason=table.ROUND_REASON_MISREAD,
    )


def result_corrected(
    outcome: table_corrections.CorrectedOutcome, version: int = 1, name: str = C1
) -> table_corrections.ResultCorrected:
    return table_corrections.ResultCorrected(
        correction_id=name,
        table_id=T,
        round_id=R1,
        outcome=outcome,
        version=version,
        reason=table.ROUND_REASON_MISREAD,
        reference="INC-7",
        proposed_by="operator:dana",
        approved_by="operator:sam",
    )
