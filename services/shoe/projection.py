"""The shoe's projection: consumables with all that was done to them, and what became of what the
floor told."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, Column, Index, MetaData, SmallInteger, Table, Text, select
from sqlalchemy.ext.asyncio import AsyncConnection

from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.shoe.v1 import floor_service_pb2 as service
from services.kernel.databases import KeyInteger, position_key
from services.kernel.event import Event
from services.kernel.projection_store import positions_table
from services.kernel.request_rows import RequestKinds, RequestRows, request_tables
from services.kernel.row_changes import Changes, Row

REQUEST_KINDS = RequestKinds(
    scopes={
        shoes.RecordSpin: "",
        shoes.RecordDice: "",
        floor.LoadShoe: "",
        floor.RecordCard: "",
        floor.RecordFaceDown: "",
        floor.RecordPeek: "",
        floor.RecordBurn: "",
        floor.RecordCutCard: "",
        floor.DeclareNoSpin: "",
        floor.RecordRemaining: "",
        floor.RegisterConsumable: "",
        floor.MoveConsumable: "",
    },
    onward={},
    refusals=frozenset((floor.FloorRejected,)),
)
"""All that has a request id here; what is drawn has none."""

METADATA = MetaData()
positions_table(METADATA)
REQUESTS = request_tables(METADATA)

CONSUMABLES = Table(
    "consumables",
    METADATA,
    Column("consumable_id", Text, primary_key=True),
    Column("kind", SmallInteger, nullable=False),
    Column("decks", SmallInteger, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("shoe_id", Text, nullable=False),
    Column("remark", Text, nullable=False),
    Column("changed", KeyInteger, nullable=False),
    Index("consumables_by_table", "table_id", "consumable_id"),
)
"""One row a consumable, destroyed ones too; `state` as shoe.v1.ConsumableState."""

MOVEMENTS = Table(
    "movements",
    METADATA,
    Column("position", KeyInteger, primary_key=True, autoincrement=False),
    Column("consumable_id", Text, nullable=False),
    Column("movement", SmallInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("time_us", BigInteger, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("shoe_id", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("movements_by_consumable", "consumable_id", "position"),
)
"""One row for each thing that was done; `movement` as shoe.v1.Movement, 0: it was received."""

_STATES: dict[int, service.ConsumableState.ValueType] = {
    floor.MOVEMENT_PUT_INTO_USE: service.CONSUMABLE_STATE_IN_USE,
    floor.MOVEMENT_TAKEN_OUT: service.CONSUMABLE_STATE_STORED,
    floor.MOVEMENT_REJECTED: service.CONSUMABLE_STATE_REJECTED,
    floor.MOVEMENT_DESTROYED: service.CONSUMABLE_STATE_DESTROYED,
}
"""What a consumable is after a movement. One that was inspected is where it was, and one that had
been rejected is in the store again."""


class ShoeProjection:
    """Folds the cell's log into consumables, movements and requests."""

    name = "shoe"
    metadata = METADATA
    migrations = "services.shoe.migrations"

    def __init__(self) -> None:
        self._requests = RequestRows(REQUESTS, REQUEST_KINDS)
        self._rows: dict[str, Row] = {}
        """Of the consumables that are not destroyed, by id."""

    async def load(self, connection: AsyncConnection) -> None:
        """Take the consumables and the pending requests from the tables."""
        await self._requests.load(connection)
        kept = CONSUMABLES.c.state != service.CONSUMABLE_STATE_DESTROYED
        rows = await connection.execute(select(CONSUMABLES).where(kept))
        self._rows = {row.consumable_id: dict(row._mapping) for row in rows}  # noqa: SLF001  # public

    def apply(self, events: Sequence[Event], changes: Changes) -> None:
        """Fold events into row changes."""
        for event in events:
            if event.is_input:
                self._requests.asked(event, changes)
                continue
            self._requests.answered(event, changes)
            body = event.body
            if isinstance(body, floor.ConsumableRegistered):
                self._registered(event, body, changes)
            elif isinstance(body, floor.ConsumableMoved):
                self._moved(event, body, changes)

    def _registered(self, event: Event, body: floor.ConsumableRegistered, changes: Changes) -> None:
        row: Row = {
            "consumable_id": body.consumable_id,
            "kind": body.kind,
            "decks": body.decks,
            "state": service.CONSUMABLE_STATE_STORED,
            "table_id": "",
            "shoe_id": "",
            "remark": body.remark,
            "changed": position_key(event.position),
        }
        self._rows[body.consumable_id] = row
        changes[CONSUMABLES].save((body.consumable_id,), dict(row))
        told = floor.ConsumableMoved(consumable_id=body.consumable_id, reason=body.remark)
        self._tell(event, told, changes)

    def _moved(self, event: Event, body: floor.ConsumableMoved, changes: Changes) -> None:
        self._tell(event, body, changes)
        row = self._rows.get(body.consumable_id)
        if row is None:
            return
        state = _STATES.get(body.movement)
        if state is None:
            rejected = row["state"] == service.CONSUMABLE_STATE_REJECTED
            state = service.CONSUMABLE_STATE_STORED if rejected else row["state"]
        row["state"] = state
        row["table_id"] = body.table_id if state == service.CONSUMABLE_STATE_IN_USE else ""
        row["shoe_id"] = body.shoe_id or row["shoe_id"]
        row["changed"] = position_key(event.position)
        changes[CONSUMABLES].save((body.consumable_id,), dict(row))
        if state == service.CONSUMABLE_STATE_DESTROYED:
            del self._rows[body.consumable_id]

    def _tell(self, event: Event, body: floor.ConsumableMoved, changes: Changes) -> None:
        key = position_key(event.position)
        changes[MOVEMENTS].insert(
            (key,),
            {
                "position": key,
                "consumable_id": body.consumable_id,
                "movement": body.movement,
                "actor": event.actor,
                "time_us": event.time_us,
                "table_id": body.table_id,
                "shoe_id": body.shoe_id,
                "reason": body.reason,
            },
        )
