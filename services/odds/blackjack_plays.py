"""Every way in which a seat of blackjack can play a fixed strategy, before the dealer draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from services.games.blackjack import BEST, Options
from services.odds.blackjack_basic import Strategy
from services.odds.blackjack_hands import ACE, BUST, Flags, Held, hands
from services.odds.deals import Whole


class Played(Enum):
    """How a hand came about."""

    PLAINLY = 1
    DOUBLED = 2
    SPLIT = 3
    """One of two hands; the other is worth the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Plays:
    """Hands played out in one manner against one first card of the dealer, row by row."""

    manner: Played
    hand: Whole
    """The place of the hand; `BUST`."""
    gone: Whole
    """The cards that are gone with it by value, the dealer's first and a split's other one too."""
    ways: Whole
    """In how many orders its cards may come to it."""

    def within(self, copies: Held) -> Plays:
        """Those that a pack with so many cards of each value has the cards for."""
        fit = (self.gone <= np.array(copies)).all(axis=1)
        return Plays(self.manner, self.hand[fit], self.gone[fit], self.ways[fit])


@dataclass(frozen=True, slots=True, eq=False)
class Staked:
    """First two cards on which a further stake is made, row by row."""

    manner: Played
    gone: Whole
    """These two and the dealer's first card, by value."""
    ways: Whole


class Seat:
    """A seat against one first card of the dealer."""

    def __init__(self, strategy: Strategy, options: Options, up: int) -> None:
        self._hands = of = hands()
        self._options, self._up = options, up
        cell = of.soft * (BEST + 1) + of.points
        acts = of.points < BEST
        first = of.cards == 2
        self._hit = strategy.hits[up].ravel()[cell] & acts
        self._split = np.zeros_like(first)
        for place in np.flatnonzero(strategy.splits[up]):
            self._split[of.pair_of(int(place), int(place))] = True
        self._doubled = strategy.doubles[up].ravel()[cell] & acts & first & ~self._split
        pairs = (of.held == 2).any(axis=1)
        self._dealt = np.where(first, np.where(pairs, 1, 2), 0)

    def plays(self) -> Iterator[Plays]:
        """All hands played out."""
        plain = np.where(self._doubled | self._split, 0, self._dealt)
        yield from self._played(Played.PLAINLY, self._onward(plain, self._hit), self._hit)
        doubled = np.where(self._doubled, self._dealt, 0)
        yield from self._played(Played.DOUBLED, self._onward(doubled, self._doubled), self._doubled)
        for pair in np.flatnonzero(self._split):
            [place] = np.flatnonzero(self._hands.held[pair])
            yield from self._after_split(int(place))

    def staked(self) -> Iterator[Staked]:
        """All first cards with a further stake."""
        for manner, which in ((Played.DOUBLED, self._doubled), (Played.SPLIT, self._split)):
            first = np.flatnonzero(which)
            yield Staked(manner, self._with_up(self._hands.held[first]), self._dealt[first])

    def _after_split(self, place: int) -> Iterator[Plays]:
        alone = np.zeros(len(self._hit), dtype=np.int64)
        alone[self._hands.single(place)] = 1
        one_card = place == ACE and self._options.one_card_on_split_aces
        hit = np.zeros_like(self._hit) if one_card else self._hit.copy()
        hit[self._hands.single(place)] = True
        yield from self._played(Played.SPLIT, self._onward(alone, hit), hit, other=place)

    def _onward(self, ways: Whole, hit: Flags) -> Whole:
        """In how many orders each hand comes about, from those it begins with."""
        found = ways.copy()
        for group in self._hands.by_low():
            hitting = group[hit[group] & (found[group] > 0)]
            after = self._hands.after[hitting]
            stays = after != BUST
            onward = np.broadcast_to(found[hitting, None], after.shape)
            np.add.at(found, after[stays], onward[stays])
        return found

    def _played(
        self, manner: Played, ways: Whole, hit: Flags, other: int | None = None
    ) -> Iterator[Plays]:
        """Those that stand, and those that go over 21 by the next card."""
        of = self._hands
        reached = ways > 0
        stand = np.flatnonzero(reached & ~hit)
        yield Plays(manner, stand, self._with_up(of.held[stand], other), ways[stand])
        before, card = np.nonzero((of.after == BUST) & (reached & hit)[:, None])
        gone = self._with_up(of.held[before], other)
        gone[np.arange(len(card)), card] += 1
        yield Plays(manner, np.full(len(card), BUST), gone, ways[before])

    def _with_up(self, held: Whole, other: int | None = None) -> Whole:
        gone = held.copy()
        gone[:, self._up] += 1
        if other is not None:
            gone[:, other] += 1
        return gone
