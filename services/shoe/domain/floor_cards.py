"""Cards of a shoe on the floor: one comes after the other, and the core says what it means.

A card that is called is dealt. One that comes before its call is held until the call takes it;
what no call takes by the end of the game is burned, as is whatever comes out while no round runs.
Before every stake is certain a card is early: that is told, and the table stops the round. So is
one that comes out at blackjack while nobody has called it and seats may still act: they have seen
it. The hole card lies face down: see `hole_on_floor.py`.
"""

from __future__ import annotations

from collections import Counter
from typing import cast

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.games.baccarat import burn_count
from services.games.cards import is_card
from services.kernel.event import Event
from services.shoe.domain.floor_state import MAX_HELD, FloorShoe
from services.shoe.domain.hole_on_floor import (
    ALWAYS_OPEN,
    answer_laid,
    answer_peek,
    answer_turned_over,
    awaits_hole,
    next_place,
    runs,
    seats_may_act,
)
from services.shoe.domain.refusing import (
    contradiction,
    early,
    impossible_card,
    out_of_turn,
    refused,
)
from services.shoe.domain.state import (
    Hole,
    OpenedCard,
    Shoe,
    ShoeState,
    ShoeTable,
    Standing,
    given,
    standing_at,
    stood_before,
)

OfShoe = (
    floor.RecordCard
    | floor.RecordFaceDown
    | floor.RecordPeek
    | floor.RecordBurn
    | floor.RecordCutCard
)
"""What is told of a shoe that stands at a table."""
MAX_SEEN = 10
"""Cards of one burn that may have been seen: as many as a shoe's start takes."""


def answer_card(state: ShoeState, event: Event, body: floor.RecordCard) -> list[Message]:
    """Say what became of a card. The order of refusals stands in `floor_orders.py`."""
    found = shoe_of(state, body)
    if not isinstance(found, tuple):
        return refused(body, found)
    table, shoe, on_floor = found
    if not is_card(body.card):
        return refused(body, floor.FLOOR_REFUSAL_IMPOSSIBLE)
    if table.seated and not (body.round_id and body.HasField("index")):
        return refused(body, floor.FLOOR_REFUSAL_PLACE_NOT_NAMED)
    body = _for_round(table, body)
    hole = shoe.hole
    if hole is not None and not hole.opened and body.index == hole.index:
        return answer_turned_over(table, shoe, on_floor, hole, body)
    place = next_place(shoe)
    index = body.index if body.HasField("index") else place
    if index < place:
        return _once_more(table, shoe, on_floor, body, index)
    if index > place:
        return refused(body, floor.FLOOR_REFUSAL_OUT_OF_ORDER)
    if shoe.standing is Standing.SHOWN:
        return refused(body, floor.FLOOR_REFUSAL_BURN_AWAITED)
    if index >= shoe.cards:
        return refused(body, floor.FLOOR_REFUSAL_SHOE_EMPTY)
    running = runs(table, body.round_id)
    if running and awaits_hole(shoe):
        return refused(body, floor.FLOOR_REFUSAL_FACE_DOWN)
    if given(shoe, body.card) >= shoe.decks:
        return impossible_card(body, body.card, table.round_id if running else "")
    if shoe.standing is Standing.SEALED:
        return [_shown(body)]
    if not running:
        if on_floor.held and body.waits_for_held:  # They lie before it, and may be taken yet.
            return refused(body, floor.FLOOR_REFUSAL_CARDS_HELD)
        return [_burned(body, index, _stray(body))]
    answers: list[Message] = []
    if not table.at_floor.sealed or 0 < body.device_time_us < table.at_floor.cut_off_us:
        answers.append(early(body, body.card, event.edge_us))
    if shoe.call is not None and not on_floor.held:
        answers.append(_dealt(body, index, shoe.call.hands[0]))
    elif table.at_floor.resolved:
        answers.append(_burned(body, index, shoes.BURN_REASON_NOT_CALLED))
    elif len(on_floor.held) >= MAX_HELD:
        return refused(body, floor.FLOOR_REFUSAL_TOO_MANY_CARDS)
    elif table.seated and on_floor.up_at is None and len(on_floor.held) >= ALWAYS_OPEN:
        return refused(body, floor.FLOOR_REFUSAL_FACE_DOWN)
    else:
        if seats_may_act(shoe, on_floor) and not answers:
            answers.append(out_of_turn(body))
        answers.append(_held(body, index))
    return answers


def answer_face_down(state: ShoeState, body: floor.RecordFaceDown) -> list[Message]:
    """A card lies face down: see `hole_on_floor.py`."""
    found = shoe_of(state, body)
    if not isinstance(found, tuple):
        return refused(body, found)
    table, shoe, _ = found
    return answer_laid(table, shoe, body)


def answer_look_on_floor(state: ShoeState, body: floor.RecordPeek) -> list[Message]:
    """The hole card was looked at: see `hole_on_floor.py`."""
    found = shoe_of(state, body)
    if not isinstance(found, tuple):
        return refused(body, found)
    table, shoe, on_floor = found
    return answer_peek(table, shoe, on_floor, body)


def shoe_of(
    state: ShoeState, body: OfShoe
) -> tuple[ShoeTable, Shoe, FloorShoe] | floor.FloorRefusal.ValueType:
    """The shoe that stands at the table, on the floor; else why there is none."""
    table, current = standing_at(state, body.table_id)
    if table is None:
        return floor.FLOOR_REFUSAL_UNKNOWN_TABLE
    if current is None or current.shoe_id != body.shoe_id:
        known = state.shoes.get(body.shoe_id)
        over = (known is not None and known.table_id == body.table_id) or stood_before(
            state, body.table_id, body.shoe_id
        )
        return floor.FLOOR_REFUSAL_SHOE_OVER if over else floor.FLOOR_REFUSAL_UNKNOWN_SHOE
    if current.floor is None:
        return floor.FLOOR_REFUSAL_NOT_ON_FLOOR
    return table, current, current.floor


def _for_round(table: ShoeTable, body: floor.RecordCard) -> floor.RecordCard:
    """A card that names no round while one runs was drawn for that."""
    if body.round_id or not table.round_id:
        return body
    named = floor.RecordCard()
    named.CopyFrom(body)
    named.round_id = table.round_id
    return named


def _stray(body: floor.RecordCard) -> shoes.BurnReason.ValueType:
    """Why a card is burned that was drawn for no running round."""
    over = bool(body.round_id)
    return shoes.BURN_REASON_ROUND_OVER if over else shoes.BURN_REASON_BETWEEN_ROUNDS


def _once_more(
    table: ShoeTable, shoe: Shoe, on_floor: FloorShoe, body: floor.RecordCard, index: int
) -> list[Message]:
    """A card that is out already: a second reading of it, which must agree."""
    known = shoe.opened.get(index)
    if known is None:
        return refused(body, floor.FLOOR_REFUSAL_OUT_OF_ORDER)  # It went face down.
    if known.card == body.card:
        return refused(body, floor.FLOOR_REFUSAL_ALREADY_RECORDED)
    concerns = bool(table.round_id) and not table.voided and index >= on_floor.round_from
    return contradiction(body, body.card, known.card, table.round_id if concerns else "")


# ---- what becomes of a card --------------------------------------------------------------------


def _shown(body: floor.RecordCard) -> floor.FirstCardShown:
    """BAC-2: the first card lies open and says how many are burned."""
    return floor.FirstCardShown(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        card=body.card,
        burn=burn_count(body.card),
        source=body.source,
        device=body.device,
    )


def _dealt(body: floor.RecordCard, index: int, hand: int) -> shoes.CardsDealt:
    return shoes.CardsDealt(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        round_id=body.round_id,
        cards=[
            shoes.DealtCard(index=index, card=body.card, hand=cast("rules.Hand.ValueType", hand))
        ],
        source=body.source,
        device=body.device,
    )


def _held(body: floor.RecordCard, index: int) -> floor.OutcomeHeld:
    return floor.OutcomeHeld(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        round_id=body.round_id,
        index=index,
        card=body.card,
        source=body.source,
        device=body.device,
    )


def _burned(
    body: floor.RecordCard, index: int, reason: shoes.BurnReason.ValueType
) -> shoes.CardsBurned:
    return shoes.CardsBurned(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        opened=[shoes.Card(index=index, card=body.card)],
        reason=reason,
        source=body.source,
        device=body.device,
    )


def answer_held(shoe: Shoe, on_floor: FloorShoe) -> list[Message]:
    """A call takes what is held for it, in order: one answer a card, since each says where it comes
    from."""
    if shoe.call is None:
        return []
    return [
        shoes.CardsDealt(
            table_id=one.table_id,
            shoe_id=one.shoe_id,
            round_id=one.round_id,
            cards=[
                shoes.DealtCard(
                    index=one.index, card=one.card, hand=cast("rules.Hand.ValueType", hand)
                )
            ],
            source=one.source,
            device=one.device,
        )
        for one, hand in zip(on_floor.held, shoe.call.hands, strict=False)
    ]


def burn_held(shoe: Shoe, on_floor: FloorShoe, reason: shoes.BurnReason.ValueType) -> list[Message]:
    """What no call has taken is burned."""
    if not on_floor.held:
        return []
    return [
        shoes.CardsBurned(
            table_id=shoe.table_id,
            shoe_id=shoe.shoe_id,
            opened=[shoes.Card(index=one.index, card=one.card) for one in on_floor.held],
            reason=reason,
            source=on_floor.held[-1].source,
            device=on_floor.held[-1].device,
        )
    ]


# ---- burns and the cut card --------------------------------------------------------------------


def answer_burn(state: ShoeState, body: floor.RecordBurn) -> list[Message]:
    """Cards leave the shoe without being played. The order of refusals stands in
    `floor_orders.py`."""
    found = shoe_of(state, body)
    if not isinstance(found, tuple):
        return refused(body, found)
    table, shoe, on_floor = found
    if not all(is_card(card) for card in body.cards):
        return refused(body, floor.FLOOR_REFUSAL_IMPOSSIBLE)
    if not _is_burn(shoe, body):
        return refused(body, floor.FLOOR_REFUSAL_NO_BURN)
    if on_floor.held:
        return refused(body, floor.FLOOR_REFUSAL_CARDS_HELD)
    if shoe.gone + body.face_down + len(body.cards) > shoe.cards:
        return refused(body, floor.FLOOR_REFUSAL_SHOE_EMPTY)
    for card, seen in Counter(body.cards).items():
        if given(shoe, card) + seen > shoe.decks:
            return impossible_card(body, card, "" if table.voided else table.round_id)
    burned = shoes.CardsBurned(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        opened=[
            shoes.Card(index=index, card=card) for index, card in enumerate(body.cards, shoe.gone)
        ],
        face_down=body.face_down,
        reason=body.reason,
        source=body.source,
        device=body.device,
    )
    if shoe.standing is Standing.SHOWN:
        burned.opened.add(index=0, card=shoe.opened[0].card)
    answers: list[Message] = [burned]
    call = shoe.call
    gone = shoe.gone + body.face_down + len(body.cards)
    if call is not None and gone + len(call.hands) > shoe.cards:
        answers.append(
            shoes.ShoeRanOut(table_id=body.table_id, shoe_id=body.shoe_id, round_id=call.round_id)
        )
    return answers


def _is_burn(shoe: Shoe, body: floor.RecordBurn) -> bool:
    """Whether such a burn can be now: after the first card as many as that says (BAC-2), face down;
    later for a reason of its own, and either face down or seen."""
    if shoe.standing is Standing.SHOWN:
        start = body.reason == shoes.BURN_REASON_SHOE_START
        return start and not body.cards and body.face_down == burn_count(shoe.opened[0].card)
    if shoe.standing is not Standing.READY:
        return False
    known = body.reason in (shoes.BURN_REASON_DROPPED, shoes.BURN_REASON_PROCEDURE)
    return known and bool(body.face_down) != bool(body.cards) and len(body.cards) <= MAX_SEEN


def answer_cut_card(state: ShoeState, body: floor.RecordCutCard) -> list[Message]:
    """BAC-3: the round before or during which the cut card comes out is the last. On the floor the
    dealer sees it, and the entry decides; how deep it should stand is told by `ShoeOpened`."""
    found = shoe_of(state, body)
    if not isinstance(found, tuple):
        return refused(body, found)
    table, shoe, _ = found
    if shoe.rounds_to_close is not None:
        return refused(body, floor.FLOOR_REFUSAL_CUT_CARD_OUT)
    between = not table.round_id
    return [
        shoes.CutCardReached(
            table_id=body.table_id,
            shoe_id=body.shoe_id,
            round_id=table.round_id or table.last_round_id,
            rounds_left=shoe.rounds_after_cut + between,
        )
    ]


# ---- parts of evolve ---------------------------------------------------------------------------


def note_first(state: ShoeState, body: floor.FirstCardShown) -> None:
    """The first card lies open. Part of evolve."""
    shoe = state.shoes.get(body.shoe_id)
    if shoe is not None:
        shoe.opened[0] = OpenedCard(body.card, b"", shown=True)
        shoe.gone = 1
        shoe.standing = Standing.SHOWN


def note_held(state: ShoeState, body: floor.OutcomeHeld) -> None:
    """A card waits for its call. Part of evolve."""
    shoe = state.shoes.get(body.shoe_id)
    if shoe is not None and shoe.floor is not None:
        shoe.floor.held.append(body)
        shoe.opened[body.index] = OpenedCard(body.card, b"")


def note_floor_dealt(shoe: Shoe, on_floor: FloorShoe, body: shoes.CardsDealt) -> None:
    """A card went to the hand that was called first, or the hole card was turned over. Part of
    evolve."""
    for card in body.cards:
        if card.card:
            shoe.opened[card.index] = OpenedCard(card.card, b"", shown=True)
        if card.hand == rules.HAND_HOLE and card.card:
            if shoe.hole is not None:
                shoe.hole.opened = True
            continue
        shoe.gone = card.index + 1
        if card.hand == rules.HAND_HOLE:
            shoe.hole = Hole(body.round_id, card.index)
        elif card.hand == rules.HAND_DEALER:
            on_floor.dealers += 1
            if on_floor.up_at is None:
                on_floor.up_at = card.index
        if on_floor.held and on_floor.held[0].index == card.index:
            on_floor.held.pop(0)
        if shoe.call is not None:
            shoe.call.hands.pop(0)
            if not shoe.call.hands:
                shoe.call = None


def note_floor_burned(shoe: Shoe, on_floor: FloorShoe, body: shoes.CardsBurned) -> None:
    """Cards left the shoe unplayed. Part of evolve."""
    start = body.reason == shoes.BURN_REASON_SHOE_START
    for card in body.opened:
        shoe.opened[card.index] = OpenedCard(card.card, b"", shown=start)
        shoe.gone = max(shoe.gone, card.index + 1)
    shoe.gone += body.face_down
    on_floor.held.clear()
    if start:
        shoe.standing = Standing.READY
