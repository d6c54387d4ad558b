"""Dragon tiger and football studio (rules DT-1, FS-1) at any composition of the shoe."""

from __future__ import annotations

from functools import lru_cache

from services.games import two_cards
from services.games.bets import Judged
from services.games.cards import CARDS
from services.odds.compositions import Composition
from services.odds.deals import Deals, in_order


def counts(composition: Composition, ace: two_cards.Ace) -> dict[str, dict[Judged, int]]:
    """In how many deals each bet of `JUDGES` meets each fate. Raises TooFewCards."""
    composition.at_least(2, "a round of two cards")
    return _deals(ace).at(composition.counts)


@lru_cache(maxsize=len(two_cards.Ace))
def _deals(ace: two_cards.Ace) -> Deals:
    def judge(bet: str, cards: tuple[int, ...]) -> Judged:
        first, second = cards
        return two_cards.judge(bet, two_cards.dealt(CARDS[first], CARDS[second], ace))

    return in_order(len(CARDS), 2, two_cards.JUDGES, judge)
