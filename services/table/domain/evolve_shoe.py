"""How what a shoe says changes what the table knows of it (rules BAC-3, BAC-40)."""

from __future__ import annotations

from typing import assert_never

from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.table.domain.risk import note_dealt, note_first, note_shoe, note_shown
from services.table.domain.state import Phase, Table, TableState, round_number

NEVER_DEALT = (shoe.BURN_REASON_DROPPED, shoe.BURN_REASON_PROCEDURE)
"""Burns on the floor that belong to the round in which they happen."""


def forget_shoe(one: Table) -> None:
    """No shoe is at the table."""
    one.shoe_id = ""
    one.shoe_ready = False
    one.shoe_by_hand = False
    one.shoe_rounds = 0
    one.rounds_left = None
    one.last_uncounted = False
    one.shoe_cards = 0
    one.seen = {}


def shoe_goes_on(
    state: TableState,
    body: shoe.ShoeOpened
    | shoe.CardsBurned
    | shoe.CardsDealt
    | shoe.CutCardReached
    | shoe.ShoeRanOut
    | shoe.ShoeClosed
    | floor.FirstCardShown,
) -> None:
    """Fold what the shoe says of itself and of its cards."""
    one = state.tables.get(body.table_id)
    if one is None:
        return
    match body:
        case shoe.ShoeOpened():
            if one.is_open:
                forget_shoe(one)
                one.shoe_id = body.shoe_id
                one.shoe_ready = body.ready
                one.shoe_by_hand = bool(body.packs)
                note_shoe(one, body)
        case floor.FirstCardShown():
            note_first(one, body)
        case shoe.CardsDealt():
            note_dealt(one, body)
            if one.running is not None and one.running.round_id == body.round_id:
                one.running.cards_left_shoe = True
        case shoe.CardsBurned():
            if body.shoe_id != one.shoe_id:
                pass
            elif body.reason == shoe.BURN_REASON_SHOE_START:
                one.shoe_ready = True
                note_shown(one, body)
            elif one.running is not None and (
                one.running.phase is Phase.VOIDED
                or body.reason in (shoe.BURN_REASON_NOT_CALLED, *NEVER_DEALT)
            ):
                one.running.cards_left_shoe = True
            elif body.reason in (shoe.BURN_REASON_BETWEEN_ROUNDS, *NEVER_DEALT):
                pass  # Of no round.
            elif one.last_uncounted:
                one.shoe_rounds += 1
                one.last_uncounted = False
        case shoe.CutCardReached():
            if body.shoe_id == one.shoe_id:
                # The shoe may say so only after later rounds were opened: of a voided round, whose
                # cards it was still burning. Those count against what may follow.
                since = one.number - round_number(body.table_id, body.round_id)
                one.rounds_left = max(body.rounds_left - since, 0)
                if one.running is None and one.rounds_left == 0:
                    one.shoe_ready = False
        case shoe.ShoeRanOut():
            if body.shoe_id == one.shoe_id:
                one.rounds_left = 0
                if one.running is None:
                    one.shoe_ready = False
        case shoe.ShoeClosed():
            if body.shoe_id == one.shoe_id:
                forget_shoe(one)
        case _:
            assert_never(body)
