"""The hands of blackjack as odds see them: by how many cards of each value they hold.

Under a strategy that looks at totals alone the order of a hand's cards does not matter, nor do
their suits: 3,083 hands are all there are up to 21.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from services.games.blackjack import BEST, SOFT_ACE, value
from services.games.cards import CARDS, RANKS, SUITS
from services.odds.compositions import Composition
from services.odds.deals import Whole

Flags = NDArray[np.bool_]

VALUES = 10
"""Ace as 1, two to nine, ten; value `v` has the place `v - 1`."""
ACE, TEN = 0, VALUES - 1
"""Places."""
BUST = -1
"""The place of every hand over 21."""

CARD_OF = tuple(
    next(rank + SUITS[0] for rank in RANKS if value(rank + SUITS[0]) == place + 1)
    for place in range(VALUES)
)
"""A card of each value, by place."""

Held = tuple[int, ...]
"""Cards of each value, by place."""


def by_value(composition: Composition) -> Held:
    """A composition as blackjack's main bet sees it."""
    held = [0] * VALUES
    for card, copies in zip(CARDS, composition.counts, strict=True):
        held[value(card) - 1] += copies
    return tuple(held)


@dataclass(frozen=True, slots=True, eq=False)
class Hands:
    """Every hand up to 21, the empty one and single cards too. Arrays go by the hand's place."""

    held: Whole
    """Cards by value: hands by values."""
    cards: Whole
    low: Whole
    """The sum with every ace as 1."""
    points: Whole
    """The better total."""
    soft: Whole
    """1 where an ace counts 11, else 0."""
    after: Whole
    """The place of the hand that a card makes of it, `BUST` where that is over 21."""
    place_of: dict[Held, int]

    def first_cards(self) -> Whole:
        """The places of all hands of two cards."""
        return np.flatnonzero(self.cards == 2)

    def blackjack(self) -> int:
        """The place of ace and ten."""
        return self.pair_of(ACE, TEN)

    def single(self, one: int) -> int:
        """The place of one card of this value."""
        return int(self.after[self.place_of[(0,) * VALUES], one])

    def pair_of(self, one: int, other: int) -> int:
        """The place of two cards of these values."""
        return int(self.after[self.single(one), other])

    def text(self, hand: int) -> list[str]:
        """Cards that make the hand."""
        return [CARD_OF[place] for place in range(VALUES) for _ in range(self.held[hand, place])]

    def by_low(self) -> Iterator[Whole]:
        """The places in groups; a card leads from a group to a later one."""
        for low in range(BEST + 1):
            yield np.flatnonzero(self.low == low)


@lru_cache(maxsize=1)
def hands() -> Hands:
    """All hands."""
    held = tuple(_up_to(BEST, VALUES))
    place_of = {one: place for place, one in enumerate(held)}
    counts = np.array(held, dtype=np.int64)
    low = counts @ np.arange(1, VALUES + 1)
    soft = (counts[:, ACE] > 0) & (low + SOFT_ACE <= BEST)
    after = [
        [
            place_of.get((*one[:place], one[place] + 1, *one[place + 1 :]), BUST)
            for place in range(VALUES)
        ]
        for one in held
    ]
    return Hands(
        held=counts,
        cards=counts.sum(axis=1),
        low=low,
        points=np.where(soft, low + SOFT_ACE, low),
        soft=soft.astype(np.int64),
        after=np.array(after, dtype=np.int64),
        place_of=place_of,
    )


def _up_to(points: int, values: int) -> Iterator[Held]:
    """All counts of so many lowest values whose sum is at most `points`."""
    if not values:
        yield ()
        return
    for copies in range(points // values + 1):
        for rest in _up_to(points - copies * values, values - 1):
            yield (*rest, copies)
