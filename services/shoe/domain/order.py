"""From numbers to orders: exact, without bias, every order reachable (RNG-01).

A virtual shoe is one number below n!, drawn uniformly. Its digits in the factorial number system
(the Lehmer code) say which of the cards that are left comes next, so numbers and orders are one to
one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import factorial

from services.games.cards import pack


def below(bound: int, word_bits: int, word: Callable[[], int]) -> int:
    """A uniform integer from 0 to below the bound, from uniform words of so many bits.

    Words at or above the greatest multiple of the bound are drawn anew: reducing them would prefer
    small results. Raises ValueError where one word cannot reach every result.
    """
    words = 1 << word_bits
    if not 1 <= bound <= words:
        raise ValueError(f"a word of {word_bits} bits cannot reach {bound} results")
    limit = words - words % bound
    while True:
        drawn = word()
        if drawn < limit:
            return drawn % bound


def unranked(number: int, size: int) -> list[int]:
    """The permutation of `range(size)` with this number; numbers ascend in dictionary order.

    Raises ValueError unless 0 ≤ number < size!.
    """
    digits: list[int] = []
    for base in range(1, size + 1):
        number, digit = divmod(number, base)
        digits.append(digit)
    if number:
        raise ValueError(f"no permutation of {size} has so great a number")
    left = list(range(size))
    return [left.pop(digit) for digit in reversed(digits)]


@lru_cache(maxsize=16)
def orders_of(cards: int) -> int:
    """How many orders so many cards have, told apart by their place in the unshuffled pack."""
    return factorial(cards)


def order_of(number: int, decks: int) -> list[str]:
    """The cards of a shoe in dealing order. Raises ValueError unless 0 ≤ number < (52 · decks)!."""
    cards = pack(decks)
    return [cards[place] for place in unranked(number, len(cards))]
