"""A misread card, spin or roll of the running round is another one. Whether the round may be
corrected at all, the table has said; here it is said whether there is such a thing to correct.

Order of refusals: NOTHING_TO_CORRECT, IMPOSSIBLE (no such card or number, or the shoe has given
every card of this kind), ALREADY_RECORDED (it was read so).
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import floor_events_pb2 as orders
from services.games.cards import is_card
from services.shoe.domain.state import Shoe, ShoeState, Toss, TossKind, given, standing_at
from services.shoe.domain.tosses import is_possible


def answer_card_correction(state: ShoeState, body: orders.CardCorrectionOrdered) -> list[Message]:
    """A card is another one, if it is of this round and the shoe may hold it."""
    shoe = _shoe(state, body)
    known = None if shoe is None else shoe.opened.get(body.index)
    if shoe is None or known is None or not _of_round(shoe, body.index):
        return _rejected(body, floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT)
    full = given(shoe, body.card) >= shoe.decks
    if not is_card(body.card) or (body.card != known.card and full):
        return _rejected(body, floor.FLOOR_REFUSAL_IMPOSSIBLE)
    if body.card == known.card:
        return _rejected(body, floor.FLOOR_REFUSAL_ALREADY_RECORDED)
    return [
        floor.CardCorrected(
            table_id=body.table_id,
            shoe_id=shoe.shoe_id,
            round_id=body.round_id,
            index=body.index,
            card=body.card,
            read_as=known.card,
        )
    ]


def answer_outcome_correction(
    state: ShoeState, body: orders.OutcomeCorrectionOrdered
) -> list[Message]:
    """A spin or a roll is another one, if it has an outcome that counts."""
    toss = _toss(state, body.table_id, body.round_id, body.attempt)
    if toss is None or not toss.numbers or toss.invalid:
        return _rejected(body, floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT)
    if not _can_be(toss.kind, list(body.numbers)):
        return _rejected(body, floor.FLOOR_REFUSAL_IMPOSSIBLE)
    if list(body.numbers) == toss.numbers:
        return _rejected(body, floor.FLOOR_REFUSAL_ALREADY_RECORDED)
    return [
        floor.OutcomeCorrected(
            table_id=body.table_id,
            round_id=body.round_id,
            attempt=body.attempt,
            numbers=body.numbers,
            read_as=toss.numbers,
        )
    ]


def note_card_corrected(state: ShoeState, body: floor.CardCorrected) -> None:
    """The card is another one, and rules begin anew with it. Part of evolve."""
    shoe = state.shoes.get(body.shoe_id)
    table = state.tables.get(body.table_id)
    if shoe is None or shoe.floor is None or table is None:
        return
    shoe.opened[body.index].card = body.card
    for place, one in enumerate(shoe.floor.held):
        if one.index == body.index:
            held = shoe.floor.held[place] = floor.OutcomeHeld()
            held.CopyFrom(one)  # The event itself stays as it was told.
            held.card = body.card
    table.at_floor.resolved = False
    hole = shoe.hole
    if hole is not None and shoe.floor.up_at == body.index:
        hole.up_card = body.card


def note_outcome_corrected(state: ShoeState, body: floor.OutcomeCorrected) -> None:
    """The outcome is another one. Part of evolve."""
    toss = _toss(state, body.table_id, body.round_id, body.attempt)
    if toss is not None:
        toss.numbers = list(body.numbers)


def note_recalled(state: ShoeState, table_id: str, shoe_id: str, round_id: str) -> None:
    """What was called is not called any more. Part of evolve."""
    _, shoe = standing_at(state, table_id)
    if shoe is None or shoe.shoe_id != shoe_id:
        return
    if shoe.call is not None and shoe.call.round_id == round_id:
        shoe.call = None
    hole = shoe.hole
    if hole is not None and hole.round_id == round_id and not hole.opened:
        hole.reveal_asked_by = None
        if hole.looked_at is None:
            hole.peek_asked_by = None


def _shoe(state: ShoeState, body: orders.CardCorrectionOrdered) -> Shoe | None:
    table, shoe = standing_at(state, body.table_id)
    if table is None or table.round_id != body.round_id or table.voided:
        return None
    return shoe if shoe is not None and shoe.shoe_id == body.shoe_id else None


def _of_round(shoe: Shoe, index: int) -> bool:
    """Whether a card was dealt to the running round, or is held for it."""
    if shoe.floor is None or index < shoe.floor.round_from:
        return False
    return shoe.opened[index].shown or any(one.index == index for one in shoe.floor.held)


def _toss(state: ShoeState, table_id: str, round_id: str, attempt: int) -> Toss | None:
    table = state.tables.get(table_id)
    toss = None if table is None else table.toss
    if table is None or toss is None or table.voided:
        return None
    return toss if table.round_id == toss.round_id == round_id and toss.attempt == attempt else None


def _can_be(kind: TossKind, numbers: list[int]) -> bool:
    if kind is TossKind.ROLL:
        return is_possible(shoes.RecordDice(dice=numbers))
    return len(numbers) == 1 and is_possible(shoes.RecordSpin(number=numbers[0]))


def _rejected(
    body: orders.CardCorrectionOrdered | orders.OutcomeCorrectionOrdered,
    refusal: floor.FloorRefusal.ValueType,
) -> list[Message]:
    return [
        floor.FloorRejected(
            request_id=body.request_id,
            table_id=body.table_id,
            round_id=body.round_id,
            refusal=refusal,
        )
    ]
