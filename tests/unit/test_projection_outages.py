"""Projections: what is wrong with the log stops them, what is away is waited for."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from services.kernel import databases, projections
from services.kernel.databases import open_engine, position_key
from services.kernel.event import Event, Position
from services.kernel.log import LogUnavailable
from services.kernel.projections import (
    ProjectionAhead,
    ProjectionUnavailable,
    Projector,
)
from services.kernel.row_changes import Changes
from services.table.projection import BETS, REQUESTS, TableProjection
from services.table.projection_queries import SqlTableQueries
from services.wallet.projection import WalletProjection
from tests.postgres import PostgresServer, postgresql
from tests.unit.projecting import (
    ON_BOTH,
    WAIT_S,
    feed_all,
    folded,
    nothing,
    opened,
    rows_of,
    until,
    url_of,
)
from tests.unit.projection_log import HandMadeLog, busy_log

# ---- the witness -------------------------------------------------------------------------------


@ON_BOTH
async def test_a_shorter_log_is_refused(tmp_path: Path) -> None:
    log = busy_log(rounds=2, bets=5)
    first = await opened(TableProjection(), url_of(tmp_path), log.read)
    assert await first.caught_up(WAIT_S)
    await first.close()
    seen = log.entries[-1][1].hex()[:16]
    del log.entries[-1]
    failures: list[Exception] = []
    second = Projector(TableProjection(), url_of(tmp_path), log.read, on_failure=failures.append)
    second.feed(*log.entries[-1])
    with pytest.raises(ProjectionAhead) as refused:
        await second.start()
    length = len(log.entries)
    assert f"stands at 1/{length + 1} with head {seen}" in str(refused.value)
    assert f"the log ends at 1/{length}" in str(refused.value)
    assert failures == [refused.value]
    assert not await second.reached(Position(1, 1, 0), 0.01)
    await second.close()
    # Going on is somebody's explicit act.
    third = Projector(TableProjection(), url_of(tmp_path), log.read)
    assert await third.start(rebuild=True)
    assert await third.caught_up(WAIT_S)
    assert third.position.sequence == length
    await third.close()


@ON_BOTH
async def test_another_log_is_refused(tmp_path: Path) -> None:
    log, other = HandMadeLog(), HandMadeLog(salt=b"other")
    for one in (log, other):
        one.open_account("p", "a", 100)
    first = await opened(TableProjection(), url_of(tmp_path), log.read)
    assert await first.caught_up(WAIT_S)
    await first.close()
    second = Projector(TableProjection(), url_of(tmp_path), other.read)
    with pytest.raises(ProjectionAhead) as refused:
        await second.start()
    assert log.entries[-1][1].hex()[:16] in str(refused.value)
    assert other.entries[-1][1].hex()[:16] in str(refused.value)
    await second.close()


@ON_BOTH
async def test_an_entry_that_is_not_the_one_committed_stops_it(tmp_path: Path) -> None:
    log, other = HandMadeLog(), HandMadeLog(salt=b"other")
    for one in (log, other):
        one.open_account("p", "a", 100)
    failures: list[Exception] = []
    projector = await opened(
        TableProjection(), url_of(tmp_path), nothing, on_failure=failures.append
    )
    await feed_all(projector, log)
    projector.feed(*other.entries[-1])
    await until(lambda: failures)
    assert isinstance(failures[0], ProjectionAhead)
    projector.feed(*other.entries[-1])  # is passed over, and does not raise
    await projector.close()


@ON_BOTH
async def test_a_bug_in_a_projection_stops_it_alone(tmp_path: Path) -> None:
    class Buggy(TableProjection):
        def apply(self, events: Any, changes: Changes) -> None:  # noqa: ARG002  # the interface
            raise KeyError("bug")

    log = busy_log(rounds=1, bets=1)
    failures: list[Exception] = []
    projector = await opened(Buggy(), url_of(tmp_path), nothing, on_failure=failures.append)
    for entry in log.entries:
        projector.feed(*entry)
    assert not await projector.reached(Position(1, 1, 0), WAIT_S)
    assert isinstance(projector.error, KeyError)
    assert failures == [projector.error]
    await projector.close()


@ON_BOTH
async def test_a_row_that_is_there_already_is_a_bug_not_an_outage(tmp_path: Path) -> None:
    log = busy_log(rounds=1, bets=3)
    projector = await opened(WalletProjection(), url_of(tmp_path), nothing)
    async with projector.engine.begin() as connection:
        await connection.execute(
            REQUESTS.requests.insert().values(
                position=position_key(Position(1, 1, 0)),
                actor="",
                partner="",
                scope="",
                request_id="",
                rank=0,
                input_type="",
            )
        )
    for entry in log.entries:
        projector.feed(*entry)
    assert not await projector.reached(Position(1, 1, 0), WAIT_S)
    assert isinstance(projector.error, sqlite3.IntegrityError | IntegrityError)
    await projector.close()


# ---- overflow, catching up, a database that is away --------------------------------------------


@ON_BOTH
async def test_a_queue_that_overflows_is_dropped_and_read_again(tmp_path: Path) -> None:
    log = busy_log(rounds=6, bets=50, entry_events=10)
    known = HandMadeLog()
    projector = await opened(TableProjection(), url_of(tmp_path), known.read, max_queued_events=200)
    assert await projector.caught_up(WAIT_S)
    for entry in log.entries:
        known.entries.append(entry)
        projector.feed(*entry)
    assert projector._queue.overflows > 0
    assert projector._queue.events <= 200 + 11
    assert projector.lag == len(log.entries)
    assert await projector.reached(Position(1, len(log.entries), 0), WAIT_S)
    assert projector.catch_ups > 1
    assert projector.lag == 0
    assert await rows_of(projector) == await folded(TableProjection, log, tmp_path)
    await projector.close()


@ON_BOTH
async def test_a_log_that_cannot_be_read_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projections, "RETRY_FIRST_S", 0.01)
    log = busy_log(rounds=2, bets=20)
    fails = iter([True, True, False, True])

    async def read(after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        failing = next(fails, False)
        async for entry in log.read(after):
            if failing and entry[0] == after + 3:
                raise LogUnavailable("away")
            yield entry

    projector = await opened(TableProjection(), url_of(tmp_path), read)
    assert await projector.caught_up(WAIT_S)
    assert await rows_of(projector) == await folded(TableProjection, log, tmp_path)
    assert projector.away is None
    await projector.close()


async def test_a_database_that_is_away_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projections, "RETRY_FIRST_S", 0.01)
    log = busy_log(rounds=3, bets=20)
    url = url_of(tmp_path)
    projector = await opened(TableProjection(), url, log.read, engine=open_engine(url, busy_ms=1))
    assert await projector.caught_up(WAIT_S)
    more = len(log.entries)
    round_id = log.open_round(4)
    for _ in range(50):
        log.bet(round_id, "p1", "a1")
    log.flush()
    other = sqlite3.connect(tmp_path / "projection.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for entry in log.entries[more:]:
        projector.feed(*entry)  # never waits
    await until(lambda: projector.away)
    assert projector.position.sequence == more
    assert projector.lag == len(log.entries) - more
    # What is committed can still be read.
    assert await SqlTableQueries(projector).round("t1-3") is not None
    other.execute("ROLLBACK")
    other.close()
    assert await projector.reached(Position(1, len(log.entries), 0), WAIT_S)
    assert await rows_of(projector) == await folded(TableProjection, log, tmp_path)
    await projector.close()


async def test_it_starts_without_its_database_and_opens_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projections, "RETRY_FIRST_S", 0.01)
    log = busy_log(rounds=1, bets=5)
    folder = tmp_path / "later"
    projector = Projector(TableProjection(), url_of(folder), log.read)
    assert not await projector.start(wait_s=0.05)
    for entry in log.entries:
        projector.feed(*entry)
    with pytest.raises(ProjectionUnavailable):
        await SqlTableQueries(projector).round("t1-1")
    folder.mkdir()
    assert await projector.reached(Position(1, len(log.entries), 0), WAIT_S)
    assert await SqlTableQueries(projector).round("t1-1") is not None
    await projector.close()


def short_of_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projections, "RETRY_FIRST_S", 0.01)
    monkeypatch.setattr(databases, "CONNECT_S", 0.5)
    monkeypatch.setattr(databases, "COMMAND_S", 0.5)


async def round_told(queries: SqlTableQueries, round_id: str) -> bool:
    """Whether a round is there, once that is told: with so little patience a busy machine's own
    database is away for a moment."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                return await queries.round(round_id) is not None
            except ProjectionUnavailable:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["kill", "stop", "pause"])
async def test_a_postgresql_that_is_away_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    short_of_patience(monkeypatch)
    log = busy_log(rounds=3, bets=20)
    with postgresql() as server:
        url = server.url("table")
        projector = await opened(TableProjection(), url, log.read)
        assert await projector.caught_up(WAIT_S)
        queries = SqlTableQueries(projector)
        assert await round_told(queries, "t1-3")
        more = len(log.entries)
        round_id = log.open_round(4)
        for _ in range(50):
            log.bet(round_id, "p1", "a1")
        log.flush()
        getattr(server, how)()
        for entry in log.entries[more:]:
            projector.feed(*entry)  # never waits
        async with asyncio.timeout(WAIT_S):
            while projector.away is None:  # noqa: ASYNC110 - what is waited for is under test
                await asyncio.sleep(0.01)
        assert projector.position.sequence == more
        with pytest.raises(ProjectionUnavailable):
            await queries.round("t1-3")
        server.resume() if how == "pause" else server.start()
        assert await projector.reached(Position(1, len(log.entries), 0), WAIT_S)
        assert await round_told(queries, "t1-4")
        assert await rows_of(projector) == await folded(TableProjection, log, tmp_path)
        await projector.close()


async def test_a_schema_that_is_gone_is_made_anew_from_the_log(
    postgres: PostgresServer,
) -> None:
    log = busy_log(rounds=1, bets=5)
    projector = await opened(TableProjection(), postgres.url("gone"), log.read)
    assert await projector.caught_up(WAIT_S)
    await projector.close()
    postgres.sql("DROP SCHEMA gone CASCADE")
    again = await opened(TableProjection(), postgres.url("gone"), log.read)
    assert await again.caught_up(WAIT_S)
    assert await SqlTableQueries(again).round("t1-1") is not None
    await again.close()


async def test_readers_see_one_state_of_the_rows(postgres: PostgresServer) -> None:
    """A page of bets and the position beside it are of one moment, whatever is committed between
    the two statements."""
    log = busy_log(rounds=1, bets=5)
    projector = await opened(TableProjection(), postgres.url("moment"), log.read)
    assert await projector.caught_up(WAIT_S)
    place = select(projector.projection.metadata.tables["projection_positions"].c.sequence)
    async with projector.connect() as connection:
        before = await connection.scalar(place)
        assert before == projector.position.sequence
        log.open_round(2)
        log.flush()
        projector.feed(*log.entries[-1])
        assert await projector.reached(Position(1, len(log.entries), 0), WAIT_S)
        assert projector.position.sequence == before + 1
        assert await connection.scalar(place) == before
    await projector.close()


@ON_BOTH
async def test_closing_commits_what_is_queued(tmp_path: Path) -> None:
    log = busy_log(rounds=2, bets=20)
    projector = await opened(TableProjection(), url_of(tmp_path), nothing)
    assert await projector.caught_up(WAIT_S)
    for entry in log.entries:
        projector.feed(*entry)
    await projector.close()
    assert projector.position.sequence == len(log.entries)
    again = await opened(TableProjection(), url_of(tmp_path), log.read)
    assert again.position.sequence == len(log.entries)
    async with again.connect() as connection:
        assert len((await connection.execute(select(BETS))).all()) == 80
    await again.close()
