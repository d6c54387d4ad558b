"""Limits by position and account, side bets and their main bet, over all requests of an account in
a round (LIM-4 to LIM-6, BJ-11), and what a withdrawal may not leave behind (LIM-8)."""

from __future__ import annotations

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.table.v1 import events_pb2 as table
from services.games.catalogue import baccarat_1
from services.limits.domain.state import BetStanding
from tests.unit.deciding import by
from tests.unit.limits_facts import (
    BACCARAT,
    BETTING_CLOSED,
    BLACKJACK,
    DRAGON_TIGER,
    EZ,
    FOOTBALL_STUDIO,
    ROULETTE,
    SICBO,
    R,
    T,
    above,
    account_maximum,
    approved,
    below,
    declined,
    difference,
    no_main,
    off_step,
    on,
    placed,
    refused,
    reserved,
    returned,
    round_open,
    side_bet_closed,
    spec,
    withdrawal,
    withdrawal_refused,
    withdrawn,
)

MOST = 10_000


# ---- LIM-4: by position, by account --------------------------------------------------------------


def test_lim_4_limits_hold_for_each_position_by_itself() -> None:
    game = round_open(spec(ROULETTE, by_bet={"straight": (100, 5_000)}))
    wagers = (("b1", "straight", "17", 5_000), ("b2", "straight", "18", 5_000))
    on(game, "r1", *wagers)
    game.when(placed("r2", ("b3", "straight", "17", 1))).then(
        refused("r2", ["b3"], above("straight", "17", 5_001, 5_000))
    )
    game.when(placed("r3", ("b4", "straight", "19", 99))).then(
        refused("r3", ["b4"], below("straight", "19", 99))
    )


def test_lim_4_a_raise_stands_on_its_own_position_only() -> None:
    game = round_open(spec(SICBO))
    on(game, "r1", ("b1", "total", "4", 100))
    game.when(placed("r2", ("b2", "total", "4", 1))).then_only(limits.BetsApproved)
    game.when(placed("r3", ("b3", "total", "5", 1))).then(
        refused("r3", ["b3"], below("total", "5", 1))
    )


def test_lim_4_one_account_at_several_seats() -> None:
    game = round_open(spec(BLACKJACK, by_bet={"main": (100, 1_000)}))
    wagers = tuple((f"b{seat}", "main", str(seat), 1_000) for seat in range(1, 8))
    game.when(placed("r1", *wagers)).then(approved("r1", *wagers))
    game.when(placed("r2", ("b8", "main", "7", 1))).then(
        refused("r2", ["b8"], below("main", "7", 1), above("main", "7", 1_001, 1_000))
    )


def test_lim_4_the_greatest_total_of_an_account() -> None:
    game = round_open(spec(BACCARAT, max_account_minor=1_000))
    player, tie = ("b1", "player", "", 600), ("b2", "tie", "", 400)
    game.when(placed("r1", player, tie)).then(approved("r1", player, tie))
    more = ("b3", "player_pair", "", 100)
    game.when(placed("r2", more)).then(refused("r2", ["b3"], account_maximum(1_100, 1_000)))
    game.when(placed("r3", more, account="ben")).then(approved("r3", more, account="ben"))
    game.given(declined("r1", player, tie)).when(placed("r4", more)).then(approved("r4", more))


def test_lim_4_a_leaving_stake_counts_to_the_account_until_it_went_back() -> None:
    game = round_open(spec(BACCARAT, max_account_minor=1_000))
    tie, more = ("b1", "tie", "", 1_000), ("b2", "player", "", 100)
    on(game, "r1", tie)
    game.given(withdrawn("w1", tie))
    game.when(placed("r2", more)).then(refused("r2", ["b2"], account_maximum(1_100, 1_000)))
    game.given(returned("w1", tie)).when(placed("r3", more)).then(approved("r3", more))


def test_lim_8_what_is_left_at_a_position_keeps_its_minimum() -> None:
    game = round_open(spec(ROULETTE))
    here, more, there = (
        ("b1", "straight", "1", 100),
        ("b2", "straight", "1", 50),
        ("b3", "straight", "2", 100),
    )
    on(game, "r1", here, there)
    on(game, "r2", more)
    game.when(withdrawn("w1", here, there)).then(
        withdrawal_refused("w1", ["b1", "b3"], below("straight", "1", 50))
    )
    game.when(withdrawn("w2", there)).then(withdrawal("w2", there))


# ---- LIM-5: side bets by round of the shoe -------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "last"), [(one.bet, one.until_round) for one in BACCARAT.bets if one.until_round]
)
def test_bac_40_the_last_round_of_a_side_bet_is_inclusive(kind: str, last: int) -> None:
    wager = ("b1", kind, "", 100)
    for in_shoe in (1, last - 1, last):
        game = round_open(spec(BACCARAT), in_shoe=in_shoe)
        game.when(placed("r1", wager)).then(approved("r1", wager))
    for in_shoe in (last + 1, 200):
        game = round_open(spec(BACCARAT), in_shoe=in_shoe)
        game.when(placed("r1", wager)).then(
            refused("r1", ["b1"], side_bet_closed(kind, last, in_shoe))
        )


def test_lim_5_one_closed_bet_spoils_a_request() -> None:
    wagers = (("b1", "player", "", 100), ("b2", "player_bonus", "", 100))
    round_open(spec(BACCARAT), in_shoe=41).when(placed("r1", *wagers)).then(
        refused("r1", ["b1", "b2"], side_bet_closed("player_bonus", 40, 41))
    )


def test_lim_5_main_bets_are_offered_to_the_end_of_a_shoe() -> None:
    wagers = (("b1", "banker", "", 100), ("b2", "tie", "", 100))
    round_open(spec(BACCARAT), in_shoe=90).when(placed("r1", *wagers)).then(approved("r1", *wagers))


def test_bac_36_dragon_7_and_panda_8_never_close() -> None:
    wagers = (("b1", "dragon_7", "", 100), ("b2", "panda_8", "", 100))
    round_open(spec(EZ), in_shoe=90).when(placed("r1", *wagers)).then(approved("r1", *wagers))


# ---- BJ-11: side bets and their main bet ---------------------------------------------------------

MAIN_3, PAIRS_3, PLUS_3 = (
    ("b1", "main", "3", 100),
    ("b2", "perfect_pairs", "3", 100),
    ("b3", "21_plus_3", "3", 100),
)


def test_bj_11_side_bets_come_with_a_main_bet_at_the_seat() -> None:
    round_open(spec(BLACKJACK)).when(placed("r1", PAIRS_3, MAIN_3, PLUS_3)).then(
        approved("r1", PAIRS_3, MAIN_3, PLUS_3)
    )
    round_open(spec(BLACKJACK)).when(placed("r1", PAIRS_3, PLUS_3)).then(
        refused(
            "r1",
            ["b2", "b3"],
            no_main("perfect_pairs", "3", 100),
            no_main("21_plus_3", "3", 100),
        )
    )


def test_bj_11_a_main_bet_at_another_seat_or_of_another_account_is_none() -> None:
    game = round_open(spec(BLACKJACK))
    on(game, "r1", ("b8", "main", "4", 100))
    on(game, "r2", MAIN_3, account="ben")
    game.when(placed("r3", PAIRS_3)).then(refused("r3", ["b2"], no_main("perfect_pairs", "3", 100)))
    game.when(by(placed("r4", PAIRS_3, account="ben"), partner="other")).then(
        refused("r4", ["b2"], no_main("perfect_pairs", "3", 100), account="ben")
    )


def test_bj_11_a_main_bet_counts_once_it_is_reserved() -> None:
    game = round_open(spec(BLACKJACK)).given(placed("r1", MAIN_3))
    game.when(placed("r2", PAIRS_3)).then(refused("r2", ["b2"], no_main("perfect_pairs", "3", 100)))
    game.given(reserved("r1", MAIN_3)).when(placed("r3", PAIRS_3)).then(approved("r3", PAIRS_3))


def test_bj_11_a_leaving_main_bet_is_none() -> None:
    game = round_open(spec(BLACKJACK))
    on(game, "r1", MAIN_3)
    game.given(withdrawn("w1", MAIN_3))
    game.when(placed("r2", PLUS_3)).then(refused("r2", ["b3"], no_main("21_plus_3", "3", 100)))


def test_lim_8_a_main_bet_goes_only_with_its_side_bets() -> None:
    game = round_open(spec(BLACKJACK))
    on(game, "r1", MAIN_3, PAIRS_3)
    on(game, "r2", PLUS_3)
    game.when(withdrawn("w1", MAIN_3)).then(
        withdrawal_refused(
            "w1", ["b1"], no_main("21_plus_3", "3", 100), no_main("perfect_pairs", "3", 100)
        )
    )
    game.when(withdrawn("w2", MAIN_3, PAIRS_3)).then(
        withdrawal_refused("w2", ["b1", "b2"], no_main("21_plus_3", "3", 100))
    )
    game.when(withdrawn("w3", PLUS_3)).then(withdrawal("w3", PLUS_3))
    game.when(withdrawn("w4", MAIN_3, PAIRS_3)).then(withdrawal("w4", MAIN_3, PAIRS_3))


def test_lim_8_a_part_of_a_main_bet_is_enough() -> None:
    game = round_open(spec(BLACKJACK))
    on(game, "r1", MAIN_3, PAIRS_3, ("b4", "main", "3", 100))
    game.when(withdrawn("w1", MAIN_3)).then(withdrawal("w1", MAIN_3))


def test_lim_8_a_pending_side_bet_keeps_the_main_bet_that_it_stands_on() -> None:
    game = round_open(spec(BLACKJACK))
    on(game, "r1", MAIN_3)
    game.given(placed("r2", PAIRS_3, ("b4", "main", "3", 100)), placed("r3", PLUS_3))
    # The request r2 brings its own main bet; r3 would be left with one that may be declined.
    game.when(withdrawn("w1", MAIN_3)).then(
        withdrawal_refused("w1", ["b1"], no_main("21_plus_3", "3", 100))
    )
    game.given(declined("r3", PLUS_3))
    game.when(withdrawn("w2", MAIN_3)).then(withdrawal("w2", MAIN_3))


def test_lim_8_a_reserved_side_bet_is_not_left_with_a_pending_main_bet() -> None:
    game = round_open(spec(BLACKJACK))
    on(game, "r1", MAIN_3, PAIRS_3)
    game.given(placed("r2", ("b4", "main", "3", 100)))
    game.when(withdrawn("w1", MAIN_3)).then(
        withdrawal_refused("w1", ["b1"], no_main("perfect_pairs", "3", 100))
    )


def test_bj_11_is_blackjacks() -> None:
    """No other game has a bet `main`."""
    for of in (BACCARAT, SICBO, ROULETTE, DRAGON_TIGER, FOOTBALL_STUDIO):
        assert "main" not in [offer.bet for offer in of.bets]


# ---- all of it together --------------------------------------------------------------------------


def test_lim_6_every_violation_is_told_place_by_place_and_then_those_of_all_together() -> None:
    of = spec(
        BACCARAT,
        low=100,
        high=1_000,
        step=7,
        max_difference_minor=500,
        max_account_minor=2_000,
        max_exposure_minor=3_000,
    )
    wagers = (
        ("b1", "player_bonus", "", 10),
        ("b2", "player", "", 2_000),
        ("b3", "tie", "", 105),
    )
    round_open(of, in_shoe=41).when(placed("r1", *wagers)).then(
        refused(
            "r1",
            ["b1", "b2", "b3"],
            below("player_bonus", "", 10),
            off_step("player_bonus", "", 10, 7),
            side_bet_closed("player_bonus", 40, 41),
            above("player", "", 2_000, 1_000),
            off_step("player", "", 2_000, 7),
            difference("player", "banker", 2_000, 500),
            account_maximum(2_115, 2_000),
        )
    )


def test_lim_6_the_order_at_one_place_and_of_what_breaks_together_is_that_of_the_enum() -> None:
    """Every restriction of its game at once: sides and difference exclude one another."""
    cases = [
        (
            round_open(spec(SICBO, low=100, high=1_000, step=7, max_account_minor=1_000)),
            [("b1", "big", "", 2_000), ("b2", "small", "", 10)],
        ),
        (
            round_open(
                spec(ROULETTE, max_account_minor=1_000, max_exposure_minor=1_000, max_numbers=10)
            ),
            [("b1", "red", "", 2_000)],
        ),
        (
            round_open(spec(BLACKJACK, high=1_000, max_exposure_minor=10, max_account_minor=10)),
            [("b1", "perfect_pairs", "1", 2_000)],
        ),
    ]
    seen: dict[int, None] = {}
    for game, wagers in cases:
        game.when(placed("r1", *wagers))
        [answer] = game.answers
        assert isinstance(answer, limits.BetsRefused)
        told = [(one.bet, one.limit) for one in answer.violations]
        assert len(told) == len(dict.fromkeys(told))
        order = [wager[1] for wager in wagers]
        ranks = [(order.index(bet) if bet else len(order), limit) for bet, limit in told]
        assert ranks == sorted(ranks)
        seen |= {limit: None for _, limit in told}
    assert sorted(seen) == [
        limits.LIMIT_BELOW_MINIMUM,
        limits.LIMIT_ABOVE_MAXIMUM,
        limits.LIMIT_STAKE_STEP,
        limits.LIMIT_OPPOSITE_SIDES,
        limits.LIMIT_NO_MAIN_BET,
        limits.LIMIT_COVERAGE,
        limits.LIMIT_ACCOUNT_MAXIMUM,
        limits.LIMIT_EXPOSURE,
    ]


def test_a_refused_request_leaves_no_trace() -> None:
    game = round_open(spec(ROULETTE, max_exposure_minor=1_000))
    on(game, "r1", ("b1", "red", "", 100))
    before = repr(game.state)
    game.when(placed("r2", ("b2", "black", "", 900), ("b3", "straight", "3", 900))).then_only(
        limits.BetsRefused
    )
    assert repr(game.state) == before


def test_a_round_keeps_the_restrictions_that_stood_when_it_opened() -> None:
    game = round_open(spec(BACCARAT))
    game.given(table.TableOpened(spec=spec(baccarat_1(), max_difference_minor=MOST), revision=2))
    wagers = (("b1", "player", "", 100), ("b2", "banker", "", 100))
    game.when(placed("r1", *wagers)).then_only(limits.BetsRefused)
    pair = ("b3", "player_pair", "", 100)
    game.when(placed("r2", pair)).then(approved("r2", pair))


def test_what_is_reserved_late_covers_nothing_once_it_leaves() -> None:
    game = round_open(spec(BLACKJACK)).given(placed("r1", MAIN_3), withdrawn("w1", MAIN_3))
    game.given(reserved("r1", MAIN_3))
    held = game.state.books[R].holdings["acme", "ann"].bets["b1"]
    assert held.standing is BetStanding.LEAVING
    game.when(placed("r2", PAIRS_3)).then(refused("r2", ["b2"], no_main("perfect_pairs", "3", 100)))


def test_the_markers_come_as_before() -> None:
    round_open(spec(ROULETTE)).when(BETTING_CLOSED).then(limits.BookClosed(table_id=T, round_id=R))
