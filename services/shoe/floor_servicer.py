"""FloorService: what dealers, supervisors and devices tell of tables on the floor."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.message import Message

from sabot.log.v1.entry_pb2 import Position as PositionMessage
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.shoe.v1 import floor_service_pb2 as service
from services.games.baccarat import burn_count
from services.kernel.ask import ask, await_position
from services.kernel.call import (
    EVERY_ROLE,
    EVERY_ROLE_AND_DEVICES,
    Call,
    fill_page,
    open_token,
    position_from_text,
    position_message,
    position_of,
    position_text,
    request_hash,
    rpc,
    seal_token,
)
from services.kernel.edge import Edge
from services.kernel.errors import PAGE_TOKEN_INVALID, UNEXPECTED_OUTCOME, Refused
from services.kernel.event import Position
from services.kernel.request_rows import oneof_fields
from services.kernel.tokens import Role
from services.refusals.floor import (
    CARD_FACE_DOWN,
    CARD_PLACE_NOT_NAMED,
    CONSUMABLE_NOT_FOUND,
    DEVICE_NOT_BOUND,
    NOT_A_DEVICE,
    check_table,
    faulty,
    rejected,
)
from services.refusals.table import NOT_ON_FLOOR, REQUEST_NOT_FOUND, TABLE_NOT_FOUND
from services.shoe.domain.floor_state import FloorShoe
from services.shoe.domain.hole_on_floor import may_lie_face_down, next_place
from services.shoe.domain.refusing import FloorOrder
from services.shoe.domain.state import Hole, Shoe, ShoeState, ShoeTable, Standing, TossKind
from services.shoe.queries import FloorQueries

PAGE = 100
"""Rows of a page where the caller does not say."""
_DEALERS = (Role.DEALER, Role.SUPERVISOR)
_TELLERS = (Role.DEALER, Role.SUPERVISOR, Role.DEVICE)
_OUTCOMES = oneof_fields(service.FloorOutcome, "outcome")
"""The fields of FloorOutcome by what they hold."""
ORDER_ENDS: frozenset[type[Message]] = frozenset(
    (
        shoes.CardsDealt,
        shoes.CardsBurned,
        floor.FirstCardShown,
        floor.OutcomeHeld,
        shoes.WheelSpun,
        shoes.SpinInvalidated,
        shoes.DiceRolled,
        shoes.HoleChecked,
        shoes.ShoeOpened,
        shoes.CutCardReached,
        floor.ShoeCensus,
        floor.ConsumableRegistered,
        floor.ConsumableMoved,
        floor.FloorFaultFound,
        floor.FloorRejected,
    )
)
"""The first answer of these says what an order came to."""
_Response = TypeVar("_Response", bound=Message)


class FloorServicer:
    """Every order is an input; the shoe's core says what it came to."""

    def __init__(self, edge: Edge, queries: FloorQueries) -> None:
        self._edge = edge
        self._queries = queries

    # ---- what is told --------------------------------------------------------------------------

    @rpc(roles=_DEALERS, deadline=True)
    async def load_shoe(
        self, request: service.LoadShoeRequest, call: Call
    ) -> service.LoadShoeResponse:
        """Packs become a shoe."""
        return await self._told(floor.LoadShoe(), request, call, service.LoadShoeResponse)

    @rpc(roles=_TELLERS, deadline=True)
    async def record_card(
        self, request: service.RecordCardRequest, call: Call
    ) -> service.RecordCardResponse:
        """A card came out and lies open, or the hole card was turned over."""
        return await self._told(floor.RecordCard(), request, call, service.RecordCardResponse)

    @rpc(roles=_TELLERS, deadline=True)
    async def record_face_down(
        self, request: service.RecordFaceDownRequest, call: Call
    ) -> service.RecordFaceDownResponse:
        """A card came out and lies face down."""
        return await self._told(
            floor.RecordFaceDown(), request, call, service.RecordFaceDownResponse
        )

    @rpc(roles=_TELLERS, deadline=True)
    async def record_peek(
        self, request: service.RecordPeekRequest, call: Call
    ) -> service.RecordPeekResponse:
        """The hole card was looked at."""
        return await self._told(floor.RecordPeek(), request, call, service.RecordPeekResponse)

    @rpc(roles=_TELLERS, deadline=True)
    async def record_burn(
        self, request: service.RecordBurnRequest, call: Call
    ) -> service.RecordBurnResponse:
        """Cards left the shoe unplayed."""
        return await self._told(floor.RecordBurn(), request, call, service.RecordBurnResponse)

    @rpc(roles=_TELLERS, deadline=True)
    async def record_cut_card(
        self, request: service.RecordCutCardRequest, call: Call
    ) -> service.RecordCutCardResponse:
        """The cut card came out."""
        return await self._told(floor.RecordCutCard(), request, call, service.RecordCutCardResponse)

    @rpc(roles=_TELLERS, deadline=True)
    async def record_spin(
        self, request: service.RecordSpinRequest, call: Call
    ) -> service.RecordSpinResponse:
        """A wheel came to rest."""
        return await self._told(shoes.RecordSpin(), request, call, service.RecordSpinResponse)

    @rpc(roles=_TELLERS, deadline=True)
    async def record_dice(
        self, request: service.RecordDiceRequest, call: Call
    ) -> service.RecordDiceResponse:
        """Dice came to rest."""
        return await self._told(shoes.RecordDice(), request, call, service.RecordDiceResponse)

    @rpc(roles=_DEALERS, deadline=True)
    async def declare_no_spin(
        self, request: service.DeclareNoSpinRequest, call: Call
    ) -> service.DeclareNoSpinResponse:
        """A spin or a roll does not count."""
        return await self._told(floor.DeclareNoSpin(), request, call, service.DeclareNoSpinResponse)

    @rpc(roles=_TELLERS, deadline=True)
    async def record_remaining(
        self, request: service.RecordRemainingRequest, call: Call
    ) -> service.RecordRemainingResponse:
        """Burned and remaining cards were scanned."""
        return await self._told(
            floor.RecordRemaining(), request, call, service.RecordRemainingResponse
        )

    @rpc(roles=_DEALERS, deadline=True)
    async def register_consumable(
        self, request: service.RegisterConsumableRequest, call: Call
    ) -> service.RegisterConsumableResponse:
        """A consumable was received."""
        return await self._told(
            floor.RegisterConsumable(), request, call, service.RegisterConsumableResponse
        )

    @rpc(roles=_DEALERS, deadline=True)
    async def move_consumable(
        self, request: service.MoveConsumableRequest, call: Call
    ) -> service.MoveConsumableResponse:
        """Something was done to a consumable."""
        return await self._told(
            floor.MoveConsumable(), request, call, service.MoveConsumableResponse
        )

    async def _told(
        self, body: Any, request: Message, call: Call, response: type[_Response]
    ) -> _Response:
        """Put what was told into the log, and tell what it came to. Raises Refused.

        The call that it answers is no part of the request: a repeat may find another one running.
        """
        check_table(call.caller, str(getattr(request, "table_id", "")))
        _fill(body, request, call)
        body.request_hash = request_hash(body)
        state: ShoeState = self._edge.state("shoe")
        if isinstance(body, floor.RecordCard):
            _keep_face_down(state, body)
            body.waits_for_held = True
        if isinstance(body, shoes.RecordSpin | shoes.RecordDice):
            body.compared_when_over = True
        asked_by = call_answered(state, body)
        if asked_by is not None:
            body.asked_by.CopyFrom(position_message(asked_by))
        told = await ask(
            self._edge, self._queries, "shoe", body, call, partner="", until=ORDER_ENDS
        )
        if isinstance(told.body, floor.FloorRejected):
            raise rejected(told.body)
        if isinstance(told.body, floor.FloorFaultFound):
            refused = faulty(told.body)
            if refused is not None:
                raise refused
        field = _OUTCOMES.get(str(told.body.DESCRIPTOR.full_name))
        if field is None:
            raise Refused(UNEXPECTED_OUTCOME)
        outcome: dict[str, Any] = {field: told.body}
        return response(
            outcome=service.FloorOutcome(**outcome),
            position=position_message(told.position),
            replayed=told.replayed,
        )

    # ---- what is asked -------------------------------------------------------------------------

    @rpc(roles=EVERY_ROLE_AND_DEVICES)
    async def get_floor(
        self, request: service.GetFloorRequest, call: Call
    ) -> service.GetFloorResponse:
        """What a table awaits from the floor."""
        del call
        state: ShoeState = self._edge.state("shoe")
        table = state.tables.get(request.table_id)
        if table is None:
            raise Refused(TABLE_NOT_FOUND, {"table_id": request.table_id})
        shoe = state.shoes.get(table.shoe_id)
        if not table.floor and (shoe is None or shoe.floor is None):
            raise Refused(NOT_ON_FLOOR, {"table_id": request.table_id})
        return service.GetFloorResponse(
            floor=awaited_at(state, table, shoe), position=position_message(self._edge.position)
        )

    @rpc(roles=EVERY_ROLE)
    async def list_consumables(
        self, request: service.ListConsumablesRequest, call: Call
    ) -> service.ListConsumablesResponse:
        """Consumables by id."""
        await self._reach(request, call)
        limit = request.page_size or PAGE
        scope = (
            "ListConsumables",
            str(request.kind),
            request.table_id,
            str(int(request.destroyed)),
        )
        after = open_token(request.page_token, scope, 1)[0] if request.page_token else ""
        position = self._queries.position
        found = await self._queries.consumables(
            request.kind, request.table_id, limit + 1, after, destroyed=request.destroyed
        )
        count = fill_page(found, limit, lambda one: one.ByteSize())
        response = service.ListConsumablesResponse(
            consumables=found[:count], position=position_message(position)
        )
        if count < len(found):
            response.next_page_token = seal_token(scope, found[count - 1].consumable_id)
        return response

    @rpc(roles=EVERY_ROLE)
    async def list_movements(
        self, request: service.ListMovementsRequest, call: Call
    ) -> service.ListMovementsResponse:
        """All that was done to a consumable."""
        await self._reach(request, call)
        limit = request.page_size or PAGE
        scope = ("ListMovements", request.consumable_id)
        after: Position | None = None
        if request.page_token:
            [text] = open_token(request.page_token, scope, 1)
            after = position_from_text(text, PAGE_TOKEN_INVALID)
        position = self._queries.position
        found = await self._queries.movements(request.consumable_id, limit + 1, after)
        if found is None:
            raise Refused(CONSUMABLE_NOT_FOUND, {"consumable_id": request.consumable_id})
        count = fill_page(found, limit, lambda one: one.ByteSize())
        response = service.ListMovementsResponse(
            movements=found[:count], position=position_message(position)
        )
        if count < len(found):
            last = position_of(found[count - 1].position)
            response.next_page_token = seal_token(scope, position_text(last))
        return response

    @rpc(roles=EVERY_ROLE_AND_DEVICES)
    async def get_order(
        self, request: service.GetOrderRequest, call: Call
    ) -> service.GetOrderResponse:
        """What became of an earlier request of the caller."""
        await self._reach(request, call)
        position = self._queries.position
        found = await self._queries.request(call.caller.actor, request.request_id)
        if found is None:
            facts = {"request_id": request.request_id, "position": str(position)}
            raise Refused(REQUEST_NOT_FOUND, facts)
        at, outcome = found
        return service.GetOrderResponse(
            outcome=outcome,
            request_position=position_message(at),
            position=position_message(position),
        )

    async def _reach(
        self,
        request: service.ListConsumablesRequest
        | service.ListMovementsRequest
        | service.GetOrderRequest,
        call: Call,
    ) -> None:
        at_least: PositionMessage = request.at_least
        if request.HasField("at_least"):
            await await_position(self._queries.reached, at_least, call)


def _keep_face_down(state: ShoeState, body: floor.RecordCard) -> None:
    """What a card is that lies face down, or may, is not put into the log (rule VIS-3). Raises
    Refused."""
    table = state.tables.get(body.table_id)
    facts = {"table_id": body.table_id, "shoe_id": body.shoe_id, "round_id": body.round_id}
    if table is not None and table.seated and not (body.round_id and body.HasField("index")):
        raise Refused(CARD_PLACE_NOT_NAMED, facts)
    if may_lie_face_down(state, body):
        raise Refused(CARD_FACE_DOWN, facts)


def _fill(body: Any, request: Message, call: Call) -> None:
    """The input that a request asks for. Raises Refused where a device is named by none."""
    names = body.DESCRIPTOR.fields_by_name
    for field, value in request.ListFields():
        if field.name == "device_time":
            body.device_time_us = value.ToMicroseconds()
        elif field.is_repeated:
            getattr(body, field.name).extend(value)
        elif field.name in names:
            setattr(body, field.name, value)
    if "source" in names:
        body.source, body.device = _source(call, body.device)


def _source(call: Call, device: str) -> tuple[shoes.CardSource.ValueType, str]:
    """Where it comes from: a device, by its own token or by one that speaks for it; anybody else
    makes a manual entry, and may not say otherwise. Raises Refused."""
    caller = call.caller
    if Role.DEVICE in caller.roles and (device or len(caller.roles) == 1):
        named = device or (min(caller.devices) if len(caller.devices) == 1 else caller.operator)
        if named not in caller.speaks_for:
            facts = {"operator": caller.operator, "device": named}
            raise Refused(DEVICE_NOT_BOUND, facts)
        return shoes.CARD_SOURCE_DEVICE, named
    if device:
        raise Refused(NOT_A_DEVICE)
    return shoes.CARD_SOURCE_MANUAL, ""


def call_answered(state: ShoeState, body: FloorOrder) -> Position | None:
    """The event that asked for what was told, as far as it is known here."""
    match body:
        case floor.RecordCard() | floor.RecordFaceDown():
            shoe = state.shoes.get(body.shoe_id)
            if shoe is None:
                return None
            if shoe.hole is not None and shoe.hole.index == body.index:
                return shoe.hole.reveal_asked_by
            return None if shoe.call is None else shoe.call.asked_by
        case floor.RecordPeek():
            shoe = state.shoes.get(body.shoe_id)
            return None if shoe is None or shoe.hole is None else shoe.hole.peek_asked_by
        case shoes.RecordSpin() | shoes.RecordDice():
            table = state.tables.get(body.table_id)
            toss = None if table is None else table.toss
            called = toss is not None and toss.attempt == body.attempt
            return toss.asked_by if toss is not None and called else None
        case floor.LoadShoe():
            table = state.tables.get(body.table_id)
            return None if table is None else table.awaited_by
        case _:
            return None


def awaited_at(state: ShoeState, table: ShoeTable, shoe: Shoe | None) -> service.Floor:
    """What a table awaits from the floor."""
    floor_ = service.Floor(table_id=table.table_id, round_id=table.round_id)
    if table.floor:
        floor_.awaited_shoe = table.awaited_number
    for other in state.shoes.values():
        over = other.table_id == table.table_id and other.standing is Standing.CLOSED
        if over and other.floor is not None:
            floor_.uncounted_shoe_id = other.shoe_id
    if shoe is not None and shoe.floor is not None:
        floor_.shoe_id = shoe.shoe_id
        floor_.next_index = next_place(shoe)
        floor_.first_card = shoe.standing is Standing.SEALED
        if shoe.standing is Standing.SHOWN:
            floor_.burn = burn_count(shoe.opened[0].card)
        if shoe.call is not None:
            floor_.hands.extend(rules.Hand.ValueType(hand) for hand in shoe.call.hands)
        if shoe.hole is not None and not shoe.hole.opened:
            _of_hole(floor_, shoe, shoe.hole, shoe.floor)
    toss = table.toss
    if toss is not None and table.floor and not (toss.numbers or toss.invalid or table.voided):
        if toss.kind is TossKind.SPIN:
            floor_.spin = toss.attempt
        else:
            floor_.roll = toss.attempt
    return floor_


def _of_hole(floor_: service.Floor, shoe: Shoe, hole: Hole, on_floor: FloorShoe) -> None:
    """What is known of a hole card that lies face down, and what is awaited of it."""
    if on_floor.up_at is not None:
        floor_.up_card = shoe.opened[on_floor.up_at].card
    if hole.looked_at is not None:
        floor_.looked = hole.blackjack
    if hole.reveal_asked_by is not None:
        floor_.turn_over = hole.index
    elif hole.peek_asked_by is not None:
        floor_.look = hole.looked_at is None
