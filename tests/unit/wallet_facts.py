"""The facts that the wallet's tests speak of: account `a1` of partner `acme`, round `t1-1`."""

from __future__ import annotations

from sabot.limits.v1 import events_pb2 as limits
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import bet_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.wallet.domain.core import CORE
from services.wallet.domain.state import WalletState
from tests.unit.deciding import Deciding, Fact, by, request_id

T, R, A = "t1", "t1-1", "a1"
SUPERVISOR = "operator:sam"

Wager = tuple[str, str, int]
"""(bet id, kind, stake)."""
Request = (
    wallet.OpenAccount
    | wallet.CloseAccount
    | wallet.BlockAccount
    | wallet.UnblockAccount
    | wallet.Deposit
    | wallet.Withdraw
)


def asked(body: Request, number: int, at_us: int | None = None, partner: str = "acme") -> Fact:
    """A request with its id and hash; operators' requests name the account's partner beside it."""
    body.request_id = request_id(number, at_us or 0)
    body.request_hash = str(body).encode()
    operators = isinstance(body, wallet.BlockAccount | wallet.UnblockAccount)
    return by(body, partner=partner, actor=SUPERVISOR if operators else None, at_us=at_us)


def open_account(number: int = 1, account: str = A, currency: str = "EUR") -> Fact:
    return asked(wallet.OpenAccount(account_id=account, currency_code=currency), number)


def close(number: int, account: str = A) -> Fact:
    return asked(wallet.CloseAccount(account_id=account), number)


def block(number: int, account: str = A) -> Fact:
    return asked(wallet.BlockAccount(account_id=account), number)


def unblock(number: int, account: str = A) -> Fact:
    return asked(wallet.UnblockAccount(account_id=account), number)


def deposit(number: int, minor: int, account: str = A, currency: str = "EUR") -> Fact:
    body = wallet.Deposit(account_id=account, currency_code=currency, amount_minor=minor)
    return asked(body, number)


def withdraw(number: int, minor: int, account: str = A, currency: str = "EUR") -> Fact:
    body = wallet.Withdraw(account_id=account, currency_code=currency, amount_minor=minor)
    return asked(body, number)


def deposit_approved(number: int, minor: int, account: str = A) -> limits.DepositApproved:
    return limits.DepositApproved(
        request_id=request_id(number), account_id=account, currency_code="EUR", amount_minor=minor
    )


def declined(
    number: int, decline: wallet.Decline.ValueType, account: str = A
) -> wallet.AccountRequestDeclined:
    return wallet.AccountRequestDeclined(
        request_id=request_id(number), account_id=account, decline=decline
    )


def with_money(minor: int, *accounts: str) -> Deciding[WalletState]:
    """Open accounts, each with so much."""
    game = Deciding(CORE)
    for number, account in enumerate(accounts or (A,)):
        game.given(open_account(9_000 + number, account))
        if minor:
            game.given(
                deposit(8_000 + number, minor, account),
                deposit_approved(8_000 + number, minor, account),
            )
    return game


def bets(*wagers: Wager) -> list[bet_pb2.Bet]:
    return [bet_pb2.Bet(bet_id=one, bet=kind, stake_minor=stake) for one, kind, stake in wagers]


def approved(
    request: str, *wagers: Wager, account: str = A, currency: str = "EUR", round_id: str = R
) -> limits.BetsApproved:
    return limits.BetsApproved(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=round_id,
        currency_code=currency,
        bets=bets(*wagers),
    )


def reserved(request: str, *wagers: Wager, account: str = A) -> wallet.StakeReserved:
    return wallet.StakeReserved(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=bets(*wagers),
    )


def stake_declined(
    request: str, decline: wallet.Decline.ValueType, *wagers: Wager, account: str = A
) -> wallet.StakeDeclined:
    return wallet.StakeDeclined(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=R,
        bets=bets(*wagers),
        decline=decline,
    )


def withdrawal(request: str, *wagers: Wager) -> limits.WithdrawalApproved:
    return limits.WithdrawalApproved(
        request_id=request, account_id=A, table_id=T, round_id=R, bets=bets(*wagers)
    )


def returned(
    request: str,
    reason: wallet.ReturnReason.ValueType,
    *wagers: Wager,
    account: str = A,
    currency: str = "EUR",
) -> wallet.StakeReturned:
    return wallet.StakeReturned(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code=currency,
        bets=bets(*wagers),
        reason=reason,
        partner_id="acme",
    )


BOOK_CLOSED = limits.BookClosed(table_id=T, round_id=R)
BOOK_VOIDED = limits.BookVoided(table_id=T, round_id=R)
SEALED = wallet.StakesSealed(table_id=T, round_id=R)
ROUND_SETTLED = settlement.RoundSettled(table_id=T, round_id=R)
PAID = wallet.RoundPaid(table_id=T, round_id=R)
RETURNED = wallet.RoundReturned(table_id=T, round_id=R)


def settled(
    *lines: tuple[str, str, int, int, int], account: str = A, currency: str = "EUR"
) -> Fact:
    """(bet id, kind, stake, profit, commission)."""
    body = settlement.BetsSettled(
        partner_id="acme",
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code=currency,
        bets=[
            settlement.SettledBet(
                bet_id=bet_id,
                bet=kind,
                stake_minor=stake,
                outcome=settlement.OUTCOME_WON if profit > 0 else settlement.OUTCOME_LOST,
                profit_minor=profit,
                payout_minor=stake + profit,
                commission_minor=commission,
            )
            for bet_id, kind, stake, profit, commission in lines
        ],
    )
    return by(body, partner="", actor="operator:dana")


def payout(stake: int, paid: int, commission: int = 0, account: str = A) -> wallet.PayoutPosted:
    return wallet.PayoutPosted(
        partner_id="acme",
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        stake_minor=stake,
        payout_minor=paid,
        commission_minor=commission,
    )


def balance(game: Deciding[WalletState], account: str = A) -> tuple[int, int]:
    """(available, reserved), minor units."""
    held = game.state.accounts["acme", account]
    return held.available_minor, held.reserved_minor
