"""A result as a person tells it: cards, a number or dice. What follows from them is worked out here
and never taken from whoever tells it."""

from __future__ import annotations

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from services.games import baccarat, roulette, sicbo
from services.games.cards import is_card

_GAMES = {
    "baccarat": rule_set_pb2.GAME_BACCARAT,
    "blackjack": rule_set_pb2.GAME_BLACKJACK,
    "roulette": rule_set_pb2.GAME_ROULETTE,
    "sicbo": rule_set_pb2.GAME_SICBO,
    "dragon_tiger": rule_set_pb2.GAME_DRAGON_TIGER,
    "football_studio": rule_set_pb2.GAME_FOOTBALL_STUDIO,
}
_WINNERS = {
    baccarat.Winner.PLAYER: rules.BACCARAT_WINNER_PLAYER,
    baccarat.Winner.BANKER: rules.BACCARAT_WINNER_BANKER,
    baccarat.Winner.TIE: rules.BACCARAT_WINNER_TIE,
}


def game_of(result: rules.Result) -> int:
    """The `sabot.rules.v1.Game` that a result is of; 0 where it says nothing."""
    return _GAMES.get(result.WhichOneof("game") or "", rule_set_pb2.GAME_UNSPECIFIED)


def completed(result: rules.Result) -> rules.Result | None:
    """The result with totals and winner as its cards have them; None where no round of the game
    can have come to it (rules BAC-4 to BAC-9, ROU-1, SIC-1, DT-2, FS-1). A result of blackjack is
    taken as it stands: `services.games.registry.judging` plays its hands again."""
    match result.WhichOneof("game"):
        case "baccarat":
            told = result.baccarat
            return _baccarat(list(told.player_cards), list(told.banker_cards))
        case "roulette":
            return result if result.roulette.number in roulette.NUMBERS else None
        case "sicbo":
            return result if sicbo.is_roll(tuple(result.sicbo.dice)) else None
        case "dragon_tiger":
            pair = (result.dragon_tiger.dragon_card, result.dragon_tiger.tiger_card)
            return result if all(map(is_card, pair)) else None
        case "football_studio":
            pair = (result.football_studio.home_card, result.football_studio.away_card)
            return result if all(map(is_card, pair)) else None
        case "blackjack":
            return result
        case _:
            return None


def _baccarat(player: list[str], banker: list[str]) -> rules.Result | None:
    if not all(map(is_card, (*player, *banker))):
        return None
    if not (2 <= len(player) <= 3 and 2 <= len(banker) <= 3):
        return None
    # Dealt again card by card, so that no hand has one too many or too few.
    dealt: tuple[list[str], list[str]] = ([], [])
    left = {baccarat.Side.PLAYER: list(player), baccarat.Side.BANKER: list(banker)}
    while draw := baccarat.next_draw(*dealt):
        for side in draw:
            if not left[side]:
                return None
            dealt[0 if side is baccarat.Side.PLAYER else 1].append(left[side].pop(0))
    if left[baccarat.Side.PLAYER] or left[baccarat.Side.BANKER]:
        return None
    return rules.Result(
        baccarat=rules.BaccaratResult(
            player_cards=player,
            banker_cards=banker,
            player_total=baccarat.total(player),
            banker_total=baccarat.total(banker),
            winner=_WINNERS[baccarat.winner(player, banker)],
        )
    )
