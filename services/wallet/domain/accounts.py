"""Requests about accounts: open, close, block, pay in, pay out.

Order of refusals: the request id (expired or ahead of time, repeated, reused), then how the account
stands, then its currency, then the amount.
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.event import Event, InvariantViolated
from services.kernel.requests import Standing as IdStanding
from services.wallet.domain.seamless_corrections import being_paid_minor
from services.wallet.domain.seamless_state import is_seamless
from services.wallet.domain.state import Account, Standing, WalletState

MAX_ACCOUNTS = 1_000_000
"""Accounts that a partner may ever open: all of them are in memory, about 400 bytes each."""
MAX_BALANCE_MINOR = 10**15
"""The most that deposits may bring an account to: a thousand of the largest ones. Together with all
that can be won it stays far inside 64 bits. Winnings are never refused by it."""

Request = (
    wallets.OpenAccount
    | wallets.CloseAccount
    | wallets.BlockAccount
    | wallets.UnblockAccount
    | wallets.Deposit
    | wallets.Withdraw
    | corrections.SettleReceivable
    | corrections.SetShortfallPolicy
)

_OF_OPERATORS = (
    wallets.BlockAccount,
    wallets.UnblockAccount,
    corrections.SettleReceivable,
    corrections.SetShortfallPolicy,
)

ID_DECLINES = frozenset(
    {
        wallets.DECLINE_REQUEST_EXPIRED,
        wallets.DECLINE_REQUEST_ID_AHEAD,
        wallets.DECLINE_REQUEST_ID_REUSED,
    }
)
"""Declines that speak of the request id alone: an earlier request with this id is not touched."""


def use_request_id(state: WalletState, event: Event, body: Request) -> None:
    """Remember a request's id, if this is its first use. Part of evolve."""
    scope = _scope(event, body)
    if _id_standing(state, event, scope, body)[0] is IdStanding.NEW:
        state.requests.use(scope, body.request_id, body.request_hash, event.position, event.time_us)


def answer_request(state: WalletState, event: Event, body: Request) -> Message:
    """Answer one request."""
    refused = _refused_by_id(state, event, body)
    if refused is not None:
        return refused
    decline = _decline(state, event.partner, body)
    if decline is not None:
        return declined(body, decline)
    match body:
        case wallets.OpenAccount():
            return wallets.AccountOpened(
                account_id=body.account_id,
                currency_code=body.currency_code,
                jurisdiction=body.jurisdiction,
                age=body.age,
            )
        case wallets.CloseAccount():
            return wallets.AccountClosed(account_id=body.account_id)
        case wallets.BlockAccount():
            return wallets.AccountBlocked(account_id=body.account_id)
        case wallets.UnblockAccount():
            return wallets.AccountUnblocked(account_id=body.account_id)
        case wallets.Deposit():
            return wallets.DepositRequested(
                request_id=body.request_id,
                account_id=body.account_id,
                currency_code=body.currency_code,
                amount_minor=body.amount_minor,
            )
        case wallets.Withdraw():
            return wallets.FundsWithdrawn(
                request_id=body.request_id,
                account_id=body.account_id,
                currency_code=body.currency_code,
                amount_minor=body.amount_minor,
            )
        case corrections.SettleReceivable():
            return corrections.ReceivableSettled(
                request_id=body.request_id,
                partner_id=event.partner,
                account_id=body.account_id,
                currency_code=body.currency_code,
                amount_minor=body.amount_minor,
                at_partner=is_seamless(state.seamless, event.partner),
            )
        case corrections.SetShortfallPolicy():
            return corrections.ShortfallPolicySet(
                request_id=body.request_id, partner_id=event.partner, policy=body.policy
            )


def answer_approval(
    state: WalletState, partner: str, request_id: str
) -> wallets.FundsDeposited | wallets.AccountRequestDeclined | None:
    """Limits approved a deposit: the account may have been blocked, closed or filled meanwhile.

    None: the deposit is decided already.
    """
    deposit = state.deposits.get((partner, request_id))
    if deposit is None:
        return None
    account = state.accounts[partner, deposit.account_id]
    decline = _decline_money_in(account, deposit.currency_code, deposit.amount_minor)
    if decline is not None:
        return wallets.AccountRequestDeclined(
            request_id=request_id, account_id=deposit.account_id, decline=decline
        )
    return wallets.FundsDeposited(
        request_id=request_id,
        account_id=deposit.account_id,
        currency_code=deposit.currency_code,
        amount_minor=deposit.amount_minor,
    )


def answer_refusal(
    state: WalletState, partner: str, body: limits.DepositRefused
) -> wallets.AccountRequestDeclined | None:
    """Limits refused a deposit. None: it is decided already."""
    if (partner, body.request_id) not in state.deposits:
        return None
    return wallets.AccountRequestDeclined(
        request_id=body.request_id,
        account_id=body.account_id,
        decline=wallets.DECLINE_LIMITS,
        violations=body.violations,
    )


def declined(body: Request, decline: wallets.Decline.ValueType) -> wallets.AccountRequestDeclined:
    """The refusal of a request."""
    account_id = "" if isinstance(body, corrections.SetShortfallPolicy) else body.account_id
    return wallets.AccountRequestDeclined(
        request_id=body.request_id, account_id=account_id, decline=decline
    )


def _scope(event: Event, body: Request) -> str:
    """In whose name an id is unique: operators act on the accounts of many partners."""
    if isinstance(body, _OF_OPERATORS):
        return event.actor
    return event.partner


def _id_standing(
    state: WalletState, event: Event, scope: str, body: Request
) -> tuple[IdStanding, entry_pb2.Position | None]:
    try:
        standing, first = state.requests.standing(
            scope, body.request_id, body.request_hash, event.time_us
        )
    except ValueError:
        # No UUIDv7, which the edge refuses: it tells no time, so it cannot be told from an old one.
        return IdStanding.EXPIRED, None
    if first is None:
        return standing, None
    if first == event.position:
        return IdStanding.NEW, None  # This very request, folded a moment ago.
    return standing, entry_pb2.Position(
        segment=first.segment, sequence=first.sequence, index=first.index
    )


def _refused_by_id(state: WalletState, event: Event, body: Request) -> Message | None:
    standing, first = _id_standing(state, event, _scope(event, body), body)
    match standing:
        case IdStanding.NEW:
            return None
        case IdStanding.EXPIRED | IdStanding.AHEAD if event.retried:
            return None  # Its age was judged when it came; a fix may take longer than a day.
        case IdStanding.EXPIRED:
            return declined(body, wallets.DECLINE_REQUEST_EXPIRED)
        case IdStanding.AHEAD:
            return declined(body, wallets.DECLINE_REQUEST_ID_AHEAD)
        case IdStanding.REPEATED:
            return log.RequestRepeated(request_id=body.request_id, first=first)
        case IdStanding.REUSED:
            return declined(body, wallets.DECLINE_REQUEST_ID_REUSED)


def _decline(state: WalletState, partner: str, body: Request) -> wallets.Decline.ValueType | None:
    if isinstance(body, corrections.SetShortfallPolicy):
        return None
    account = state.accounts.get((partner, body.account_id))
    if isinstance(body, wallets.OpenAccount):
        if account is not None and account.standing is Standing.CLOSED:
            return wallets.DECLINE_ACCOUNT_CLOSED
        if account is not None:
            return wallets.DECLINE_ACCOUNT_EXISTS
        if state.opened.get(partner, 0) >= MAX_ACCOUNTS:
            return wallets.DECLINE_TOO_MANY_ACCOUNTS
        return None
    if account is None:
        return wallets.DECLINE_UNKNOWN_ACCOUNT
    if account.standing is Standing.CLOSED and not _is_after_correction(account, body):
        return wallets.DECLINE_ACCOUNT_CLOSED
    match body:
        case wallets.CloseAccount():
            empty = not (account.available_minor or account.reserved_minor or account.owed_minor)
            empty = empty and not _is_moved(state, partner, body.account_id)
            return None if empty else wallets.DECLINE_ACCOUNT_NOT_EMPTY
        case wallets.BlockAccount():
            blocked = account.standing is Standing.BLOCKED
            return wallets.DECLINE_ACCOUNT_BLOCKED if blocked else None
        case wallets.UnblockAccount():
            blocked = account.standing is Standing.BLOCKED
            return None if blocked else wallets.DECLINE_NOT_BLOCKED
        case wallets.Deposit() | wallets.Withdraw() if is_seamless(state.seamless, partner):
            return wallets.DECLINE_BALANCE_AT_PARTNER
        case wallets.Deposit():
            _positive(body.amount_minor)
            return _decline_money_in(account, body.currency_code, body.amount_minor)
        case wallets.Withdraw():
            _positive(body.amount_minor)
            if account.currency_code != body.currency_code:
                return wallets.DECLINE_CURRENCY_MISMATCH
            enough = account.available_minor >= body.amount_minor
            return None if enough else wallets.DECLINE_INSUFFICIENT_FUNDS
        case corrections.SettleReceivable():
            _positive(body.amount_minor)
            if account.currency_code != body.currency_code:
                return wallets.DECLINE_CURRENCY_MISMATCH
            owed = account.owed_minor - being_paid_minor(state.seamless, partner, body.account_id)
            if owed < body.amount_minor:
                return wallets.DECLINE_NOT_OWED
            if is_seamless(state.seamless, partner):
                return None  # The partner has collected it: the supervisor says so.
            enough = account.available_minor >= body.amount_minor
            return None if enough else wallets.DECLINE_INSUFFICIENT_FUNDS


def _is_after_correction(account: Account, body: Request) -> bool:
    """Whether a closed account may do this: a correction of a round that it once had a bet in may
    give it money, or leave it owing some."""
    match body:
        case wallets.Withdraw():
            return account.available_minor > 0
        case corrections.SettleReceivable():
            return account.owed_minor > 0
        case _:
            return False


def _decline_money_in(
    account: Account, currency_code: str, amount_minor: int
) -> wallets.Decline.ValueType | None:
    if account.standing is Standing.CLOSED:
        return wallets.DECLINE_ACCOUNT_CLOSED
    if account.standing is Standing.BLOCKED:
        return wallets.DECLINE_ACCOUNT_BLOCKED
    if account.currency_code != currency_code:
        return wallets.DECLINE_CURRENCY_MISMATCH
    if account.available_minor + account.reserved_minor + amount_minor > MAX_BALANCE_MINOR:
        return wallets.DECLINE_BALANCE_TOO_LARGE
    return None


def _is_moved(state: WalletState, partner: str, account_id: str) -> bool:
    """Whether a seamless partner has not confirmed all that its account is owed or asked for."""
    return partner in state.seamless.open and any(
        (one.partner, one.account_id) == (partner, account_id)
        for one in state.seamless.movements.values()
    )


def _positive(amount_minor: int) -> None:
    if amount_minor < 1:
        raise InvariantViolated(f"an amount of {amount_minor} minor units passed the edge")
