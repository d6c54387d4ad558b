"""Accounts as limits know them: what the wallet says of them, what they have on, what limits
them."""

from __future__ import annotations

from typing import assert_never

from sabot.limits.v1 import events_pb2 as limits
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.event import Event
from services.limits.domain.judging import Bettor
from services.limits.domain.protection import (
    AccountRecord,
    kept_away,
    note_corrected,
    note_deposit,
    note_no_deposit,
    note_off,
    note_paid,
    note_stake,
    over_deposits,
)
from services.limits.domain.scopes import Scoped, ScopeId
from services.limits.domain.state import Book, HeldBet, LimitsState, Owner, PendingDeposit

_OF_THE_ID = frozenset(
    {
        wallets.DECLINE_REQUEST_ID_REUSED,
        wallets.DECLINE_REQUEST_EXPIRED,
        wallets.DECLINE_REQUEST_ID_AHEAD,
    }
)
"""Declines that speak of the request id alone: what it was used for before is still under way."""


def bettor_of(
    state: LimitsState, owner: Owner, table_id: str, currency_code: str, now_us: int
) -> Bettor | None:
    """Who bets, where more than the table's rules may limit it. (What an account may not have been
    opened, the wallet declines.)"""
    record = state.accounts.get(owner)
    if record is None:
        return None
    scoped = scoped_of(state, owner, record, table_id, now_us) if state.scopes else []
    kept = record.exclusion or record.cool_off or record.age == limits.AGE_STATEMENT_UNDER_AGE
    if not scoped and not kept:
        return None
    return Bettor(record, scoped, currency_code, now_us)


def scoped_of(
    state: LimitsState, owner: Owner, record: AccountRecord, table_id: str, now_us: int
) -> list[Scoped]:
    """What limits an account at a table, or at none: the widest scope first."""
    partner, account_id = owner
    scopes = [ScopeId(limits.SCOPE_TABLE, "", table_id)] if table_id else []
    scopes.append(ScopeId(limits.SCOPE_PARTNER, "", partner))
    scopes += [
        ScopeId(limits.SCOPE_JURISDICTION, "", code) for code in record.jurisdictions(now_us)
    ]
    scopes.append(ScopeId(limits.SCOPE_ACCOUNT, partner, account_id))
    return [Scoped(one, state.scopes[one]) for one in scopes if one in state.scopes]


def judged_deposit(
    state: LimitsState, event: Event, body: wallets.DepositRequested
) -> list[limits.Violation]:
    """What a deposit would break (LIM-7)."""
    owner = (event.partner, body.account_id)
    bettor = bettor_of(state, owner, "", body.currency_code, event.time_us)
    if bettor is None:
        return []
    record, scoped, now_us = bettor.record, bettor.scoped, bettor.now_us
    return [
        *kept_away(record, scoped, now_us),
        *over_deposits(record, scoped, body.amount_minor, now_us),
    ]


# ---- parts of evolve ---------------------------------------------------------------------------


def account_goes_on(
    state: LimitsState,
    event: Event,
    body: wallets.PayoutPosted
    | corrections.CorrectionPosted
    | wallets.FundsDeposited
    | wallets.AccountRequestDeclined
    | wallets.AccountOpened
    | wallets.AccountClosed
    | limits.DepositApproved,
) -> None:
    """Fold what happens to an account and its money."""
    match body:
        case wallets.PayoutPosted():
            _note_payout(state, event, body)
        case corrections.CorrectionPosted():
            record = state.accounts.get((body.partner_id, body.account_id))
            if record is not None:
                note_corrected(record, event.time_us, body.payout_delta_minor)
        case wallets.FundsDeposited() | wallets.AccountRequestDeclined():
            _settle_deposit(state, event, body)
        case wallets.AccountOpened():
            _describe_opened(state, event, body)
        case wallets.AccountClosed():
            _close_account(state, event, body)
        case limits.DepositApproved():
            _note_pending_deposit(state, event, body)
        case _:
            assert_never(body)


def _describe_opened(state: LimitsState, event: Event, body: wallets.AccountOpened) -> None:
    """A new account."""
    state.accounts[event.partner, body.account_id] = AccountRecord(
        body.currency_code, body.jurisdiction, body.age
    )


def _close_account(state: LimitsState, event: Event, body: wallets.AccountClosed) -> None:
    """An account is closed for ever: of what limited it nothing needs to be kept."""
    owner = (event.partner, body.account_id)
    record = state.accounts.get(owner)
    if record is not None:
        state.accounts[owner] = AccountRecord(record.currency_code, closed=True)
        state.scopes.pop(ScopeId(limits.SCOPE_ACCOUNT, *owner), None)


def note_approved(state: LimitsState, owner: Owner, now_us: int, minor: int) -> None:
    """Stakes are approved."""
    record = state.accounts.get(owner)
    if record is not None and minor:
        note_stake(record, now_us, minor)


def note_gone(state: LimitsState, owner: Owner, held: HeldBet) -> None:
    """A stake is off."""
    record = state.accounts.get(owner)
    if record is not None:
        note_off(record, held.at_us, held.stake_minor)


def _note_payout(state: LimitsState, event: Event, body: wallets.PayoutPosted) -> None:
    """An account's bets of a round are paid, all at once."""
    owner = (body.partner_id, body.account_id)
    record = state.accounts.get(owner)
    book = state.books.get(body.round_id)
    holding = None if book is None else book.holdings.get(owner)
    if record is None or holding is None or holding.paid:
        return
    holding.paid = True
    note_paid(record, event.time_us, body.stake_minor, body.payout_minor)


def note_round_over(state: LimitsState, book: Book) -> None:
    """A round is over. What neither was paid nor went back is not at stake any more."""
    for owner, holding in book.holdings.items():
        record = state.accounts.get(owner)
        if record is not None and not holding.paid and record.history is not None:
            record.history.at_stake_minor -= holding.total_minor


def _note_pending_deposit(state: LimitsState, event: Event, body: limits.DepositApproved) -> None:
    """A deposit counts from its approval."""
    record = state.accounts.get((event.partner, body.account_id))
    if record is not None:
        pending = PendingDeposit(body.account_id, body.amount_minor, event.time_us)
        state.deposits[event.partner, body.request_id] = pending
        note_deposit(record, event.time_us, body.amount_minor)


def _settle_deposit(
    state: LimitsState, event: Event, body: wallets.FundsDeposited | wallets.AccountRequestDeclined
) -> None:
    """A deposit came in, or the wallet declined it after all."""
    pending = state.deposits.get((event.partner, body.request_id))
    if pending is None or pending.account_id != body.account_id:
        return
    if isinstance(body, wallets.AccountRequestDeclined):
        if body.decline in _OF_THE_ID:
            return
        record = state.accounts.get((event.partner, body.account_id))
        if record is not None:
            note_no_deposit(record, pending.at_us, pending.amount_minor)
    del state.deposits[event.partner, body.request_id]
