"""Punto banco: the draw and the result (rules BAC-1 to BAC-9)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from services.games.cards import CARDS_PER_DECK, RANKS, rank_of

FIRST_CARDS = 4
"""Two to each side, before any third card."""
MAX_CARDS = 6
"""Both sides with a third card."""

_VALUES = {rank: (place if place < 10 else 0) for place, rank in enumerate(RANKS, start=1)}

_BANKER_DRAWS_ON: tuple[frozenset[int], ...] = (
    *(frozenset(range(10)) for _ in range(3)),  # 0, 1, 2: always
    frozenset(range(10)) - {8},  # 3
    frozenset(range(2, 8)),  # 4
    frozenset(range(4, 8)),  # 5
    frozenset({6, 7}),  # 6
    frozenset(),  # 7
)
"""By Banker's total: Player's third card on which Banker draws (rule BAC-8)."""


class Side(Enum):
    """The two hands."""

    PLAYER = 1
    BANKER = 2


class Winner(Enum):
    """Who won."""

    PLAYER = 1
    BANKER = 2
    TIE = 3


FIRST_FOUR = (Side.PLAYER, Side.BANKER, Side.PLAYER, Side.BANKER)
"""The deal (rule BAC-4)."""


def value(card: str) -> int:
    """Ace 1, two to nine their face value, tens and faces 0 (rule BAC-1)."""
    return _VALUES[rank_of(card)]


def total(cards: Sequence[str]) -> int:
    """The last digit of the sum (rule BAC-1)."""
    return sum(map(value, cards)) % 10


def burn_count(first_card: str) -> int:
    """How many further cards go face down after the shown one (rule BAC-2): ace 1, faces 10."""
    return value(first_card) or 10


def cut_at(decks: int, cut_depth: int) -> int:
    """How many cards stand before the cut card, the shown and the burned ones included (BAC-3)."""
    return decks * CARDS_PER_DECK - cut_depth


def banker_draws(banker_total: int, player_third: int | None) -> bool:
    """Whether Banker takes a third card, no hand being a natural (rules BAC-7, BAC-8).

    `player_third`: the value of Player's third card, None where Player stood."""
    if player_third is None:
        return banker_total <= 5
    return player_third in _BANKER_DRAWS_ON[banker_total]


def next_draw(player: Sequence[str], banker: Sequence[str]) -> tuple[Side, ...]:
    """Which hands the next cards go to, in order; empty once the round is decided (BAC-4 to BAC-8).

    Player's third card is called alone: whether Banker draws depends on it."""
    if not player and not banker:
        return FIRST_FOUR
    player_total, banker_total = total(player), total(banker)
    if len(banker) > 2:
        return ()
    if len(player) > 2:
        return (Side.BANKER,) if banker_draws(banker_total, value(player[2])) else ()
    if player_total >= 8 or banker_total >= 8:
        return ()
    if player_total <= 5:
        return (Side.PLAYER,)
    return (Side.BANKER,) if banker_draws(banker_total, None) else ()


def winner(player: Sequence[str], banker: Sequence[str]) -> Winner:
    """The side with the higher total (rule BAC-9)."""
    player_total, banker_total = total(player), total(banker)
    if player_total > banker_total:
        return Winner.PLAYER
    return Winner.BANKER if banker_total > player_total else Winner.TIE


def is_natural(cards: Sequence[str]) -> bool:
    """Whether a hand is a two-card 8 or 9 (rule BAC-5)."""
    return len(cards) == 2 and total(cards) >= 8
