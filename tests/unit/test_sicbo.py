"""Sic bo as pure functions: every roll with every bet by both paytables (SIC-1, SIC-2)."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from services.games.bets import pays_of
from services.games.money import Rounding, Verdict, settled
from services.games.odds import EVENS, Odds
from services.games.sicbo import (
    JUDGES,
    PAYS,
    PAYTABLES,
    PLACES,
    ROLLS,
    canonical,
    is_roll,
    is_triple,
    judge,
)

EVERY_ROLL = list(product(range(1, 7), repeat=3))

PAIRS = "1-2 1-3 1-4 1-5 1-6 2-3 2-4 2-5 2-6 3-4 3-5 3-6 4-5 4-6 5-6"
FACES = ["1", "2", "3", "4", "5", "6"]
LAYOUT = {
    "big": [""],
    "small": [""],
    "odd": [""],
    "even": [""],
    "any_triple": [""],
    "triple": FACES,
    "double": FACES,
    "single": FACES,
    "total": ["4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17"],
    "combination": PAIRS.split(),
}

TABLES: dict[str, dict[str, int | dict[int, int]]] = {
    "atlantic_city": {
        "double": 10,
        "triple": 180,
        "any_triple": 30,
        "total": {4: 60, 5: 30, 6: 17, 7: 12, 8: 8, 9: 6, 10: 6,
                  17: 60, 16: 30, 15: 17, 14: 12, 13: 8, 12: 6, 11: 6},
    },
    "macau": {
        "double": 8,
        "triple": 150,
        "any_triple": 24,
        "total": {4: 50, 5: 18, 6: 14, 7: 12, 8: 8, 9: 6, 10: 6,
                  17: 50, 16: 18, 15: 14, 14: 12, 13: 8, 12: 6, 11: 6},
    },
}  # fmt: skip
"""What differs between the paytables, from the rules' text."""
ALIKE: dict[str, int | dict[int, int]] = {
    "big": 1,
    "small": 1,
    "odd": 1,
    "even": 1,
    "single": {1: 1, 2: 2, 3: 3},
    "combination": 5,
}

WAYS = {
    **dict.fromkeys(("big", "small", "odd", "even"), 105),
    "any_triple": 6,
    "triple": 1,
    "double": 16,
    "single": 91,
    "combination": 30,
}
"""In how many of the 216 rolls a bet wins, but for totals."""
WAYS_OF_TOTAL = [3, 6, 10, 15, 21, 25, 27, 27, 25, 21, 15, 10, 6, 3]


def key_of(bet: str, position: str, dice: tuple[int, ...]) -> int | None:
    """By what a win pays: the total, how many dice show the face, else 0; None where it loses."""
    faces, total = Counter(dice), sum(dice)
    triple = len(faces) == 1
    wanted = [int(text) for text in position.split("-")] if position else []
    match bet:
        case "big":
            return 0 if not triple and total in {11, 12, 13, 14, 15, 16, 17} else None
        case "small":
            return 0 if not triple and total in {4, 5, 6, 7, 8, 9, 10} else None
        case "odd":
            return 0 if not triple and total in {5, 7, 9, 11, 13, 15, 17} else None
        case "even":
            return 0 if not triple and total in {4, 6, 8, 10, 12, 14, 16} else None
        case "any_triple":
            return 0 if triple else None
        case "triple":
            return 0 if dice == (wanted[0],) * 3 else None
        case "double":
            return 0 if faces[wanted[0]] in {2, 3} else None
        case "single":
            return faces[wanted[0]] or None
        case "total":
            return total if total == wanted[0] else None
        case _:
            return 0 if faces.keys() >= set(wanted) else None


def profit(table: str, bet: str, position: str, dice: tuple[int, ...]) -> int:
    """On a stake of 1, by the product."""
    judged = judge(bet, position, dice)
    won = judged.verdict is Verdict.WON
    pays = pays_of(PAYTABLES[table][bet], judged.line) if won else EVENS
    return settled(1, judged.verdict, pays, Rounding.DOWN).profit_minor


def test_sic_1_the_layout_has_52_places() -> None:
    assert {bet: list(positions) for bet, positions in PLACES.items()} == LAYOUT
    assert sum(map(len, LAYOUT.values())) == 52
    assert list(PLACES) == list(JUDGES) == list(PAYS)
    assert list(ROLLS) == EVERY_ROLL
    assert len(EVERY_ROLL) == 216


@pytest.mark.parametrize("table", TABLES)
def test_sic_1_every_roll_with_every_bet(table: str) -> None:
    terms = {**ALIKE, **TABLES[table]}
    seen = 0
    for dice in EVERY_ROLL:
        for bet, positions in LAYOUT.items():
            for position in positions:
                key, pays = key_of(bet, position, dice), terms[bet]
                won = pays[key] if isinstance(pays, dict) and key is not None else pays
                expected = -1 if key is None else won
                assert profit(table, bet, position, dice) == expected, (dice, bet, position)
                seen += 1
    assert seen == 216 * 52


def test_sic_1_in_how_many_rolls_each_bet_wins() -> None:
    """Counted from the faces of three dice, not from the rolls."""
    for bet, positions in LAYOUT.items():
        for position in positions:
            wins = sum(judge(bet, position, dice).verdict is Verdict.WON for dice in EVERY_ROLL)
            expected = WAYS_OF_TOTAL[int(position) - 4] if bet == "total" else WAYS[bet]
            assert wins == expected, (bet, position)


@pytest.mark.parametrize("face", range(1, 7))
def test_sic_1_a_triple_loses_the_even_bets_and_wins_singles_doubles_and_its_total(
    face: int,
) -> None:
    dice = (face, face, face)
    assert is_triple(dice)
    for bet in ("big", "small", "odd", "even"):
        assert profit("macau", bet, "", dice) == -1
    assert profit("macau", "single", str(face), dice) == 3
    assert profit("macau", "double", str(face), dice) == 8
    assert profit("macau", "triple", str(face), dice) == 150
    assert profit("macau", "any_triple", "", dice) == 24
    totals = [text for text in LAYOUT["total"] if profit("macau", "total", text, dice) > 0]
    assert totals == ([str(3 * face)] if 2 <= face <= 5 else [])


def test_sic_1_the_order_of_the_dice_is_of_no_account() -> None:
    for dice in EVERY_ROLL:
        ordered = tuple(sorted(dice))
        for bet, positions in LAYOUT.items():
            for position in positions:
                assert judge(bet, position, dice) == judge(bet, position, ordered)


def test_sic_2_the_paytables_are_those_of_the_rules() -> None:
    assert list(PAYTABLES) == ["atlantic_city", "macau"]
    assert PAYTABLES["atlantic_city"] is PAYS
    for table, pays in PAYTABLES.items():
        terms = {**ALIKE, **TABLES[table]}
        assert pays.keys() == terms.keys()
        for bet, term in terms.items():
            offered = pays[bet]
            if isinstance(term, dict):
                assert isinstance(offered, dict)
                assert sorted(offered) == list(offered)
                names = [f"total_{key:02}" for key in sorted(term)]
                if bet == "single":
                    names = ["one_die", "two_dice", "three_dice"]
                    assert frozenset(names) == offered.keys()
                assert [offered[name] for name in names] == [
                    Odds(term[key], 1) for key in sorted(term)
                ]
            else:
                assert offered == Odds(term, 1)


def test_sic_1_a_combination_in_any_order_is_one_place() -> None:
    for low in range(1, 7):
        for high in range(low + 1, 7):
            assert canonical("combination", f"{high}-{low}") == f"{low}-{high}"
    for bet, positions in LAYOUT.items():
        for position in positions:
            assert canonical(bet, position) == position


@pytest.mark.parametrize(
    ("bet", "position"),
    [
        *(("total", text) for text in ("", "3", "18", "04", "4-5", "x")),
        *((bet, text) for bet in ("single", "double", "triple") for text in ("", "0", "7", "1-1")),
        *(
            ("combination", text)
            for text in ("", "1", "1-1", "0-1", "6-7", "1-2-3", "2-1-", "1--2")
        ),
        *((bet, "1") for bet in ("big", "small", "odd", "even", "any_triple")),
        ("middle", ""),
        ("", ""),
    ],
)
def test_sic_1_what_is_not_on_the_layout(bet: str, position: str) -> None:
    assert canonical(bet, position) is None


def test_sic_1_what_is_no_roll() -> None:
    assert all(map(is_roll, EVERY_ROLL))
    for dice in ((), (1, 2), (1, 2, 3, 4), (0, 1, 2), (1, 2, 7)):
        assert not is_roll(dice)
