"""The wallet core: stakes reserved, sealed, returned, paid."""

from __future__ import annotations

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import InvariantViolated
from services.wallet.domain.accounts import MAX_BALANCE_MINOR
from services.wallet.domain.core import CORE
from services.wallet.domain.state import sums
from tests.unit.deciding import Deciding, Fact, by
from tests.unit.wallet_facts import (
    BOOK_CLOSED,
    BOOK_VOIDED,
    PAID,
    RETURNED,
    ROUND_SETTLED,
    SEALED,
    A,
    R,
    T,
    Wager,
    approved,
    balance,
    block,
    close,
    open_account,
    payout,
    reserved,
    returned,
    settled,
    stake_declined,
    with_money,
    withdrawal,
)

ONE: Wager = ("b1", "banker", 60)
TWO: Wager = ("b2", "tie", 40)


def test_stakes_are_reserved() -> None:
    game = with_money(100).when(approved("r1", ONE, TWO)).then(reserved("r1", ONE, TWO))
    assert balance(game) == (0, 100)
    assert sums(game.state) == {"EUR": 0}


def test_a_request_is_declined_whole() -> None:
    game = with_money(99).when(approved("r1", ONE, TWO))
    game.then(stake_declined("r1", wallet.DECLINE_INSUFFICIENT_FUNDS, ONE, TWO))
    assert balance(game) == (99, 0)
    assert R not in game.state.rounds


def test_the_order_of_declines() -> None:
    game = Deciding(CORE)
    dear = ("b9", "tie", 10**12)
    game.when(approved("r1", dear, currency="USD")).then(
        stake_declined("r1", wallet.DECLINE_UNKNOWN_ACCOUNT, dear)
    )
    game.given(open_account(1)).when(approved("r2", dear, currency="USD")).then(
        stake_declined("r2", wallet.DECLINE_CURRENCY_MISMATCH, dear)
    )
    game.given(block(2)).when(approved("r3", dear, currency="USD")).then(
        stake_declined("r3", wallet.DECLINE_ACCOUNT_BLOCKED, dear)
    )
    game.given(close(3)).when(approved("r4", dear, currency="USD")).then(
        stake_declined("r4", wallet.DECLINE_ACCOUNT_CLOSED, dear)
    )
    game.given(BOOK_CLOSED).when(approved("r5", dear, account="a9")).then(
        stake_declined("r5", wallet.DECLINE_STAKES_SEALED, dear, account="a9")
    )


def test_after_the_seal_or_a_void_nothing_is_reserved() -> None:
    game = with_money(100).when(BOOK_CLOSED).then(SEALED)
    game.when(approved("r1", ONE)).then(stake_declined("r1", wallet.DECLINE_STAKES_SEALED, ONE))
    assert balance(game) == (100, 0)


def test_another_partner_does_not_reach_an_account() -> None:
    game = with_money(100).when(by(approved("r1", ONE), partner="other"))
    game.then(stake_declined("r1", wallet.DECLINE_UNKNOWN_ACCOUNT, ONE))
    assert balance(game) == (100, 0)


def test_an_approval_whose_decision_failed_is_declined_when_retried() -> None:
    game = with_money(100).given(approved("r1", ONE))
    event = game.last
    fresh = with_money(100)
    fresh.core.evolve(fresh.state, event)
    fresh.retry(event).then(stake_declined("r1", wallet.DECLINE_FAILED, ONE))
    assert balance(fresh) == (100, 0)


@pytest.mark.parametrize("stake", [0, -60])
def test_mon_2_a_stake_that_is_none_is_a_bug(stake: int) -> None:
    with pytest.raises(InvariantViolated):
        with_money(100).when(approved("r1", ("b1", "tie", stake)))


def test_a_bet_is_reserved_once() -> None:
    game = with_money(200).given(approved("r1", ONE))
    with pytest.raises(InvariantViolated):
        game.when(approved("r2", ONE))
    assert balance(game) == (140, 60)


@pytest.mark.parametrize(
    ("bets", "stake", "accepted", "left"), [(2, 8_000, 1, 2_000), (20, 1_000, 10, 0)]
)
def test_wal_03_parallel_bets_do_not_overspend(
    bets: int, stake: int, accepted: int, left: int
) -> None:
    """100.00 in the account; the bets stand side by side in the log, from any edges."""
    game = with_money(10_000)
    answers = [
        game.when(approved(f"r{number}", (f"b{number}", "tie", stake))).answers[0]
        for number in range(bets)
    ]
    on = [one for one in answers if isinstance(one, wallet.StakeReserved)]
    off = [one for one in answers if isinstance(one, wallet.StakeDeclined)]
    assert (len(on), len(off)) == (accepted, bets - accepted)
    assert {one.decline for one in off} == {wallet.DECLINE_INSUFFICIENT_FUNDS}
    assert balance(game) == (left, 10_000 - left)


# ---- withdrawals of bets -----------------------------------------------------------------------


def test_a_withdrawn_stake_is_available_again() -> None:
    game = with_money(100).given(approved("r1", ONE, TWO)).when(withdrawal("w1", ONE))
    game.then(returned("w1", wallet.RETURN_REASON_WITHDRAWN, ONE))
    assert balance(game) == (60, 40)


def test_a_withdrawal_leaves_out_what_was_never_reserved() -> None:
    game = with_money(60).given(approved("r1", ONE), approved("r2", TWO))
    game.when(withdrawal("w1", ONE, TWO)).then(returned("w1", wallet.RETURN_REASON_WITHDRAWN, ONE))
    game.when(withdrawal("w2", ONE, TWO)).then(returned("w2", wallet.RETURN_REASON_WITHDRAWN))
    assert balance(game) == (60, 0)


def test_a_withdrawal_of_an_account_that_is_none_gets_its_outcome() -> None:
    Deciding(CORE).when(withdrawal("w1", ONE)).then(
        returned("w1", wallet.RETURN_REASON_WITHDRAWN, currency="")
    )


def test_a_retried_withdrawal_takes_nothing_back_after_the_seal() -> None:
    game = with_money(100).given(approved("r1", ONE), withdrawal("w1", ONE))
    event = game.last
    open_still = with_money(100).given(approved("r1", ONE))
    open_still.retry(event).then(returned("w1", wallet.RETURN_REASON_WITHDRAWN, ONE))
    sealed = with_money(100).given(approved("r1", ONE), BOOK_CLOSED)
    sealed.retry(event).then(returned("w1", wallet.RETURN_REASON_WITHDRAWN))
    assert balance(sealed) == (40, 60)


# ---- voids -------------------------------------------------------------------------------------


def test_a_void_returns_every_stake_exactly_once() -> None:
    game = with_money(100, "a1", "a2").given(
        approved("r1", ONE), approved("r2", TWO), approved("r3", TWO, account="a2")
    )
    game.when(by(BOOK_VOIDED, partner="")).then(
        returned("", wallet.RETURN_REASON_VOIDED, ONE, TWO),
        returned("", wallet.RETURN_REASON_VOIDED, TWO, account="a2"),
        RETURNED,
    )
    assert balance(game, "a1") == balance(game, "a2") == (100, 0)
    assert game.state.rounds == {}
    assert sums(game.state) == {"EUR": 0}


def test_a_void_after_the_seal_and_without_bets() -> None:
    with_money(0).given(BOOK_CLOSED).when(BOOK_VOIDED).then(RETURNED)
    with_money(0).when(BOOK_VOIDED).then(RETURNED)


@pytest.mark.parametrize(("behaviour", "in_step"), [(1, 400), (2, 40)])
@pytest.mark.parametrize("accounts", [1, 2, 3, 5])
def test_a_mass_void_goes_in_steps_of_so_many_bets(
    accounts: int, behaviour: int, in_step: int
) -> None:
    names = [f"a{number}" for number in range(accounts)]
    game = with_money(1_000_000, *names)
    game.careful = False
    for number in range(300):
        for name in names:
            game.given(approved(f"r{number}", (f"{name}-{number}", "tie", 100), account=name))
    game.when(by(BOOK_VOIDED, partner="", behaviour=behaviour))
    lines = [
        sum(len(one.bets) for one in step if isinstance(one, wallet.StakeReturned))
        for step in game.steps
    ]
    assert sum(lines) == 300 * accounts
    assert max(lines) == min(in_step, sum(lines))
    assert all(lines)
    assert len(lines) == -(-300 * accounts // in_step)
    assert game.answers[-1] == RETURNED
    assert not any(isinstance(one, wallet.RoundReturned) for one in game.answers[:-1])
    assert all(balance(game, name) == (1_000_000, 0) for name in names)


@pytest.mark.parametrize(("behaviour", "steps"), [(1, 2), (2, 13)])
def test_an_account_with_most_bets_is_returned_in_steps(behaviour: int, steps: int) -> None:
    game = with_money(1_000_000)
    game.careful = False
    for number in range(500):
        game.given(approved(f"r{number}", (f"b{number}", "tie", 100)))
    game.when(by(BOOK_VOIDED, partner="", behaviour=behaviour))
    assert [len(step) for step in game.steps] == [1] * (steps - 1) + [2]
    assert balance(game) == (1_000_000, 0)


def test_what_was_paid_before_a_void_is_not_returned() -> None:
    """Settlement may fail between two accounts; the void then returns the others."""
    game = with_money(100, "a1", "a2").given(
        approved("r1", ONE), approved("r2", TWO, account="a2"), BOOK_CLOSED
    )
    game.given(settled(("b1", "banker", 60, -60, 0)))
    game.when(by(BOOK_VOIDED, partner="")).then(
        returned("", wallet.RETURN_REASON_VOIDED, TWO, account="a2"), RETURNED
    )
    assert balance(game, "a1") == (40, 0)
    assert balance(game, "a2") == (100, 0)


def test_nothing_of_a_voided_round_is_paid() -> None:
    game = with_money(100).given(approved("r1", ONE), BOOK_CLOSED, by(BOOK_VOIDED, partner=""))
    with pytest.raises(InvariantViolated):
        game.when(settled(("b1", "banker", 60, 57, 3)))
    with pytest.raises(InvariantViolated):
        game.when(ROUND_SETTLED)
    assert balance(game) == (100, 0)


# ---- payouts -----------------------------------------------------------------------------------


def test_an_account_is_paid() -> None:
    game = with_money(200).given(approved("r1", ONE, TWO), BOOK_CLOSED)
    game.when(settled(("b1", "banker", 60, 57, 3), ("b2", "tie", 40, -40, 0))).then(
        payout(100, 117, 3)
    )
    assert balance(game) == (217, 0)
    assert game.state.ledgers == {
        ("external", "acme", "EUR"): -200,
        ("house", "acme", "EUR"): 100 - 120,
        ("commission", "acme", "EUR"): 3,
    }
    assert sums(game.state) == {"EUR": 0}
    game.when(ROUND_SETTLED).then(PAID)
    assert game.state.rounds == {}


def test_a_lost_bet_and_a_push() -> None:
    game = with_money(200).given(approved("r1", ONE, TWO), BOOK_CLOSED)
    game.when(settled(("b1", "banker", 60, 0, 0), ("b2", "tie", 40, -40, 0)))
    game.then(payout(100, 60))
    assert balance(game) == (160, 0)


def test_winnings_are_paid_over_the_largest_balance_and_to_a_blocked_account() -> None:
    game = with_money(MAX_BALANCE_MINOR).given(approved("r1", ONE), BOOK_CLOSED, block(1))
    game.when(settled(("b1", "banker", 60, 60, 0))).then(payout(60, 120))
    assert balance(game) == (MAX_BALANCE_MINOR + 60, 0)


def test_a_round_without_bets_is_paid_at_once() -> None:
    with_money(0).given(BOOK_CLOSED).when(ROUND_SETTLED).then(PAID)


@pytest.mark.parametrize(
    "wrong",
    [
        settled(("b1", "banker", 60, 57, 3)),  # a bet is missing
        settled(("b1", "banker", 60, 57, 3), ("b1", "banker", 60, 57, 3)),
        settled(("b1", "banker", 60, 57, 3), ("b3", "tie", 40, -40, 0)),
        settled(("b1", "banker", 61, 57, 3), ("b2", "tie", 40, -40, 0)),
        settled(("b1", "banker", 60, -61, 0), ("b2", "tie", 40, -40, 0)),
        settled(("b1", "banker", 60, 57, -3), ("b2", "tie", 40, -40, 0)),
        settled(("b1", "banker", 60, 57, 3), ("b2", "tie", 40, -40, 0), currency="USD"),
        settled(("b1", "banker", 60, 57, 3), ("b2", "tie", 40, -40, 0), account="a9"),
    ],
)
def test_a_settlement_that_is_not_of_the_reserved_stakes_is_a_bug(wrong: Fact) -> None:
    game = with_money(200).given(approved("r1", ONE, TWO), BOOK_CLOSED)
    with pytest.raises(InvariantViolated):
        game.when(wrong)
    assert balance(game) == (100, 100)


def test_nothing_is_paid_before_the_seal_nor_twice() -> None:
    line = ("b1", "banker", 60, 57, 3)
    game = with_money(200).given(approved("r1", ONE))
    with pytest.raises(InvariantViolated):
        game.when(settled(line))
    game.given(BOOK_CLOSED, settled(line))
    with pytest.raises(InvariantViolated):
        game.when(settled(line))
    assert balance(game) == (257, 0)


def test_a_round_does_not_end_before_all_of_it_is_paid_nor_twice() -> None:
    game = with_money(200).given(approved("r1", ONE), BOOK_CLOSED)
    with pytest.raises(InvariantViolated):
        game.when(ROUND_SETTLED)
    game.given(settled(("b1", "banker", 60, 57, 3)), ROUND_SETTLED)
    with pytest.raises(InvariantViolated):
        game.when(ROUND_SETTLED)


def test_the_pending_state_of_other_rounds_is_left_alone() -> None:
    game = with_money(200).given(approved("r1", ONE), approved("r2", TWO, round_id="t1-2"))
    game.given(by(BOOK_VOIDED, partner=""))
    assert balance(game) == (160, 40)
    game.when(limits.BookClosed(table_id=T, round_id="t1-2")).then(
        wallet.StakesSealed(table_id=T, round_id="t1-2")
    )
    assert list(game.state.rounds) == ["t1-2"]
    assert game.state.accounts["acme", A].reserved_minor == 40
