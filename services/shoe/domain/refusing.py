"""How what the floor tells is refused, or found to be wrong."""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor

FloorOrder = (
    shoes.RecordSpin
    | shoes.RecordDice
    | floor.LoadShoe
    | floor.RecordCard
    | floor.RecordFaceDown
    | floor.RecordPeek
    | floor.RecordBurn
    | floor.RecordCutCard
    | floor.DeclareNoSpin
    | floor.RecordRemaining
    | floor.RegisterConsumable
    | floor.MoveConsumable
)
"""What dealers, supervisors and devices tell; each has a request id. Spins and dice have none where
they are drawn."""
Told = (
    shoes.RecordSpin
    | shoes.RecordDice
    | floor.RecordCard
    | floor.RecordFaceDown
    | floor.RecordPeek
    | floor.RecordBurn
    | floor.RecordCutCard
    | floor.DeclareNoSpin
    | floor.RecordRemaining
)
"""Those that tell of a table's outcomes."""


def refused(body: FloorOrder, refusal: floor.FloorRefusal.ValueType) -> list[Message]:
    """The answer to an order without effect."""
    return [
        floor.FloorRejected(
            request_id=body.request_id,
            table_id=_named(body, "table_id"),
            shoe_id=_named(body, "shoe_id"),
            round_id=_named(body, "round_id"),
            consumable_id=_named(body, "consumable_id"),
            refusal=refusal,
        )
    ]


def refused_pack(
    body: floor.LoadShoe, pack: str, refusal: floor.FloorRefusal.ValueType
) -> list[Message]:
    """The answer to a shoe that may not be filled with this pack."""
    return [
        floor.FloorRejected(
            request_id=body.request_id,
            table_id=body.table_id,
            consumable_id=pack,
            refusal=refusal,
        )
    ]


def _named(body: FloorOrder, name: str) -> str:
    return str(getattr(body, name)) if name in body.DESCRIPTOR.fields_by_name else ""


def early(
    body: shoes.RecordSpin | shoes.RecordDice | floor.RecordCard, told: str, edge_us: int
) -> floor.FloorFaultFound:
    """It happened before every stake was certain: at the device's time, or when it was told."""
    return floor.FloorFaultFound(
        table_id=body.table_id,
        shoe_id=_named(body, "shoe_id"),
        round_id=body.round_id,
        fault=floor.FLOOR_FAULT_EARLY_OUTCOME,
        told=told,
        happened_us=body.device_time_us or edge_us,
        source=body.source,
        device=body.device,
    )


def out_of_turn(body: floor.RecordCard) -> floor.FloorFaultFound:
    """At blackjack a card lies open that nobody has called, and whoever is to act has seen it."""
    return floor.FloorFaultFound(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        round_id=body.round_id,
        fault=floor.FLOOR_FAULT_CARD_OUT_OF_TURN,
        told=body.card,
        source=body.source,
        device=body.device,
    )


def contradiction(
    body: shoes.RecordSpin | shoes.RecordDice | floor.RecordCard | floor.RecordPeek,
    told: str,
    told_before: str,
    round_id: str,
) -> list[Message]:
    """Two readings of one thing differ. `round_id`: the running round that it concerns; empty: it
    is of one that is over."""
    return [
        floor.FloorFaultFound(
            table_id=body.table_id,
            shoe_id=_named(body, "shoe_id"),
            round_id=round_id,
            fault=floor.FLOOR_FAULT_CONTRADICTION,
            told=told,
            told_before=told_before,
            source=body.source,
            device=body.device,
        )
    ]


def impossible_card(
    body: floor.RecordCard | floor.RecordBurn, card: str, round_id: str
) -> list[Message]:
    """The shoe has given every card of this kind: this one, or one before it, was misread."""
    return [
        floor.FloorFaultFound(
            table_id=body.table_id,
            shoe_id=body.shoe_id,
            round_id=round_id,
            fault=floor.FLOOR_FAULT_IMPOSSIBLE_CARD,
            told=card,
            source=body.source,
            device=body.device,
        )
    ]
