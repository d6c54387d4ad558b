"""What the shoe's projection answers: `services.shoe.queries`, by SQL."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import RowMapping, exists, select

from sabot.log.v1.entry_pb2 import Position as PositionProto
from sabot.shoe.v1.floor_service_pb2 import (
    CONSUMABLE_STATE_DESTROYED,
    Consumable,
    ConsumableMovement,
    FloorOutcome,
)
from services.kernel.databases import position_key, position_of_key
from services.kernel.event import Position
from services.kernel.projection_reads import ProjectionReads
from services.kernel.request_rows import oneof_fields
from services.shoe.projection import CONSUMABLES, MOVEMENTS, REQUESTS

MAX_PAGE = 1_000
"""Rows of a page at most: some hundred KiB."""

_OUTCOMES = oneof_fields(FloorOutcome, "outcome")


class SqlFloorQueries(ProjectionReads):
    """Reads of the projection. Every method may raise ProjectionUnavailable."""

    async def consumables(
        self, kind: int, table_id: str, limit: int, after: str, *, destroyed: bool
    ) -> list[Consumable]:
        """See FloorQueries."""
        row = CONSUMABLES.c
        query = select(CONSUMABLES).where(row.consumable_id > after).order_by(row.consumable_id)
        if kind:
            query = query.where(row.kind == kind)
        if table_id:
            query = query.where(row.table_id == table_id)
        if not destroyed:
            query = query.where(row.state != CONSUMABLE_STATE_DESTROYED)
        rows = await self._rows(query.limit(min(limit, MAX_PAGE)))
        return [
            Consumable(
                consumable_id=one["consumable_id"],
                kind=one["kind"],
                decks=one["decks"],
                state=one["state"],
                table_id=one["table_id"],
                shoe_id=one["shoe_id"],
                remark=one["remark"],
            )
            for one in rows
        ]

    async def movements(
        self, consumable_id: str, limit: int, after: Position | None
    ) -> list[ConsumableMovement] | None:
        """See FloorQueries."""
        row = MOVEMENTS.c
        query = select(MOVEMENTS).where(row.consumable_id == consumable_id).order_by(row.position)
        if after is not None:
            query = query.where(row.position > position_key(after))
        rows = await self._rows(query.limit(min(limit, MAX_PAGE)))
        if not rows:
            known = select(exists().where(CONSUMABLES.c.consumable_id == consumable_id))
            return [] if await self._value(known) else None
        return [_movement(one) for one in rows]

    async def request(self, actor: str, request_id: str) -> tuple[Position, FloorOutcome] | None:
        """See FloorQueries."""
        rows = await self._rows(REQUESTS.by_id(actor, "", request_id))
        return (position_of_key(rows[0]["position"]), _outcome(rows[0])) if rows else None

    async def outcome_at(self, position: Position) -> FloorOutcome | None:
        """See FloorQueries."""
        rows = await self._rows(REQUESTS.by_position(position))
        return _outcome(rows[0]) if rows else None


def _movement(row: RowMapping) -> ConsumableMovement:
    segment, sequence, index = position_of_key(row["position"])
    time_us = row["time_us"]
    return ConsumableMovement(
        movement=row["movement"],
        actor=row["actor"],
        time=Timestamp(seconds=time_us // 1_000_000, nanos=time_us % 1_000_000 * 1_000),
        table_id=row["table_id"],
        shoe_id=row["shoe_id"],
        reason=row["reason"],
        position=PositionProto(segment=segment, sequence=sequence, index=index),
    )


def _outcome(row: RowMapping) -> FloorOutcome:
    name = row["outcome_type"]
    if name is None:
        return FloorOutcome(pending=True)
    outcome = FloorOutcome()
    field = _OUTCOMES.get(name)
    if field is not None:  # None: a fault kept it from being decided, and nothing is set
        message = getattr(outcome, field)
        message.MergeFromString(row["outcome_body"])
        message.SetInParent()
    return outcome
