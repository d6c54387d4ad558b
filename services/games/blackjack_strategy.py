"""What a hand of blackjack does that may only hit or stand, by its total (rule BJ-12)."""

from __future__ import annotations

from enum import Enum


class Advice(Enum):
    """What to do: the system never adds a stake for a bettor."""

    HIT = 1
    STAND = 2


_HARD_STANDS_AGAINST: dict[int, frozenset[int]] = {
    12: frozenset({4, 5, 6}),
    **{points: frozenset({2, 3, 4, 5, 6}) for points in range(13, 17)},
}
"""By hard total: the dealer's first cards against which it stands. Below 12 it never does, from 17
on it always does."""
_SOFT_18_HITS_AGAINST = frozenset({1, 9, 10})
"""A soft 17 or less always hits, a soft 19 or more always stands."""


def advice(points: int, *, soft: bool, dealer: int) -> Advice:
    """Basic strategy with hits and stands alone, eight decks, the dealer standing on every 17.

    `dealer`: the value of the dealer's first card, 1 for an ace."""
    if soft:
        stands = points > 18 or (points == 18 and dealer not in _SOFT_18_HITS_AGAINST)
    else:
        stands = points > 16 or dealer in _HARD_STANDS_AGAINST.get(points, frozenset[int]())
    return Advice.STAND if stands else Advice.HIT
