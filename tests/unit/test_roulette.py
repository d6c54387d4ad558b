"""Roulette as pure functions, against a layout that is written out by hand (ROU-1 to ROU-5)."""

from __future__ import annotations

from itertools import chain, combinations, permutations

import pytest

from services.games.bets import HALF_LOST, LOST, WON, pays_of
from services.games.money import Rounding, settled
from services.games.odds import Odds
from services.games.roulette import (
    ANNOUNCED,
    EVEN_CHANCES,
    NUMBERS,
    PAYS,
    PLACES,
    RED,
    WHEEL,
    Chips,
    canonical,
    colour,
    covered,
    expanded,
    is_announced,
    judge,
)

# ---- the layout, by hand -----------------------------------------------------------------------

BY_NUMBERS = {
    "straight": """
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18
        19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36""",
    "split": """
        0-1 0-2 0-3
        1-2 2-3 4-5 5-6 7-8 8-9 10-11 11-12 13-14 14-15 16-17 17-18
        19-20 20-21 22-23 23-24 25-26 26-27 28-29 29-30 31-32 32-33 34-35 35-36
        1-4 4-7 7-10 10-13 13-16 16-19 19-22 22-25 25-28 28-31 31-34
        2-5 5-8 8-11 11-14 14-17 17-20 20-23 23-26 26-29 29-32 32-35
        3-6 6-9 9-12 12-15 15-18 18-21 21-24 24-27 27-30 30-33 33-36""",
    "street": """
        1-2-3 4-5-6 7-8-9 10-11-12 13-14-15 16-17-18
        19-20-21 22-23-24 25-26-27 28-29-30 31-32-33 34-35-36""",
    "trio": "0-1-2 0-2-3",
    "corner": """
        1-2-4-5 4-5-7-8 7-8-10-11 10-11-13-14 13-14-16-17 16-17-19-20
        19-20-22-23 22-23-25-26 25-26-28-29 28-29-31-32 31-32-34-35
        2-3-5-6 5-6-8-9 8-9-11-12 11-12-14-15 14-15-17-18 17-18-20-21
        20-21-23-24 23-24-26-27 26-27-29-30 29-30-32-33 32-33-35-36""",
    "six_line": """
        1-2-3-4-5-6 4-5-6-7-8-9 7-8-9-10-11-12 10-11-12-13-14-15 13-14-15-16-17-18
        16-17-18-19-20-21 19-20-21-22-23-24 22-23-24-25-26-27 25-26-27-28-29-30
        28-29-30-31-32-33 31-32-33-34-35-36""",
}
BY_NAME = {
    ("first_four", ""): "0 1 2 3",
    ("dozen", "1"): "1 2 3 4 5 6 7 8 9 10 11 12",
    ("dozen", "2"): "13 14 15 16 17 18 19 20 21 22 23 24",
    ("dozen", "3"): "25 26 27 28 29 30 31 32 33 34 35 36",
    ("column", "1"): "1 4 7 10 13 16 19 22 25 28 31 34",
    ("column", "2"): "2 5 8 11 14 17 20 23 26 29 32 35",
    ("column", "3"): "3 6 9 12 15 18 21 24 27 30 33 36",
    ("red", ""): "1 3 5 7 9 12 14 16 18 19 21 23 25 27 30 32 34 36",
    ("black", ""): "2 4 6 8 10 11 13 15 17 20 22 24 26 28 29 31 33 35",
    ("odd", ""): "1 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31 33 35",
    ("even", ""): "2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 32 34 36",
    ("low", ""): "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18",
    ("high", ""): "19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36",
}


def numbers_of(text: str) -> frozenset[int]:
    return frozenset(map(int, text.replace("-", " ").split()))


LAYOUT: dict[tuple[str, str], frozenset[int]] = {
    **{
        (bet, position): numbers_of(position)
        for bet, positions in BY_NUMBERS.items()
        for position in positions.split()
    },
    **{place: numbers_of(text) for place, text in BY_NAME.items()},
}

COUNTS = {
    "straight": 37,
    "split": 60,
    "street": 12,
    "trio": 2,
    "corner": 22,
    "first_four": 1,
    "six_line": 11,
    "dozen": 3,
    "column": 3,
    "red": 1,
    "black": 1,
    "odd": 1,
    "even": 1,
    "low": 1,
    "high": 1,
}
PROFIT = {
    "straight": 35,
    "split": 17,
    "street": 11,
    "trio": 11,
    "corner": 8,
    "first_four": 8,
    "six_line": 5,
    "dozen": 2,
    "column": 2,
    "red": 1,
    "black": 1,
    "odd": 1,
    "even": 1,
    "low": 1,
    "high": 1,
}
NAMED_BY_NUMBERS = (*BY_NUMBERS, "first_four")


def lies_on(text: str) -> list[str]:
    """The kinds of bet that have a place with these numbers."""
    return [bet for bet in NAMED_BY_NUMBERS if canonical(bet, text) is not None]


def test_rou_1_the_157_positions_are_those_of_the_layout() -> None:
    assert len(LAYOUT) == 157
    assert {bet: len(places) for bet, places in PLACES.items()} == COUNTS
    assert {
        (bet, position): frozenset(numbers)
        for bet, places in PLACES.items()
        for position, numbers in places.items()
    } == LAYOUT
    assert all(list(covered(*place)) == sorted(LAYOUT[place]) for place in LAYOUT)
    assert {bet: pays_of(pays, "") for bet, pays in PAYS.items()} == {
        bet: Odds(profit, 1) for bet, profit in PROFIT.items()
    }


@pytest.mark.parametrize("la_partage", [False, True])
def test_rou_1_every_position_against_every_number(la_partage: bool) -> None:
    """And rule ROU-5: half is lost on the zero, by even chances alone."""
    seen = 0
    for (bet, position), wins in LAYOUT.items():
        for number in range(37):
            expected = WON if number in wins else LOST
            if la_partage and number == 0 and PROFIT[bet] == 1:
                expected = HALF_LOST
            assert judge(bet, position, number, la_partage=la_partage) == expected
            seen += 1
    assert seen == 157 * 37


def test_rou_1_the_zero_is_neither_odd_nor_even_low_nor_high_red_nor_black() -> None:
    assert [
        bet for bet in ("odd", "even", "low", "high", "red", "black") if 0 in covered(bet, "")
    ] == []
    assert frozenset(EVEN_CHANCES) == {bet for bet, profit in PROFIT.items() if profit == 1}


def test_rou_1_every_bet_returns_36_of_37_but_for_half_losses() -> None:
    for (bet, _), wins in LAYOUT.items():
        assert len(wins) * (PROFIT[bet] + 1) == 36


def test_rou_2_the_wheel_and_its_colours() -> None:
    assert WHEEL == (
        0, 32, 15, 19, 4, 21, 2, 25, 17, 34, 6, 27, 13, 36, 11, 30, 8, 23, 10, 5, 24, 16, 33, 1, 20,
        14, 31, 9, 22, 18, 29, 7, 28, 12, 35, 3, 26,
    )  # fmt: skip
    assert sorted(WHEEL) == list(NUMBERS) == list(range(37))
    assert frozenset(LAYOUT["red", ""]) == RED
    colours = [colour(number) for number in WHEEL]
    assert colours == ["green", *["red", "black"] * 18]


def test_rou_3_numbers_in_any_order_name_the_same_place() -> None:
    for bet, positions in BY_NUMBERS.items():
        for position in positions.split():
            for order in permutations(position.split("-")):
                assert canonical(bet, "-".join(order)) == position
    for order in permutations("0123"):
        assert canonical("first_four", "-".join(order)) == ""
    for bet, position in BY_NAME:
        assert canonical(bet, position) == position


def test_rou_02_only_bets_that_exist_on_the_layout() -> None:
    """All pairs, triples, fours and sixes of the 37 numbers."""
    texts = [str(number) for number in range(37)]
    for count, of, bets in (
        (1, 37, ["straight"]),
        (2, 666, ["split"]),
        (3, 7770, ["street", "trio"]),
        (4, 66_045, ["corner", "first_four"]),
    ):
        asked = ["-".join(numbers) for numbers in combinations(texts, count)]
        assert len(asked) == of
        found = {text: kinds for text in asked if (kinds := lies_on(text))}
        assert all(len(kinds) == 1 for kinds in found.values())
        by_hand = [BY_NUMBERS.get(bet, "0-1-2-3").split() for bet in bets]
        assert sorted(found) == sorted(chain.from_iterable(by_hand))
    six = ["-".join(numbers) for numbers in combinations(texts, 6)]
    assert len(six) == 2_324_784
    lines = [text for text in six if canonical("six_line", text) is not None]
    assert sorted(lines) == sorted(BY_NUMBERS["six_line"].split())
    assert 37 + 60 + 14 + 23 + len(lines) == 145


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("3-4", []),
        ("12-13", []),
        ("1-36", []),
        ("0-4", []),
        ("3-4-6-7", []),
        ("1-2-4-5", ["corner"]),
        ("2-3-4", []),
        ("0-2-3", ["trio"]),
        ("0-1-3", []),
        ("1-2-3-4-5-6-7-8-9", []),
        ("1-9", []),
        ("2-3-4-5-6-7", []),
        ("31-32-33-34-35-36", ["six_line"]),
        ("0-1-2-3-4", []),
        ("0-0-1-2-3", []),
        ("37", []),
        ("0-37", []),
    ],
)
def test_rou_02_the_spots_of_the_report(text: str, kinds: list[str]) -> None:
    """The bet on five numbers among them, which takes a double zero (D8)."""
    assert lies_on(text) == kinds


@pytest.mark.parametrize(
    ("bet", "position"),
    [
        *(("straight", text) for text in ("", "00", "07", "-1", "1-", "1-1", "+1", "1 ", "٣", "²")),
        *(("split", text) for text in ("", "17", "17-17", "17-17-20", "17--20", "17_20", "017-20")),
        ("street", "1"),
        ("first_four", "0-1-2"),
        ("first_four", "0"),
        *((bet, text) for bet in ("dozen", "column") for text in ("", "0", "4", "01", "1-2")),
        *((bet, text) for bet in ("red", "low", "even") for text in ("0", "1", "1-3")),
        *((bet, "") for bet in ("voisins", "neighbours", "basket", "five_number", "")),
    ],
)
def test_rou_3_what_is_not_on_the_layout(bet: str, position: str) -> None:
    assert canonical(bet, position) is None


# ---- announced bets ----------------------------------------------------------------------------

PARTS = {
    "voisins": "trio 0-2-3 x2, split 4-7, split 12-15, split 18-21, split 19-22, split 32-35, "
    "corner 25-26-28-29 x2",
    "tiers": "split 5-8, split 10-11, split 13-16, split 23-24, split 27-30, split 33-36",
    "orphelins": "straight 1, split 6-9, split 14-17, split 17-20, split 31-34",
    "jeu_zero": "split 0-3, split 12-15, split 32-35, straight 26",
}
CHIPS = {"voisins": 9, "tiers": 6, "orphelins": 5, "jeu_zero": 4}


def told(parts: tuple[Chips, ...] | None) -> str:
    assert parts is not None
    return ", ".join(
        f"{bet} {position}" + (f" x{chips}" if chips > 1 else "") for bet, position, chips in parts
    )


@pytest.mark.parametrize("bet", PARTS)
def test_rou_4_an_announced_bet_and_its_chips(bet: str) -> None:
    parts = expanded(bet, "")
    assert told(parts) == PARTS[bet]
    assert sum(part.chips for part in parts or ()) == CHIPS[bet]
    assert all((part.bet, part.position) in LAYOUT for part in parts or ())
    assert expanded(bet, "1") is None
    assert is_announced(bet)


def test_rou_4_the_great_three_cover_each_number_once_but_17() -> None:
    """Voisins, tiers and orphelins part the wheel among them; 17 lies on two splits."""
    assert list(ANNOUNCED) == list(PARTS)
    on = [
        number
        for bet in ("voisins", "tiers", "orphelins")
        for part in ANNOUNCED[bet]
        for number in LAYOUT[part.bet, part.position]
    ]
    assert sorted(on) == sorted([*range(37), 17])


def test_rou_4_neighbours_are_a_stretch_of_the_wheel() -> None:
    assert told(expanded("neighbours", "26-2")) == (
        "straight 35, straight 3, straight 26, straight 0, straight 32"
    )
    assert is_announced("neighbours")
    around = [*WHEEL, *WHEEL, *WHEEL]
    for number in range(37):
        middle = 37 + WHEEL.index(number)
        for reach in range(1, 10):
            parts = expanded("neighbours", f"{number}-{reach}")
            assert parts is not None
            assert len(parts) == 2 * reach + 1
            stretch = around[middle - reach : middle + reach + 1]
            assert parts == tuple(Chips("straight", str(one), 1) for one in stretch)
            assert len(frozenset(parts)) == len(parts)


@pytest.mark.parametrize(
    "position", ["", "26", "26-", "26-0", "26-10", "37-1", "2-26", "-2", "26-2-1", "026-2", "26-02"]
)
def test_rou_4_neighbours_that_there_are_not(position: str) -> None:
    assert expanded("neighbours", position) is None


def test_rou_4_bets_that_are_not_announced() -> None:
    assert [bet for bet in (*PLACES, "finale", "") if is_announced(bet)] == []
    assert expanded("red", "") is None
    assert expanded("finale", "") is None


# ---- la partage --------------------------------------------------------------------------------


def test_rou_5_half_of_an_odd_stake_is_rounded_by_the_tables_policy() -> None:
    """Rule MON-1: 1.01 on red loses 0.51, or 0.50 where halves go to the bettor or to the even."""
    fate = judge("red", "", 0, la_partage=True)
    back = {one: settled(101, fate.verdict, Odds(1, 1), one).payout_minor for one in Rounding}
    assert back == {Rounding.DOWN: 50, Rounding.HALF_EVEN: 51, Rounding.HALF_UP: 51}
    assert judge("red", "", 0) == LOST
