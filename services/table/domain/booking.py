"""From the bets that a request asks for to those that are booked: each on its place of the layout,
announced bets expanded into their parts (rules ROU-3, ROU-4)."""

from __future__ import annotations

from collections.abc import Sequence

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from services.games.registry import NotExpanded, announced, on_layout

_REFUSALS = {
    NotExpanded.NOT_ON_LAYOUT: table.REFUSAL_NOT_ON_LAYOUT,
    NotExpanded.NOT_WHOLE_CHIPS: table.REFUSAL_NOT_WHOLE_CHIPS,
}


def booked(
    rule_set: rule_set_pb2.RuleSet, offered: Sequence[str], bets: Sequence[bet_pb2.Bet]
) -> list[bet_pb2.Bet] | table.Refusal.ValueType:
    """The bets to book, without ids; or why the request is refused, by its first bet that is wrong:
    UNKNOWN_BET, NOT_ON_LAYOUT, NOT_WHOLE_CHIPS."""
    found: list[bet_pb2.Bet] = []
    for bet in bets:
        parts = announced(rule_set, bet.bet, bet.position, bet.stake_minor)
        if parts is NotExpanded.ORDINARY:
            if bet.bet not in offered:
                return table.REFUSAL_UNKNOWN_BET
            position = on_layout(rule_set, bet.bet, bet.position)
            if position is None:
                return table.REFUSAL_NOT_ON_LAYOUT
            found.append(bet_pb2.Bet(bet=bet.bet, position=position, stake_minor=bet.stake_minor))
        elif isinstance(parts, NotExpanded):
            return _REFUSALS[parts]
        else:
            if any(part.bet not in offered for part in parts):
                return table.REFUSAL_UNKNOWN_BET
            found.extend(
                bet_pb2.Bet(
                    bet=part.bet,
                    position=part.position,
                    stake_minor=part.stake_minor,
                    announced=bet.bet,
                )
                for part in parts
            )
    return found
