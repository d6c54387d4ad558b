"""A log made by hand, its projection at the table, and queries of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from google.protobuf.message import Message
from sqlalchemy import select

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as logs
from sabot.partner.v1 import partner_service_pb2 as partner_v1
from services.kernel.event import Event, Position
from services.kernel.projections import Projector
from services.table.projection import REQUESTS, TableProjection
from services.table.projection_queries import SqlTableQueries
from tests.unit.projecting import url_of
from tests.unit.projection_log import HandMadeLog

WAIT_S = 60.0


class Asking:
    """A log, its projection, and queries of it."""

    def __init__(self, folder: Path) -> None:
        self.log = HandMadeLog()
        self.url = url_of(folder, "table")
        self._fed = 0
        self._begin()

    def _begin(self) -> None:
        self.projector = Projector(TableProjection(), self.url, self.log.read)
        self.queries = SqlTableQueries(self.projector)

    async def restart(self) -> None:
        await self.projector.close()
        self._begin()
        assert await self.projector.start(wait_s=WAIT_S)

    async def read(self) -> SqlTableQueries:
        """The queries, when everything is in."""
        self.log.flush()
        for entry in self.log.entries[self._fed :]:
            self.projector.feed(*entry)
        self._fed = len(self.log.entries)
        assert await self.queries.reached(Position(1, self._fed, 0), WAIT_S)
        return self.queries

    async def outcome(self, asked: Event) -> str | None:
        found = await (await self.read()).outcome_at(asked.position)
        assert found is not None
        return found.WhichOneof("outcome")

    async def links(self) -> int:
        async with self.projector.connect() as connection:
            return len((await connection.execute(select(REQUESTS.links))).all())


@asynccontextmanager
async def asking_at(folder: Path) -> AsyncIterator[Asking]:
    """Started, and closed at the end."""
    one = Asking(folder)
    assert await one.projector.start(wait_s=WAIT_S)
    yield one
    await one.projector.close()


async def bets_of(asking: Asking, partner: str) -> list[tuple[str, partner_v1.PlacedBet]]:
    return await (await asking.read()).bets(partner, None, None, 100, None)


def failed(body: Message) -> logs.InputFailed:
    return logs.InputFailed(
        input_type=body.DESCRIPTOR.full_name, input_body=body.SerializeToString(), error="KeyError"
    )


def retry_of(event: Event) -> logs.RetryInput:
    segment, sequence, index = event.position
    at = entry_pb2.Position(segment=segment, sequence=sequence, index=index)
    return logs.RetryInput(position=at, reason="fixed")
