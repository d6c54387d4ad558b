"""Projectors on hand-made logs, for the tests of projections: opened, fed, and their rows."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from services.kernel.event import Event, Position
from services.kernel.projection_store import Projection
from services.kernel.projections import (
    Projector,
    ReadEvents,
)
from services.settlement.projection import SettlementProjection
from services.shoe.projection import ShoeProjection
from services.table.projection import TableProjection
from services.wallet.projection import WalletProjection
from tests.postgres import PostgresServer, postgresql
from tests.unit.projection_log import HandMadeLog

WAIT_S = 60.0
ALL = (TableProjection, WalletProjection, SettlementProjection, ShoeProjection)


class _Database:
    """Where `url_of` makes databases: SQLite, unless a test runs on both."""

    server: PostgresServer | None = None


def url_of(folder: Path, name: str = "projection") -> str:
    """A test's database by its folder and a name; empty at first."""
    if _Database.server is None:
        return f"sqlite+aiosqlite:///{folder / name}.db"
    return _Database.server.url(f"t{hashlib.sha256(bytes(folder / name)).hexdigest()[:16]}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of a worker."""
    with postgresql() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def on_both(request: pytest.FixtureRequest) -> Iterator[str]:
    """A test that uses it runs twice; `url_of` makes its databases on the one and on the other."""
    kind: str = request.param
    _Database.server = request.getfixturevalue("postgres") if kind == "postgresql" else None
    yield kind
    _Database.server = None


ON_BOTH = pytest.mark.usefixtures("on_both")


async def opened(projection: Projection, url: str, read: ReadEvents, **options: Any) -> Projector:
    projector = Projector(projection, url, read, **options)
    assert await projector.start(wait_s=WAIT_S)
    return projector


async def rows_of(projector: Projector) -> dict[str, list[tuple[object, ...]]]:
    """Everything in the tables."""
    found = {}
    async with projector.connect() as connection:
        for table in projector.projection.metadata.sorted_tables:
            query = select(table).order_by(*table.primary_key)
            found[table.name] = [tuple(row) for row in await connection.execute(query)]
    return found


async def folded(
    make: type[Projection], log: HandMadeLog, folder: Path, upto: int | None = None
) -> dict[str, list[tuple[object, ...]]]:
    """The rows that a projection of the log's beginning has, made in one go."""
    short = HandMadeLog()
    short.entries = log.entries[:upto]
    projector = await opened(make(), url_of(folder, f"folded-{make.__name__}-{upto}"), short.read)
    assert await projector.caught_up(WAIT_S)
    rows = await rows_of(projector)
    await projector.close()
    return rows


async def feed_all(projector: Projector, log: HandMadeLog, start: int = 0) -> None:
    for entry in log.entries[start:]:
        projector.feed(*entry)
    assert await projector.reached(Position(1, len(log.entries), 0), WAIT_S)


async def until(holds: Callable[[], object]) -> None:
    """Let others run until something holds; the test's time limit ends it otherwise."""
    while not holds():  # noqa: ASYNC110  # what is waited for is in the code under test
        await asyncio.sleep(0)


async def nothing(_after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
    """The reader of a log that is empty so far."""
    empty: list[tuple[int, bytes, list[Event]]] = []
    for entry in empty:
        yield entry
