"""Roulette with one zero: the wheel, the layout and what became of each bet (ROU-1 to ROU-5).

The 157 positions follow from the layout: twelve rows of three numbers, and the zero at the head of
the first row. Every kind of bet is a set of places, and every place the numbers that win there.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from services.games.bets import HALF_LOST, LOST, WON, Judged, Pays
from services.games.odds import EVENS, Odds

NUMBERS = tuple(range(37))
"""The pockets, the zero included."""
WHEEL: tuple[int, ...] = (
    *(0, 32, 15, 19, 4, 21, 2, 25, 17, 34, 6, 27, 13, 36, 11, 30, 8, 23, 10),
    *(5, 24, 16, 33, 1, 20, 14, 31, 9, 22, 18, 29, 7, 28, 12, 35, 3, 26),
)
"""The pockets in their order on the wheel, clockwise from the zero (rule ROU-2)."""
RED = frozenset({1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36})
"""Rule ROU-2; all others but the zero are black."""
EVEN_CHANCES = ("red", "black", "odd", "even", "low", "high")
"""The bets that la partage gives half back on (rule ROU-5)."""
MAX_NEIGHBOURS = 9
"""On either side of a number (rule ROU-4)."""

Numbers = tuple[int, ...]
"""The numbers that a bet covers, ascending."""

_ROWS: tuple[Numbers, ...] = tuple((low, low + 1, low + 2) for low in range(1, 37, 3))
_THIRD = 12
"""How many numbers a dozen and a column have."""


def colour(number: int) -> str:
    """`green`, `red` or `black`."""
    if number == 0:
        return "green"
    return "red" if number in RED else "black"


def text_of(numbers: Numbers) -> str:
    """A position's canonical text: its numbers, which are ascending, joined by `-`."""
    return "-".join(map(str, numbers))


def _by_text(*places: Numbers) -> dict[str, Numbers]:
    return {text_of(numbers): numbers for numbers in places}


def _splits() -> list[Numbers]:
    """Two neighbours: zero with the first row, side by side in a row, and one above the other."""
    with_zero = [(0, number) for number in _ROWS[0]]
    beside = [pair for row in _ROWS for pair in pairwise(row)]
    above = [pair for row, under in pairwise(_ROWS) for pair in zip(row, under, strict=True)]
    return sorted([*with_zero, *beside, *above])


def _corners() -> list[Numbers]:
    """Four numbers that meet in one point."""
    return [
        (*one, *other)
        for row, under in pairwise(_ROWS)
        for one, other in zip(pairwise(row), pairwise(under), strict=True)
    ]


_FIRST_FOUR: Numbers = (0, 1, 2, 3)

PLACES: dict[str, dict[str, Numbers]] = {
    "straight": _by_text(*((number,) for number in NUMBERS)),
    "split": _by_text(*_splits()),
    "street": _by_text(*_ROWS),
    "trio": _by_text((0, 1, 2), (0, 2, 3)),
    "corner": _by_text(*_corners()),
    "first_four": {"": _FIRST_FOUR},
    "six_line": _by_text(*((*row, *under) for row, under in pairwise(_ROWS))),
    "dozen": {
        str(index): tuple(range(_THIRD * (index - 1) + 1, _THIRD * index + 1))
        for index in (1, 2, 3)
    },
    "column": {str(index): tuple(range(index, 37, 3)) for index in (1, 2, 3)},
    "red": {"": tuple(sorted(RED))},
    "black": {"": tuple(number for number in NUMBERS[1:] if number not in RED)},
    "odd": {"": tuple(range(1, 37, 2))},
    "even": {"": tuple(range(2, 37, 2))},
    "low": {"": tuple(range(1, 19))},
    "high": {"": tuple(range(19, 37))},
}
"""The layout: by bet id and position, the numbers covered (rule ROU-1)."""

PAYS: dict[str, Pays] = {
    "straight": Odds(35, 1),
    "split": Odds(17, 1),
    "street": Odds(11, 1),
    "trio": Odds(11, 1),
    "corner": Odds(8, 1),
    "first_four": Odds(8, 1),
    "six_line": Odds(5, 1),
    "dozen": Odds(2, 1),
    "column": Odds(2, 1),
    "red": EVENS,
    "black": EVENS,
    "odd": EVENS,
    "even": EVENS,
    "low": EVENS,
    "high": EVENS,
}
"""What a bet pays."""

_NUMBER_BY_TEXT = {str(number): number for number in NUMBERS}
_NAMED_BY_NUMBERS = ("straight", "split", "street", "trio", "corner", "first_four", "six_line")
_POSITIONS: dict[str, dict[str, str]] = {
    bet: {text_of(numbers): position for position, numbers in PLACES[bet].items()}
    for bet in _NAMED_BY_NUMBERS
}
"""By bet id and the text of its numbers, the canonical text of the place."""


def canonical(bet: str, position: str) -> str | None:
    """The canonical text of a place of this bet, from its numbers in any order; None where the
    layout has no such place (rule ROU-3). The first four have one place: their numbers may be
    told or left out. A number has one text: `07` is none."""
    places = PLACES.get(bet)
    if places is None:
        return None
    if position in places:
        return position
    named = _POSITIONS.get(bet)
    if named is None:
        return None
    numbers = position.split("-")
    if not _NUMBER_BY_TEXT.keys() >= set(numbers):
        return None
    return named.get("-".join(sorted(numbers, key=_NUMBER_BY_TEXT.__getitem__)))


def covered(bet: str, position: str) -> Numbers:
    """The numbers that a bet wins with. The bet and its position stand in `PLACES`."""
    return PLACES[bet][position]


def judge(bet: str, position: str, number: int, *, la_partage: bool = False) -> Judged:
    """What became of a bet. The bet and its position stand in `PLACES`."""
    if number in PLACES[bet][position]:
        return WON
    if number == 0 and la_partage and bet in EVEN_CHANCES:
        return HALF_LOST
    return LOST


class Chips(NamedTuple):
    """One part of an announced bet."""

    bet: str
    position: str
    chips: int


def _chips(bet: str, *positions: str) -> tuple[Chips, ...]:
    return tuple(Chips(bet, position, 1) for position in positions)


ANNOUNCED: dict[str, tuple[Chips, ...]] = {
    "voisins": (
        Chips("trio", "0-2-3", 2),
        *_chips("split", "4-7", "12-15", "18-21", "19-22", "32-35"),
        Chips("corner", "25-26-28-29", 2),
    ),
    "tiers": _chips("split", "5-8", "10-11", "13-16", "23-24", "27-30", "33-36"),
    "orphelins": (
        *_chips("straight", "1"),
        *_chips("split", "6-9", "14-17", "17-20", "31-34"),
    ),
    "jeu_zero": (*_chips("split", "0-3", "12-15", "32-35"), *_chips("straight", "26")),
}
"""The announced bets that are always the same (rule ROU-4)."""

NEIGHBOURS = "neighbours"
"""The announced bet on a number and those beside it on the wheel; its position is the number and
how many on either side, such as `26-2`."""


def is_announced(bet: str) -> bool:
    """Whether a bet is announced: parts are booked, never the bet itself."""
    return bet in ANNOUNCED or bet == NEIGHBOURS


def expanded(bet: str, position: str) -> tuple[Chips, ...] | None:
    """The parts of an announced bet, in their order (rule ROU-4); None where there is none such."""
    if bet == NEIGHBOURS:
        return _neighbours(position)
    return ANNOUNCED.get(bet) if not position else None


def _neighbours(position: str) -> tuple[Chips, ...] | None:
    """The straights of a stretch of the wheel, clockwise."""
    number_text, _, reach_text = position.partition("-")
    number, reach = _NUMBER_BY_TEXT.get(number_text), _NUMBER_BY_TEXT.get(reach_text)
    if number is None or reach is None or not 1 <= reach <= MAX_NEIGHBOURS:
        return None
    middle = WHEEL.index(number)
    stretch = range(middle - reach, middle + reach + 1)
    return _chips("straight", *(str(WHEEL[place % len(WHEEL)]) for place in stretch))
