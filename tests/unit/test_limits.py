"""The limits core: bets, markers and deposits, accepted and refused."""

from __future__ import annotations

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.limits.domain.core import CORE
from services.limits.domain.queries import check, limits_at
from services.limits.domain.state import LimitsState
from tests.unit.deciding import Deciding, by, failure_of
from tests.unit.limits_baccarat_facts import (
    A,
    R,
    T,
    above,
    approved,
    below,
    bets,
    declined,
    off_step,
    opposite,
    placed,
    plain,
    refused,
    reserved,
    round_open,
    spec,
    withdrawal,
)

# ---- bets --------------------------------------------------------------------------------------


def test_bets_within_the_limits_are_approved() -> None:
    wagers = (("b1", "player", 100), ("b2", "tie", 1_000))
    round_open().when(placed("r1", *wagers)).then(approved("r1", *wagers))


@pytest.mark.parametrize(
    ("stake", "violations"),
    [
        (99, [below("player", 99)]),
        (100, []),
        (1_000, []),
        (1_001, [above("player", 1_001)]),
        (0, [below("player", 0)]),
        (-5, [below("player", -5)]),
    ],
)
def test_lim_4_minimum_and_maximum_are_inclusive(
    stake: int, violations: list[limits.Violation]
) -> None:
    answer = approved("r1", ("b1", "player", stake))
    expected = refused("r1", ["b1"], *violations) if violations else answer
    round_open().when(placed("r1", ("b1", "player", stake))).then(expected)


def test_lim_4_the_total_on_a_bet_counts_within_a_request() -> None:
    wagers = (("b1", "player", 60), ("b2", "player", 40))
    round_open().when(placed("r1", *wagers)).then(approved("r1", *wagers))
    wagers = (("b1", "player", 600), ("b2", "player", 401))
    round_open().when(placed("r1", *wagers)).then(
        refused("r1", ["b1", "b2"], above("player", 1_001))
    )


def test_mon_2_a_stake_that_is_none_is_not_made_good_by_another() -> None:
    round_open().when(placed("r1", ("b1", "player", 500), ("b2", "player", -100))).then(
        refused("r1", ["b1", "b2"], below("player", -100))
    )


def test_lim_4_a_raise_may_be_smaller_than_the_minimum_on_a_reserved_stake() -> None:
    first, more = ("b1", "player", 100), ("b2", "player", 1)
    (
        round_open()
        .given(placed("r1", first), reserved("r1", first))
        .when(placed("r2", more))
        .then(approved("r2", more))
    )


def test_lim_4_a_stake_that_may_yet_be_declined_covers_no_raise() -> None:
    first, more = ("b1", "player", 100), ("b2", "player", 50)
    (
        round_open()
        .given(placed("r1", first))
        .when(placed("r2", more))
        .then(refused("r2", ["b2"], below("player", 50)))
    )


def test_a_stake_counts_from_its_approval() -> None:
    (
        round_open()
        .given(placed("r1", ("b1", "player", 900)))
        .when(placed("r2", ("b2", "player", 101)))
        .then(refused("r2", ["b2"], above("player", 1_001)))
    )


def test_a_declined_stake_counts_no_more() -> None:
    first, second = ("b1", "player", 900), ("b2", "player", 1_000)
    (
        round_open()
        .given(placed("r1", first), declined("r1", first))
        .when(placed("r2", second))
        .then(approved("r2", second))
    )


def test_a_stake_that_the_wallet_failed_to_decide_counts_no_more() -> None:
    first, second = ("b1", "player", 900), ("b2", "banker", 1_000)
    (
        round_open()
        .given(
            placed("r1", first),
            by(failure_of(approved("r1", first)), service="wallet"),
            declined("r1", first),  # A retry says so once more.
        )
        .when(placed("r2", second))
        .then(approved("r2", second))
    )


def test_other_failures_release_nothing() -> None:
    first = ("b1", "player", 900)
    (
        round_open()
        .given(
            placed("r1", first),
            by(failure_of(approved("r1", first)), service="table"),
            by(failure_of(withdrawal("r1", first)), service="wallet"),
        )
        .when(placed("r2", ("b2", "player", 101)))
        .then(refused("r2", ["b2"], above("player", 1_001)))
    )


def test_mon_4_totals_are_multiples_of_the_step() -> None:
    game = round_open(step=50)
    game.when(placed("r1", ("b1", "tie", 125))).then(
        refused("r1", ["b1"], off_step("tie", 125, 50))
    )
    wagers = (("b1", "tie", 75), ("b2", "tie", 75))
    game.when(placed("r2", *wagers)).then(approved("r2", *wagers))


@pytest.mark.parametrize("banker", ["banker", "banker_no_commission"])
def test_lim_1_player_with_banker_is_forbidden_over_all_requests(banker: str) -> None:
    (
        round_open()
        .given(placed("r1", ("b1", "player", 100)))
        .when(placed("r2", ("b2", banker, 200)))
        .then(refused("r2", ["b2"], opposite(banker, 200, "player")))
    )
    (
        round_open()
        .given(placed("r1", ("b1", banker, 100)))
        .when(placed("r2", ("b2", "player", 200)))
        .then(refused("r2", ["b2"], opposite("player", 200, banker)))
    )


def test_lim_1_both_sides_in_one_request() -> None:
    round_open().when(placed("r1", ("b1", "player", 100), ("b2", "banker", 200))).then(
        refused(
            "r1",
            ["b1", "b2"],
            opposite("player", 100, "banker"),
            opposite("banker", 200, "player"),
        )
    )


def test_lim_1_both_ways_of_banker_go_together() -> None:
    wagers = (("b1", "banker", 100), ("b2", "banker_no_commission", 100), ("b3", "tie", 100))
    round_open().when(placed("r1", *wagers)).then(approved("r1", *wagers))


def test_lim_1_is_per_account_and_partner() -> None:
    game = round_open().given(placed("r1", ("b1", "player", 100)))
    game.when(placed("r2", ("b2", "banker", 100), account="a2")).then(
        approved("r2", ("b2", "banker", 100), account="a2")
    )
    game.when(by(placed("r3", ("b3", "banker", 100)), partner="other")).then(
        approved("r3", ("b3", "banker", 100))
    )


def test_every_violation_is_told_in_order_of_bet_and_limit() -> None:
    (
        round_open(step=7)
        .given(placed("r1", ("b1", "player", 105)))
        .when(placed("r2", ("b2", "tie", 10), ("b3", "banker", 2_000)))
        .then(
            refused(
                "r2",
                ["b2", "b3"],
                below("tie", 10),
                off_step("tie", 10, 7),
                above("banker", 2_000),
                off_step("banker", 2_000, 7),
                opposite("banker", 2_000, "player"),
            )
        )
    )


def test_a_bet_that_is_not_offered_fits_no_limit() -> None:
    round_open().when(placed("r1", ("b1", "dragon_7", 100))).then(
        refused("r1", ["b1"], above("dragon_7", 100, 0))
    )


def test_a_refused_request_counts_for_nothing() -> None:
    (
        round_open()
        .given(placed("r1", ("b1", "player", 100), ("b2", "tie", 1)))
        .when(placed("r2", ("b3", "banker", 100)))
        .then(approved("r2", ("b3", "banker", 100)))
    )


def test_a_closed_book_takes_no_bets() -> None:
    closed = table.BettingClosed(table_id=T, round_id=R)
    voided = table.RoundVoided(table_id=T, round_id=R)
    ended = table.RoundClosed(table_id=T, round_id=R)
    for last in (closed, voided, ended):
        round_open().given(last).when(placed("r1", ("b1", "player", 1))).then(
            refused("r1", ["b1"], plain(limits.LIMIT_BOOK_CLOSED))
        )
    round_open().when(placed("r1", ("b1", "player", 100), round_id="t1-9")).then(
        refused("r1", ["b1"], plain(limits.LIMIT_BOOK_CLOSED), round_id="t1-9")
    )


def test_bets_whose_decision_failed_are_refused_when_it_is_retried() -> None:
    game = round_open().given(placed("r1", ("b1", "player", 100)))
    event = game.last
    game.retry(event).then(refused("r1", ["b1"], plain(limits.LIMIT_FAILED)))
    game.given(table.BettingClosed(table_id=T, round_id=R))
    game.retry(event).then(refused("r1", ["b1"], plain(limits.LIMIT_FAILED)))


def test_a_round_keeps_the_limits_that_stood_when_it_opened() -> None:
    game = round_open().given(table.TableOpened(spec=spec(low=10, high=20), revision=2))
    game.when(placed("r1", ("b1", "player", 500))).then(approved("r1", ("b1", "player", 500)))
    game.given(
        table.RoundClosed(table_id=T, round_id=R),
        table.RoundOpened(table_id=T, round_id="t1-2", revision=2),
    )
    game.when(placed("r1", ("b2", "player", 500), round_id="t1-2")).then(
        refused("r1", ["b2"], above("player", 500, 20), round_id="t1-2")
    )


# ---- markers, deposits, queries ----------------------------------------------------------------


def test_the_markers() -> None:
    round_open().when(table.BettingClosed(table_id=T, round_id=R)).then(
        limits.BookClosed(table_id=T, round_id=R)
    )
    round_open().when(table.RoundVoided(table_id=T, round_id=R)).then(
        limits.BookVoided(table_id=T, round_id=R)
    )


def test_a_deposit_is_approved() -> None:
    asked = wallet.DepositRequested(
        request_id="d1", account_id=A, currency_code="EUR", amount_minor=500
    )
    Deciding(CORE).when(asked).then(
        limits.DepositApproved(request_id="d1", account_id=A, currency_code="EUR", amount_minor=500)
    )


def test_what_is_over_is_forgotten() -> None:
    first = ("b1", "player", 100)
    game = round_open().given(placed("r1", first), reserved("r1", first))
    game.given(
        table.BettingClosed(table_id=T, round_id=R),
        table.RoundClosed(table_id=T, round_id=R),
        table.TableClosed(table_id=T),
    )
    assert game.state == LimitsState()


def test_check_says_what_placing_would_say() -> None:
    game = round_open().given(placed("r1", ("b1", "player", 900)))
    wagers = bets(("", "player", 101), ("", "banker", 100))
    asked = check(game.state, "acme", A, T, wagers)
    game.when(placed("r2", ("b2", "player", 101), ("b3", "banker", 100)))
    answer = game.answers[0]
    assert isinstance(answer, limits.BetsRefused)
    assert asked == list(answer.violations)
    assert check(game.state, "acme", "a2", T, wagers[:1]) == []
    assert check(game.state, "acme", A, "t9", wagers) is None
    game.given(table.BettingClosed(table_id=T, round_id=R))
    assert check(game.state, "acme", A, T, wagers) == [plain(limits.LIMIT_BOOK_CLOSED)]


def test_limits_at_a_table() -> None:
    game = round_open()
    found = limits_at(game.state, T)
    assert found is not None
    assert list(found.limits) == list(spec().limits)
    assert limits_at(game.state, "t9") is None
