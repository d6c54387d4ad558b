"""From the result of a round to what it adds to the roads of its shoe (rule BAC-42)."""

from __future__ import annotations

from collections.abc import Sequence

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from services.games import two_cards
from services.games.cards import is_card, rank_of
from services.games.roads import Colour, Outcome

_BACCARAT = {
    rules.BACCARAT_WINNER_BANKER: Colour.RED,
    rules.BACCARAT_WINNER_PLAYER: Colour.BLUE,
    rules.BACCARAT_WINNER_TIE: Colour.GREEN,
}
_TWO_CARDS = {
    two_cards.Winner.FIRST: Colour.RED,
    two_cards.Winner.SECOND: Colour.BLUE,
    two_cards.Winner.TIE: Colour.GREEN,
}
_ACES = {
    rule_set_pb2.ACE_RANK_LOW: two_cards.Ace.LOW,
    rule_set_pb2.ACE_RANK_HIGH: two_cards.Ace.HIGH,
}


def outcome_of(result: rules.Result, ace: int) -> Outcome | None:
    """What a result adds; None where its game has no roads, or it says no winner. `ace`: where the
    ace stands by the round's rules, a `sabot.rules.v1.AceRank`; 0 in baccarat."""
    match result.WhichOneof("game"):
        case "baccarat":
            told = result.baccarat
            colour = _BACCARAT.get(told.winner)
            if colour is None:
                return None
            return Outcome(colour, _is_pair(told.player_cards), _is_pair(told.banker_cards))
        case "dragon_tiger":
            return _two_cards(result.dragon_tiger.dragon_card, result.dragon_tiger.tiger_card, ace)
        case "football_studio":
            return _two_cards(
                result.football_studio.home_card, result.football_studio.away_card, ace
            )
        case _:
            return None


def _two_cards(first: str, second: str, ace: int) -> Outcome | None:
    rank = _ACES.get(rule_set_pb2.AceRank.ValueType(ace))
    if rank is None or not is_card(first) or not is_card(second):
        return None
    return Outcome(_TWO_CARDS[two_cards.dealt(first, second, rank).winner])


def _is_pair(cards: Sequence[str]) -> bool:
    """Whether the first two are of one printed rank."""
    return len(cards) >= 2 and rank_of(cards[0]) == rank_of(cards[1])
