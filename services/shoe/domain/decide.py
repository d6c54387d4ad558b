"""What shoes answer."""

from __future__ import annotations

from typing import assert_never, cast

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import Answers, Event
from services.shoe.domain.corrections import answer_card_correction, answer_outcome_correction
from services.shoe.domain.events import Folded
from services.shoe.domain.floor_cards import answer_held, burn_held
from services.shoe.domain.floor_orders import answer_order
from services.shoe.domain.floor_tosses import answer_called
from services.shoe.domain.hole import answer_look
from services.shoe.domain.inputs import answer_cards, answer_reveal, answer_seal
from services.shoe.domain.state import ShoeState, standing_at
from services.shoe.domain.tosses import answer_toss


def decide(state: ShoeState, event: Event) -> Answers:
    """Answer one event."""
    body = cast("Folded", event.body)
    match body:
        case rules.DrawCalled():
            return _answer_call(state, body)
        case shoes.OpenCards():
            return answer_cards(state, body)
        case tables.RoundClosed() | tables.TableClosed():
            return _answer_end(state, body.table_id)
        case shoes.SealShoe():
            return answer_seal(state, event, body)
        case shoes.RevealShoe():
            return answer_reveal(state, body)
        case shoes.CheckHole():
            return answer_look(state, event, body)
        case shoes.RecordSpin() | shoes.RecordDice():
            told = bool(body.request_id)
            return answer_order(state, event, body) if told else answer_toss(state, event, body)
        case rules.SpinCalled() | rules.RollCalled():
            table = state.tables.get(body.table_id)
            return () if table is None else answer_called(table, event)
        case rules.RoundResolved():
            return _burn_held(state, body.table_id, shoes.BURN_REASON_NOT_CALLED)
        case tables.RoundVoided():
            return _burn_held(state, body.table_id, shoes.BURN_REASON_ROUND_OVER)
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
            return answer_order(state, event, body)
        case orders.CardCorrectionOrdered():
            return answer_card_correction(state, body)
        case orders.OutcomeCorrectionOrdered():
            return answer_outcome_correction(state, body)
        case (
            tables.RoundOpened()
            | tables.TableOpened()
            | tables.BettingClosed()
            | wallet.StakesSealed()
            | rules.HoleCalled()
            | rules.DrawRecalled()
        ):
            return ()
        case _:
            assert_never(body)


def _answer_call(state: ShoeState, body: rules.DrawCalled) -> Answers:
    """A call that the shoe can meet is answered by the cards; one that it cannot, at once."""
    table, shoe = standing_at(state, body.table_id)
    if table is None or table.round_id != body.round_id or table.voided:
        return ()  # The call crossed the end of its round.
    if shoe is not None and shoe.call is not None and shoe.call.round_id == body.round_id:
        return answer_held(shoe, shoe.floor) if shoe.floor is not None else ()
    return [shoes.ShoeRanOut(table_id=body.table_id, shoe_id=body.shoe_id, round_id=body.round_id)]


def _burn_held(state: ShoeState, table_id: str, reason: shoes.BurnReason.ValueType) -> Answers:
    """On the floor: cards that came before a call, and that none will take."""
    _, shoe = standing_at(state, table_id)
    if shoe is None or shoe.floor is None:
        return ()
    return burn_held(shoe, shoe.floor, reason)


def _answer_end(state: ShoeState, table_id: str) -> Answers:
    """After the last round of a shoe, or of a table, the shoe is over (BAC-3)."""
    table, shoe = standing_at(state, table_id)
    if table is None or shoe is None or table.round_id:
        return ()
    over = shoe.rounds_to_close is not None and shoe.rounds_to_close < 1
    if table.open and not over:
        return ()
    return [
        shoes.ShoeClosed(
            table_id=table_id,
            shoe_id=shoe.shoe_id,
            next_number=table.last_number + 1 if table.open else 0,
        )
    ]
