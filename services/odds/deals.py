"""Counting deals by kinds of cards: in how many of all of them a bet meets each fate.

Deals of the same cards are as frequent as one another, whatever their order. So a game's deals are
written down once: as rows of the kinds that fall, with the number of orders in which a row leads to
each fate of each bet. At a composition a row weighs the product of the copies of its cards, each
less those taken before. All of it is whole numbers of 64 bits, and exact: six cards out of eight
decks fall in 5e15 ways, of 9e18 that fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations_with_replacement, product
from math import factorial, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.games.bets import Judged

Whole = NDArray[np.int64]


class Column(NamedTuple):
    """A bet of the deals."""

    bet: str
    fates: tuple[Judged, ...]
    orders: Whole
    """By row and fate: in how many orders the row's cards lead to it."""


class Deals:
    """The deals of a game by the kinds that its odds depend on, and what they mean for each bet."""

    def __init__(self, kinds: int, rows: Whole, columns: Sequence[Column]) -> None:
        """`rows`: the kinds that fall, from 0, equal ones beside one another. `kinds` itself is a
        card of any kind, behind the others: it is taken but decides nothing."""
        taken = np.zeros_like(rows)
        for place in range(1, rows.shape[1]):
            again = rows[:, place] == rows[:, place - 1]
            taken[:, place] = np.where(again, taken[:, place - 1] + 1, 0)
        self._rows = rows
        # Of the cards of any kind, all that were taken before are gone.
        self._taken = np.where(rows == kinds, np.arange(rows.shape[1]), taken)
        self._columns = [(column.bet, column.fates) for column in columns]
        self._orders = np.hstack([column.orders for column in columns])

    def at(self, counts: Sequence[int]) -> dict[str, dict[Judged, int]]:
        """In how many deals each bet meets each fate, with so many cards of each kind."""
        copies = np.array([*counts, sum(counts)], dtype=np.int64)
        weights = np.prod(copies[self._rows] - self._taken, axis=1)
        deals = iter((weights @ self._orders).tolist())
        return {bet: {fate: next(deals) for fate in fates} for bet, fates in self._columns}


Judge = Callable[[str, tuple[int, ...]], Judged]
"""From a bet and the kinds of the cards, in the order they fell, to its fate."""


def in_order(kinds: int, cards: int, bets: Iterable[str], judge: Judge) -> Deals:
    """Deals of few cards, each order judged by itself."""
    falls = list(product(range(kinds), repeat=cards))
    ones = np.ones(len(falls), dtype=np.int64)
    return Deals(kinds, np.sort(falls), [_judged(bet, falls, ones, judge) for bet in bets])


def in_any_order(kinds: int, cards: int, bets: Iterable[str], judge: Judge) -> Deals:
    """Deals of few cards whose order decides nothing: each set of them judged once."""
    falls = list(combinations_with_replacement(range(kinds), cards))
    all_orders = [
        factorial(cards) // prod(map(factorial, Counter(fall).values())) for fall in falls
    ]
    orders = np.array(all_orders, dtype=np.int64)
    return Deals(kinds, np.array(falls), [_judged(bet, falls, orders, judge) for bet in bets])


def _judged(bet: str, falls: Sequence[tuple[int, ...]], orders: Whole, judge: Judge) -> Column:
    judged = [judge(bet, fall) for fall in falls]
    fates = tuple(dict.fromkeys(judged))
    places = {fate: place for place, fate in enumerate(fates)}
    counted = np.zeros((len(falls), len(fates)), dtype=np.int64)
    counted[np.arange(len(falls)), [places[fate] for fate in judged]] = orders
    return Column(bet, fates, counted)
