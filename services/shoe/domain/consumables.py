"""Packs of cards, wheels and dice, from their receipt to their destruction; and how packs become a
shoe.

Order of refusals:

- RegisterConsumable: KNOWN_CONSUMABLE, DESTROYED, TOO_MANY_CONSUMABLES, WRONG_DECKS.
- MoveConsumable: UNKNOWN_CONSUMABLE or DESTROYED; IN_USE where its shoe still deals; then, to be
  put into use: UNKNOWN_TABLE, NOT_INSPECTED, IN_USE; to be taken out: NOT_IN_USE.
- LoadShoe: see `floor_orders.py`.
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.games.baccarat import cut_at
from services.games.cards import CARDS_PER_DECK
from services.kernel.event import Event
from services.shoe.domain.floor_state import (
    MAX_CONSUMABLES,
    MAX_DESTROYED,
    Consumable,
    FloorShoe,
    Whereabouts,
)
from services.shoe.domain.refusing import refused, refused_pack
from services.shoe.domain.state import Shoe, ShoeState, ShoeTable, Standing, shoe_id_of


def answer_register(state: ShoeState, body: floor.RegisterConsumable) -> list[Message]:
    """A consumable was received."""
    if body.consumable_id in state.consumables:
        return refused(body, floor.FLOOR_REFUSAL_KNOWN_CONSUMABLE)
    if body.consumable_id in state.destroyed:
        return refused(body, floor.FLOOR_REFUSAL_DESTROYED)
    if len(state.consumables) >= MAX_CONSUMABLES:
        return refused(body, floor.FLOOR_REFUSAL_TOO_MANY_CONSUMABLES)
    if (body.kind == floor.CONSUMABLE_KIND_CARDS) != (body.decks > 0):
        return refused(body, floor.FLOOR_REFUSAL_WRONG_DECKS)
    return [
        floor.ConsumableRegistered(
            consumable_id=body.consumable_id,
            kind=body.kind,
            decks=body.decks,
            remark=body.remark,
        )
    ]


def answer_move(state: ShoeState, body: floor.MoveConsumable) -> list[Message]:
    """Somebody did something to a consumable."""
    one = state.consumables.get(body.consumable_id)
    if one is None:
        gone = body.consumable_id in state.destroyed
        return refused(
            body, floor.FLOOR_REFUSAL_DESTROYED if gone else floor.FLOOR_REFUSAL_UNKNOWN_CONSUMABLE
        )
    if _deals(state, one):
        return refused(body, floor.FLOOR_REFUSAL_IN_USE)
    table_id = one.table_id
    if body.movement == floor.MOVEMENT_PUT_INTO_USE:
        table_id = body.table_id
        if body.table_id not in state.tables:
            return refused(body, floor.FLOOR_REFUSAL_UNKNOWN_TABLE)
        if one.rejected:
            return refused(body, floor.FLOOR_REFUSAL_NOT_INSPECTED)
        if one.where is Whereabouts.IN_USE:
            return refused(body, floor.FLOOR_REFUSAL_IN_USE)
    elif body.movement == floor.MOVEMENT_TAKEN_OUT and one.where is not Whereabouts.IN_USE:
        return refused(body, floor.FLOOR_REFUSAL_NOT_IN_USE)
    return [
        floor.ConsumableMoved(
            consumable_id=body.consumable_id,
            kind=_kind(one),
            movement=body.movement,
            table_id=table_id,
            reason=body.reason,
        )
    ]


def answer_load(state: ShoeState, body: floor.LoadShoe) -> list[Message]:
    """Packs become the shoe that the table awaits. It has no seal and no commitments: what comes
    out of it, the floor tells."""
    table = state.tables.get(body.table_id)
    if table is None:
        return refused(body, floor.FLOOR_REFUSAL_UNKNOWN_TABLE)
    if not table.floor or not table.decks:
        return refused(body, floor.FLOOR_REFUSAL_NOT_ON_FLOOR)
    if body.number != table.awaited_number or not body.number:
        return refused(body, floor.FLOOR_REFUSAL_SHOE_NOT_AWAITED)
    if body.decks != table.decks:
        return refused(body, floor.FLOOR_REFUSAL_WRONG_DECKS)
    for pack in body.packs:
        fault = _fault_of_pack(state, table, pack)
        if fault is not None:
            return refused_pack(body, pack, fault)
    together = sum(state.consumables[pack].decks for pack in body.packs)
    if together != table.decks or len(frozenset(body.packs)) != len(body.packs):
        return refused(body, floor.FLOOR_REFUSAL_WRONG_DECKS)
    shoe_id = shoe_id_of(body.table_id, body.number)
    answers: list[Message] = [
        shoes.ShoeOpened(
            table_id=body.table_id,
            shoe_id=shoe_id,
            number=body.number,
            cards=table.decks * CARDS_PER_DECK,
            cut_at=cut_at(table.decks, table.cut_depth),
            ready=not table.burns,
            packs=body.packs,
        )
    ]
    answers.extend(
        floor.ConsumableMoved(
            consumable_id=pack,
            kind=floor.CONSUMABLE_KIND_CARDS,
            movement=floor.MOVEMENT_PUT_INTO_USE,
            table_id=body.table_id,
            shoe_id=shoe_id,
        )
        for pack in body.packs
    )
    return answers


def _fault_of_pack(
    state: ShoeState, table: ShoeTable, pack: str
) -> floor.FloorRefusal.ValueType | None:
    one = state.consumables.get(pack)
    if one is None:
        gone = pack in state.destroyed
        return floor.FLOOR_REFUSAL_DESTROYED if gone else floor.FLOOR_REFUSAL_UNKNOWN_CONSUMABLE
    if one.kind != floor.CONSUMABLE_KIND_CARDS:
        return floor.FLOOR_REFUSAL_WRONG_KIND
    if one.rejected:
        return floor.FLOOR_REFUSAL_NOT_INSPECTED
    elsewhere = one.where is Whereabouts.IN_USE and one.table_id != table.table_id
    if elsewhere or _deals(state, one):
        return floor.FLOOR_REFUSAL_IN_USE
    return None


def _deals(state: ShoeState, one: Consumable) -> bool:
    """Whether a pack is in a shoe that still deals."""
    shoe = state.shoes.get(one.shoe_id)
    in_it = one.where is Whereabouts.IN_USE and shoe is not None
    return in_it and shoe is not None and shoe.standing is not Standing.CLOSED


def _kind(one: Consumable) -> floor.ConsumableKind.ValueType:
    return floor.ConsumableKind.ValueType(one.kind)


# ---- parts of evolve ---------------------------------------------------------------------------


def note_registered(state: ShoeState, body: floor.ConsumableRegistered) -> None:
    """A consumable is known from here on. Part of evolve."""
    state.consumables[body.consumable_id] = Consumable(body.kind, body.decks)


def note_moved(state: ShoeState, body: floor.ConsumableMoved) -> None:
    """A consumable is elsewhere, or was looked at. Part of evolve."""
    one = state.consumables.get(body.consumable_id)
    if one is None:
        return
    match body.movement:
        case floor.MOVEMENT_PUT_INTO_USE:
            one.where = Whereabouts.IN_USE
            one.table_id = body.table_id
            one.shoe_id = body.shoe_id or one.shoe_id
        case floor.MOVEMENT_INSPECTED:
            one.rejected = False
        case floor.MOVEMENT_DESTROYED:
            del state.consumables[body.consumable_id]
            state.destroyed[body.consumable_id] = True
            if len(state.destroyed) > MAX_DESTROYED:
                del state.destroyed[next(iter(state.destroyed))]
        case _:
            one.where = Whereabouts.STORED
            one.table_id = ""
            one.rejected = one.rejected or body.movement == floor.MOVEMENT_REJECTED


def note_loaded(state: ShoeState, event: Event, table: ShoeTable, body: shoes.ShoeOpened) -> None:
    """A shoe that was filled by hand stands at its table. One that stood there before and was never
    counted is forgotten. Part of evolve."""
    for shoe_id, other in list(state.shoes.items()):
        if other.table_id == body.table_id and other.floor is not None:
            del state.shoes[shoe_id]
    state.shoes[body.shoe_id] = Shoe(
        shoe_id=body.shoe_id,
        table_id=body.table_id,
        decks=table.decks,
        cards=body.cards,
        cut_at=body.cut_at,
        rounds_after_cut=table.rounds_after_cut,
        commitments=b"",
        sealed_order=b"",
        key_id="",
        asked_by=event.cause or event.position,
        standing=Standing.READY if body.ready else Standing.SEALED,
        floor=FloorShoe(list(body.packs)),
    )
