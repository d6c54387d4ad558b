"""Credits and rollbacks until they are confirmed: what the partner says of them, and what operators
decide about those that it does not confirm (the list of stuck money).

What is safe follows from what the partner last said. As long as it may have carried a movement out,
or may still, that can only be asked again, or counted as done once the partner has said so by
another way. Only what it has refused can be written off.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import Event
from services.wallet.domain.seamless_corrections import (
    collected,
    decide_correction_debit,
    is_correction,
)
from services.wallet.domain.seamless_debits import (
    ANSWER_US,
    decide_debit,
    disputed,
    drop_movement,
    ignored,
    position_of,
)
from services.wallet.domain.seamless_state import (
    Movement,
    MovementKind,
    MovementStanding,
    SeamlessState,
)


def decide_reply(
    state: SeamlessState, event: Event, body: seamless.RecordReply
) -> Sequence[Message] | wallets.StakeReserved:
    """A partner's wallet answered, or did not. `StakeReserved` alone: a request is on."""
    movement = state.movements.get(body.transaction_id)
    if movement is None:
        return [_late(state, event, body)]
    if movement.partner != event.partner or position_of(body.asked_by) != movement.asked_by:
        return [log.InputIgnored(reason=log.IGNORED_REASON_IMPOSSIBLE)]
    if is_correction(movement):
        return decide_correction_debit(body, movement)
    if movement.kind is MovementKind.DEBIT:
        return decide_debit(state, event, body, movement)
    match body.outcome:
        case seamless.REPLY_OUTCOME_DONE:
            return [
                confirmed(
                    body.transaction_id,
                    movement,
                    partner_transaction_id=body.partner_transaction_id,
                )
            ]
        case seamless.REPLY_OUTCOME_DECLINED:
            if movement.standing is MovementStanding.REFUSED:
                return []  # An operator knows; it is asked again and again.
            return [
                seamless.MovementRefused(
                    transaction_id=body.transaction_id,
                    partner_id=movement.partner,
                    round_id=movement.round_id,
                    credit_refusal=body.credit_refusal,
                    rollback_refusal=body.rollback_refusal,
                )
            ]
        case seamless.REPLY_OUTCOME_CONTRADICTORY:
            if movement.standing is MovementStanding.DISPUTED:
                return []
            return [disputed(body.transaction_id, movement, body.problem)]
        case _:
            return []


def _late(state: SeamlessState, event: Event, body: seamless.RecordReply) -> Message:
    """A reply about what is decided already. Two callers may both have one; they must agree with
    what was decided as far as that is still known."""
    done = body.outcome == seamless.REPLY_OUTCOME_DONE
    written_off = state.written_off.get(body.transaction_id)
    if written_off is not None and written_off == event.partner and done:
        return seamless.MovementDisputed(
            transaction_id=body.transaction_id,
            partner_id=event.partner,
            round_id=body.round_id,
            problem="CONFIRMED_AFTER_WRITE_OFF",
        )
    money = state.rounds.get(body.round_id)
    if money is not None and body.transaction_id in money.debits:
        return ignored(again=body.outcome != seamless.REPLY_OUTCOME_DECLINED)
    return log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW)


def confirmed(
    transaction: str,
    movement: Movement,
    *,
    partner_transaction_id: str = "",
    request_id: str = "",
    reason: str = "",
) -> seamless.MovementConfirmed:
    """A credit or rollback is done."""
    return seamless.MovementConfirmed(
        transaction_id=transaction,
        partner_id=movement.partner,
        account_id=movement.account_id,
        table_id=movement.table_id,
        round_id=movement.round_id,
        currency_code=movement.currency_code,
        amount_minor=movement.amount_minor if movement.booked else 0,
        partner_transaction_id=partner_transaction_id,
        request_id=request_id,
        reason=reason,
    )


# ---- what operators decide ---------------------------------------------------------------------


def safe_actions(movement: Movement) -> tuple[seamless.MovementAction.ValueType, ...]:
    """What may be done about a movement as it stands, the best first."""
    retry, done, off = (
        seamless.MOVEMENT_ACTION_RETRY,
        seamless.MOVEMENT_ACTION_MARK_DONE,
        seamless.MOVEMENT_ACTION_WRITE_OFF,
    )
    if is_correction(movement):
        return (retry, done)
    if movement.kind is MovementKind.DEBIT:
        return (retry,)
    match movement.standing:
        case MovementStanding.REFUSED:
            final = movement.kind is MovementKind.ROLLBACK
            return (done, off, retry) if final else (retry, done, off)
        case MovementStanding.DISPUTED:
            return (done, retry)
        case _:
            return (retry, done)


def is_stuck(movement: Movement, time_us: int) -> bool:
    """Whether a movement is on the list of stuck money at this log time: the partner has said
    something else than that it is done, or has had its time."""
    return (
        movement.standing in (MovementStanding.REFUSED, MovementStanding.DISPUTED)
        or time_us - movement.ordered_us > ANSWER_US
    )


def is_called(movement: Movement) -> bool:
    """Whether the partner's wallet is called for it without an operator's doing."""
    match movement.standing:
        case MovementStanding.ASKED:
            return True
        case MovementStanding.REFUSED:
            return movement.kind is MovementKind.CREDIT
        case _:
            return False


def resolve(state: SeamlessState, event: Event, body: seamless.ResolveMovement) -> Message:
    """An operator's decision about a movement. Order of refusals: unknown, a debit that its round
    waits for, not safe."""
    movement = state.movements.get(body.transaction_id)
    if movement is None or movement.partner != event.partner:
        return rejected(body.request_id, seamless.SEAMLESS_REFUSAL_UNKNOWN_MOVEMENT)
    if body.action not in safe_actions(movement):
        if movement.kind is MovementKind.DEBIT:
            return rejected(body.request_id, seamless.SEAMLESS_REFUSAL_STILL_DECIDING)
        return rejected(body.request_id, seamless.SEAMLESS_REFUSAL_NOT_REFUSED)
    match body.action:
        case seamless.MOVEMENT_ACTION_MARK_DONE if is_correction(movement):
            return collected(body.transaction_id, movement, body.request_id)
        case seamless.MOVEMENT_ACTION_MARK_DONE:
            return confirmed(
                body.transaction_id, movement, request_id=body.request_id, reason=body.reason
            )
        case seamless.MOVEMENT_ACTION_WRITE_OFF:
            return seamless.MovementWrittenOff(
                request_id=body.request_id,
                transaction_id=body.transaction_id,
                partner_id=movement.partner,
                account_id=movement.account_id,
                table_id=movement.table_id,
                round_id=movement.round_id,
                currency_code=movement.currency_code,
                amount_minor=movement.amount_minor if movement.booked else 0,
                reason=body.reason,
            )
        case _:
            return seamless.MovementRetried(
                request_id=body.request_id,
                transaction_id=body.transaction_id,
                partner_id=movement.partner,
                reason=body.reason,
            )


def rejected(
    request_id: str, refusal: seamless.SeamlessRefusal.ValueType, detail: str = ""
) -> seamless.SeamlessOrderRejected:
    """The refusal of an operator's order."""
    return seamless.SeamlessOrderRejected(request_id=request_id, refusal=refusal, detail=detail)


# ---- evolve ------------------------------------------------------------------------------------

Ended = (
    seamless.MovementConfirmed
    | seamless.MovementRefused
    | seamless.MovementDisputed
    | seamless.MovementWrittenOff
    | seamless.MovementRetried
)


def movement_goes_on(state: SeamlessState, body: Ended) -> None:
    """What was decided about a movement. Part of evolve."""
    movement = state.movements.get(body.transaction_id)
    match body:
        case seamless.MovementConfirmed():
            drop_movement(state, body.transaction_id)
        case seamless.MovementWrittenOff():
            drop_movement(state, body.transaction_id)
            state.written_off[body.transaction_id] = body.partner_id
        case seamless.MovementRefused():
            if movement is not None:
                movement.standing = MovementStanding.REFUSED
        case seamless.MovementDisputed():
            if movement is not None:
                movement.standing = MovementStanding.DISPUTED
        case seamless.MovementRetried():
            if movement is not None:
                movement.retries += 1
                if movement.kind is not MovementKind.DEBIT or is_correction(movement):
                    movement.standing = MovementStanding.ASKED
