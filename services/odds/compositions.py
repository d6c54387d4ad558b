"""What a shoe may still hold, card kind by card kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from services.games.cards import CARDS, CARDS_PER_DECK, is_card

_PLACES = {card: place for place, card in enumerate(CARDS)}


class CardImpossible(ValueError):
    """A card that is none, or one more copy than the shoe had."""


class TooFewCards(ValueError):
    """A round could run out of cards: no odds are defined. Says how many it takes."""


@dataclass(frozen=True, slots=True)
class Composition:
    """How many cards of each kind nobody has seen: in the shoe, burned face down, or in the hole.

    Whoever has not seen them cannot tell these apart, so odds are those of one shuffled pack."""

    counts: tuple[int, ...]
    """By card, in the order of `CARDS`."""

    @property
    def total(self) -> int:
        """Cards in all."""
        return sum(self.counts)

    def count(self, card: str) -> int:
        """Copies of a card."""
        return self.counts[_PLACES[card]]

    def without(self, cards: Iterable[str]) -> Composition:
        """What is left once these were seen. Raises CardImpossible."""
        counts = list(self.counts)
        for card in cards:
            if not is_card(card):
                raise CardImpossible(f"{card!r} is no card: rank A23456789TJQK and suit SHDC")
            place = _PLACES[card]
            if not counts[place]:
                _refuse(card, self.counts[place])
            counts[place] -= 1
        return Composition(tuple(counts))

    def at_least(self, cards: int, what: str) -> None:
        """Refuse what takes more cards than there are. Raises TooFewCards."""
        if self.total < cards:
            raise TooFewCards(f"{what} may take {cards} cards, {self.total} are left")


def _refuse(card: str, copies: int) -> NoReturn:
    raise CardImpossible(f"{card} is seen {copies + 1} times, there are {copies} of it")


def fresh(decks: int) -> Composition:
    """All of so many decks."""
    return Composition((decks,) * CARDS_PER_DECK)
