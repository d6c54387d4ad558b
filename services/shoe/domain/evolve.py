"""How an event changes what is known of shoes, wheels and dice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never, cast

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import Event, InvariantViolated, Position
from services.shoe.domain.consumables import note_loaded
from services.shoe.domain.events import Answered, Folded
from services.shoe.domain.floor_cards import note_floor_burned, note_floor_dealt
from services.shoe.domain.floor_evolve import evolve_floor, follow_round
from services.shoe.domain.floor_orders import keep_request
from services.shoe.domain.floor_state import FloorRound
from services.shoe.domain.floor_tosses import note_ended, note_outcome
from services.shoe.domain.hole import note_dealt, note_hole_called, note_look
from services.shoe.domain.hole_on_floor import note_checked
from services.shoe.domain.inputs import note_cards, note_seal
from services.shoe.domain.state import (
    Call,
    Shoe,
    ShoeState,
    ShoeTable,
    Standing,
    TossKind,
    standing_at,
)
from services.shoe.domain.tosses import is_floor, note_call, note_toss


def evolve(state: ShoeState, event: Event) -> None:
    """Fold one event in place."""
    body = cast("Folded | Answered", event.body)
    match body:
        case shoes.OpenCards():
            note_cards(state, body)
        case shoes.CardsDealt():
            _deal(state, body)
        case shoes.CardsBurned():
            _burn(state, body)
        case rules.DrawCalled():
            _call(state, event, body)
        case tables.RoundOpened():
            _open_round(state, body)
        case tables.RoundVoided():
            _void(state, body)
        case tables.RoundClosed():
            _close_round(state, body)
        case shoes.SealShoe():
            note_seal(state, event, body)
        case shoes.ShoeOpened():
            _stand(state, event, body)
        case shoes.CutCardReached() | shoes.ShoeRanOut():
            _run_low(state, body)
        case shoes.ShoeClosed():
            _close_shoe(state, event, body)
        case shoes.ShoeRevealed():
            state.shoes.pop(body.shoe_id, None)
        case tables.TableOpened():
            _open_table(state, event, body)
        case tables.TableClosed():
            _close_table(state, body)
        case rules.HoleCalled():
            note_hole_called(state, event, body)
        case shoes.CheckHole() | shoes.HoleChecked():
            _look(state, event, body)
        case rules.SpinCalled() | rules.RollCalled():
            note_call(state, event, body)
        case shoes.RecordSpin() | shoes.RecordDice():
            _record(state, event, body)
        case shoes.WheelSpun() | shoes.DiceRolled() | shoes.SpinInvalidated():
            note_outcome(state, body)
        case (
            tables.BettingClosed()
            | wallet.StakesSealed()
            | rules.RoundResolved()
            | rules.DrawRecalled()
            | orders.CardCorrectionOrdered()
            | orders.OutcomeCorrectionOrdered()
        ):
            follow_round(state, body)
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
            | floor.FirstCardShown()
            | floor.OutcomeHeld()
            | floor.FloorFaultFound()
            | floor.ShoeCensus()
            | floor.ConsumableRegistered()
            | floor.ConsumableMoved()
            | floor.CardCorrected()
            | floor.OutcomeCorrected()
            | floor.FloorRejected()
            | log.RequestRepeated()
        ):
            evolve_floor(state, event, body)
        case shoes.RevealShoe() | log.InputIgnored():
            pass
        case _:
            assert_never(body)


def _record(state: ShoeState, event: Event, body: shoes.RecordSpin | shoes.RecordDice) -> None:
    """What is drawn counts as it comes; what is told by a call counts once it is answered."""
    if body.request_id:
        keep_request(state, event, body)
    else:
        note_toss(state, event, body)


def _look(state: ShoeState, event: Event, body: shoes.CheckHole | shoes.HoleChecked) -> None:
    """The custodian's look counts as it comes, one on the floor once it is answered."""
    if isinstance(body, shoes.CheckHole):
        note_look(state, event, body)
    else:
        note_checked(state, event, body)


def _run_low(state: ShoeState, body: shoes.CutCardReached | shoes.ShoeRanOut) -> None:
    """The shoe has few cards left, or none (rule BAC-3)."""
    if isinstance(body, shoes.ShoeRanOut):
        shoe = state.shoes.get(body.shoe_id)
        if shoe is not None:
            shoe.call = None
            shoe.rounds_to_close = 1
        return
    table, shoe = standing_at(state, body.table_id)
    if table is not None and shoe is not None:
        runs = bool(table.round_id) and table.round_id == body.round_id
        shoe.rounds_to_close = body.rounds_left + runs


def _open_round(state: ShoeState, body: tables.RoundOpened) -> None:
    table = state.tables.get(body.table_id)
    if table is not None:
        table.round_id = table.last_round_id = body.round_id
        table.voided = False
        table.toss = None
        table.at_floor = FloorRound()
        shoe = state.shoes.get(table.shoe_id)
        if shoe is not None and shoe.floor is not None:
            shoe.floor.round_from = shoe.gone
            shoe.floor.up_at = None
            shoe.floor.dealers = 0


def _close_table(state: ShoeState, body: tables.TableClosed) -> None:
    table = state.tables.get(body.table_id)
    if table is not None:
        table.open = False
        _await(table, 0, None)


_TOSSES = {
    rule_set_pb2.GAME_ROULETTE: TossKind.SPIN,
    rule_set_pb2.GAME_SICBO: TossKind.ROLL,
}


def _open_table(state: ShoeState, event: Event, body: tables.TableOpened) -> None:
    """A table, or new rules for it; they hold from the next shoe on."""
    spec = body.spec
    table = state.tables.get(spec.table_id)
    if table is None:
        table = state.tables[spec.table_id] = ShoeTable(spec.table_id)
    table.open = True
    table.decks = spec.rule_set.decks
    table.cut_depth = spec.rule_set.cut_depth
    table.rounds_after_cut = spec.rule_set.rounds_after_cut
    table.burns = spec.rule_set.game == rule_set_pb2.GAME_BACCARAT
    table.floor = is_floor(spec)
    table.seated = spec.rule_set.game == rule_set_pb2.GAME_BLACKJACK
    table.tosses = _TOSSES.get(spec.rule_set.game)
    if table.decks and not table.shoe_id and not table.awaited_number:
        _await(table, table.last_number + 1, event.position)


def _await(table: ShoeTable, number: int, asked_by: Position | None) -> None:
    table.awaited_number = number
    table.awaited_by = asked_by
    table.seal = None
    table.sealed_at = None


def _stand(state: ShoeState, event: Event, body: shoes.ShoeOpened) -> None:
    """A shoe stands at its table, sealed or filled by hand."""
    table = state.tables[body.table_id]
    if body.packs:
        note_loaded(state, event, table, body)
    else:
        _stand_sealed(state, event, table, body)
    table.shoe_id = body.shoe_id
    table.last_number = body.number
    _await(table, 0, None)


def _stand_sealed(state: ShoeState, event: Event, table: ShoeTable, body: shoes.ShoeOpened) -> None:
    seal = table.seal
    if seal is None:
        raise InvariantViolated(f"shoe {body.shoe_id} opened without a seal")
    state.shoes[body.shoe_id] = Shoe(
        shoe_id=body.shoe_id,
        table_id=body.table_id,
        decks=table.decks,
        cards=body.cards,
        cut_at=body.cut_at,
        rounds_after_cut=table.rounds_after_cut,
        commitments=seal.commitments,
        sealed_order=seal.sealed_order,
        key_id=seal.key_id,
        asked_by=event.cause or event.position,
        standing=Standing.READY if body.ready else Standing.SEALED,
    )


def _burn(state: ShoeState, body: shoes.CardsBurned) -> None:
    shoe = state.shoes.get(body.shoe_id)
    if shoe is not None and shoe.floor is not None:
        note_floor_burned(shoe, shoe.floor, body)
        return
    _leave(state, body.shoe_id, body.opened[-1].index + 1 + body.face_down, burned=True)
    if body.reason == shoes.BURN_REASON_SHOE_START:
        _show(state, body.shoe_id, [card.index for card in body.opened])
        if shoe is not None:
            shoe.standing = Standing.READY


def _deal(state: ShoeState, body: shoes.CardsDealt) -> None:
    shoe = state.shoes.get(body.shoe_id)
    if shoe is not None and shoe.floor is not None:
        note_floor_dealt(shoe, shoe.floor, body)
        return
    if shoe is not None and not note_dealt(shoe, body):
        _leave(state, body.shoe_id, body.cards[-1].index + 1)
    _show(state, body.shoe_id, [card.index for card in body.cards if card.card])


def _leave(state: ShoeState, shoe_id: str, gone: int, *, burned: bool = False) -> None:
    """Cards have left a shoe. Dealt ones are those that were called."""
    shoe = state.shoes.get(shoe_id)
    if shoe is not None:
        shoe.gone = gone
        if not burned:
            shoe.call = None


def _show(state: ShoeState, shoe_id: str, indices: Sequence[int]) -> None:
    """Cards lie open at the table (VIS-3)."""
    shoe = state.shoes.get(shoe_id)
    if shoe is not None:
        for index in indices:
            shoe.opened[index].shown = True


def _call(state: ShoeState, event: Event, body: rules.DrawCalled) -> None:
    """A running round calls cards; what the shoe cannot give, or crossed the round's end, is no
    call."""
    table, shoe = standing_at(state, body.table_id)
    if (
        table is not None
        and table.round_id == body.round_id
        and not table.voided
        and shoe is not None
        and shoe.shoe_id == body.shoe_id
        and shoe.standing is Standing.READY
        and shoe.call is None
        and shoe.gone + len(body.hands) <= shoe.cards
    ):
        shoe.call = Call(body.round_id, list(body.hands), event.position)


def _void(state: ShoeState, body: tables.RoundVoided) -> None:
    table, shoe = standing_at(state, body.table_id)
    if table is not None and table.round_id == body.round_id:
        table.voided = True
        if shoe is not None:
            shoe.call = None
            shoe.hole = None


def _close_round(state: ShoeState, body: tables.RoundClosed) -> None:
    table, shoe = standing_at(state, body.table_id)
    if table is not None and table.round_id == body.round_id:
        note_ended(table)
        table.round_id = ""
        table.voided = False
        table.toss = None
        if shoe is not None:
            shoe.call = None
            shoe.hole = None
            if shoe.rounds_to_close is not None:
                shoe.rounds_to_close -= 1


def _close_shoe(state: ShoeState, event: Event, body: shoes.ShoeClosed) -> None:
    asked_by = event.cause or event.position
    shoe = state.shoes.get(body.shoe_id)
    if shoe is not None:
        shoe.standing = Standing.CLOSED
        shoe.call = None
        shoe.asked_by = asked_by
    table = state.tables[body.table_id]
    table.shoe_id = ""
    if body.next_number:
        _await(table, body.next_number, asked_by)
