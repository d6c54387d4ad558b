"""What everyone may see of a round's outcomes beyond its cards: spins and rolls, where all of them
come from, and that something was corrected (rule VIS-1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.message import Message

from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor

OUTCOME_CHANGES: frozenset[type[Message]] = frozenset(
    (
        shoes.WheelSpun,
        shoes.DiceRolled,
        shoes.SpinInvalidated,
        floor.CardCorrected,
        floor.OutcomeCorrected,
        rules.HandsCorrected,
    )
)
"""The events that change it, `CardsDealt` apart; each names its table and round."""


def told_cards(body: shoes.CardsDealt) -> Sequence[shoes.DealtCard]:
    """The cards that an event deals; those that the floor told say where they come from."""
    if body.source in (shoes.CARD_SOURCE_UNSPECIFIED, shoes.CARD_SOURCE_VIRTUAL):
        return body.cards
    told = shoes.CardsDealt(cards=body.cards)
    for card in told.cards:
        card.source = body.source
    return told.cards


def follow_outcome(view: partners.Round, body: Message) -> None:
    """Change a view by one of OUTCOME_CHANGES. Doing it twice is doing it once."""
    match body:
        case shoes.WheelSpun():
            _show(view, body.attempt, [body.number], body.source)
        case shoes.DiceRolled():
            _show(view, body.attempt, body.dice, body.source)
        case shoes.SpinInvalidated():
            _show(view, body.attempt, (), invalid=body.reason)
        case floor.OutcomeCorrected():
            view.corrected = True
            for toss in view.tosses:
                if toss.attempt == body.attempt:
                    toss.numbers[:] = body.numbers
        case floor.CardCorrected():
            view.corrected = True
            for card in view.cards:
                if card.index == body.index and card.card:  # Not where it lay face down.
                    card.card = body.card
        case rules.HandsCorrected():
            view.corrected = True
            hands = {one.index: one.hand for one in body.cards}
            for card in view.cards:
                card.hand = hands.get(card.index, card.hand)
        case _:
            pass  # It shows nothing of outcomes.


def _show(
    view: partners.Round,
    attempt: int,
    numbers: Iterable[int],
    source: shoes.CardSource.ValueType = shoes.CARD_SOURCE_UNSPECIFIED,
    invalid: shoes.InvalidReason.ValueType = shoes.INVALID_REASON_UNSPECIFIED,
) -> None:
    if all(toss.attempt != attempt for toss in view.tosses):
        view.tosses.add(attempt=attempt, numbers=numbers, source=source, invalid=invalid)
