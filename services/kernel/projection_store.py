"""A projection's database: rows and the log position that they stand for, committed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Column, Integer, LargeBinary, MetaData, String, Table, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.kernel.databases import KeyInteger
from services.kernel.event import Event
from services.kernel.row_changes import Changes
from services.kernel.row_writer import upsert, write


class Projection(Protocol):
    """A fold of the log into tables. Deterministic: the same events give the same rows.

    It may keep in memory what it needs of unfinished things; everything of that must stand in its
    tables too, so that `load` restores it.
    """

    @property
    def name(self) -> str:
        """The service whose projection it is; its row in `projection_positions`."""
        ...

    @property
    def metadata(self) -> MetaData:
        """Its tables; among them that of `positions_table`."""
        ...

    @property
    def migrations(self) -> str:
        """The package that holds its Alembic revisions."""
        ...

    async def load(self, connection: AsyncConnection) -> None:
        """Forget what is in memory and take it from the tables, which may be empty."""
        ...

    def apply(self, events: Sequence[Event], changes: Changes) -> None:
        """Fold events, in log order, into row changes and memory. Every event of the log comes here
        once; what does not matter is passed over. No I/O."""
        ...


def positions_table(metadata: MetaData) -> Table:
    """The table that says how far a projection is; one for each database."""
    return Table(
        "projection_positions",
        metadata,
        Column("name", String(64), primary_key=True),
        Column("segment", Integer, nullable=False),
        Column("sequence", KeyInteger, nullable=False),
        Column("head", LargeBinary, nullable=False),
    )


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a projection is."""

    segment: int
    sequence: int
    """The last entry that is in; 0: none."""
    head: bytes
    """The log's chain hash at that entry."""


class Overtaken(Exception):
    """Another process has moved the projection: a second replica on the same database."""


class ProjectionStore:
    """The tables of one projection in one database."""

    def __init__(self, engine: AsyncEngine, projection: Projection, segment: int) -> None:
        self.engine = engine
        self._projection = projection
        self._segment = segment
        self._positions = projection.metadata.tables["projection_positions"]

    async def mark(self) -> Mark:
        """How far it is, by its own row."""
        async with self.engine.connect() as connection:
            return await self._mark(connection)

    async def load(self) -> Mark:
        """Have the projection take its memory from the tables; how far they are."""
        async with self.engine.begin() as connection:
            await self._ensure_row(connection)
            mark = await self._mark(connection)
            await self._projection.load(connection)
            return mark

    async def commit(self, before: Mark, after: Mark, changes: Changes) -> None:
        """Write changes and the new position in one transaction. Raises Overtaken, nothing written,
        where the row does not stand at `before`."""
        row = self._positions.c
        move = (
            update(self._positions)
            .where(row.name == self._projection.name, row.sequence == before.sequence)
            .where(row.segment == before.segment)
            .values(segment=after.segment, sequence=after.sequence, head=after.head)
        )
        async with self.engine.begin() as connection:
            if (await connection.execute(move)).rowcount != 1:
                raise Overtaken
            await write(connection, changes)

    async def clear(self) -> None:
        """Empty every table and go back to the beginning of the log, in one transaction."""
        async with self.engine.begin() as connection:
            for table in self._projection.metadata.sorted_tables:
                if table is not self._positions:
                    await connection.execute(delete(table))
            own = self._positions.c.name == self._projection.name
            await connection.execute(delete(self._positions).where(own))
            await self._ensure_row(connection)

    async def _mark(self, connection: AsyncConnection) -> Mark:
        row = self._positions.c
        found = (
            await connection.execute(
                select(row.segment, row.sequence, row.head).where(row.name == self._projection.name)
            )
        ).one_or_none()
        if found is None:
            return Mark(self._segment, 0, b"")
        return Mark(found.segment, found.sequence, bytes(found.head))

    async def _ensure_row(self, connection: AsyncConnection) -> None:
        values = {
            "name": self._projection.name,
            "segment": self._segment,
            "sequence": 0,
            "head": b"",
        }
        statement = upsert(self._positions, connection.dialect.name).values(values)
        await connection.execute(statement.on_conflict_do_nothing(index_elements=["name"]))
