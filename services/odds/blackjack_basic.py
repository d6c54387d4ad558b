"""Basic strategy: what a hand of blackjack does by its total alone.

For the usual rules it is written down here; a search that is made anew in a test finds the same.
Hits and stands are those of the system's own advice, which adds no stake (rule BJ-12).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from services.games.blackjack import BEST, FIRST_CARDS, Peek
from services.games.blackjack_strategy import Advice, advice
from services.odds.blackjack_hands import VALUES, Flags

DECKS = 8
_PLACES = "A23456789T"
"""The dealer's first cards and the values of pairs."""
_HARD, _SOFT = 0, 1
_LEAST = {_HARD: 2 * FIRST_CARDS, _SOFT: 12}
"""Points of the lowest hand: two twos, or two aces."""

_DOUBLES = {
    (_HARD, 9): "3456",
    (_HARD, 10): "23456789",
    (_HARD, 11): "23456789",
    (_SOFT, 13): "56",
    (_SOFT, 14): "56",
    (_SOFT, 15): "456",
    (_SOFT, 16): "456",
    (_SOFT, 17): "3456",
    (_SOFT, 18): "3456",
}
"""By total: the dealer's first cards to double against."""
_SPLITS = {
    "A": "A23456789T",
    "2": "4567",
    "3": "4567",
    "6": "3456",
    "7": "234567",
    "8": "A23456789",
    "9": "2345689",
}
"""By the pair's value: the dealer's first cards to split against."""


@dataclass(frozen=True, slots=True, eq=False)
class Strategy:
    """What to do, by the place of the dealer's first card."""

    hits: Flags
    """First card by soft by points: one more card; else the hand stands."""
    doubles: Flags
    """First card by soft by points: on the first two cards."""
    splits: Flags
    """First card by the place of the pair's value."""


def empty() -> Strategy:
    """One that always stands."""
    by_total = (VALUES, 2, BEST + 1)
    return Strategy(
        np.zeros(by_total, dtype=bool),
        np.zeros(by_total, dtype=bool),
        np.zeros((VALUES, VALUES), dtype=bool),
    )


def basic(peek: Peek) -> Strategy:
    """The best one for eight decks, doubles, and one card on split aces."""
    found = empty()
    for up in range(VALUES):
        for soft, least in _LEAST.items():
            for points in range(least, BEST):
                told = advice(points, soft=soft == _SOFT, dealer=up + 1)
                found.hits[up, soft, points] = told is Advice.HIT
    for (soft, points), against in _DOUBLES.items():
        found.doubles[_places(against), soft, points] = True
    for pair, against in _SPLITS.items():
        found.splits[_places(against), _PLACES.index(pair)] = True
    ace, eight, ten = _places("A8T")
    # A further stake is made where a peek protects it, and saved where nothing does.
    match peek:
        case Peek.ACE_ONLY:
            pass
        case Peek.BOTH:
            found.doubles[ten, _HARD, 11] = found.splits[ten, eight] = True
        case Peek.NONE:
            found.splits[ace, [ace, eight]] = False
    return found


def _places(cards: str) -> list[int]:
    return [_PLACES.index(card) for card in cards]
