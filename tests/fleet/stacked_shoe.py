"""Shoes that begin with the cards that a story needs; what follows is shuffled. Wheels and dice
that show what it needs. The custodian draws them as it draws any other: only the bytes that it gets
are chosen."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

from services.games.cards import pack
from services.shoe.domain.order import order_of, orders_of
from services.shoe.generator import PIECE, START_DRAWS, Generator, word_bytes


def number_of(cards: Sequence[str], decks: int) -> int:
    """The number that is unranked to this order of a shoe."""
    packed = pack(decks)
    places: dict[str, list[int]] = {}
    for place, card in enumerate(packed):
        places.setdefault(card, []).append(place)
    left = list(range(len(packed)))
    digits: list[int] = []
    for card in cards:
        place = places[card].pop()
        digits.append(left.index(place))
        left.remove(place)
    number = 0
    for base, digit in zip(range(len(digits), 0, -1), digits, strict=True):
        number = digit + base * number
    return number


def beginning_with(first: str, decks: int, chance: random.Random) -> list[str]:
    """A whole shoe whose first cards are these."""
    begun = first.split()
    rest = list(pack(decks))
    for card in begun:
        rest.remove(card)
    chance.shuffle(rest)
    return [*begun, *rest]


def word_of(number: int, bound: int, chance: random.Random) -> bytes:
    """Bytes from which this number below a bound is drawn; they are never twice the same."""
    word = chance.getrandbits(8 * PIECE - 8)
    return (word - word % bound + number).to_bytes(PIECE, "big")


def stacked_generator(
    shoes: Sequence[str], seed: int = 1, decks: int = 8, tosses: Sequence[tuple[int, int]] = ()
) -> Generator:
    """A generator from which a custodian draws shoes that begin so, one after the other, and the
    wheel's and dice's numbers of `tosses`, each with the bound that it is drawn below."""
    sample, chance = random.Random(seed), random.Random(seed + 1)
    size = word_bytes(orders_of(52 * decks))
    orders = [beginning_with(first, decks, chance) for first in shoes]
    words = [number_of(order, decks).to_bytes(size, "big") for order in orders]
    left = iter(words)
    tossed = iter([word_of(number, bound, chance) for number, bound in tosses])

    def draw(wanted: int) -> bytes:
        if wanted == PIECE:
            return next(tossed)
        return next(left) if wanted == size else chance.randbytes(wanted)

    sources: list[Callable[[int], bytes]] = [sample.randbytes] * START_DRAWS
    turns = itertools.chain(sources, itertools.repeat(draw))
    for order, word in zip(orders, words, strict=True):
        if order_of(int.from_bytes(word, "big"), decks) != order:
            raise ValueError("the number is not that of the order")

    def source(wanted: int) -> bytes:
        return next(turns)(wanted)

    return Generator(source)
