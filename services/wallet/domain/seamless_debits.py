"""Stakes of seamless partners' accounts: each is a debit at the partner's wallet first.

A request is on once all its debits are taken. Where one is declined, contradictory or unanswered
for too long, the request is declined whole and the others are rolled back, whether they were taken
or not. The end of a stage is marked behind the last of its requests, never later than
`ANSWER_US` after the book was closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.table.v1 import bet_pb2 as bets
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import Event, InvariantViolated, Position
from services.wallet.domain.seamless_state import (
    Debit,
    Movement,
    MovementKind,
    MovementStanding,
    PendingStake,
    RoundMoney,
    SeamlessState,
)

ANSWER_US = 2_000_000
"""How long after the end of betting, or after the order of a further stake, a partner is waited
for: a slow partner never holds a round for longer."""
MAX_OPEN = 20_000
"""Movements that a partner may leave unconfirmed, about 1 KiB each in memory; beyond that none of
its stakes is taken. Credits and rollbacks follow from debits, so these are bounded too."""
MAX_ORDERS = 80
"""Calls that one input orders one by one: a request with more bets is one debit, whatever its
profile says, so that all answers to an input fit one entry with the longest ids."""
ID_DIGITS = 32
"""Of a transaction id: 128 bits of a hash, so that no two cells ever make the same."""

_DECLINES: Mapping[int, wallets.Decline.ValueType] = {
    partner_wallet.DEBIT_DECLINE_ACCOUNT_UNKNOWN: wallets.DECLINE_UNKNOWN_ACCOUNT,
    partner_wallet.DEBIT_DECLINE_ACCOUNT_BLOCKED: wallets.DECLINE_ACCOUNT_BLOCKED,
    partner_wallet.DEBIT_DECLINE_CURRENCY: wallets.DECLINE_CURRENCY_MISMATCH,
    partner_wallet.DEBIT_DECLINE_LIMIT: wallets.DECLINE_PARTNER_LIMIT,
    partner_wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS: wallets.DECLINE_INSUFFICIENT_FUNDS,
}
"""What a partner's decline is to the bettor; every other one is the partner's own affair."""


def transaction_id(event: Event, what: str, *facts: str) -> str:
    """The id of a movement: it follows from where and when the log orders it, and from what, so
    that it is the same after every restart and no other movement's."""
    told = (str(event.position), str(event.time_us), what, *facts)
    return sha256("\n".join(told).encode()).hexdigest()[:ID_DIGITS]


def overdue(state: SeamlessState, partner: str) -> bool:
    """Whether a partner leaves so much unconfirmed that it is asked for nothing more."""
    return state.open.get(partner, 0) >= MAX_OPEN


# ---- the order ---------------------------------------------------------------------------------


def order_debits(
    state: SeamlessState, event: Event, body: limits.BetsApproved
) -> list[seamless.DebitOrdered]:
    """The debits of an approved request: one, or one for each bet if these are few enough."""
    profile = state.profiles[event.partner]
    staking = body.stage == bets.STAGE_UNSPECIFIED
    reason = (
        partner_wallet.DEBIT_REASON_STAKE if staking else partner_wallet.DEBIT_REASON_FURTHER_STAKE
    )
    apart = profile.debit_per_bet and len(body.bets) <= MAX_ORDERS
    groups = [[bet] for bet in body.bets] if apart else [list(body.bets)]
    return [
        seamless.DebitOrdered(
            transaction_id=transaction_id(
                event, "debit", event.partner, body.account_id, body.round_id, group[0].bet_id
            ),
            partner_id=event.partner,
            account_id=body.account_id,
            table_id=body.table_id,
            round_id=body.round_id,
            request_id=body.request_id,
            currency_code=body.currency_code,
            amount_minor=sum(bet.stake_minor for bet in group),
            reason=reason,
            bets=group,
            stage=body.stage,
            waiting_since=proto_of(event.position),
        )
        for group in groups
    ]


def debit_is_ordered(state: SeamlessState, event: Event, body: seamless.DebitOrdered) -> None:
    """A debit is under way. Part of evolve."""
    asked_by = event.cause or event.position
    money = state.rounds.get(body.round_id)
    if money is None:
        money = state.rounds[body.round_id] = RoundMoney(body.table_id)
    pending = money.pending.get(asked_by)
    if pending is None:
        pending = money.pending[asked_by] = PendingStake(
            body.request_id, body.partner_id, body.account_id, body.currency_code, body.stage
        )
    pending.bets.extend(body.bets)
    pending.transactions.append(body.transaction_id)
    movement = Movement(
        MovementKind.DEBIT,
        body.partner_id,
        body.account_id,
        body.table_id,
        body.round_id,
        body.currency_code,
        body.amount_minor,
        body.reason,
        list(body.bets),
        asked_by,
        event.time_us,
    )
    if body.stage == bets.STAGE_PLAY:
        # No marker ends it: its own answer is what the turn waits for.
        movement.due_us, movement.due_by = event.time_us + ANSWER_US, asked_by
    add_movement(state, body.transaction_id, movement)


def add_movement(state: SeamlessState, transaction: str, movement: Movement) -> None:
    """A movement is under way. Part of evolve."""
    state.movements[transaction] = movement
    state.open[movement.partner] = state.open.get(movement.partner, 0) + 1


def drop_movement(state: SeamlessState, transaction: str) -> Movement | None:
    """A movement has come to its end. Part of evolve."""
    movement = state.movements.pop(transaction, None)
    if movement is not None:
        left = state.open[movement.partner] - 1
        if left:
            state.open[movement.partner] = left
        else:
            del state.open[movement.partner]
    return movement


# ---- the stage ends ----------------------------------------------------------------------------


def book_is_closed(state: SeamlessState, event: Event, body: limits.BookClosed) -> None:
    """From now on the stage's debits have their time. Part of evolve."""
    money = state.rounds.get(body.round_id)
    if money is None:
        return
    for pending in money.pending.values():
        if pending.stage == body.stage:
            for transaction in pending.transactions:
                movement = state.movements[transaction]
                movement.due_us = event.time_us + ANSWER_US
                movement.due_by = event.position


def waits(
    state: SeamlessState, round_id: str, stage: int, *, besides: Position | None = None
) -> bool:
    """Whether a request of a stage is undecided, the one of `besides` apart."""
    money = state.rounds.get(round_id)
    return money is not None and any(
        pending.stage == stage and asked_by != besides
        for asked_by, pending in money.pending.items()
    )


# ---- what comes back ---------------------------------------------------------------------------


def reply_is_known(state: SeamlessState, event: Event, body: seamless.RecordReply) -> None:
    """What a partner said is kept with its movement. Part of evolve."""
    movement = state.movements.get(body.transaction_id)
    if movement is None or movement.partner != event.partner:
        return
    if position_of(body.asked_by) != movement.asked_by:
        return  # About another order: it decides nothing either.
    if movement.standing is MovementStanding.TAKEN:
        return  # A debit of several: what it said stands.
    movement.last_outcome = body.outcome
    movement.last_reason = reason_of(body)
    movement.last_us = event.time_us
    movement.calls += body.calls
    if movement.kind is MovementKind.DEBIT and body.outcome == seamless.REPLY_OUTCOME_DONE:
        movement.standing = MovementStanding.TAKEN
        movement.decided_by = event.position


def reason_of(body: seamless.RecordReply) -> str:
    """The reason that a reply gives, in a word."""
    if body.debit_decline:
        name = partner_wallet.DebitDecline.Name(body.debit_decline)
        return name.removeprefix("DEBIT_DECLINE_")
    if body.credit_refusal:
        name = partner_wallet.CreditRefusal.Name(body.credit_refusal)
        return name.removeprefix("CREDIT_REFUSAL_")
    if body.rollback_refusal:
        name = partner_wallet.RollbackRefusal.Name(body.rollback_refusal)
        return name.removeprefix("ROLLBACK_REFUSAL_")
    return body.problem


def decide_debit(
    state: SeamlessState, event: Event, body: seamless.RecordReply, movement: Movement
) -> Sequence[Message] | wallets.StakeReserved:
    """A reply about a debit that is waited for. `StakeReserved` alone: the request is on."""
    pending = state.rounds[movement.round_id].pending[movement.asked_by]
    taken = movement.standing is MovementStanding.TAKEN
    if taken and movement.decided_by != event.position:
        again = body.outcome in (seamless.REPLY_OUTCOME_DONE, seamless.REPLY_OUTCOME_UNKNOWN)
        return [ignored(again)]
    match body.outcome:
        case seamless.REPLY_OUTCOME_DONE:
            standings = [state.movements[one].standing for one in pending.transactions]
            if any(one is not MovementStanding.TAKEN for one in standings):
                return []
            return reserved(pending, movement)
        case seamless.REPLY_OUTCOME_DECLINED:
            decline = _DECLINES.get(body.debit_decline, wallets.DECLINE_PARTNER_DECLINED)
            where = (movement.round_id, movement.asked_by)
            # A call that is no good is not remembered, so an earlier one may still be carried out.
            left_open = body.problem and movement.calls > 1
            but = "" if left_open else body.transaction_id
            return decline_request(state, event, *where, decline, but=but)
        case seamless.REPLY_OUTCOME_CONTRADICTORY:
            return [
                disputed(body.transaction_id, movement, body.problem),
                *decline_request(
                    state,
                    event,
                    movement.round_id,
                    movement.asked_by,
                    wallets.DECLINE_PARTNER_CONTRADICTS,
                ),
            ]
        case _:
            return []


def reserved(pending: PendingStake, movement: Movement) -> wallets.StakeReserved:
    """The request is on."""
    return wallets.StakeReserved(
        request_id=pending.request_id,
        account_id=pending.account_id,
        table_id=movement.table_id,
        round_id=movement.round_id,
        currency_code=pending.currency_code,
        bets=pending.bets,
        stage=bets.Stage.ValueType(pending.stage),
        transaction_ids=pending.transactions,
        waiting_since=proto_of(movement.asked_by),
    )


def decline_request(
    state: SeamlessState,
    event: Event,
    round_id: str,
    asked_by: Position,
    decline: wallets.Decline.ValueType,
    *,
    but: str = "",
    reason: partner_wallet.RollbackReason.ValueType = partner_wallet.ROLLBACK_REASON_UNANSWERED,
) -> list[Message]:
    """A request is off; what the partner took of it, or may have taken, is rolled back. `but`: the
    debit that it declined itself."""
    money = state.rounds[round_id]
    pending = money.pending[asked_by]
    answers: list[Message] = [
        wallets.StakeDeclined(
            request_id=pending.request_id,
            account_id=pending.account_id,
            table_id=money.table_id,
            round_id=round_id,
            bets=pending.bets,
            decline=decline,
            stage=bets.Stage.ValueType(pending.stage),
            waiting_since=proto_of(asked_by),
            partner_id=pending.partner,
        )
    ]
    for transaction in pending.transactions:
        if transaction != but:
            debit = state.movements[transaction]
            answers.append(
                seamless.RollbackOrdered(
                    transaction_id=transaction_id(event, "rollback", transaction),
                    partner_id=debit.partner,
                    account_id=debit.account_id,
                    table_id=debit.table_id,
                    round_id=debit.round_id,
                    currency_code=debit.currency_code,
                    amount_minor=debit.amount_minor,
                    reason=reason,
                    bets=debit.bets,
                    debit_transaction_id=transaction,
                )
            )
    return answers


def decide_timeout(
    state: SeamlessState, event: Event, body: seamless.TimeOutDebit
) -> Sequence[Message]:
    """The time for an answer is over: the request is off."""
    movement = state.movements.get(body.transaction_id)
    if movement is None or movement.kind is not MovementKind.DEBIT:
        return [ignored(again=True)]
    if movement.partner != event.partner:
        return [log.InputIgnored(reason=log.IGNORED_REASON_IMPOSSIBLE)]
    if position_of(body.asked_by) != movement.due_by or movement.due_us is None:
        return [log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW)]
    if event.time_us < movement.due_us:
        return [log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW)]
    where = (movement.round_id, movement.asked_by)
    return decline_request(state, event, *where, wallets.DECLINE_PARTNER_UNANSWERED)


def request_is_on(state: SeamlessState, event: Event, body: wallets.StakeReserved) -> None:
    """The debits of a request stand behind its stakes now. Part of evolve."""
    money = state.rounds[body.round_id]
    pending = money.pending.pop(position_of(body.waiting_since))
    for transaction in pending.transactions:
        movement = drop_movement(state, transaction)
        if movement is None:
            raise InvariantViolated(f"debit {transaction} is taken, but was not under way")
        money.debits[transaction] = Debit(
            event.partner,
            body.account_id,
            body.currency_code,
            movement.amount_minor,
            movement.bets,
        )


def request_is_off(state: SeamlessState, body: wallets.StakeDeclined) -> None:
    """The debits of a request are no longer waited for. Part of evolve."""
    money = state.rounds[body.round_id]
    pending = money.pending.pop(position_of(body.waiting_since))
    for transaction in pending.transactions:
        drop_movement(state, transaction)


def disputed(transaction: str, movement: Movement, problem: str) -> seamless.MovementDisputed:
    """The alarm that a partner said what cannot be."""
    return seamless.MovementDisputed(
        transaction_id=transaction,
        partner_id=movement.partner,
        round_id=movement.round_id,
        problem=problem,
    )


def ignored(again: bool) -> log.InputIgnored:
    """An input about what is decided already: it agrees with that, or an alarm is raised."""
    reason = log.IGNORED_REASON_ALREADY_DONE if again else log.IGNORED_REASON_CONTRADICTS
    return log.InputIgnored(reason=reason)


def proto_of(position: Position) -> entry_pb2.Position:
    """A position as it stands in events."""
    return entry_pb2.Position(
        segment=position.segment, sequence=position.sequence, index=position.index
    )


def position_of(proto: entry_pb2.Position) -> Position:
    """A position from an event."""
    return Position(proto.segment, proto.sequence, proto.index)
