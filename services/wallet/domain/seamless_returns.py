"""Money that goes back to seamless partners: winnings, withdrawn and voided stakes.

It leaves the stakes at once, so that no round waits for a partner, and is due to the partner until
its wallet has confirmed it. A debit whose stakes all go back is rolled back whole, unless a credit
has named it already; a part of one is credited. Where a withdrawal gives back the stakes of very
many debits, those beyond `MAX_ORDERS` go back by one credit that names them all; a void goes in
steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import bet_pb2 as bets
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import Event, Position
from services.wallet.domain.seamless_debits import (
    MAX_ORDERS,
    add_movement,
    decline_request,
    transaction_id,
)
from services.wallet.domain.seamless_state import (
    Debit,
    Leaving,
    Movement,
    MovementKind,
    PendingStake,
    RoundMoney,
    SeamlessState,
)

Order = seamless.CreditOrdered | seamless.RollbackOrdered

MAX_LEAVING = 50
"""Withdrawals of parts of a pending request that are told apart when it is on: the bets of later
ones go back with those of the last that is."""


# ---- stakes that go back -----------------------------------------------------------------------


def order_returns(
    event: Event,
    money: RoundMoney,
    round_id: str,
    returned: Sequence[bets.Bet],
    paid_by: Mapping[str, str],
    reason: partner_wallet.RollbackReason.ValueType,
    apart: int = MAX_ORDERS,
) -> list[Order]:
    """What gives stakes back. `paid_by`: by bet id, the debit that paid the stake. `apart`: for so
    many debits one by one."""
    parts: dict[str, list[bets.Bet]] = {}
    for bet in returned:
        parts.setdefault(paid_by[bet.bet_id], []).append(bet)
    debit_ids = list(parts)
    together = debit_ids[apart:]
    orders = [
        _return(
            event,
            money.table_id,
            round_id,
            debit_id,
            money.debits[debit_id],
            parts[debit_id],
            reason,
        )
        for debit_id in debit_ids[:apart]
    ]
    if together:
        rest = [bet for debit_id in together for bet in parts[debit_id]]
        debit = money.debits[together[0]]
        orders.append(_credit(event, money.table_id, round_id, together, debit, rest))
    return orders


def _return(
    event: Event,
    table_id: str,
    round_id: str,
    debit_id: str,
    debit: Debit,
    part: Sequence[bets.Bet],
    reason: partner_wallet.RollbackReason.ValueType,
) -> Order:
    minor = sum(bet.stake_minor for bet in part)
    if minor == debit.amount_minor and not debit.named:
        return seamless.RollbackOrdered(
            transaction_id=transaction_id(event, "rollback", debit_id),
            partner_id=debit.partner,
            account_id=debit.account_id,
            table_id=table_id,
            round_id=round_id,
            currency_code=debit.currency_code,
            amount_minor=minor,
            reason=reason,
            bets=part,
            debit_transaction_id=debit_id,
            booked=True,
        )
    return _credit(event, table_id, round_id, [debit_id], debit, part)


def _credit(
    event: Event,
    table_id: str,
    round_id: str,
    debit_ids: Sequence[str],
    debit: Debit,
    returned: Sequence[bets.Bet],
) -> seamless.CreditOrdered:
    """What gives back stakes of debits, of which `debit` is one: all are of one account."""
    return seamless.CreditOrdered(
        transaction_id=transaction_id(event, "return", debit_ids[0], returned[0].bet_id),
        partner_id=debit.partner,
        account_id=debit.account_id,
        table_id=table_id,
        round_id=round_id,
        currency_code=debit.currency_code,
        amount_minor=sum(bet.stake_minor for bet in returned),
        reason=partner_wallet.CREDIT_REASON_STAKE_RETURNED,
        bets=returned,
        debit_transaction_ids=debit_ids,
    )


# ---- withdrawals of requests that are not on yet -----------------------------------------------


def note_leaving(state: SeamlessState, partner: str, body: limits.WithdrawalApproved) -> None:
    """Bets whose debits are under way are withdrawn. Part of evolve."""
    wanted = {bet.bet_id for bet in body.bets}
    for _, pending in _undecided(state, partner, body):
        gone = {one for leaving in pending.leaving for one in leaving.bet_ids}
        wanted_here = wanted - gone
        ids = [bet.bet_id for bet in pending.bets if bet.bet_id in wanted_here]
        last = pending.leaving[-1] if len(pending.leaving) >= MAX_LEAVING else None
        if ids and last is not None and last.late == body.late:
            last.bet_ids.extend(ids)
        elif ids:
            pending.leaving.append(Leaving(body.request_id, body.late, ids))


def decline_withdrawn(
    state: SeamlessState, event: Event, partner: str, body: limits.WithdrawalApproved, room: int
) -> list[Message]:
    """Requests all of whose bets were withdrawn before the partner had answered are off. Of others
    the withdrawn bets go back once the request is on, and so do those of requests that there is no
    `room` for, in rollbacks."""
    answers: list[Message] = []
    for asked_by, pending in _undecided(state, partner, body):
        leaves = sum(len(leaving.bet_ids) for leaving in pending.leaving) == len(pending.bets)
        if leaves and len(pending.transactions) <= room:
            room -= len(pending.transactions)
            answers += decline_request(
                state,
                event,
                body.round_id,
                asked_by,
                wallets.DECLINE_WITHDRAWN,
                reason=partner_wallet.ROLLBACK_REASON_WITHDRAWN,
            )
    return answers


def _undecided(
    state: SeamlessState, partner: str, body: limits.WithdrawalApproved
) -> list[tuple[Position, PendingStake]]:
    """The account's requests of the round that the partner has not answered."""
    money = state.rounds.get(body.round_id)
    if money is None:
        return []
    owner = (partner, body.account_id)
    return [
        (asked_by, pending)
        for asked_by, pending in money.pending.items()
        if (pending.partner, pending.account_id) == owner
    ]


def return_leaving(
    state: SeamlessState, event: Event, round_id: str, pending: PendingStake
) -> list[Message]:
    """A request is on of which bets were withdrawn meanwhile: they go back at once."""
    money = state.rounds[round_id]
    debits = {
        one: Debit(
            pending.partner,
            pending.account_id,
            pending.currency_code,
            state.movements[one].amount_minor,
            state.movements[one].bets,
        )
        for one in pending.transactions
    }
    coming = RoundMoney(money.table_id, debits=debits)
    paid_by = {bet.bet_id: one for one, debit in debits.items() for bet in debit.bets}
    answers: list[Message] = []
    for leaving in pending.leaving:
        returned = [bet for bet in pending.bets if bet.bet_id in leaving.bet_ids]
        orders = order_returns(
            event,
            coming,
            round_id,
            returned,
            paid_by,
            partner_wallet.ROLLBACK_REASON_WITHDRAWN,
        )
        reason = wallets.RETURN_REASON_LATE if leaving.late else wallets.RETURN_REASON_WITHDRAWN
        answers.append(
            wallets.StakeReturned(
                request_id=leaving.request_id,
                account_id=pending.account_id,
                table_id=money.table_id,
                round_id=round_id,
                currency_code=pending.currency_code,
                bets=returned,
                reason=reason,
                partner_id=pending.partner,
                transaction_ids=[order.transaction_id for order in orders],
            )
        )
        answers += orders
    return answers


# ---- the end of a round ------------------------------------------------------------------------


def order_payment(
    state: SeamlessState,
    event: Event,
    body: settlements.BetsSettled,
    debit_ids: Sequence[str],
    payout_minor: int,
) -> seamless.CreditOrdered | None:
    """What pays an account's bets of a round; None where there is nothing to pay and the partner
    is not told of it."""
    if not payout_minor and not state.profiles[body.partner_id].end_of_round:
        return None
    money = state.rounds[body.round_id]
    settled = {bet.bet_id for bet in body.bets}  # Others of a debit were withdrawn.
    paying = payout_minor > 0
    return seamless.CreditOrdered(
        transaction_id=transaction_id(event, "credit", body.partner_id, body.account_id),
        partner_id=body.partner_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        currency_code=body.currency_code,
        amount_minor=payout_minor,
        reason=(
            partner_wallet.CREDIT_REASON_WINNINGS
            if paying
            else partner_wallet.CREDIT_REASON_ROUND_ENDED
        ),
        bets=[bet for one in debit_ids for bet in money.debits[one].bets if bet.bet_id in settled],
        debit_transaction_ids=debit_ids,
        round_ended=True,
        rule_set_hash=body.rule_set_hash,
    )


# ---- evolve ------------------------------------------------------------------------------------


def credit_is_ordered(state: SeamlessState, event: Event, body: seamless.CreditOrdered) -> None:
    """A credit is under way. Part of evolve."""
    money = state.rounds.get(body.round_id)
    if money is not None:
        for one in body.debit_transaction_ids:
            debit = money.debits.get(one)
            if debit is not None:
                debit.named = True
    add_movement(
        state,
        body.transaction_id,
        Movement(
            MovementKind.CREDIT,
            body.partner_id,
            body.account_id,
            body.table_id,
            body.round_id,
            body.currency_code,
            body.amount_minor,
            body.reason,
            list(body.bets),
            event.cause or event.position,
            event.time_us,
            debits=list(body.debit_transaction_ids),
            round_ended=body.round_ended,
            booked=body.amount_minor > 0,
            rule_set_hash=body.rule_set_hash,
        ),
    )


def rollback_is_ordered(state: SeamlessState, event: Event, body: seamless.RollbackOrdered) -> None:
    """A rollback is under way; its debit stands behind no stake any more. Part of evolve."""
    money = state.rounds.get(body.round_id)
    if money is not None:
        money.debits.pop(body.debit_transaction_id, None)
    add_movement(
        state,
        body.transaction_id,
        Movement(
            MovementKind.ROLLBACK,
            body.partner_id,
            body.account_id,
            body.table_id,
            body.round_id,
            body.currency_code,
            body.amount_minor,
            body.reason,
            list(body.bets),
            event.cause or event.position,
            event.time_us,
            debits=[body.debit_transaction_id],
            booked=body.booked,
        ),
    )
