"""From a rule set to its game: where bets may lie, what they cover, and what became of them.

The one place that knows every game; settlement, the table and limits ask here.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from services.games import baccarat_bets, blackjack_bets, roulette, sicbo, two_cards
from services.games.bets import Judged, ResultUnusable
from services.games.blackjack_result import decided_of, options_of
from services.games.cards import is_card

Judging = Callable[[str, str], Judged]
"""From (bet, position) to its fate; the bet is one that the rule set offers, on its layout."""


class Part(NamedTuple):
    """One bet of those that an announced bet is made of."""

    bet: str
    position: str
    """In its canonical text."""
    stake_minor: int


class NotExpanded(Enum):
    """Why a bet asked for is not an announced one that can be booked."""

    ORDINARY = 1
    """It is no announced bet: it is booked as it stands."""
    NOT_ON_LAYOUT = 2
    """There is no such place, or not so many neighbours."""
    NOT_WHOLE_CHIPS = 3
    """The stake is no whole multiple of the bet's chips."""


def on_layout(rule_set: rule_set_pb2.RuleSet, bet: str, position: str) -> str | None:
    """The canonical text of a position of this bet; None where the layout has no such one. An
    announced bet lies nowhere itself: its parts do (see `announced`)."""
    match rule_set.game:
        case rule_set_pb2.GAME_BACCARAT:
            return "" if bet in baccarat_bets.JUDGES and not position else None
        case rule_set_pb2.GAME_BLACKJACK:
            # Doubles, splits and insurance are not laid: they are actions of a turn.
            lies = bet in blackjack_bets.IN_THE_WINDOW and blackjack_bets.seat_of(position)
            return position if lies else None
        case rule_set_pb2.GAME_ROULETTE:
            return roulette.canonical(bet, position)
        case rule_set_pb2.GAME_SICBO:
            return sicbo.canonical(bet, position)
        case rule_set_pb2.GAME_DRAGON_TIGER:
            return "" if bet in two_cards.DRAGON_TIGER_PAYS and not position else None
        case rule_set_pb2.GAME_FOOTBALL_STUDIO:
            return "" if bet in two_cards.FOOTBALL_STUDIO_PAYS and not position else None
        case _:
            return None


def announced(
    rule_set: rule_set_pb2.RuleSet, bet: str, position: str, stake_minor: int
) -> tuple[Part, ...] | NotExpanded:
    """The bets that an announced bet of this stake is made of, in the order of rule ROU-4; their
    stakes add up to it. It is expanded before the restrictions are judged, and accepted or refused
    whole; whether the rule set offers the parts is for the caller to see."""
    if rule_set.game != rule_set_pb2.GAME_ROULETTE or not roulette.is_announced(bet):
        return NotExpanded.ORDINARY
    parts = roulette.expanded(bet, position)
    if parts is None:
        return NotExpanded.NOT_ON_LAYOUT
    chip_minor, rest = divmod(stake_minor, sum(part.chips for part in parts))
    if rest or chip_minor < 1:
        return NotExpanded.NOT_WHOLE_CHIPS
    return tuple(Part(part.bet, part.position, part.chips * chip_minor) for part in parts)


def covered(rule_set: rule_set_pb2.RuleSet, bet: str, position: str) -> tuple[int, ...]:
    """The numbers of the wheel that a bet wins with, ascending (rule LIM-3); empty for other games.
    The position is on the layout, in its canonical text."""
    if rule_set.game != rule_set_pb2.GAME_ROULETTE:
        return ()
    return roulette.covered(bet, position)


def may_lose_half(rule_set: rule_set_pb2.RuleSet, bet: str) -> bool:
    """Whether some result takes half of this bet's stake (rules ROU-5, DT-1, FS-1)."""
    match rule_set.game:
        case rule_set_pb2.GAME_ROULETTE:
            return rule_set.roulette.la_partage and bet in roulette.EVEN_CHANCES
        case rule_set_pb2.GAME_DRAGON_TIGER | rule_set_pb2.GAME_FOOTBALL_STUDIO:
            return bet in two_cards.SIDES
        case _:
            return False


_SPINS = tuple(
    rules.Result(roulette=rules.RouletteResult(number=number)) for number in roulette.NUMBERS
)
_ROLLS = tuple(rules.Result(sicbo=rules.SicboResult(dice=dice)) for dice in sicbo.ROLLS)
_EACH_WAY = (("KS", "2S"), ("2S", "KS"), ("7S", "7H"), ("7S", "7S"))
"""One side, the other, a tie, a suited tie; whatever the ace's rank."""
_DRAGONS = tuple(
    rules.Result(dragon_tiger=rules.DragonTigerResult(dragon_card=one, tiger_card=other))
    for one, other in _EACH_WAY
)
_HOMES = tuple(
    rules.Result(football_studio=rules.FootballStudioResult(home_card=one, away_card=other))
    for one, other in _EACH_WAY
)


def outcomes(rule_set: rule_set_pb2.RuleSet) -> tuple[rules.Result, ...]:
    """Results among which every bet of the game meets each of its fates, for exposure outcome by
    outcome: `judging(rule_set, result)` for each gives the whole matrix.

    Roulette: the 37 numbers, ascending. Sic bo: the 216 rolls. Dragon tiger and football studio:
    one of each kind, which are not equally probable. Baccarat and blackjack: none, their results
    are too many. The messages are shared: they are for reading."""
    match rule_set.game:
        case rule_set_pb2.GAME_ROULETTE:
            return _SPINS
        case rule_set_pb2.GAME_SICBO:
            return _ROLLS
        case rule_set_pb2.GAME_DRAGON_TIGER:
            return _DRAGONS
        case rule_set_pb2.GAME_FOOTBALL_STUDIO:
            return _HOMES
        case _:
            return ()


def judging(rule_set: rule_set_pb2.RuleSet, result: rules.Result) -> Judging:
    """How the bets of a decided round are judged. Raises ResultUnusable."""
    match rule_set.game:
        case rule_set_pb2.GAME_BACCARAT:
            return _baccarat(rule_set, result)
        case rule_set_pb2.GAME_BLACKJACK:
            return _blackjack(rule_set, result)
        case rule_set_pb2.GAME_ROULETTE:
            return _roulette(rule_set, result)
        case rule_set_pb2.GAME_SICBO:
            return _sicbo(result)
        case rule_set_pb2.GAME_DRAGON_TIGER:
            if not result.HasField("dragon_tiger"):
                raise ResultUnusable("no dragon tiger result to settle by")
            told = result.dragon_tiger
            return _two_cards(rule_set, told.dragon_card, told.tiger_card)
        case rule_set_pb2.GAME_FOOTBALL_STUDIO:
            if not result.HasField("football_studio"):
                raise ResultUnusable("no football studio result to settle by")
            shown = result.football_studio
            return _two_cards(rule_set, shown.home_card, shown.away_card)
        case _:
            raise ResultUnusable(f"game {rule_set.game} has no settlement")


def _baccarat(rule_set: rule_set_pb2.RuleSet, result: rules.Result) -> Judging:
    """The totals are worked out anew: a result that contradicts its own cards is a bug upstream,
    and nothing is paid on it."""
    if not result.HasField("baccarat"):
        raise ResultUnusable("no baccarat result to settle by")
    told = result.baccarat
    hands = baccarat_bets.dealt(told.player_cards, told.banker_cards)
    if (told.player_total, told.banker_total, told.winner) != (
        hands.player_total,
        hands.banker_total,
        hands.winner.value,
    ):
        raise ResultUnusable("the result contradicts its cards")
    ez = rule_set.baccarat.ez

    def judge(bet: str, position: str) -> Judged:
        del position  # Every bet of baccarat has one place.
        return baccarat_bets.judge("banker_ez" if ez and bet == "banker" else bet, hands)

    return judge


def _blackjack(rule_set: rule_set_pb2.RuleSet, result: rules.Result) -> Judging:
    """Every hand is worked out anew: a round that the rules cannot have led to pays nothing."""
    if not result.HasField("blackjack"):
        raise ResultUnusable("no blackjack result to settle by")
    decided = decided_of(result.blackjack, options_of(rule_set))
    return lambda bet, position: blackjack_bets.judge(bet, decided, position)


def _roulette(rule_set: rule_set_pb2.RuleSet, result: rules.Result) -> Judging:
    if not result.HasField("roulette"):
        raise ResultUnusable("no roulette result to settle by")
    number = result.roulette.number
    if number not in roulette.NUMBERS:
        raise ResultUnusable(f"the wheel has no {number}")
    la_partage = rule_set.roulette.la_partage
    return lambda bet, position: roulette.judge(bet, position, number, la_partage=la_partage)


def _sicbo(result: rules.Result) -> Judging:
    if not result.HasField("sicbo"):
        raise ResultUnusable("no sic bo result to settle by")
    dice = tuple(result.sicbo.dice)
    if not sicbo.is_roll(dice):
        raise ResultUnusable(f"{dice} are not three dice")
    return lambda bet, position: sicbo.judge(bet, position, dice)


ACES: dict[int, two_cards.Ace] = {
    rule_set_pb2.ACE_RANK_LOW: two_cards.Ace.LOW,
    rule_set_pb2.ACE_RANK_HIGH: two_cards.Ace.HIGH,
}
"""Where the ace may stand, by `sabot.rules.v1.AceRank`."""


def _two_cards(rule_set: rule_set_pb2.RuleSet, first: str, second: str) -> Judging:
    for card in (first, second):
        if not is_card(card):
            raise ResultUnusable(f"{card!r} is no card")
    ace = ACES.get(rule_set.two_cards.ace)
    if ace is None:
        raise ResultUnusable("the rule set does not say where the ace stands")
    cards = two_cards.dealt(first, second, ace)

    def judge(bet: str, position: str) -> Judged:
        del position  # Every bet of these games has one place.
        return two_cards.judge(bet, cards)

    return judge
