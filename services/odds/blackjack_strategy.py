"""The best way to play blackjack by totals alone, found on the average over all hands of a total.

What to do may depend on the total, on whether it is soft or a pair, and on the dealer's first card;
not on which cards make the total, nor on what was seen before. One table of hits and stands holds
for all hands, those of a split too. Floats decide which of two plays is better; what the strategy
is worth is then counted exactly, elsewhere.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from services.games.blackjack import BEST, Options, peeks
from services.odds.blackjack_basic import Strategy, empty
from services.odds.blackjack_dealer import BLACKJACK, STANDS, chances
from services.odds.blackjack_hands import ACE, BUST, CARD_OF, VALUES, Flags, Held, hands
from services.odds.deals import Whole
from services.odds.residues import Floats

MAX_ROUNDS = 20
"""Of improving against one first card: it takes two or three, more would be a circle."""
ALWAYS_HIT = {0: slice(4, 12), 1: slice(12, 18)}
"""Hard and soft points that can only gain by a hit: where improving begins."""


class MainPays(NamedTuple):
    """What the main bet and its further stakes pay, profit to stake."""

    blackjack: float
    win: float
    double: float
    split: float


class NoBestStrategy(ArithmeticError):
    """Improving went in a circle."""


@lru_cache(maxsize=32)
def best_strategy(copies: Held, options: Options, pays: MainPays) -> Strategy:
    """The best one for a pack with so many cards of each value. Raises NoBestStrategy."""
    found = empty()
    for up in range(VALUES):
        _Against(copies, up, options, pays).improve(
            found.hits[up], found.doubles[up], found.splits[up]
        )
    return found


class _Stood(NamedTuple):
    """The chances of hands that stand."""

    wins: Floats
    losses: Floats

    def worth(self, gain: float, stake: float = 1) -> Floats:
        """Where a win brings `gain` and a loss costs `stake`."""
        return gain * self.wins - stake * self.losses


def _stood(ends: Floats, points: Whole) -> _Stood:
    pushes = np.zeros(len(points))
    losses = ends[BLACKJACK].copy()
    for end, dealer in enumerate(STANDS):
        pushes += np.where(points == dealer, ends[end], 0)
        losses += np.where(points < dealer, ends[end], 0)
    return _Stood(1 - pushes - losses, losses)


class _Against:
    """What is best against one first card of the dealer. Worths are per first stake."""

    def __init__(self, copies: Held, up: int, options: Options, pays: MainPays) -> None:
        self._hands = of = hands()
        self._up, self._options, self._pays = up, options, pays
        self._left = np.array(copies) - of.held
        self._left[:, up] -= 1
        self._next = self._left / (sum(copies) - of.cards - 1)[:, None]
        ends = chances(up, self._left)
        self._stood = _stood(ends, of.points)
        self._stands = self._stood.worth(pays.win)
        natural = of.blackjack()
        self._stands[natural] = pays.blackjack * (1 - ends[BLACKJACK, natural])
        # A peek saves a further stake from the dealer's blackjack; all else is lost either way.
        self._saved = ends[BLACKJACK] * peeks(options.peek, CARD_OF[up])
        self._dealt = _first_two(copies, up)
        self._plays = (of.cards == 2) & (of.points < BEST)
        self._cell = of.soft * (BEST + 1) + of.points
        self._of_split = {
            place: self._stood_after_split(place) for place in range(VALUES) if self._is_held(place)
        }

    def improve(self, hits: Flags, doubles: Flags, splits: Flags) -> None:
        """Let every total do what is best while the others do as they do, until none gains."""
        for soft, points in ALWAYS_HIT.items():
            hits[soft, points] = True
        for _ in range(MAX_ROUNDS):
            before = (hits.copy(), doubles.copy(), splits.copy())
            hit = hits.ravel()[self._cell] & (self._hands.points < BEST)
            hitting, playing = self._played(hit, self._stands, self._next)
            doubling = self._doubling()
            otherwise = np.where(doubles.ravel()[self._cell], doubling, playing)
            splitting = np.zeros_like(hit)
            for place in self._of_split:
                pair = self._hands.pair_of(place, place)
                splits[place] = self._splitting(place, hit) > otherwise[pair]
                splitting[pair] = splits[place]
            plays = np.where(self._plays & ~splitting, self._dealt, 0)
            if self._options.doubles:
                doubles[:] = self._by_cell(plays * (doubling - playing)) > 0
            reached = self._reached(np.where(doubles.ravel()[self._cell], 0, plays), hit)
            gains = self._by_cell(reached * (hitting - self._stands))
            hits[:] = np.where(self._by_cell(reached) > 0, gains > 0, hits)
            if all(map(np.array_equal, before, (hits, doubles, splits))):
                return
        raise NoBestStrategy(f"no best play against {CARD_OF[self._up]}")

    def _is_held(self, place: int) -> bool:
        """Whether there can be a pair of this value."""
        return bool(self._dealt[self._hands.pair_of(place, place)] > 0)

    def _by_cell(self, of_hands: Floats) -> Floats:
        """Sums over the hands of each total: soft by points."""
        sums = np.bincount(self._cell, weights=of_hands, minlength=2 * (BEST + 1))
        return np.asarray(sums, dtype=np.float64).reshape(2, BEST + 1)

    def _played(self, hit: Flags, stands: Floats, chance: Floats) -> tuple[Floats, Floats]:
        """The worth of hitting each hand, and of playing it on."""
        after = self._hands.after
        # One more place, the last, for what is over 21.
        playing, hitting = np.append(stands, -1.0), np.zeros(len(stands))
        for group in reversed(list(self._hands.by_low())):
            hitting[group] = (chance[group] * playing[after[group]]).sum(axis=1)
            playing[group] = np.where(hit[group], hitting[group], stands[group])
        return hitting, playing[:BUST]

    def _doubling(self) -> Floats:
        stands = self._stood.worth(self._pays.win + self._pays.double, stake=2)
        stands = np.append(stands, -2.0)
        worth: Floats = (self._next * stands[self._hands.after]).sum(axis=1) + self._saved
        return worth

    def _stood_after_split(self, place: int) -> _Stood:
        """The hands that hold such a card, another one of them being gone."""
        held = self._hands.held[:, place] > 0
        left = self._left[held]
        left[:, place] -= 1
        some = _stood(chances(self._up, left), self._hands.points[held])
        wins, losses = np.zeros(len(held)), np.zeros(len(held))
        wins[held], losses[held] = some
        return _Stood(wins, losses)

    def _splitting(self, place: int, hit: Flags) -> float:
        """Both hands are worth the same: neither knows of the other's cards."""
        left = self._left.copy()
        left[:, place] -= 1
        chance = left / left.sum(axis=1)[:, None]
        if place == ACE and self._options.one_card_on_split_aces:
            hit = np.zeros_like(hit)
        gain = (self._pays.win + self._pays.split) / 2
        hitting, _ = self._played(hit, self._of_split[place].worth(gain), chance)
        pair = self._hands.pair_of(place, place)
        return float(2 * hitting[self._hands.single(place)] + self._saved[pair])

    def _reached(self, dealt: Floats, hit: Flags) -> Floats:
        """How often each hand comes about."""
        found = dealt.copy()
        for group in self._hands.by_low():
            hitting = group[hit[group] & (found[group] > 0)]
            onward = found[hitting, None] * self._next[hitting]
            after = self._hands.after[hitting]
            stays = after != BUST
            np.add.at(found, after[stays], onward[stays])
        return found


def _first_two(copies: Held, up: int) -> Floats:
    """How often each hand of two cards is dealt behind such a first card of the dealer."""
    of = hands()
    left = list(copies)
    left[up] -= 1
    found = np.zeros(len(of.held))
    for one in range(VALUES):
        for other in range(VALUES):
            found[of.pair_of(one, other)] += left[one] * (left[other] - (one == other))
    return found / (sum(left) * (sum(left) - 1))
