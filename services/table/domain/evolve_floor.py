"""How rounds on the floor, and suspensions of any round, change what the table knows."""

from __future__ import annotations

from typing import assert_never

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import spec_pb2
from services.kernel.event import UNLOGGED, Event
from services.table.domain.corrections import FromRules, follow_correction
from services.table.domain.floor_state import WHOLE_SINCE, FloorRound, Noted
from services.table.domain.risk import note_correction
from services.table.domain.state import Round, Table, TableState, running_round

OfFloor = (
    orders.CardCorrectionOrdered
    | orders.OutcomeCorrectionOrdered
    | floor.CardCorrected
    | floor.OutcomeCorrected
    | floor.FloorRejected
    | floor.FloorFaultFound
    | orders.WithdrawalNoted
    | orders.EscalateSuspension
    | orders.SuspensionEscalated
    | FromRules
)


def follow_floor(state: TableState, event: Event, body: OfFloor) -> None:
    """Fold what only tables on the floor, or suspensions, bring about."""
    match body:
        case orders.WithdrawalNoted():
            _note_withdrawal(state, event, body)
        case orders.SuspensionEscalated():
            running = running_round(state, body.table_id, body.round_id)
            if running is not None:
                running.escalated = True
        case floor.FloorFaultFound() | orders.EscalateSuspension():
            pass
        case (
            orders.CardCorrectionOrdered()
            | orders.OutcomeCorrectionOrdered()
            | floor.OutcomeCorrected()
            | floor.FloorRejected()
            | rules.DrawRecalled()
            | rules.HandsCorrected()
            | rules.PlayContradicted()
        ):
            follow_correction(state, event, body)
        case floor.CardCorrected():
            note_correction(state, body)
            follow_correction(state, event, body)
        case _:
            assert_never(body)


def opened_at_floor(one: Table, event: Event) -> FloorRound | None:
    """What a round on the floor begins with; None where outcomes are drawn. A shoe that was filled
    by hand stays on the floor to its end, though other rules hold from the next one on."""
    told = one.spec.origin == spec_pb2.OUTCOME_ORIGIN_FLOOR or one.shoe_by_hand
    return FloorRound(opened_us=event.time_us) if told else None


def note_placed(running: Round, body: table.BetsPlaced) -> None:
    """When the request behind these bets was taken."""
    if running.at_floor is not None:
        for bet in body.bets:
            running.at_floor.edge_us[bet.bet_id] = body.edge_time_us


def _note_withdrawal(state: TableState, event: Event, body: orders.WithdrawalNoted) -> None:
    """A withdrawal waits for the close."""
    running = running_round(state, body.table_id, body.round_id)
    if running is not None and running.at_floor is not None:
        bet_ids = tuple(bet.bet_id for bet in body.bets)
        running.at_floor.noted.append(
            Noted(event.partner, body.account_id, body.request_id, bet_ids, body.edge_time_us)
        )


def note_closing(running: Round, close: table.BettingClose | None) -> None:
    """Betting closes, or has closed."""
    if running.at_floor is None:
        return
    running.at_floor.closing = close
    if close is None:
        running.at_floor.noted.clear()


def note_asked(running: Round, event: Event, body: table.BetsWithdrawn) -> None:
    """Bets are asked back as betting closes. What was noted of it is done with, whatever limits
    say, or a later step would ask for it again."""
    note_closing(running, body.close)
    if running.at_floor is not None and not body.late and event.behaviour >= WHOLE_SINCE:
        asked = (body.partner_id, body.account_id, body.request_id)
        running.at_floor.noted = [
            one
            for one in running.at_floor.noted
            if (one.partner, one.account_id, one.request_id) != asked
        ]


def begin_suspension(running: Round, event: Event) -> None:
    """From now on its time counts (rule INC-2)."""
    running.suspended = True
    running.suspended_us = event.time_us
    running.suspended_by = event.cause or UNLOGGED
    running.escalated = False


def end_suspension(running: Round) -> None:
    """It stands still no more."""
    running.suspended = False
    running.suspended_us = None
    running.escalated = False
