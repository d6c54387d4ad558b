"""Projections in PostgreSQL: replicas share them, bets go on while it is away, and all of it can be
lost."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.cli.fleet import CELL
from services.events import SERVICES
from services.kernel.projection_places import WITNESS, schema_name
from tests.fleet.clients import PATIENCE_S
from tests.fleet.load import crowd
from tests.fleet.running import PROJECTIONS, Running, kill, on_one_server
from tests.postgres import PostgresServer, postgresql

TWICE = {service: 2 if service in PROJECTIONS else 1 for service in SERVICES}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """All services keep their projections there."""
    with postgresql() as server:
        monkeypatch.setenv("SABOT_DATABASE_URL", server.url("").partition("?")[0])
        yield server


def alarms(running: Running) -> list[dict[str, object]]:
    """What is no part of the test: a single server, and that the database was away."""
    expected = {"log_weak", "witness_away"}
    return [alarm for alarm in running.alarms() if alarm["kind"] not in expected]


async def told_away(running: Running) -> None:
    """Wait until operators have heard that the database is away."""
    async with asyncio.timeout(PATIENCE_S):
        while "witness_away" not in {alarm["kind"] for alarm in running.alarms()}:  # noqa: ASYNC110 - a log's lines
            await asyncio.sleep(0.1)


async def test_bets_go_on_while_the_database_is_away_and_nothing_of_it_is_needed(
    tmp_path: Path, server: PostgresServer
) -> None:
    async with on_one_server(tmp_path, TWICE) as running, crowd(running, seed=5) as playing:
        await playing.rounds_go_on(1)
        for away, back in ((server.kill, server.start), (server.pause, server.resume)):
            await asyncio.to_thread(away)
            await playing.north.more_bets_on(3)
            await playing.rounds_go_on(2)
            await told_away(running)
            await asyncio.to_thread(back)
            await playing.rounds_go_on(1)
        writers = [running.fleet.child(name) for name in ("wallet", "wallet-2")]
        kill(writers[0].pid)
        await playing.rounds_go_on(2)
        await playing.rest()
        await running.proven(**playing.partners)
        assert alarms(running) == []

    noted = server.sql(f"SELECT service FROM {schema_name(CELL, WITNESS)}.witnesses")  # noqa: S608 - ours
    assert sorted(noted) == sorted(SERVICES)
    # As in a new pod: the row alone remembers how far the log was read.
    shutil.rmtree(running.fleet.data / "witness")
    for service in PROJECTIONS:
        server.sql(f"DROP SCHEMA {schema_name(CELL, service)} CASCADE")
    (tmp_path / "logs").rename(tmp_path / "logs-before")
    async with on_one_server(tmp_path) as running:
        await running.proven()
        assert alarms(running) == []
