"""The limits core: what may be taken back (LIM-8)."""

from __future__ import annotations

from itertools import product

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.table.v1 import events_pb2 as table
from tests.unit.limits_baccarat_facts import (
    A,
    R,
    T,
    approved,
    below,
    declined,
    off_step,
    opposite,
    placed,
    plain,
    refused,
    reserved,
    returned,
    round_open,
    withdrawal,
    withdrawal_refused,
    withdrawn,
)

# ---- withdrawals (LIM-8) -----------------------------------------------------------------------


def test_lim_8_all_of_a_bet_may_go() -> None:
    wagers = (("b1", "player", 100), ("b2", "player", 100))
    (
        round_open()
        .given(placed("r1", *wagers), reserved("r1", *wagers))
        .when(withdrawn("w1", *wagers))
        .then(withdrawal("w1", *wagers))
    )


@pytest.mark.parametrize(("rest", "fine"), [(100, True), (99, False)])
def test_lim_8_the_rest_keeps_the_minimum(rest: int, fine: bool) -> None:
    first, second = ("b1", "player", 100), ("b2", "player", rest)
    expected = (
        withdrawal("w1", first) if fine else withdrawal_refused("w1", ["b1"], below("player", rest))
    )
    (
        round_open()
        .given(placed("r1", first, second), reserved("r1", first, second))
        .when(withdrawn("w1", first))
        .then(expected)
    )


def test_lim_8_the_rest_keeps_the_step() -> None:
    first, second = ("b1", "player", 75), ("b2", "player", 125)
    (
        round_open(step=100)
        .given(placed("r1", first, second), reserved("r1", first, second))
        .when(withdrawn("w1", first))
        .then(withdrawal_refused("w1", ["b1"], off_step("player", 125, 100)))
    )


def test_lim_8_a_stake_not_yet_reserved_covers_no_rest() -> None:
    """50 stay reserved on top of a pending 100: should that be declined, 50 would be left."""
    first, raise_, pending = ("b1", "player", 100), ("b2", "player", 50), ("b3", "player", 100)
    game = round_open().given(
        placed("r1", first),
        reserved("r1", first),
        placed("r2", raise_),
        reserved("r2", raise_),
        placed("r3", pending),
    )
    game.when(withdrawn("w1", first)).then(withdrawal_refused("w1", ["b1"], below("player", 50)))
    game.given(reserved("r3", pending))
    game.when(withdrawn("w2", first)).then(withdrawal("w2", first))


def test_lim_8_a_pending_raise_must_not_be_left_alone() -> None:
    first, raise_ = ("b1", "player", 100), ("b2", "player", 50)
    game = round_open().given(placed("r1", first), reserved("r1", first), placed("r2", raise_))
    game.when(withdrawn("w1", first)).then(withdrawal_refused("w1", ["b1"], below("player", 50)))
    game.given(declined("r2", raise_))
    game.when(withdrawn("w2", first)).then(withdrawal("w2", first))


def test_lim_8_pending_bets_may_be_taken_back() -> None:
    first = ("b1", "player", 100)
    game = round_open().given(placed("r1", first))
    game.when(withdrawn("w1", first)).then(withdrawal("w1", first))
    # It is on its way out, whatever the wallet says of it.
    game.given(reserved("r1", first)).when(placed("r2", ("b2", "player", 50))).then(
        refused("r2", ["b2"], below("player", 50))
    )


def test_a_leaving_stake_covers_nothing_and_counts_until_it_went_back() -> None:
    first = ("b1", "player", 900)
    game = round_open().given(placed("r1", first), reserved("r1", first), withdrawn("w1", first))
    game.when(placed("r2", ("b2", "player", 50))).then(refused("r2", ["b2"], below("player", 50)))
    game.when(placed("r3", ("b3", "banker", 100))).then(
        refused("r3", ["b3"], opposite("banker", 100, "player"))
    )
    game.given(returned("w1", first))
    game.when(placed("r4", ("b4", "banker", 100))).then(approved("r4", ("b4", "banker", 100)))
    assert list(game.state.books[R].holdings["acme", A].bets) == ["b4"]


def test_bets_that_are_off_already_are_left_out_of_an_approval() -> None:
    first, second = ("b1", "player", 100), ("b2", "player", 100)
    game = round_open().given(
        placed("r1", first), reserved("r1", first), placed("r2", second), declined("r2", second)
    )
    game.when(withdrawn("w1", first, second)).then(withdrawal("w1", first))
    game.when(withdrawn("w2", first)).then(withdrawal("w2"))


def test_a_withdrawal_after_the_book_is_closed_is_refused() -> None:
    first = ("b1", "player", 100)
    game = round_open().given(placed("r1", first), reserved("r1", first))
    game.given(table.BettingClosed(table_id=T, round_id=R))
    game.when(withdrawn("w1", first)).then(
        withdrawal_refused("w1", ["b1"], plain(limits.LIMIT_BOOK_CLOSED))
    )


def test_no_schedule_of_declines_leaves_a_rest_under_the_minimum() -> None:
    """All short histories of one bet's requests, withdrawals and outcomes: what the wallet has
    reserved in the end is nothing or enough."""
    wagers = [("b0", "player", 100), ("b1", "player", 60), ("b2", "player", 140)]
    steps = ["place0", "place1", "place2", "take0", "take1", "take2"]
    for order in product(range(len(steps)), repeat=4):
        for outcomes in product((True, False), repeat=3):
            _play([steps[one] for one in order], wagers, outcomes)


def _play(steps: list[str], wagers: list[tuple[str, str, int]], outcomes: tuple[bool, ...]) -> None:
    game = round_open()
    game.careful = False
    placed_already: set[int] = set()
    waiting: list[limits.BetsApproved | limits.WithdrawalApproved] = []
    for step in steps:
        number = int(step[-1])
        if step.startswith("place"):
            if number in placed_already:
                return
            placed_already.add(number)
            game.when(placed(f"r{number}", wagers[number]))
        else:
            game.when(withdrawn(f"w{number}", wagers[number]))
        waiting += [
            one
            for one in game.answers
            if isinstance(one, limits.BetsApproved | limits.WithdrawalApproved)
        ]
    on: dict[str, int] = {}
    for answer in waiting:
        for bet in answer.bets:
            if isinstance(answer, limits.WithdrawalApproved):
                on.pop(bet.bet_id, None)
            elif outcomes[int(bet.bet_id[-1])]:
                on[bet.bet_id] = bet.stake_minor
    total = sum(on.values())
    assert total == 0 or total >= 100, (steps, outcomes, on)
