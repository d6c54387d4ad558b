"""Stakes: reserve them, seal them, give them back, pay them.

A stake that is reserved is settled exactly once or returned exactly once (invariant 2). Whatever
would break that is no refusal but a bug: `InvariantViolated`, with the facts.
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import bet_pb2 as bets
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.event import Answers, Event, InvariantViolated, Unfinished
from services.wallet.domain.state import RoundStakes, Stake, Standing, WalletState

STEP_BETS = 400
"""Bets returned in one step of a void: with the longest ids about 200 of an entry's 256 KiB."""


def reserve(
    state: WalletState, event: Event, body: limits.BetsApproved
) -> wallets.StakeReserved | wallets.StakeDeclined:
    """Reserve a request's stakes, all or none.

    Order of declines: a decision that failed before, sealed stakes, unknown, closed or blocked
    account, currency, funds.
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
    elif account.available_minor < total:
        decline = wallets.DECLINE_INSUFFICIENT_FUNDS
    else:
        _check_new(stakes, owner, body)
        return wallets.StakeReserved(
            request_id=body.request_id,
            account_id=body.account_id,
            table_id=body.table_id,
            round_id=body.round_id,
            currency_code=body.currency_code,
            bets=body.bets,
            stage=body.stage,
        )
    return wallets.StakeDeclined(
        request_id=body.request_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        bets=body.bets,
        decline=decline,
        stage=body.stage,
    )


def seal(body: limits.BookClosed) -> wallets.StakesSealed:
    """The marker behind the last stake of a stage: nothing more of it will be reserved."""
    return wallets.StakesSealed(table_id=body.table_id, round_id=body.round_id, stage=body.stage)


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
) -> wallets.StakeReturned:
    """Return those of the bets that are reserved: possibly none, and then it says so.

    Once the stakes are sealed (only a retry comes so late) the bets stand.
    """
    partner = body.partner_id or event.partner
    owner = (partner, body.account_id)
    account = state.accounts.get(owner)
    stakes = state.rounds.get(body.round_id)
    returned: list[bets.Bet] = []
    if stakes is not None and not stakes.sealed and not stakes.voided:
        reserved = stakes.stakes.get(owner, {})
        returned = [
            _bet(bet.bet_id, reserved[bet.bet_id]) for bet in body.bets if bet.bet_id in reserved
        ]
    return wallets.StakeReturned(
        request_id=body.request_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        currency_code="" if account is None else account.currency_code,
        bets=returned,
        reason=wallets.RETURN_REASON_LATE if body.late else wallets.RETURN_REASON_WITHDRAWN,
        partner_id=partner,
    )


def return_step(state: WalletState, round_id: str) -> Answers:
    """The next step of a void: at most 400 bets, oldest first; the marker after the last."""
    stakes = state.rounds.get(round_id)
    if stakes is None:
        raise InvariantViolated(f"round {round_id} is voided, but its stakes are gone already")
    answers: list[Message] = []
    room = STEP_BETS
    for (partner, account_id), reserved in stakes.stakes.items():
        if not room:
            return Unfinished(answers)
        returned = [_bet(bet_id, stake) for bet_id, stake in list(reserved.items())[:room]]
        room -= len(returned)
        answers.append(
            wallets.StakeReturned(
                account_id=account_id,
                table_id=stakes.table_id,
                round_id=round_id,
                currency_code=state.accounts[partner, account_id].currency_code,
                bets=returned,
                reason=wallets.RETURN_REASON_VOIDED,
                partner_id=partner,
            )
        )
        if len(returned) < len(reserved):
            return Unfinished(answers)
    answers.append(wallets.RoundReturned(table_id=stakes.table_id, round_id=round_id))
    return answers


def pay(state: WalletState, body: settlements.BetsSettled) -> wallets.PayoutPosted:
    """Pay an account's bets of a round: exactly those that are reserved, each as it was staked."""
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
    return wallets.PayoutPosted(
        partner_id=body.partner_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        currency_code=body.currency_code,
        stake_minor=stake,
        payout_minor=payout,
        commission_minor=commission,
    )


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
    for bet in body.bets:
        reserved[bet.bet_id] = Stake(bet.bet, bet.stake_minor, bet.position)


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
