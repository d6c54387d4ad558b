"""Cards: rank `A23456789TJQK` and suit `SHDC`, such as `TD`. Their order in a pack is fixed for
ever: a sealed shoe's number is unranked over it.
"""

from __future__ import annotations

RANKS = "A23456789TJQK"
"""Ascending, ace first."""
SUITS = "SHDC"
"""Spades, hearts, diamonds, clubs."""
CARDS: tuple[str, ...] = tuple(rank + suit for suit in SUITS for rank in RANKS)
"""One deck: spades from ace to king, then hearts, diamonds, clubs."""
CARDS_PER_DECK = 52

_KNOWN = frozenset(CARDS)


def is_card(text: str) -> bool:
    """Whether a text names a card."""
    return text in _KNOWN


def rank_of(card: str) -> str:
    """The printed rank, one of `RANKS`."""
    return card[0]


def suit_of(card: str) -> str:
    """The suit, one of `SUITS`."""
    return card[1]


def pack(decks: int) -> tuple[str, ...]:
    """So many decks, one after the other, unshuffled."""
    return CARDS * decks
