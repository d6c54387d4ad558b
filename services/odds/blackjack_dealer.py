"""Where the dealer of blackjack ends, behind each first card and any cards that are gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from services.games.blackjack import BEST, DEALER_STANDS, dealer_draws, is_blackjack, is_bust, total
from services.odds.blackjack_hands import CARD_OF, VALUES
from services.odds.deals import Whole
from services.odds.residues import Floats, reduce_

STANDS = tuple(range(DEALER_STANDS, BEST + 1))
BLACKJACK = len(STANDS)
ENDS = BLACKJACK + 1
"""17 to 21 by their place in `STANDS`, then blackjack. All else is a bust."""
BLOCK = 256
"""So many hands are worked on at a time."""


class Level(NamedTuple):
    """Sets of as many further cards, one after the other, on the way to an end."""

    parent: Whole
    """By set: which of the level before it extends; its cards are in ascending order."""
    value: Whole
    """By set: the place of the value that it adds."""
    taken: Whole
    """By set: how many cards of this value it had before."""
    orders: Floats
    """End by set: in how many orders its cards lead to this end."""


@lru_cache(maxsize=VALUES)
def levels(up: int) -> tuple[Level, ...]:
    """All sets of further cards with which the dealer stands behind a first card of this value."""
    ends = _ends(up)
    level: list[tuple[int, ...]] = [()]
    made: list[Level] = []
    for size in range(1, max(map(len, ends)) + 1):
        places = {cards: place for place, cards in enumerate(level)}
        level = sorted({cards[:size] for cards in ends if len(cards) >= size})
        orders = np.zeros((ENDS, len(level)))
        for place, cards in enumerate(level):
            for end, count in ends.get(cards, {}).items():
                orders[end, place] = count
        made.append(
            Level(
                np.array([places[cards[:-1]] for cards in level], dtype=np.int64),
                np.array([cards[-1] for cards in level], dtype=np.int64),
                np.array([cards[:-1].count(cards[-1]) for cards in level], dtype=np.int64),
                orders,
            )
        )
    return tuple(made)


def _ends(up: int) -> dict[tuple[int, ...], Counter[int]]:
    """By the further cards, in ascending order: the end they lead to, and in how many orders."""
    open_hands: Counter[tuple[int, ...]] = Counter({(): 1})
    ends: dict[tuple[int, ...], Counter[int]] = {}
    while open_hands:
        drawn: Counter[tuple[int, ...]] = Counter()
        for cards, orders in open_hands.items():
            for place in range(VALUES):
                drawn[tuple(sorted((*cards, place)))] += orders
        open_hands = Counter()
        for cards, orders in drawn.items():
            hand = [CARD_OF[place] for place in (up, *cards)]
            if dealer_draws(hand):
                open_hands[cards] = orders
            elif not is_bust(hand):
                end = BLACKJACK if is_blackjack(hand) else STANDS.index(total(hand).points)
                ends[cards] = Counter({end: orders})
    return ends


def chances(up: int, left: Whole) -> Floats:
    """The probability of each end, as near as floats have it: ends by hands. `left`: hands by
    values."""
    found = np.zeros((ENDS, len(left)))
    for block in _blocks(len(left)):
        here = left[block].T
        cards = here.sum(axis=0)
        ways = np.ones((1, here.shape[1]))
        deals = np.ones(here.shape[1])
        for size, level in enumerate(levels(up)):
            ways = ways[level.parent] * (here[level.value] - level.taken[:, None])
            deals *= cards - size
            found[:, block] += level.orders @ ways / deals
    return found


def orders(up: int, left: Whole, gone: Whole, others: Whole, primes: Sequence[int]) -> Whole:
    """In how many orders the dealer's cards and those behind them lead to each end: primes by ends
    by hands. `gone`: how many cards are gone before, by hand. `others`: in how many orders all
    others follow, primes by cards gone."""
    found = np.zeros((len(primes), ENDS, len(left)), dtype=np.int64)
    for block in _blocks(len(left)):
        here, already = left[block].T, gone[block]
        ways = [np.ones((1, here.shape[1])) for _ in primes]
        for size, level in enumerate(levels(up), start=1):
            copies = (here[level.value] - level.taken[:, None]).astype(np.float64)
            for place, prime in enumerate(primes):
                extended = ways[place][level.parent]
                extended *= copies
                reduce_(extended, prime)
                ways[place] = extended
                ended = level.orders @ extended
                reduce_(ended, prime)
                found[place, :, block] += (
                    ended.astype(np.int64) * others[place, already + size] % prime
                )
    found %= np.array(primes)[:, None, None]
    return found


def _blocks(hands: int) -> Iterator[slice]:
    """A few hands at a time: what is worked on then stays in a processor's cache."""
    for start in range(0, hands, BLOCK):
        yield slice(start, start + BLOCK)
