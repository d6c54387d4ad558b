"""Stakes: reserve them, seal them, give them back, pay them.

A stake that is reserved is settled exactly once or returned exactly once (invariant 2). Whatever
would break that is no refusal but a bug: `InvariantViolated`, with the facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import bet_pb2 as bets
from sabot.wallet.v1 import events_pb2 as wallets
from services.games.steps import step_bets
from services.kernel.event import Answers, Event, InvariantViolated, Unfinished
from services.wallet.domain.seamless_debits import (
    MAX_ORDERS,
    decline_request,
    order_debits,
    overdue,
    position_of,
    waits,
)
from services.wallet.domain.seamless_returns import (
    Order,
    decline_withdrawn,
    order_payment,
    order_returns,
)
from services.wallet.domain.seamless_state import is_seamless
from services.wallet.domain.state import RoundStakes, Stake, Standing, WalletState


def reserve(state: WalletState, event: Event, body: limits.BetsApproved) -> Sequence[Message]:
    """Reserve a request's stakes, all or none; a seamless partner is asked for them first.

    Order of declines: a decision that failed before, sealed stakes, unknown, closed or blocked
    account, currency, a seamless partner's unconfirmed movements, funds.
    """
    owner = (event.partner, body.account_id)
    total = _total(body)
    account = state.accounts.get(owner)
    stakes = state.rounds.get(body.round_id)
    if event.retried:
        # It has counted as declined since it failed; the round may be over.
        decline = wallets.DECLINE_FAILED
    elif stakes is not None and is_sealed(stakes, body.stage):
        decline = wallets.DECLINE_STAKES_SEALED
    elif account is None:
        decline = wallets.DECLINE_UNKNOWN_ACCOUNT
    elif account.standing is Standing.CLOSED:
        decline = wallets.DECLINE_ACCOUNT_CLOSED
    elif account.standing is Standing.BLOCKED:
        decline = wallets.DECLINE_ACCOUNT_BLOCKED
    elif account.currency_code != body.currency_code:
        decline = wallets.DECLINE_CURRENCY_MISMATCH
    elif is_seamless(state.seamless, event.partner):
        _check_new(stakes, owner, body)
        if not overdue(state.seamless, event.partner):
            return order_debits(state.seamless, event, body)
        decline = wallets.DECLINE_PARTNER_OVERDUE
    elif account.available_minor < total:
        decline = wallets.DECLINE_INSUFFICIENT_FUNDS
    else:
        _check_new(stakes, owner, body)
        return [
            wallets.StakeReserved(
                request_id=body.request_id,
                account_id=body.account_id,
                table_id=body.table_id,
                round_id=body.round_id,
                currency_code=body.currency_code,
                bets=body.bets,
                stage=body.stage,
            )
        ]
    return [
        wallets.StakeDeclined(
            request_id=body.request_id,
            account_id=body.account_id,
            table_id=body.table_id,
            round_id=body.round_id,
            bets=body.bets,
            decline=decline,
            stage=body.stage,
        )
    ]


def seal(state: WalletState, body: limits.BookClosed) -> Sequence[Message]:
    """The marker behind the last stake of a stage: nothing more of it will be reserved. Where a
    seamless partner has not answered yet, it follows the last answer."""
    if waits(state.seamless, body.round_id, body.stage):
        return ()
    return [wallets.StakesSealed(table_id=body.table_id, round_id=body.round_id, stage=body.stage)]


def seal_behind(state: WalletState, answers: Sequence[Message]) -> Sequence[Message]:
    """The answers that decide a seamless request, and the marker behind them where it was the last
    of a stage that is over."""
    for body in answers:
        if isinstance(body, wallets.StakeReserved | wallets.StakeDeclined):
            stakes = state.rounds.get(body.round_id)
            over = stakes is not None and not stakes.voided and is_sealed(stakes, body.stage)
            asked_by = position_of(body.waiting_since)
            if over and not waits(state.seamless, body.round_id, body.stage, besides=asked_by):
                sealed = wallets.StakesSealed(
                    table_id=body.table_id, round_id=body.round_id, stage=body.stage
                )
                return [*answers, sealed]
    return answers


def note_closed(state: WalletState, body: limits.BookClosed) -> None:
    """A stage takes no more stakes. Part of evolve."""
    stakes = of_round(state, body)
    match body.stage:
        case bets.STAGE_INSURANCE:
            stakes.insurance_sealed = True
        case _:
            stakes.sealed = True


def is_sealed(stakes: RoundStakes, stage: bets.Stage.ValueType) -> bool:
    """Whether a round reserves nothing more at this stage. A double or a split has no marker: its
    own answer is its seal, and the turn waits for it."""
    match stage:
        case bets.STAGE_PLAY:
            return stakes.voided
        case bets.STAGE_INSURANCE:
            return stakes.insurance_sealed or stakes.voided
        case _:
            return stakes.sealed or stakes.voided


def take_back(
    state: WalletState, event: Event, body: limits.WithdrawalApproved
) -> Sequence[Message]:
    """Return those of the bets that are reserved: possibly none, and then it says so. Requests that
    a seamless partner has not answered yet are off where all of their bets are withdrawn.

    Once the stakes are sealed (only a retry comes so late) the bets stand.
    """
    partner = body.partner_id or event.partner
    owner = (partner, body.account_id)
    account = state.accounts.get(owner)
    stakes = state.rounds.get(body.round_id)
    reserved: dict[str, Stake] = {}
    if takes_back(state, body.round_id):
        reserved = {} if stakes is None else stakes.stakes.get(owner, {})
    returned = [
        _bet(bet.bet_id, reserved[bet.bet_id]) for bet in body.bets if bet.bet_id in reserved
    ]
    orders = _orders(
        state, event, body.round_id, returned, reserved, partner_wallet.ROLLBACK_REASON_WITHDRAWN
    )
    back = wallets.StakeReturned(
        request_id=body.request_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        currency_code="" if account is None else account.currency_code,
        bets=returned,
        reason=wallets.RETURN_REASON_LATE if body.late else wallets.RETURN_REASON_WITHDRAWN,
        partner_id=partner,
        transaction_ids=[order.transaction_id for order in orders],
    )
    declined: list[Message] = []
    if takes_back(state, body.round_id):
        room = MAX_ORDERS - len(orders)
        declined = decline_withdrawn(state.seamless, event, partner, body, room)
    # The first answer is what the withdrawal's caller hears of.
    return [back, *orders, *declined]


def takes_back(state: WalletState, round_id: str) -> bool:
    """Whether bets of a round may still be withdrawn."""
    stakes = state.rounds.get(round_id)
    return stakes is None or not (stakes.sealed or stakes.voided)


def _orders(
    state: WalletState,
    event: Event,
    round_id: str,
    returned: Sequence[bets.Bet],
    reserved: Mapping[str, Stake],
    reason: partner_wallet.RollbackReason.ValueType,
    apart: int = MAX_ORDERS,
) -> list[Order]:
    """What a seamless partner must do so that stakes of one of its accounts go back; nothing where
    they came from cash here. `apart`: see `order_returns`."""
    paid_by = {bet.bet_id: reserved[bet.bet_id].transaction_id for bet in returned}
    if not any(paid_by.values()):
        return []
    money = state.seamless.rounds[round_id]
    return order_returns(event, money, round_id, returned, paid_by, reason, apart)


def return_step(state: WalletState, event: Event, round_id: str) -> Answers:
    """The next step of a void: requests that seamless partners have not answered are off; then as
    many bets as a step holds go back, oldest first; the marker after the last. How many that is,
    the behaviour in force at each step says: all in all the same goes back either way."""
    stakes = state.rounds.get(round_id)
    if stakes is None:
        raise InvariantViolated(f"round {round_id} is voided, but its stakes are gone already")
    answers: list[Message] = []
    room = step_bets(event.behaviour)
    money = state.seamless.rounds.get(round_id)
    for asked_by, pending in () if money is None else money.pending.items():
        if room <= 0:
            return Unfinished(answers)
        # The event that tells of a bet that is off may stand beside one that rolls it back.
        room -= 2 * len(pending.bets)
        answers += decline_request(
            state.seamless,
            event,
            round_id,
            asked_by,
            wallets.DECLINE_STAKES_SEALED,
            reason=partner_wallet.ROLLBACK_REASON_VOIDED,
        )
    for (partner, account_id), reserved in stakes.stakes.items():
        if room <= 0:
            return Unfinished(answers)
        back, orders = _void(state, event, stakes, round_id, (partner, account_id), room)
        room -= len(back.bets) + len(orders)
        answers += [back, *orders]
        if len(back.bets) < len(reserved):
            return Unfinished(answers)
    answers.append(wallets.RoundReturned(table_id=stakes.table_id, round_id=round_id))
    return answers


def _void(
    state: WalletState,
    event: Event,
    stakes: RoundStakes,
    round_id: str,
    owner: tuple[str, str],
    room: int,
) -> tuple[wallets.StakeReturned, list[Order]]:
    """An account's stakes of a voided round, as many as there is room for, and what a seamless
    partner must do for it."""
    reserved = stakes.stakes[owner]
    returned = [_bet(bet_id, reserved[bet_id]) for bet_id in _fitting(reserved, room)]
    orders = _orders(
        state, event, round_id, returned, reserved, partner_wallet.ROLLBACK_REASON_VOIDED, room
    )
    back = wallets.StakeReturned(
        account_id=owner[1],
        table_id=stakes.table_id,
        round_id=round_id,
        currency_code=state.accounts[owner].currency_code,
        bets=returned,
        reason=wallets.RETURN_REASON_VOIDED,
        partner_id=owner[0],
        transaction_ids=[order.transaction_id for order in orders],
    )
    return back, orders


def _fitting(reserved: Mapping[str, Stake], room: int) -> list[str]:
    """The bets that may go back in a step that has `room` for one and more: each takes some, and
    so does the call for each debit behind them."""
    fitting: list[str] = []
    debits = {""}
    for bet_id, stake in reserved.items():
        room -= 1 if stake.transaction_id in debits else 2
        if room < 0 and fitting:
            break
        debits.add(stake.transaction_id)
        fitting.append(bet_id)
    return fitting


def pay(state: WalletState, event: Event, body: settlements.BetsSettled) -> Sequence[Message]:
    """Pay an account's bets of a round: exactly those that are reserved, each as it was staked. A
    seamless partner is ordered to."""
    owner = (body.partner_id, body.account_id)
    stakes = state.rounds.get(body.round_id)
    reserved = None if stakes is None else stakes.stakes.get(owner)
    who = f"account {body.account_id} of {body.partner_id} in round {body.round_id}"
    if stakes is None or reserved is None:
        raise InvariantViolated(f"{who} is settled without a reserved stake")
    if stakes.voided or not stakes.sealed:
        raise InvariantViolated(f"{who} is settled: sealed {stakes.sealed}, voided {stakes.voided}")
    settled = {bet.bet_id: bet for bet in body.bets}
    if len(settled) != len(body.bets) or settled.keys() != reserved.keys():
        raise InvariantViolated(f"{who}: settled {sorted(settled)}, reserved {sorted(reserved)}")
    if body.currency_code != state.accounts[owner].currency_code:
        raise InvariantViolated(f"{who} is settled in {body.currency_code}")
    stake = payout = commission = 0
    for bet in body.bets:
        if (
            bet.stake_minor != reserved[bet.bet_id].stake_minor
            or bet.payout_minor != bet.stake_minor + bet.profit_minor
            or bet.payout_minor < 0
            or bet.commission_minor < 0
        ):
            raise InvariantViolated(f"{who}: {bet.bet_id} does not add up: {bet}")
        stake += bet.stake_minor
        payout += bet.payout_minor
        commission += bet.commission_minor
    posted = wallets.PayoutPosted(
        partner_id=body.partner_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        currency_code=body.currency_code,
        stake_minor=stake,
        payout_minor=payout,
        commission_minor=commission,
    )
    debit_ids = list(dict.fromkeys(one.transaction_id for one in reserved.values()))
    if debit_ids == [""]:
        return [posted]
    posted.due = True
    credit = order_payment(state.seamless, event, body, debit_ids, payout)
    if credit is None:
        return [posted]
    posted.transaction_id = credit.transaction_id
    return [posted, credit]


def end(state: WalletState, body: settlements.RoundSettled) -> wallets.RoundPaid:
    """The marker after a round's last payout. Nothing of it may be left reserved."""
    stakes = state.rounds.get(body.round_id)
    if stakes is None:
        raise InvariantViolated(
            f"round {body.round_id} is settled, but its stakes are gone already"
        )
    if stakes.stakes or stakes.voided or not stakes.sealed:
        raise InvariantViolated(
            f"round {body.round_id} is settled: {len(stakes.stakes)} accounts unpaid, "
            f"sealed {stakes.sealed}, voided {stakes.voided}"
        )
    return wallets.RoundPaid(table_id=body.table_id, round_id=body.round_id)


def hold(state: WalletState, partner: str, body: wallets.StakeReserved) -> None:
    """Keep the stakes of a request. Part of evolve."""
    reserved = of_round(state, body).stakes.setdefault((partner, body.account_id), {})
    debits = body.transaction_ids
    for place, bet in enumerate(body.bets):
        paid_by = debits[place if len(debits) > 1 else 0] if debits else ""
        reserved[bet.bet_id] = Stake(bet.bet, bet.stake_minor, bet.position, paid_by)


def drop(state: WalletState, body: wallets.StakeReturned | wallets.PayoutPosted) -> None:
    """Forget stakes that went back, or all of an account's that were paid. Part of evolve."""
    stakes = state.rounds.get(body.round_id)
    owner = (body.partner_id, body.account_id)
    reserved = None if stakes is None else stakes.stakes.get(owner)
    if stakes is None or reserved is None:
        return
    if isinstance(body, wallets.StakeReturned):
        for bet in body.bets:
            reserved.pop(bet.bet_id, None)
        if reserved:
            return
    else:
        money = state.seamless.rounds.get(body.round_id)
        if money is not None:
            for stake in reserved.values():
                money.debits.pop(stake.transaction_id, None)
    del stakes.stakes[owner]


def of_round(
    state: WalletState,
    body: wallets.StakeReserved | limits.BookClosed | limits.BookVoided,
) -> RoundStakes:
    """The stakes of a round, from its first one or its marker on. Part of evolve."""
    stakes = state.rounds.get(body.round_id)
    if stakes is None:
        stakes = state.rounds[body.round_id] = RoundStakes(body.table_id)
    return stakes


def _total(body: limits.BetsApproved) -> int:
    total = 0
    for bet in body.bets:
        stake = bet.stake_minor
        if stake < 1:
            raise InvariantViolated(f"bet {bet.bet_id} is approved with a stake of {stake}")
        total += stake
    return total


def _check_new(
    stakes: RoundStakes | None, owner: tuple[str, str], body: limits.BetsApproved
) -> None:
    reserved = None if stakes is None else stakes.stakes.get(owner)
    if reserved is not None:
        for bet in body.bets:
            if bet.bet_id in reserved:
                raise InvariantViolated(f"bet {bet.bet_id} is approved, but reserved already")


def _bet(bet_id: str, stake: Stake) -> bets.Bet:
    return bets.Bet(
        bet_id=bet_id, bet=stake.bet, stake_minor=stake.stake_minor, position=stake.position
    )
