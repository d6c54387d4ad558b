"""What all queries of a projection have: how far it is, and rows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import RowMapping, Select

from services.kernel.event import Position
from services.kernel.projections import Projector


class ProjectionReads:
    """Reads of one projection. Whatever asks for rows may raise ProjectionUnavailable."""

    def __init__(self, projector: Projector) -> None:
        self._projector = projector

    @property
    def position(self) -> Position:
        """Everything up to here is in the projection."""
        return self._projector.position

    async def reached(self, position: Position, wait_s: float) -> bool:
        """Wait until everything up to `position` is in; whether it was, within `wait_s` seconds."""
        return await self._projector.reached(position, wait_s)

    async def _rows(self, query: Select[Any]) -> list[RowMapping]:
        """The rows of one query, as they stand now."""
        async with self._projector.connect() as connection:
            return list((await connection.execute(query)).mappings())

    async def _value(self, query: Select[Any]) -> Any:
        """The one value of a query that has one; None where it has no row."""
        async with self._projector.connect() as connection:
            return (await connection.execute(query)).scalar()
