"""A supervisor says what a misread card, spin or roll is, while the round has no accepted result.

The table says whether the round may be corrected, the shoe whether there is such a thing, rules
what follows. Until the shoe has answered the round does not go on; a result that rules gave before
the correction does not count. At blackjack it is rules that must have answered: what seats were
asked may have been recalled. If what was played cannot have been, with the right card, the round is
suspended and may only be voided, or corrected again.

Order of refusals after those of every order about a round: NOT_ON_FLOOR, RESULT_ACCEPTED,
NOT_SUSPENDED, ACTION_PENDING (a further stake is under way), CORRECTION_PENDING.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from services.kernel.event import Event, Position
from services.table.domain.state import Phase, Round, TableState, running_round

Correction = orders.CorrectCard | orders.CorrectOutcome
FromRules = rules.DrawRecalled | rules.HandsCorrected | rules.PlayContradicted
"""What rules say of a round with a corrected card."""


def why_not_corrected(running: Round) -> table.Refusal.ValueType | None:
    """Why the running round may not be corrected; None where it may."""
    at_floor = running.at_floor
    if at_floor is None:
        return table.REFUSAL_NOT_ON_FLOOR
    if running.phase is Phase.PAYING:
        return table.REFUSAL_RESULT_ACCEPTED
    if not running.suspended:
        return table.REFUSAL_NOT_SUSPENDED
    if running.turn is not None and running.turn.pending:
        return table.REFUSAL_ACTION_PENDING
    return table.REFUSAL_CORRECTION_PENDING if at_floor.correcting else None


def ordered(running: Round, body: Correction) -> Message:
    """The round may be corrected; the shoe answers next."""
    if isinstance(body, orders.CorrectCard):
        return orders.CardCorrectionOrdered(
            request_id=body.request_id,
            table_id=body.table_id,
            round_id=body.round_id,
            shoe_id=running.shoe_id,
            index=body.index,
            card=body.card,
            reason=body.reason,
        )
    return orders.OutcomeCorrectionOrdered(
        request_id=body.request_id,
        table_id=body.table_id,
        round_id=body.round_id,
        attempt=body.attempt,
        numbers=body.numbers,
        reason=body.reason,
    )


def follow_correction(
    state: TableState,
    event: Event,
    body: orders.CardCorrectionOrdered
    | orders.OutcomeCorrectionOrdered
    | floor.CardCorrected
    | floor.OutcomeCorrected
    | floor.FloorRejected
    | FromRules,
) -> None:
    """Fold how a correction goes on. Part of evolve."""
    running = running_round(state, body.table_id, body.round_id)
    if running is None or running.at_floor is None:
        return
    at_floor = running.at_floor
    match body:
        case orders.CardCorrectionOrdered() | orders.OutcomeCorrectionOrdered():
            at_floor.correcting = body.request_id
        case floor.FloorRejected():
            if body.request_id == at_floor.correcting:
                at_floor.correcting = ""
        case floor.CardCorrected() | floor.OutcomeCorrected():
            if not running.seated:
                at_floor.correcting = ""
            at_floor.contradicted = False
            at_floor.corrected_at = event.position
            running.held = None
        case rules.DrawRecalled():
            if running.turn is not None and running.turn.number == body.turn:
                running.turn = None
        case rules.HandsCorrected():
            if running.seated:
                at_floor.correcting = ""
        case rules.PlayContradicted():
            at_floor.correcting = ""
            at_floor.contradicted = True
        case _:
            assert_never(body)


def decide_contradiction(state: TableState, body: rules.PlayContradicted) -> Sequence[Message]:
    """What was played cannot have been: the round stands still, also where it has gone on."""
    running = running_round(state, body.table_id, body.round_id)
    if running is None or running.phase is not Phase.DEALING or running.suspended:
        return ()
    return (
        table.RoundSuspended(
            table_id=body.table_id,
            round_id=running.round_id,
            reason=table.ROUND_REASON_MISREAD,
        ),
    )


def is_overtaken(running: Round, cause: Position | None) -> bool:
    """Whether a result was given before something of its round was corrected."""
    at_floor = running.at_floor
    return at_floor is not None and cause is not None and cause < at_floor.corrected_at
