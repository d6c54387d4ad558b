"""What became of each bet of blackjack (rules BJ-3, BJ-8 to BJ-10), by the cards alone.

A bet lies at a seat. A doubled hand's further stake is a bet of its own, judged as the first hand;
a split's is judged as the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from services.games.bets import LOST, PUSHED, Judged, Pays, ResultUnusable, won
from services.games.blackjack import SEATS, is_blackjack, is_bust, total
from services.games.cards import RANKS, rank_of, suit_of
from services.games.odds import EVENS, Odds


class DecidedSeat(NamedTuple):
    """A seat at the end of a round."""

    hands: tuple[tuple[str, ...], ...]
    """The cards of its one hand, or of its two after a split."""
    doubled: bool = False

    @property
    def is_split(self) -> bool:
        """Whether it has two hands."""
        return len(self.hands) > 1

    @property
    def first_two(self) -> tuple[str, str]:
        """The two cards that it was dealt."""
        first = self.hands[0]
        return first[0], self.hands[1][0] if self.is_split else first[1]


class Decided(NamedTuple):
    """The cards of a round that is over."""

    seats: dict[int, DecidedSeat]
    dealer: tuple[str, ...]


STRAIGHTS = frozenset(
    frozenset(three) for three in zip(RANKS, RANKS[1:] + "A", RANKS[2:] + "A", strict=False)
)
"""Every three ranks in a row: the ace below the two or above the king, never both (rule BJ-10)."""

RED = "HD"
"""The other suits are black."""


def seat_of(position: str) -> int | None:
    """The seat in a position's text; None where it names none."""
    if len(position) == 1 and "1" <= position <= str(SEATS):
        return int(position)
    return None


def judged_hand(cards: Sequence[str], dealer: Sequence[str], *, split: bool) -> Judged:
    """A hand against the dealer's (rule BJ-8): a bust loses at once, a blackjack beats any 21."""
    if is_bust(cards):
        return LOST
    blackjack = is_blackjack(cards, split=split)
    if is_blackjack(dealer):
        return PUSHED if blackjack else LOST
    if blackjack:
        return won(True, "blackjack")
    points, against = total(cards).points, total(dealer).points
    if points == against:
        return PUSHED
    return won(is_bust(dealer) or points > against, "win")


def perfect_pairs(first: str, second: str) -> Judged:
    """Rule BJ-9: by rank, so king and queen are no pair."""
    if rank_of(first) != rank_of(second):
        return LOST
    if suit_of(first) == suit_of(second):
        return won(True, "perfect")
    same_colour = (suit_of(first) in RED) == (suit_of(second) in RED)
    return won(True, "coloured" if same_colour else "mixed")


def twenty_one_plus_3(first: str, second: str, up_card: str) -> Judged:
    """Rule BJ-10: the best line only."""
    three = (first, second, up_card)
    ranks, suits = frozenset(map(rank_of, three)), frozenset(map(suit_of, three))
    flush, straight, trips = len(suits) == 1, ranks in STRAIGHTS, len(ranks) == 1
    if trips:
        return won(True, "suited_trips" if flush else "trips")
    if straight:
        return won(True, "straight_flush" if flush else "straight")
    return won(flush, "flush")


def _main(decided: Decided, seat: DecidedSeat) -> Judged:
    """BJ-8: the hand, or the first one after a split."""
    return judged_hand(seat.hands[0], decided.dealer, split=seat.is_split)


def _double(decided: Decided, seat: DecidedSeat) -> Judged:
    """BJ-6."""
    if not seat.doubled:
        raise ResultUnusable("a double at a seat that was not doubled")
    return _evens(_main(decided, seat))


def _split(decided: Decided, seat: DecidedSeat) -> Judged:
    """BJ-7."""
    if not seat.is_split:
        raise ResultUnusable("a split at a seat that was not split")
    return _evens(judged_hand(seat.hands[1], decided.dealer, split=True))


def _evens(judged: Judged) -> Judged:
    """The same without its line: a further stake wins in one way only."""
    return judged._replace(line="")


def _insurance(decided: Decided, seat: DecidedSeat) -> Judged:
    """BJ-3."""
    del seat
    if rank_of(decided.dealer[0]) != "A":
        raise ResultUnusable("insurance although the dealer shows no ace")
    return won(is_blackjack(decided.dealer))


JUDGES: dict[str, Callable[[Decided, DecidedSeat], Judged]] = {
    "main": _main,
    "double": _double,
    "split": _split,
    "insurance": _insurance,
    "perfect_pairs": lambda _, seat: perfect_pairs(*seat.first_two),
    "21_plus_3": lambda decided, seat: twenty_one_plus_3(*seat.first_two, decided.dealer[0]),
}
"""By bet id."""

SIDE_BETS = ("21_plus_3", "perfect_pairs")
"""Decided by the deal (rule BJ-13); they need a main bet at their seat (rule BJ-11)."""
FURTHER_STAKES = ("double", "insurance", "split")
"""Not placed but taken by an action, at the seat's turn."""
IN_THE_WINDOW = frozenset({"main", *SIDE_BETS})
"""What may be placed while betting is open."""

PAYS: dict[str, Pays] = {
    "main": {"blackjack": Odds(3, 2), "win": EVENS},
    "double": EVENS,
    "split": EVENS,
    "insurance": Odds(2, 1),
    "perfect_pairs": {"coloured": Odds(12, 1), "mixed": Odds(6, 1), "perfect": Odds(25, 1)},
    "21_plus_3": {
        "flush": Odds(5, 1),
        "straight": Odds(10, 1),
        "straight_flush": Odds(40, 1),
        "suited_trips": Odds(100, 1),
        "trips": Odds(30, 1),
    },
}
"""What a bet pays by default: one odds, or one for each of its pay lines."""


def judge(bet: str, decided: Decided, position: str) -> Judged:
    """What became of a bet; it is one of `JUDGES`. Raises ResultUnusable where nobody was dealt at
    its seat, or what it was staked on never happened."""
    seat = decided.seats.get(seat_of(position) or 0)
    if seat is None:
        raise ResultUnusable(f"{bet} at seat {position!r}, which was not dealt")
    return JUDGES[bet](decided, seat)
