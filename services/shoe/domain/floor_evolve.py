"""How what the floor tells, and what came of it, changes what is known."""

from __future__ import annotations

from typing import assert_never

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import Event
from services.shoe.domain.census import note_census
from services.shoe.domain.consumables import note_moved, note_registered
from services.shoe.domain.corrections import (
    note_card_corrected,
    note_outcome_corrected,
    note_recalled,
)
from services.shoe.domain.floor_cards import note_first, note_held
from services.shoe.domain.floor_orders import keep_request
from services.shoe.domain.state import ShoeState

OfFloor = (
    floor.LoadShoe
    | floor.RecordCard
    | floor.RecordFaceDown
    | floor.RecordPeek
    | floor.RecordBurn
    | floor.RecordCutCard
    | floor.DeclareNoSpin
    | floor.RecordRemaining
    | floor.RegisterConsumable
    | floor.MoveConsumable
    | floor.FirstCardShown
    | floor.OutcomeHeld
    | floor.FloorFaultFound
    | floor.ShoeCensus
    | floor.ConsumableRegistered
    | floor.ConsumableMoved
    | floor.CardCorrected
    | floor.OutcomeCorrected
    | floor.FloorRejected
    | log.RequestRepeated
)
"""What only the floor brings about."""
AboutRound = (
    tables.BettingClosed
    | wallet.StakesSealed
    | rules.RoundResolved
    | rules.DrawRecalled
    | orders.CardCorrectionOrdered
    | orders.OutcomeCorrectionOrdered
)
"""How far the running round is, where it matters to what the floor tells."""


def evolve_floor(state: ShoeState, event: Event, body: OfFloor) -> None:
    """Fold an input from the floor, or an answer to one."""
    match body:
        case (
            floor.LoadShoe()
            | floor.RecordCard()
            | floor.RecordFaceDown()
            | floor.RecordPeek()
            | floor.RecordBurn()
            | floor.RecordCutCard()
            | floor.DeclareNoSpin()
            | floor.RecordRemaining()
            | floor.RegisterConsumable()
            | floor.MoveConsumable()
        ):
            keep_request(state, event, body)
        case floor.FirstCardShown():
            note_first(state, body)
        case floor.OutcomeHeld():
            if body.shoe_id:
                note_held(state, body)
            else:
                state.tables[body.table_id].at_floor.early = body
        case floor.ShoeCensus():
            note_census(state, body)
        case floor.ConsumableRegistered():
            note_registered(state, body)
        case floor.ConsumableMoved():
            note_moved(state, body)
        case floor.CardCorrected():
            note_card_corrected(state, body)
        case floor.OutcomeCorrected():
            note_outcome_corrected(state, body)
        case floor.FloorFaultFound() | floor.FloorRejected() | log.RequestRepeated():
            pass
        case _:
            assert_never(body)


def follow_round(state: ShoeState, body: AboutRound) -> None:
    """Fold how far the running round is."""
    table = state.tables.get(body.table_id)
    if table is None or table.round_id != body.round_id:
        return
    match body:
        case tables.BettingClosed():
            table.at_floor.cut_off_us = body.cut_off_us
        case wallet.StakesSealed():
            if body.stage == bet_pb2.STAGE_UNSPECIFIED:
                table.at_floor.sealed = True
        case rules.RoundResolved():
            table.at_floor.resolved = True
        case rules.DrawRecalled():
            note_recalled(state, body.table_id, body.shoe_id, body.round_id)
        case orders.CardCorrectionOrdered() | orders.OutcomeCorrectionOrdered():
            pass
        case _:
            assert_never(body)
