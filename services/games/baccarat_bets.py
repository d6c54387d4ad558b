"""What became of each baccarat bet (rules BAC-20 to BAC-37), by the cards alone.

Every bet is a function from the cards of a decided round to a verdict and, where it won, to the
odds. Which of them a table offers, and at what odds where these are configurable, its rule set
says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from services.games.baccarat import Winner, is_natural, total, winner
from services.games.cards import rank_of, suit_of
from services.games.money import Verdict
from services.games.odds import EVENS, Odds


class Dealt(NamedTuple):
    """The hands of a decided round, with what every bet asks of them."""

    player: tuple[str, ...]
    banker: tuple[str, ...]
    player_total: int
    banker_total: int
    winner: Winner


class Judged(NamedTuple):
    """A bet's verdict."""

    verdict: Verdict
    pays: Odds | None = None
    """The odds of this win where they depend on the cards; None: those of the offer."""


LOST = Judged(Verdict.LOST)
PUSHED = Judged(Verdict.PUSHED)
WON = Judged(Verdict.WON)

_BONUS = {9: Odds(30, 1), 8: Odds(10, 1), 7: Odds(6, 1), 6: Odds(4, 1), 5: Odds(2, 1), 4: EVENS}
"""By the margin of a win that is no natural (rule BAC-30)."""


def dealt(player: Sequence[str], banker: Sequence[str]) -> Dealt:
    """The hands of a decided round."""
    return Dealt(tuple(player), tuple(banker), total(player), total(banker), winner(player, banker))


def _won(yes: bool, pays: Odds | None = None) -> Judged:
    return Judged(Verdict.WON, pays) if yes else LOST


def _player(hands: Dealt) -> Judged:
    """BAC-20."""
    return PUSHED if hands.winner is Winner.TIE else _won(hands.winner is Winner.PLAYER)


def _banker(hands: Dealt) -> Judged:
    """BAC-21; the commission stands in the offer."""
    return PUSHED if hands.winner is Winner.TIE else _won(hands.winner is Winner.BANKER)


def _banker_no_commission(hands: Dealt) -> Judged:
    """BAC-22: a win with 6 pays half; a tie of 6 is a tie."""
    if hands.winner is Winner.BANKER:
        return _won(True, Odds(1, 2) if hands.banker_total == 6 else EVENS)
    return _banker(hands)


def _banker_ez(hands: Dealt) -> Judged:
    """BAC-23: a win with a three-card 7 pushes."""
    return PUSHED if _is_dragon(hands) else _banker(hands)


def _tie(hands: Dealt) -> Judged:
    """BAC-24."""
    return _won(hands.winner is Winner.TIE)


def _pair(cards: Sequence[str]) -> bool:
    """Whether the first two are of one printed rank."""
    return rank_of(cards[0]) == rank_of(cards[1])


def _perfect(cards: Sequence[str]) -> bool:
    """Whether the first two are of one rank and suit."""
    return _pair(cards) and suit_of(cards[0]) == suit_of(cards[1])


def _bonus(hands: Dealt, side: Winner) -> Judged:
    """BAC-30."""
    cards = hands.player if side is Winner.PLAYER else hands.banker
    if hands.winner is Winner.TIE:
        return PUSHED if is_natural(cards) else LOST
    if hands.winner is not side:
        return LOST
    if is_natural(cards):
        return _won(True, EVENS)
    pays = _BONUS.get(abs(hands.player_total - hands.banker_total))
    return _won(pays is not None, pays)


def _wins_with(hands: Dealt, side: Winner, points: int, count: int | None = None) -> bool:
    """Whether a side wins with so many points, and with so many cards where that is asked."""
    if hands.winner is not side:
        return False
    cards = hands.player if side is Winner.PLAYER else hands.banker
    return total(cards) == points and count in (None, len(cards))


def _is_dragon(hands: Dealt) -> bool:
    return _wins_with(hands, Winner.BANKER, 7, 3)


def _lucky_six(hands: Dealt) -> Judged:
    """BAC-31."""
    pays = Odds(12, 1) if len(hands.banker) == 2 else Odds(20, 1)
    return _won(_wins_with(hands, Winner.BANKER, 6), pays)


def _lucky_seven(hands: Dealt) -> Judged:
    """BAC-33."""
    pays = Odds(6, 1) if len(hands.player) == 2 else Odds(15, 1)
    return _won(_wins_with(hands, Winner.PLAYER, 7), pays)


def _super_lucky_seven(hands: Dealt) -> Judged:
    """BAC-35: by the number of cards in all, whichever side drew (D30)."""
    pays = {4: Odds(30, 1), 5: Odds(40, 1), 6: Odds(100, 1)}
    cards = len(hands.player) + len(hands.banker)
    yes = _wins_with(hands, Winner.PLAYER, 7) and hands.banker_total == 6
    return _won(yes, pays[cards])


JUDGES: dict[str, Callable[[Dealt], Judged]] = {
    "player": _player,
    "banker": _banker,
    "banker_no_commission": _banker_no_commission,
    "banker_ez": _banker_ez,
    "tie": _tie,
    "player_pair": lambda hands: _won(_pair(hands.player)),
    "banker_pair": lambda hands: _won(_pair(hands.banker)),
    "either_pair": lambda hands: _won(_pair(hands.player) or _pair(hands.banker)),
    "perfect_pair": lambda hands: _won(_perfect(hands.player) or _perfect(hands.banker)),
    "player_natural": lambda hands: _won(is_natural(hands.player)),
    "banker_natural": lambda hands: _won(is_natural(hands.banker)),
    "player_bonus": lambda hands: _bonus(hands, Winner.PLAYER),
    "banker_bonus": lambda hands: _bonus(hands, Winner.BANKER),
    "lucky_six": _lucky_six,
    "lucky_six_2": lambda hands: _won(_wins_with(hands, Winner.BANKER, 6, 2)),
    "lucky_six_3": lambda hands: _won(_wins_with(hands, Winner.BANKER, 6, 3)),
    "lucky_seven": _lucky_seven,
    "lucky_seven_2": lambda hands: _won(_wins_with(hands, Winner.PLAYER, 7, 2)),
    "lucky_seven_3": lambda hands: _won(_wins_with(hands, Winner.PLAYER, 7, 3)),
    "super_lucky_seven": _super_lucky_seven,
    "dragon_7": lambda hands: _won(_is_dragon(hands)),
    "panda_8": lambda hands: _won(_wins_with(hands, Winner.PLAYER, 8, 3)),
}
"""By bet id. `banker_ez` is what `banker` means at an EZ table (D5)."""

PAYS: dict[str, Odds] = {
    "player": EVENS,
    "banker": EVENS,
    "banker_no_commission": EVENS,
    "banker_ez": EVENS,
    "tie": Odds(8, 1),
    "player_pair": Odds(11, 1),
    "banker_pair": Odds(11, 1),
    "either_pair": Odds(5, 1),
    "perfect_pair": Odds(25, 1),
    "player_natural": Odds(7, 2),
    "banker_natural": Odds(7, 2),
    "player_bonus": Odds(30, 1),
    "banker_bonus": Odds(30, 1),
    "lucky_six": Odds(20, 1),
    "lucky_six_2": Odds(22, 1),
    "lucky_six_3": Odds(50, 1),
    "lucky_seven": Odds(15, 1),
    "lucky_seven_2": Odds(15, 1),
    "lucky_seven_3": Odds(30, 1),
    "super_lucky_seven": Odds(100, 1),
    "dragon_7": Odds(40, 1),
    "panda_8": Odds(25, 1),
}
"""What a bet pays by default; the best of its odds where they depend on the cards."""


def judge(bet: str, hands: Dealt) -> Judged:
    """What became of a bet. The bet is one of `JUDGES`."""
    return JUDGES[bet](hands)
