"""A round in which something was misread: the cards lie in the order in which they came out of the
shoe, and the rules say anew whose each is. A card that no hand takes was drawn in error: it is not
played. A call that the corrected cards do not ask for is recalled. For blackjack see
`blackjack_corrections.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never, cast

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.games import baccarat
from services.rules.domain.blackjack import correct, recall
from services.rules.domain.state import Round

_HANDS: dict[baccarat.Side, int] = {
    baccarat.Side.PLAYER: rules.HAND_PLAYER,
    baccarat.Side.BANKER: rules.HAND_BANKER,
}


def follow_correction(
    running: Round,
    body: floor.CardCorrected | floor.OutcomeCorrected | rules.DrawRecalled | rules.HandsCorrected,
) -> None:
    """Fold what was corrected, or what came of it."""
    match body:
        case floor.CardCorrected():
            for place, (hand, card) in enumerate(running.cards):
                if card and running.places[place] == body.index:
                    running.cards[place] = (hand, body.card)
                    running.corrected = True
                    running.resolved = False
            if running.corrected and running.blackjack is not None:
                correct(running.blackjack, body.index, body.card)
        case floor.OutcomeCorrected():
            running.numbers = list(body.numbers)
            running.resolved = False
        case rules.DrawRecalled():
            running.called = running.taken
            if running.blackjack is not None:
                recall(running.blackjack)
        case rules.HandsCorrected():
            hands = {one.index: one.hand for one in body.cards}
            running.cards = [
                (hands.get(place, hand), card)
                for place, (hand, card) in zip(running.places, running.cards, strict=True)
            ]
        case _:
            assert_never(body)


def hands_by_the_rules(game: int, running: Round) -> list[int]:
    """Whose each card of the round is, in dealing order; 0: it is not played."""
    told = [hand for hand, _ in running.cards]
    if game != rule_set_pb2.GAME_BACCARAT or len(told) < baccarat.FIRST_CARDS:
        return told  # One card a side, or the first four: no value changes whose they are.
    cards = [card for _, card in running.cards]
    held: dict[baccarat.Side, list[str]] = {side: [] for side in baccarat.Side}
    hands: list[int] = []
    for card in cards:
        sides = _next_sides(held, len(hands))
        if not sides:
            hands.append(rules.HAND_UNSPECIFIED)
            continue
        held[sides[0]].append(card)
        hands.append(_HANDS[sides[0]])
    return hands


def _next_sides(held: dict[baccarat.Side, list[str]], so_far: int) -> Sequence[baccarat.Side]:
    if so_far < baccarat.FIRST_CARDS:
        return baccarat.FIRST_FOUR[so_far:]
    return baccarat.next_draw(held[baccarat.Side.PLAYER], held[baccarat.Side.BANKER])


def hands_corrected(table_id: str, running: Round, hands: Sequence[int]) -> rules.HandsCorrected:
    """All cards of the round, and whose they are."""
    return rules.HandsCorrected(
        table_id=table_id,
        round_id=running.round_id,
        cards=[
            rules.CardInHand(index=place, hand=cast("rules.Hand.ValueType", hand))
            for place, hand in zip(running.places, hands, strict=True)
        ],
    )


def is_still_called(game: int, running: Round, hands: Sequence[int]) -> bool:
    """Whether what was called and has not come is what the corrected cards ask for."""
    if game != rule_set_pb2.GAME_BACCARAT or len(hands) < baccarat.FIRST_CARDS:
        return True
    player, banker = (
        [card for (_, card), hand in zip(running.cards, hands, strict=True) if hand == wanted]
        for wanted in (rules.HAND_PLAYER, rules.HAND_BANKER)
    )
    asked = [_HANDS[side] for side in baccarat.next_draw(player, banker)]
    return running.calling[-(running.called - running.taken) :] == asked
