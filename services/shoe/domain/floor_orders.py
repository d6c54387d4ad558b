"""What dealers, supervisors and devices tell of the floor.

Order of refusals, each tested. Of every order: REQUEST_EXPIRED, a repeat, REQUEST_ID_REUSED,
REQUEST_ID_AHEAD. Then

- LoadShoe: UNKNOWN_TABLE, NOT_ON_FLOOR, SHOE_NOT_AWAITED, WRONG_DECKS (other than the table's);
  pack by pack UNKNOWN_CONSUMABLE or DESTROYED, WRONG_KIND, NOT_INSPECTED, IN_USE; WRONG_DECKS (of
  the packs together).
- RecordCard, RecordFaceDown, RecordPeek, RecordBurn, RecordCutCard: UNKNOWN_TABLE, SHOE_OVER or
  UNKNOWN_SHOE, NOT_ON_FLOOR (a virtual shoe). Then
    RecordCard: IMPOSSIBLE; PLACE_NOT_NAMED (at blackjack, without round and place); the hole card
      (FACE_DOWN until it is to be turned over, a card that cannot be by the census, or that
      contradicts a look); a card that is out already (OUT_OF_ORDER where nobody saw it, else
      ALREADY_RECORDED, or it contradicts); OUT_OF_ORDER (not the next one), BURN_AWAITED,
      SHOE_EMPTY, FACE_DOWN (the next one is the hole card), a card that cannot be by the census,
      CARDS_HELD (of another round), TOO_MANY_CARDS, FACE_DOWN (before the deal of blackjack is
      called: it may be the hole card);
    RecordFaceDown: ALREADY_RECORDED, OUT_OF_ORDER (not the next one), SHOE_EMPTY, NOT_FACE_DOWN;
    RecordPeek: LOOK_NOT_CALLED (no hole card of a running round), ALREADY_RECORDED or a
      contradiction, LOOK_NOT_CALLED;
    RecordBurn: IMPOSSIBLE, NO_BURN, CARDS_HELD, SHOE_EMPTY, a card that cannot be by the census;
    RecordCutCard: CUT_CARD_OUT.
- RecordRemaining: UNKNOWN_TABLE, SHOE_OVER (counted already) or UNKNOWN_SHOE, NOT_ON_FLOOR,
  SHOE_RUNS, IMPOSSIBLE.
- RecordSpin, RecordDice: UNKNOWN_TABLE, IMPOSSIBLE, NOT_ON_FLOOR; of a round that was paid
  ALREADY_RECORDED or a contradiction; NOT_CALLED, ALREADY_RECORDED or a contradiction.
- DeclareNoSpin: UNKNOWN_TABLE, NOT_ON_FLOOR, NOT_CALLED, OUTCOME_STANDS.
- Consumables: see `consumables.py`.
"""

from __future__ import annotations

from typing import assert_never

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.kernel.event import Event
from services.kernel.requests import Standing as IdStanding
from services.shoe.domain.census import answer_remaining
from services.shoe.domain.consumables import answer_load, answer_move, answer_register
from services.shoe.domain.floor_cards import (
    answer_burn,
    answer_card,
    answer_cut_card,
    answer_face_down,
    answer_look_on_floor,
)
from services.shoe.domain.floor_tosses import answer_no_spin, answer_told
from services.shoe.domain.refusing import FloorOrder, refused
from services.shoe.domain.state import ShoeState


def keep_request(state: ShoeState, event: Event, body: FloorOrder) -> None:
    """Remember an operator's request id; what is drawn has none. Part of evolve."""
    if not body.request_id:
        return
    ids, scope = state.request_ids, event.actor
    standing, _ = ids.standing(scope, body.request_id, body.request_hash, event.time_us)
    if standing is IdStanding.NEW:
        ids.use(scope, body.request_id, body.request_hash, event.position, event.time_us)


def answer_order(state: ShoeState, event: Event, body: FloorOrder) -> list[Message]:
    """The answers to something that was told from the floor."""
    repeated = _repeated(state, event, body)
    if repeated is not None:
        return repeated
    match body:
        case floor.RecordCard():
            return answer_card(state, event, body)
        case floor.RecordFaceDown():
            return answer_face_down(state, body)
        case floor.RecordPeek():
            return answer_look_on_floor(state, body)
        case shoes.RecordSpin() | shoes.RecordDice():
            return answer_told(state, event, body)
        case floor.LoadShoe():
            return answer_load(state, body)
        case floor.RecordBurn():
            return answer_burn(state, body)
        case floor.RecordCutCard():
            return answer_cut_card(state, body)
        case floor.DeclareNoSpin():
            return answer_no_spin(state, body)
        case floor.RecordRemaining():
            return answer_remaining(state, body)
        case floor.RegisterConsumable():
            return answer_register(state, body)
        case floor.MoveConsumable():
            return answer_move(state, body)
        case _:
            assert_never(body)


def _repeated(state: ShoeState, event: Event, body: FloorOrder) -> list[Message] | None:
    """What answers an order whose id is not new; None where it is."""
    standing, first = state.request_ids.standing(
        event.actor, body.request_id, body.request_hash, event.time_us
    )
    match standing:
        case IdStanding.NEW:
            return None
        case IdStanding.EXPIRED:
            return refused(body, floor.FLOOR_REFUSAL_REQUEST_EXPIRED)
        case IdStanding.AHEAD:
            return refused(body, floor.FLOOR_REFUSAL_REQUEST_ID_AHEAD)
        case IdStanding.REUSED:
            return refused(body, floor.FLOOR_REFUSAL_REQUEST_ID_REUSED)
        case IdStanding.REPEATED:
            if first is None or first == event.position:
                return None  # It is the first itself: folding kept its id before this decision.
            return [
                log.RequestRepeated(
                    request_id=body.request_id,
                    first=entry_pb2.Position(
                        segment=first.segment, sequence=first.sequence, index=first.index
                    ),
                )
            ]
        case _:
            assert_never(standing)
