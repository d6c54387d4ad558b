"""Facts of a closed round that settlement had brought back: are they what the log says?

The core cannot read the log again; audit's shell does (`services/audit/fact_checker.py`), at the
places that the recalled facts name, and tells what it has there as an input: how many, and their
digest. Two readings that know nothing of one another must agree before a round is settled again.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message

from sabot.audit.v1 import correction_events_pb2 as corrections
from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import correction_events_pb2 as settlement
from services.kernel.event import Event, Position


@dataclass(slots=True)
class FactsAsked:
    """Facts that are to be confirmed."""

    recalled: settlement.FactsRecalled
    asked_by: Position
    """Where that stands."""


def asked_by(event: Event, body: settlement.FactsRecalled) -> FactsAsked:
    """What is asked. Part of evolve."""
    return FactsAsked(body, event.position)


def answer_facts(asked: FactsAsked | None, body: corrections.ConfirmFacts) -> Message:
    """The answer to what the log was found to have. Nobody asked for it, or asked since by another
    recall: `InputIgnored`."""
    place = Position(body.asked_by.segment, body.asked_by.sequence, body.asked_by.index)
    if asked is None or place != asked.asked_by:
        return log.InputIgnored(reason=log.IGNORED_REASON_UNKNOWN)
    recalled = asked.recalled
    named = {
        "correction_id": recalled.correction_id,
        "table_id": recalled.table_id,
        "round_id": recalled.round_id,
    }
    if (body.count, body.digest) == (recalled.count, recalled.digest):
        return corrections.FactsConfirmed(**named, digest=recalled.digest)
    return corrections.FactsRefuted(**named, recalled=recalled.digest, found=body.digest)
