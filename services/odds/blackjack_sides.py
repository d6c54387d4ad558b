"""The bets of blackjack that the first cards decide (BJ-3, BJ-9, BJ-10), at any composition."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from services.games.bets import Judged
from services.games.blackjack_bets import (
    Decided,
    DecidedSeat,
    judge,
    perfect_pairs,
    twenty_one_plus_3,
)
from services.games.cards import CARDS, rank_of
from services.odds.compositions import Composition
from services.odds.deals import Deals, in_any_order, in_order

_CARDS = 3
"""A seat's two and the dealer's first."""


def counts(composition: Composition) -> dict[str, dict[Judged, int]]:
    """In how many deals each bet meets each fate; without insurance where no ace is left that
    could bring it. Raises TooFewCards."""
    composition.at_least(_CARDS, "the first deal of blackjack")
    found = {**_pairs().at(composition.counts), **_threes().at(composition.counts)}
    insurance = _insurance(composition)
    return {**found, "insurance": insurance} if insurance else found


@lru_cache(maxsize=1)
def _pairs() -> Deals:
    return in_order(
        len(CARDS),
        2,
        ("perfect_pairs",),
        lambda _, cards: perfect_pairs(*(CARDS[place] for place in cards)),
    )


@lru_cache(maxsize=1)
def _threes() -> Deals:
    """Which of the three is the dealer's does not matter."""
    return in_any_order(
        len(CARDS),
        _CARDS,
        ("21_plus_3",),
        lambda _, cards: twenty_one_plus_3(*(CARDS[place] for place in cards)),
    )


def _insurance(composition: Composition) -> dict[Judged, int]:
    """Over the dealer's second card, the first being an ace."""
    found: Counter[Judged] = Counter()
    for place, up in enumerate(CARDS):
        copies = composition.counts[place]
        if rank_of(up) == "A" and copies:
            for hole, others in zip(CARDS, composition.without([up]).counts, strict=True):
                decided = Decided({1: DecidedSeat((("2S", "3S"),))}, (up, hole))
                found[judge("insurance", decided, "1")] += copies * others
    return dict(found)
