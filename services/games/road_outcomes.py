"""From the result of a round to what it adds to the roads of its shoe (rule BAC-42)."""

from __future__ import annotations

from collections.abc import Sequence

from sabot.rules.v1 import events_pb2 as rules
from services.games.cards import rank_of
from services.games.roads import Colour, Outcome

_BACCARAT = {
    rules.BACCARAT_WINNER_BANKER: Colour.RED,
    rules.BACCARAT_WINNER_PLAYER: Colour.BLUE,
    rules.BACCARAT_WINNER_TIE: Colour.GREEN,
}


def outcome_of(result: rules.Result) -> Outcome | None:
    """What a result adds; None where its game has no roads."""
    match result.WhichOneof("game"):
        case "baccarat":
            told = result.baccarat
            colour = _BACCARAT.get(told.winner)
            if colour is None:
                return None
            return Outcome(colour, _is_pair(told.player_cards), _is_pair(told.banker_cards))
        case _:
            return None


def _is_pair(cards: Sequence[str]) -> bool:
    """Whether the first two are of one printed rank."""
    return len(cards) >= 2 and rank_of(cards[0]) == rank_of(cards[1])
