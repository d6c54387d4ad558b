"""The table of witnesses: a row for each service, the highest entry that any of its processes has
read, with the chain hash there."""

from __future__ import annotations

from typing import Self

from sqlalchemy import Column, LargeBinary, MetaData, String, Table, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.kernel.databases import IMMEDIATE, KeyInteger
from services.kernel.row_writer import upsert
from services.kernel.witness import Witnessed

REVISIONS = "services.kernel.witness_revisions"
"""The package of the table's Alembic revisions."""
METADATA = MetaData()
WITNESSES = Table(
    "witnesses",
    METADATA,
    Column("service", String(64), primary_key=True),
    Column("sequence", KeyInteger, nullable=False),
    Column("head", LargeBinary, nullable=False),
)
NOTHING = Witnessed(0, b"")
"""What stands where nothing was noted yet."""


async def all_rows(engine: AsyncEngine) -> dict[str, Witnessed]:
    """What is noted, by service; rows that were only made apart."""
    row = WITNESSES.c
    async with engine.connect() as connection:
        found = await connection.execute(select(row.service, row.sequence, row.head))
        return {
            one.service: Witnessed(one.sequence, bytes(one.head)) for one in found if one.sequence
        }


class Turn:
    """One transaction on a service's row, which nobody else may change meanwhile."""

    def __init__(self, engine: AsyncEngine, service: str) -> None:
        self._engine = engine
        self._service = service

    async def __aenter__(self) -> Self:
        connection = await self._engine.connect()
        self._connection: AsyncConnection = connection
        try:
            await connection.execution_options(**{IMMEDIATE: True})
            self._transaction = connection.begin()
            await self._transaction.start()
            self.stands = await self._locked()
        except BaseException:
            await connection.close()
            raise
        return self

    async def __aexit__(self, failed: type[BaseException] | None, *_: object) -> None:
        try:
            if failed is None:
                await self._transaction.commit()
        finally:
            await self._connection.close()

    async def _locked(self) -> Witnessed:
        """What stands in the row, which is made where there is none."""
        row = WITNESSES.c
        wanted = select(row.sequence, row.head).where(row.service == self._service)
        wanted = wanted.with_for_update()
        found = (await self._connection.execute(wanted)).one_or_none()
        if found is None:
            made = upsert(WITNESSES, self._connection.dialect.name).values(
                service=self._service, sequence=NOTHING.sequence, head=NOTHING.head
            )
            await self._connection.execute(made.on_conflict_do_nothing(index_elements=["service"]))
            # Another process may have made it, and noted something.
            found = (await self._connection.execute(wanted)).one()
        return Witnessed(found.sequence, bytes(found.head))

    async def note(self, seen: Witnessed) -> None:
        """Let it stand there from now on."""
        await self._connection.execute(
            update(WITNESSES)
            .where(WITNESSES.c.service == self._service)
            .values(sequence=seen.sequence, head=seen.head)
        )
