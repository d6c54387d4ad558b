"""The wallet core: requests about accounts, and the order in which they are refused."""

from __future__ import annotations

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import InvariantViolated
from services.wallet.domain import accounts
from services.wallet.domain.core import CORE
from services.wallet.domain.state import sums
from tests.unit.deciding import Deciding, Fact, by, failure_of, request_id
from tests.unit.wallet_facts import (
    A,
    approved,
    asked,
    balance,
    block,
    close,
    declined,
    deposit,
    deposit_approved,
    open_account,
    unblock,
    with_money,
    withdraw,
)

DAY_US = 24 * 3600 * 1_000_000


def test_open() -> None:
    game = Deciding(CORE).when(open_account(1))
    game.then(wallet.AccountOpened(account_id=A, currency_code="EUR"))
    game.when(open_account(2)).then(declined(2, wallet.DECLINE_ACCOUNT_EXISTS))


def test_two_partners_may_have_an_account_of_one_name() -> None:
    game = Deciding(CORE).given(open_account(1))
    body = wallet.OpenAccount(account_id=A, currency_code="JPY")
    game.when(asked(body, 1, partner="other")).then(
        wallet.AccountOpened(account_id=A, currency_code="JPY")
    )
    assert game.state.accounts["acme", A].currency_code == "EUR"


def test_a_partner_may_open_so_many_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MAX_ACCOUNTS", 2)
    game = Deciding(CORE).given(open_account(1, "a1"), open_account(2, "a2"), close(3, "a1"))
    game.when(open_account(4, "a3")).then(
        declined(4, wallet.DECLINE_TOO_MANY_ACCOUNTS, account="a3")
    )


def test_close() -> None:
    game = with_money(0).when(close(1)).then(wallet.AccountClosed(account_id=A))
    game.when(close(2)).then(declined(2, wallet.DECLINE_ACCOUNT_CLOSED))
    game.when(open_account(3)).then(declined(3, wallet.DECLINE_ACCOUNT_CLOSED))


def test_only_an_empty_account_is_closed() -> None:
    with_money(1).when(close(1)).then(declined(1, wallet.DECLINE_ACCOUNT_NOT_EMPTY))
    all_in = with_money(100).given(approved("r1", ("b1", "tie", 100)))
    all_in.when(close(1)).then(declined(1, wallet.DECLINE_ACCOUNT_NOT_EMPTY))


def test_block_and_unblock() -> None:
    game = with_money(500).when(block(1)).then(wallet.AccountBlocked(account_id=A))
    game.when(block(2)).then(declined(2, wallet.DECLINE_ACCOUNT_BLOCKED))
    game.when(deposit(3, 100)).then(declined(3, wallet.DECLINE_ACCOUNT_BLOCKED))
    game.when(withdraw(4, 100)).then_only(wallet.FundsWithdrawn)
    game.when(unblock(5)).then(wallet.AccountUnblocked(account_id=A))
    game.when(unblock(6)).then(declined(6, wallet.DECLINE_NOT_BLOCKED))
    game.when(deposit(7, 100)).then_only(wallet.DepositRequested)


def test_a_blocked_account_may_be_closed() -> None:
    with_money(0).given(block(1)).when(close(2)).then(wallet.AccountClosed(account_id=A))


def test_deposit() -> None:
    game = Deciding(CORE).given(open_account(1))
    asks = wallet.DepositRequested(
        request_id=request_id(2), account_id=A, currency_code="EUR", amount_minor=500
    )
    game.when(deposit(2, 500)).then(asks)
    assert balance(game) == (0, 0)
    game.when(deposit_approved(2, 500)).then(
        wallet.FundsDeposited(
            request_id=request_id(2), account_id=A, currency_code="EUR", amount_minor=500
        )
    )
    assert balance(game) == (500, 0)
    assert game.state.ledgers == {("external", "acme", "EUR"): -500}
    assert sums(game.state) == {"EUR": 0}
    # What is decided is decided.
    game.when(deposit_approved(2, 500)).then()
    assert balance(game) == (500, 0)


def test_a_deposit_whose_account_changed_meanwhile_is_declined() -> None:
    for meanwhile, decline in (
        (block(3), wallet.DECLINE_ACCOUNT_BLOCKED),
        (close(3), wallet.DECLINE_ACCOUNT_CLOSED),
    ):
        game = Deciding(CORE).given(open_account(1), deposit(2, 500), meanwhile)
        game.when(deposit_approved(2, 500)).then(declined(2, decline))
        assert game.state.deposits == {}
        assert balance(game) == (0, 0)


def test_a_balance_has_a_limit_that_deposits_keep() -> None:
    most = accounts.MAX_BALANCE_MINOR
    game = with_money(most - 10)
    game.when(deposit(1, 11)).then(declined(1, wallet.DECLINE_BALANCE_TOO_LARGE))
    game.given(deposit(2, 10), deposit(3, 10)).when(deposit_approved(2, 10))
    game.then_only(wallet.FundsDeposited)
    game.when(deposit_approved(3, 10)).then(declined(3, wallet.DECLINE_BALANCE_TOO_LARGE))
    assert balance(game) == (most, 0)


def test_a_deposit_that_limits_failed_to_decide_is_declined() -> None:
    game = Deciding(CORE).given(open_account(1), deposit(2, 500))
    failed = failure_of(
        wallet.DepositRequested(
            request_id=request_id(2), account_id=A, currency_code="EUR", amount_minor=500
        )
    )
    game.when(by(failed, service="limits")).then(declined(2, wallet.DECLINE_FAILED))
    game.when(by(failed, service="limits")).then()
    game.when(deposit_approved(2, 500)).then()
    assert balance(game) == (0, 0)


def test_other_failures_change_nothing() -> None:
    game = with_money(500).given(approved("r1", ("b1", "tie", 100)))
    marker = failure_of(limits.BookClosed(table_id="t1", round_id="t1-1"))
    game.when(by(marker, service="settlement")).then()
    assert balance(game) == (400, 100)


def test_withdraw() -> None:
    game = with_money(500).given(approved("r1", ("b1", "tie", 100)))
    game.when(withdraw(1, 401)).then(declined(1, wallet.DECLINE_INSUFFICIENT_FUNDS))
    game.when(withdraw(2, 400)).then(
        wallet.FundsWithdrawn(
            request_id=request_id(2), account_id=A, currency_code="EUR", amount_minor=400
        )
    )
    assert balance(game) == (0, 100)
    assert sums(game.state) == {"EUR": 0}


# ---- order of refusals -------------------------------------------------------------------------


def test_the_standing_of_an_account_comes_before_currency_and_amount() -> None:
    game = with_money(500)
    game.when(deposit(1, 10**15, "a9", "USD")).then(
        declined(1, wallet.DECLINE_UNKNOWN_ACCOUNT, account="a9")
    )
    game.when(deposit(2, 10**15, currency="USD")).then(
        declined(2, wallet.DECLINE_CURRENCY_MISMATCH)
    )
    game.when(withdraw(3, 10**15, currency="USD")).then(
        declined(3, wallet.DECLINE_CURRENCY_MISMATCH)
    )
    game.given(block(4)).when(deposit(5, 10**15, currency="USD")).then(
        declined(5, wallet.DECLINE_ACCOUNT_BLOCKED)
    )
    game.given(withdraw(6, 500), close(7))
    game.when(withdraw(8, 10**15, currency="USD")).then(declined(8, wallet.DECLINE_ACCOUNT_CLOSED))
    game.when(block(9)).then(declined(9, wallet.DECLINE_ACCOUNT_CLOSED))
    game.when(unblock(10)).then(declined(10, wallet.DECLINE_ACCOUNT_CLOSED))


def test_a_repeated_request_gets_its_first_outcome() -> None:
    game = with_money(500).given(withdraw(1, 100))
    first = game.log[-1].position
    answer = log.RequestRepeated(
        request_id=request_id(1),
        first=entry_pb2.Position(segment=first.segment, sequence=first.sequence, index=first.index),
    )
    game.when(withdraw(1, 100)).then(answer)
    game.when(withdraw(1, 100)).then(answer)
    assert balance(game) == (400, 0)


def test_a_declined_request_is_repeated_too() -> None:
    game = with_money(50).given(withdraw(1, 100)).given(deposit(2, 100), deposit_approved(2, 100))
    game.when(withdraw(1, 100)).then_only(log.RequestRepeated)
    assert balance(game) == (150, 0)


def test_a_request_id_with_other_content_is_refused_before_anything_else() -> None:
    game = with_money(500).given(withdraw(1, 100))
    game.when(withdraw(1, 200)).then(declined(1, wallet.DECLINE_REQUEST_ID_REUSED))
    game.when(deposit(1, 200, "a9")).then(
        declined(1, wallet.DECLINE_REQUEST_ID_REUSED, account="a9")
    )


def test_a_reused_id_leaves_the_deposit_that_has_it_pending() -> None:
    game = with_money(0).given(deposit(1, 100), withdraw(1, 50))
    game.when(deposit_approved(1, 100)).then_only(wallet.FundsDeposited)


def test_an_id_that_is_too_old_is_expired_whatever_it_was() -> None:
    game = with_money(500).given(withdraw(1, 100))
    game.when(by(withdraw(1, 100).body, at_us=DAY_US + 1_000_000)).then(
        declined(1, wallet.DECLINE_REQUEST_EXPIRED)
    )
    game.when(withdraw(2, 100, "a9")).then(
        declined(2, wallet.DECLINE_REQUEST_EXPIRED, account="a9")
    )


def test_an_id_is_kept_for_a_day() -> None:
    game = with_money(500).given(withdraw(1, 100))
    game.when(by(withdraw(1, 100).body, at_us=DAY_US)).then_only(log.RequestRepeated)


def test_an_id_from_the_future_is_refused_and_not_kept() -> None:
    game = with_money(500)
    body = wallet.Withdraw(account_id=A, currency_code="EUR", amount_minor=1)
    ahead = asked(body, 1, at_us=3600 * 1_000_000).body
    assert isinstance(ahead, wallet.Withdraw)
    game.when(by(ahead)).then(
        wallet.AccountRequestDeclined(
            request_id=ahead.request_id,
            account_id=A,
            decline=wallet.DECLINE_REQUEST_ID_AHEAD,
        )
    )
    game.when(by(ahead, at_us=3590 * 1_000_000)).then_only(wallet.FundsWithdrawn)


def test_an_id_that_is_none_counts_as_expired() -> None:
    body = wallet.Withdraw(request_id="none", account_id=A, currency_code="EUR", amount_minor=1)
    with_money(500).when(body).then(
        wallet.AccountRequestDeclined(
            request_id="none", account_id=A, decline=wallet.DECLINE_REQUEST_EXPIRED
        )
    )


def test_operators_ids_are_their_own() -> None:
    game = with_money(500).given(withdraw(1, 100))
    game.when(block(1)).then(wallet.AccountBlocked(account_id=A))
    game.when(block(1)).then_only(log.RequestRepeated)
    other = by(block(1).body, actor="operator:tess")
    game.when(other).then(declined(1, wallet.DECLINE_ACCOUNT_BLOCKED))


def test_a_request_whose_decision_failed_is_decided_when_retried() -> None:
    game = with_money(500)
    game.when(withdraw(1, 100))
    event = game.last
    fresh = with_money(500)
    fresh.core.evolve(fresh.state, event)  # Folded, but its decision failed.
    fresh.time_us += 2 * DAY_US
    fresh.retry(event).then_only(wallet.FundsWithdrawn)
    assert balance(fresh) == (400, 0)


@pytest.mark.parametrize("fact", [deposit(1, 0), withdraw(1, -1)])
def test_an_amount_that_is_none_is_a_bug_of_the_edge(fact: Fact) -> None:
    with pytest.raises(InvariantViolated):
        with_money(500).when(fact)


# ---- what limits say of a deposit (rule LIM-7) -------------------------------------------------


def test_lim_7_a_deposit_that_limits_refuse_is_declined_with_their_reasons() -> None:
    game = with_money(0).given(deposit(1, 500))
    over = limits.Violation(limit=limits.LIMIT_DEPOSIT_WINDOW, allowed_minor=400)
    refusal = limits.DepositRefused(
        request_id=request_id(1),
        account_id=A,
        currency_code="EUR",
        amount_minor=500,
        violations=[over],
    )
    told = declined(1, wallet.DECLINE_LIMITS)
    told.violations.append(over)
    game.when(refusal).then(told)
    assert game.state.deposits == {}
    assert game.state.accounts["acme", A].available_minor == 0
    # It is decided: neither a late approval nor a second refusal changes that.
    game.when(refusal).then()
    game.when(deposit_approved(1, 500)).then()


def test_lim_7_what_a_partner_says_of_an_account_stands_in_its_opening() -> None:
    body = wallet.OpenAccount(
        account_id=A,
        currency_code="EUR",
        jurisdiction="FR",
        age=limits.AGE_STATEMENT_OF_AGE,
    )
    Deciding(CORE).when(asked(body, 1)).then(
        wallet.AccountOpened(
            account_id=A,
            currency_code="EUR",
            jurisdiction="FR",
            age=limits.AGE_STATEMENT_OF_AGE,
        )
    )
