"""From a rule set to its game: where bets may lie, and what became of them.

The one place that knows every game; settlement, the table and limits ask here.
"""

from __future__ import annotations

from collections.abc import Callable

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from services.games import baccarat_bets
from services.games.bets import Judged, ResultUnusable

Judging = Callable[[str, str], Judged]
"""From (bet, position) to its fate; the bet is one that the rule set offers, on its layout."""


def on_layout(rule_set: rule_set_pb2.RuleSet, bet: str, position: str) -> str | None:
    """The canonical text of a position of this bet; None where the layout has no such one."""
    match rule_set.game:
        case rule_set_pb2.GAME_BACCARAT:
            return "" if bet in baccarat_bets.JUDGES and not position else None
        case _:
            return None


def judging(rule_set: rule_set_pb2.RuleSet, result: rules.Result) -> Judging:
    """How the bets of a decided round are judged. Raises ResultUnusable."""
    match rule_set.game:
        case rule_set_pb2.GAME_BACCARAT:
            return _baccarat(rule_set, result)
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
