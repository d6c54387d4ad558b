"""Dragon tiger and football studio: one card a side, the higher rank wins (rules DT-1, FS-1).

They are one game by two names; only the bets' ids and where the ace stands differ.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from services.games.bets import HALF_LOST, Judged, Pays, won
from services.games.cards import RANKS, rank_of, suit_of
from services.games.odds import EVENS, Odds


class Ace(Enum):
    """Which end of the ranks the ace stands at; by the numbers of `AceRank`."""

    LOW = 1
    HIGH = 2


class Winner(Enum):
    """Who won: the side dealt first, the other, or neither."""

    FIRST = 1
    SECOND = 2
    TIE = 3


class Dealt(NamedTuple):
    """All that a bet asks of the two cards."""

    winner: Winner
    suited: bool
    """A tie of one suit."""


_ORDERS = {Ace.LOW: RANKS, Ace.HIGH: RANKS[1:] + RANKS[0]}


def dealt(first: str, second: str, ace: Ace) -> Dealt:
    """How the cards compare; Dragon and Home are dealt first (rules DT-2, FS-1)."""
    order = _ORDERS[ace]
    one, other = order.index(rank_of(first)), order.index(rank_of(second))
    if one == other:
        return Dealt(Winner.TIE, suit_of(first) == suit_of(second))
    return Dealt(Winner.FIRST if one > other else Winner.SECOND, False)


def _side(side: Winner) -> Callable[[Dealt], Judged]:
    """A bet on one side; a tie takes half the stake."""

    def judge_side(cards: Dealt) -> Judged:
        return HALF_LOST if cards.winner is Winner.TIE else won(cards.winner is side)

    return judge_side


def _tie(cards: Dealt) -> Judged:
    """A suited tie is one too."""
    return won(cards.winner is Winner.TIE)


JUDGES: dict[str, Callable[[Dealt], Judged]] = {
    "dragon": _side(Winner.FIRST),
    "tiger": _side(Winner.SECOND),
    "tie": _tie,
    "suited_tie": lambda cards: won(cards.suited),
    "home": _side(Winner.FIRST),
    "away": _side(Winner.SECOND),
    "draw": _tie,
}
"""By bet id, of both games."""
SIDES = ("dragon", "tiger", "home", "away")
"""The bets that a tie takes half the stake of."""

DRAGON_TIGER_PAYS: dict[str, Pays] = {
    "dragon": EVENS,
    "tiger": EVENS,
    "tie": Odds(11, 1),
    "suited_tie": Odds(50, 1),
}
"""What a bet pays by default (rule DT-1, D13)."""
FOOTBALL_STUDIO_PAYS: dict[str, Pays] = {"home": EVENS, "away": EVENS, "draw": Odds(11, 1)}
"""What a bet pays (rule FS-1, D14)."""


def judge(bet: str, cards: Dealt) -> Judged:
    """What became of a bet. The bet is one of `JUDGES`."""
    return JUDGES[bet](cards)
