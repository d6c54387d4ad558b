"""The dealer's hole card of blackjack: it leaves the shoe face down, is looked at, and turned over
(rules BJ-2, BJ-4, BJ-5, VIS-3).

Where it lies is remembered, what it is nobody is told before it is turned over: a look tells yes or
no. Both are held against each other by rules, where a contradiction stops the round. The hole card
of a voided round is never opened; it is laid open with the whole shoe.
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from services.kernel.event import Event
from services.shoe.domain.state import Hole, Shoe, ShoeState, standing_at, stood_before


def hidden_in(hands: list[int]) -> int:
    """How many of the called cards stay face down: the last one, or none."""
    return int(bool(hands) and hands[-1] == rules.HAND_HOLE)


def note_dealt(shoe: Shoe, body: shoes.CardsDealt) -> bool:
    """Remember a hole card that was dealt or turned over. Part of evolve.

    True: it was turned over, so no card has left the shoe."""
    last = body.cards[-1]
    if last.hand != rules.HAND_HOLE:
        return False
    if not last.card:
        shoe.hole = Hole(body.round_id, last.index)
        return False
    if shoe.hole is not None:
        shoe.hole.opened = True
    return True


def note_hole_called(state: ShoeState, event: Event, body: rules.HoleCalled) -> None:
    """A running round calls its hole card. Part of evolve."""
    hole = _hole(state, body.table_id, body.shoe_id, body.round_id)
    if hole is None:
        return  # The call crossed the end of its round.
    hole.up_card = body.up_card
    if body.purpose == rules.HOLE_PURPOSE_REVEAL:
        hole.reveal_asked_by = event.position
    elif hole.peek_asked_by is None:
        hole.peek_asked_by = event.position


def note_look(state: ShoeState, event: Event, body: shoes.CheckHole) -> None:
    """Keep the first look at a hole card that was called. Part of evolve."""
    hole = _called(state, body)
    if hole is not None and hole.looked_at is None:
        hole.blackjack = body.blackjack
        hole.looked_at = event.position


def answer_look(state: ShoeState, event: Event, body: shoes.CheckHole) -> list[Message]:
    """Say what a look told.

    Order of reasons to ignore: unknown shoe, a look that is not called, or of a round that is over
    or voided, or at another card; a second look (it agrees, or contradicts).
    """
    hole = _called(state, body)
    if hole is None:
        shoe = state.shoes.get(body.shoe_id)
        known = (shoe is not None and shoe.table_id == body.table_id) or stood_before(
            state, body.table_id, body.shoe_id
        )
        return _ignored(log.IGNORED_REASON_NOT_NOW if known else log.IGNORED_REASON_UNKNOWN)
    if hole.looked_at != event.position:
        same = hole.blackjack == body.blackjack
        return _ignored(log.IGNORED_REASON_ALREADY_DONE if same else log.IGNORED_REASON_CONTRADICTS)
    return [
        shoes.HoleChecked(
            table_id=body.table_id,
            shoe_id=body.shoe_id,
            round_id=body.round_id,
            blackjack=body.blackjack,
            source=body.source,
        )
    ]


def answer_turned(shoe: Shoe, body: shoes.OpenCards) -> list[Message] | None:
    """What the opening of the hole card means; None where the cards are others.

    It must be called; otherwise, and once it is open, it has no effect."""
    hole = shoe.hole
    if hole is None or [card.index for card in body.cards] != [hole.index]:
        return None
    if hole.opened:
        return _ignored(log.IGNORED_REASON_ALREADY_DONE)
    if hole.reveal_asked_by is None or hole.round_id != body.round_id:
        return _ignored(log.IGNORED_REASON_NOT_NOW)
    return [
        shoes.CardsDealt(
            table_id=body.table_id,
            shoe_id=body.shoe_id,
            round_id=body.round_id,
            cards=[
                shoes.DealtCard(index=hole.index, card=body.cards[0].card, hand=rules.HAND_HOLE)
            ],
            source=body.source,
        )
    ]


def _called(state: ShoeState, body: shoes.CheckHole) -> Hole | None:
    """The hole card that a look is called at, if this is one."""
    hole = _hole(state, body.table_id, body.shoe_id, body.round_id)
    if hole is None or hole.peek_asked_by is None or hole.index != body.index:
        return None
    if state.shoes[body.shoe_id].floor is not None:
        return None  # There the floor tells it.
    return hole


def _hole(state: ShoeState, table_id: str, shoe_id: str, round_id: str) -> Hole | None:
    """The hole card of the round that runs at this table."""
    table, shoe = standing_at(state, table_id)
    if table is None or shoe is None or shoe.shoe_id != shoe_id or shoe.hole is None:
        return None
    runs = table.round_id == round_id == shoe.hole.round_id and not table.voided
    return shoe.hole if runs else None


def _ignored(reason: log.IgnoredReason.ValueType) -> list[Message]:
    return [log.InputIgnored(reason=reason)]
