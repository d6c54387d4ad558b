"""What became of each baccarat bet (rules BAC-20 to BAC-37), by the cards alone.

Every bet is a function from the cards of a decided round to a verdict and, where it won and may
win in several ways, to the pay line that won. Which of them a table offers, and what each line
pays, its rule set says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from services.games.baccarat import Winner, is_natural, total, winner
from services.games.bets import LOST, PUSHED, Judged, Pays, won
from services.games.cards import rank_of, suit_of
from services.games.odds import EVENS, Odds


class Dealt(NamedTuple):
    """The hands of a decided round, with what every bet asks of them."""

    player: tuple[str, ...]
    banker: tuple[str, ...]
    player_total: int
    banker_total: int
    winner: Winner


_LEAST_MARGIN = 4
"""A win that is no natural and by less loses (rule BAC-30)."""


_COUNTED = {2: "two_cards", 3: "three_cards", 4: "four_cards", 5: "five_cards", 6: "six_cards"}
"""Pay lines by a number of cards."""


def dealt(player: Sequence[str], banker: Sequence[str]) -> Dealt:
    """The hands of a decided round."""
    return Dealt(tuple(player), tuple(banker), total(player), total(banker), winner(player, banker))


def _player(hands: Dealt) -> Judged:
    """BAC-20."""
    return PUSHED if hands.winner is Winner.TIE else won(hands.winner is Winner.PLAYER)


def _banker(hands: Dealt) -> Judged:
    """BAC-21; the commission stands in the offer."""
    return PUSHED if hands.winner is Winner.TIE else won(hands.winner is Winner.BANKER)


def _banker_no_commission(hands: Dealt) -> Judged:
    """BAC-22: a win with 6 pays half; a tie of 6 is a tie."""
    if hands.winner is Winner.BANKER:
        return won(True, "with_6" if hands.banker_total == 6 else "otherwise")
    return _banker(hands)


def _banker_ez(hands: Dealt) -> Judged:
    """BAC-23: a win with a three-card 7 pushes."""
    return PUSHED if _is_dragon(hands) else _banker(hands)


def _tie(hands: Dealt) -> Judged:
    """BAC-24."""
    return won(hands.winner is Winner.TIE)


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
        return won(True, "natural")
    margin = abs(hands.player_total - hands.banker_total)
    return won(margin >= _LEAST_MARGIN, f"by_{margin}")


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
    return won(_wins_with(hands, Winner.BANKER, 6), _COUNTED[len(hands.banker)])


def _lucky_seven(hands: Dealt) -> Judged:
    """BAC-33."""
    return won(_wins_with(hands, Winner.PLAYER, 7), _COUNTED[len(hands.player)])


def _super_lucky_seven(hands: Dealt) -> Judged:
    """BAC-35: by the number of cards in all, whichever side drew (D30)."""
    cards = len(hands.player) + len(hands.banker)
    yes = _wins_with(hands, Winner.PLAYER, 7) and hands.banker_total == 6
    return won(yes, _COUNTED[cards])


JUDGES: dict[str, Callable[[Dealt], Judged]] = {
    "player": _player,
    "banker": _banker,
    "banker_no_commission": _banker_no_commission,
    "banker_ez": _banker_ez,
    "tie": _tie,
    "player_pair": lambda hands: won(_pair(hands.player)),
    "banker_pair": lambda hands: won(_pair(hands.banker)),
    "either_pair": lambda hands: won(_pair(hands.player) or _pair(hands.banker)),
    "perfect_pair": lambda hands: won(_perfect(hands.player) or _perfect(hands.banker)),
    "player_natural": lambda hands: won(is_natural(hands.player)),
    "banker_natural": lambda hands: won(is_natural(hands.banker)),
    "player_bonus": lambda hands: _bonus(hands, Winner.PLAYER),
    "banker_bonus": lambda hands: _bonus(hands, Winner.BANKER),
    "lucky_six": _lucky_six,
    "lucky_six_2": lambda hands: won(_wins_with(hands, Winner.BANKER, 6, 2)),
    "lucky_six_3": lambda hands: won(_wins_with(hands, Winner.BANKER, 6, 3)),
    "lucky_seven": _lucky_seven,
    "lucky_seven_2": lambda hands: won(_wins_with(hands, Winner.PLAYER, 7, 2)),
    "lucky_seven_3": lambda hands: won(_wins_with(hands, Winner.PLAYER, 7, 3)),
    "super_lucky_seven": _super_lucky_seven,
    "dragon_7": lambda hands: won(_is_dragon(hands)),
    "panda_8": lambda hands: won(_wins_with(hands, Winner.PLAYER, 8, 3)),
}
"""By bet id. `banker_ez` is what `banker` means at an EZ table (D5)."""

_BONUS_LINES = {
    "by_4": EVENS,
    "by_5": Odds(2, 1),
    "by_6": Odds(4, 1),
    "by_7": Odds(6, 1),
    "by_8": Odds(10, 1),
    "by_9": Odds(30, 1),
    "natural": EVENS,
}

PAYS: dict[str, Pays] = {
    "player": EVENS,
    "banker": EVENS,
    "banker_no_commission": {"otherwise": EVENS, "with_6": Odds(1, 2)},
    "banker_ez": EVENS,
    "tie": Odds(8, 1),
    "player_pair": Odds(11, 1),
    "banker_pair": Odds(11, 1),
    "either_pair": Odds(5, 1),
    "perfect_pair": Odds(25, 1),
    "player_natural": Odds(7, 2),
    "banker_natural": Odds(7, 2),
    "player_bonus": _BONUS_LINES,
    "banker_bonus": _BONUS_LINES,
    "lucky_six": {"three_cards": Odds(20, 1), "two_cards": Odds(12, 1)},
    "lucky_six_2": Odds(22, 1),
    "lucky_six_3": Odds(50, 1),
    "lucky_seven": {"three_cards": Odds(15, 1), "two_cards": Odds(6, 1)},
    "lucky_seven_2": Odds(15, 1),
    "lucky_seven_3": Odds(30, 1),
    "super_lucky_seven": {
        "five_cards": Odds(40, 1),
        "four_cards": Odds(30, 1),
        "six_cards": Odds(100, 1),
    },
    "dragon_7": Odds(40, 1),
    "panda_8": Odds(25, 1),
}
"""What a bet pays by default: one odds, or one for each of its pay lines."""

UNTIL_ROUND: dict[str, int] = {
    "player_pair": 60,
    "banker_pair": 60,
    "either_pair": 50,
    "perfect_pair": 50,
    "player_natural": 50,
    "banker_natural": 50,
    "player_bonus": 40,
    "banker_bonus": 40,
    "lucky_six": 50,
    "lucky_six_2": 50,
    "lucky_six_3": 50,
    "lucky_seven": 50,
    "lucky_seven_2": 50,
    "lucky_seven_3": 50,
    "super_lucky_seven": 50,
}
"""The last round of a shoe in which a side bet is offered (rule BAC-40); the others always are."""


def judge(bet: str, hands: Dealt) -> Judged:
    """What became of a bet. The bet is one of `JUDGES`."""
    return JUDGES[bet](hands)
