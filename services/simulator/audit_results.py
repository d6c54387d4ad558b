"""The auditor's own dealers: what a round comes to by the cards in the order in which they left the
shoe. Naive, from docs/rules, with nothing of the product's games.
"""

from __future__ import annotations

from collections.abc import Sequence

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from services.simulator.audit_judge import PIPS, points

Dealt = Sequence[tuple[int, str]]
"""The cards of a round in dealing order, each with its `sabot.rules.v1.Hand`."""
BANKER_DRAWS = {3: "A2345679TJQK", 4: "234567", 5: "4567", 6: "67", 7: ""}
"""By Banker's total: the third cards of Player on which Banker draws (rule BAC-8); on 0 to 2 on
all."""


def result_of(rule_set: rule_set_pb2.RuleSet, dealt: Dealt) -> rules.Result | None:
    """The result of the cards; None where they are too few, too many, or dealt to other hands than
    the rules say."""
    match rule_set.game:
        case rule_set_pb2.GAME_BACCARAT:
            return _baccarat(dealt)
        case rule_set_pb2.GAME_DRAGON_TIGER:
            if [hand for hand, _ in dealt] != [rules.HAND_DRAGON, rules.HAND_TIGER]:
                return None
            dragon = rules.DragonTigerResult(dragon_card=dealt[0][1], tiger_card=dealt[1][1])
            return rules.Result(dragon_tiger=dragon)
        case rule_set_pb2.GAME_FOOTBALL_STUDIO:
            if [hand for hand, _ in dealt] != [rules.HAND_HOME, rules.HAND_AWAY]:
                return None
            home = rules.FootballStudioResult(home_card=dealt[0][1], away_card=dealt[1][1])
            return rules.Result(football_studio=home)
        case _:
            return None


def _baccarat(dealt: Dealt) -> rules.Result | None:
    """Rules BAC-4 to BAC-9."""
    cards = [card for _, card in dealt]
    if len(cards) < 4:
        return None
    player, banker, left = [cards[0], cards[2]], [cards[1], cards[3]], cards[4:]
    hands = [rules.HAND_PLAYER, rules.HAND_BANKER] * 2
    if max(points(player), points(banker)) < 8:
        banker_draws = points(banker) <= 5
        if points(player) <= 5 and left:
            third = left.pop(0)
            player.append(third)
            hands.append(rules.HAND_PLAYER)
            at = points(banker)
            banker_draws = at <= 2 or third[0] in BANKER_DRAWS[at]
        elif points(player) <= 5:
            return None
        if banker_draws and left:
            banker.append(left.pop(0))
            hands.append(rules.HAND_BANKER)
        elif banker_draws:
            return None
    if left or hands != [hand for hand, _ in dealt]:
        return None
    p, b = points(player), points(banker)
    return rules.Result(
        baccarat=rules.BaccaratResult(
            player_cards=player,
            banker_cards=banker,
            player_total=p,
            banker_total=b,
            winner=(
                rules.BACCARAT_WINNER_TIE
                if p == b
                else rules.BACCARAT_WINNER_PLAYER
                if p > b
                else rules.BACCARAT_WINNER_BANKER
            ),
        )
    )


def dealt_by_the_rules(game: int, cards: Sequence[str]) -> list[tuple[int, str]]:
    """Whose each card is, in the order in which they came out; cards that nobody takes are left
    out: they were drawn in error."""
    hands: list[int]
    if game == rule_set_pb2.GAME_DRAGON_TIGER:
        hands = [rules.HAND_DRAGON, rules.HAND_TIGER]
        return list(zip(hands, cards, strict=False))
    if game == rule_set_pb2.GAME_FOOTBALL_STUDIO:
        hands = [rules.HAND_HOME, rules.HAND_AWAY]
        return list(zip(hands, cards, strict=False))
    hands = [rules.HAND_PLAYER, rules.HAND_BANKER] * 2
    dealt = list(zip(hands, cards, strict=False))
    if len(cards) < 4:
        return dealt
    left = list(cards[4:])
    player, banker = [cards[0], cards[2]], [cards[1], cards[3]]
    if max(points(player), points(banker)) >= 8 or not left:
        return dealt
    at = points(banker)
    banker_draws = at <= 5
    if points(player) <= 5:
        third = left.pop(0)
        dealt.append((rules.HAND_PLAYER, third))
        banker_draws = at <= 2 or third[0] in BANKER_DRAWS[at]
    if banker_draws and left:
        dealt.append((rules.HAND_BANKER, left.pop(0)))
    return dealt


def burned_after(shown: str) -> int:
    """How many cards go face down behind the shown one of a new shoe (rule BAC-2)."""
    return PIPS[shown[0]] or 10
