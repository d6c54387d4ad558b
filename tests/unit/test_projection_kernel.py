"""How projections are kept: position and rows together, whatever happens in between."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from services.kernel import projection_store, projections, row_writer
from services.kernel.databases import open_engine, position_key, position_of_key
from services.kernel.event import Event, InvariantViolated, Position
from services.kernel.log import LogUnavailable
from services.kernel.projection_store import Projection
from services.kernel.projections import (
    ProjectionAhead,
    ProjectionUnavailable,
    Projector,
    ReadEvents,
)
from services.kernel.row_changes import Changes
from services.settlement.projection import SettlementProjection
from services.table.projection import BETS, REQUESTS, TableProjection
from services.table.projection_queries import SqlTableQueries
from services.wallet.projection import ACCOUNTS, WalletProjection
from tests.unit.projection_log import HandMadeLog, busy_log

WAIT_S = 20.0
ALL = (TableProjection, WalletProjection, SettlementProjection)


def url_of(folder: Path, name: str = "projection") -> str:
    return f"sqlite+aiosqlite:///{folder / name}.db"


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


# ---- positions ---------------------------------------------------------------------------------

POSITIONS = st.builds(
    Position, st.integers(0, 8000), st.integers(0, (1 << 40) - 1), st.integers(0, 800)
)


@given(POSITIONS, POSITIONS)
def test_position_keys_sort_as_positions_do(one: Position, other: Position) -> None:
    assert (position_key(one) < position_key(other)) == (one < other)
    assert position_of_key(position_key(one)) == one
    assert position_key(one) < 1 << 63


def test_a_position_that_fits_no_key_is_a_bug() -> None:
    with pytest.raises(InvariantViolated):
        position_key(Position(1, 1 << 40, 0))


def test_the_end_of_an_entry_is_behind_its_events() -> None:
    end = position_key(Position(1, 7, 0xFFFFFFFF))
    assert position_key(Position(1, 7, 799)) < end < position_key(Position(1, 8, 0))


# ---- live, rebuilt, restarted ------------------------------------------------------------------


@pytest.mark.parametrize("make", ALL)
async def test_rebuilt_equals_live(make: type[Projection], tmp_path: Path) -> None:
    """Invariant 6. Live: in uneven batches, with restarts, an overlap and a gap at each."""
    log = busy_log(rounds=8, bets=30, entry_events=9)
    rng = random.Random(7)
    known = HandMadeLog()
    live = await opened(make(), url_of(tmp_path), known.read)
    for number, entry in enumerate(log.entries):
        known.entries.append(entry)
        live.feed(*entry)
        if rng.random() < 0.1:
            await live.reached(Position(1, entry[0], 0), WAIT_S)
        if rng.random() < 0.02:
            await live.close()
            live = await opened(make(), url_of(tmp_path), known.read)
            for again in log.entries[max(0, number - 5) : number + 1]:
                live.feed(*again)
    assert await live.reached(Position(1, len(log.entries), 0), WAIT_S)
    rows = await rows_of(live)
    assert rows == await folded(make, log, tmp_path)
    assert await live.rebuild(wait_s=WAIT_S)
    assert await rows_of(live) == rows
    assert live.position.sequence == len(log.entries)
    await live.close()


async def test_a_projection_goes_on_from_its_committed_position(tmp_path: Path) -> None:
    log = busy_log(rounds=2, bets=10)
    first = await opened(TableProjection(), url_of(tmp_path), log.read)
    assert await first.caught_up(WAIT_S)
    await first.close()
    asked: list[int] = []

    def read(after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        asked.append(after)
        return log.read(after)

    second = await opened(TableProjection(), url_of(tmp_path), read)
    assert second.position.sequence == len(log.entries)
    assert second.head == log.entries[-1][1]
    assert await second.caught_up(WAIT_S)
    # From the last entry that is in, to see that the log still holds it.
    assert asked == [len(log.entries) - 1]
    assert second.events == 0
    await second.close()


async def test_entries_without_events_move_the_position(tmp_path: Path) -> None:
    log = HandMadeLog()
    projector = await opened(TableProjection(), url_of(tmp_path), log.read)
    log.add_empty()
    projector.feed(*log.entries[0])
    assert await projector.reached(Position(1, 1, 700), WAIT_S)
    assert not await projector.reached(Position(1, 2, 0), 0.01)
    assert not await projector.reached(Position(2, 1, 0), 0.01)
    await projector.close()


async def test_an_entry_fed_twice_is_applied_once(tmp_path: Path) -> None:
    log = busy_log(rounds=3, bets=10, entry_events=3)
    projector = await opened(WalletProjection(), url_of(tmp_path), nothing)
    for entry in log.entries:
        projector.feed(*entry)
        projector.feed(*entry)
        if entry[0] % 20 == 0:
            assert await projector.reached(Position(1, entry[0], 0), WAIT_S)
            projector.feed(*log.entries[entry[0] - 3])
    await feed_all(projector, log)
    assert await rows_of(projector) == await folded(WalletProjection, log, tmp_path)
    await projector.close()


async def test_rows_of_one_batch_are_written_once(tmp_path: Path) -> None:
    log = HandMadeLog()
    for number in range(1, 4):
        round_id = log.open_round(number)
        log.play(round_id, [("p", log.bet(round_id, "p", "a")[1])])
    changes = Changes()
    TableProjection().apply(log.events, changes)
    # 3 rounds, 3 bets, 3 requests; the links of pending requests came and went.
    assert changes.rows() == 9
    wallet = Changes()
    banking = HandMadeLog()
    banking.open_account("p", "a", 100)
    for _ in range(50):
        banking.deposit("p", "a", 100)
    WalletProjection().apply(banking.events, wallet)
    account = wallet[ACCOUNTS].saved["p", "a"]
    assert account["available_minor"] == 51 * 100
    assert len(wallet[ACCOUNTS].added) == 0


async def test_what_is_added_to_a_row_of_an_earlier_batch_adds_up(tmp_path: Path) -> None:
    log = HandMadeLog()
    log.open_account("p", "a", 100)
    projector = await opened(WalletProjection(), url_of(tmp_path), nothing)
    await feed_all(projector, log)
    before = len(log.entries)
    for _ in range(50):
        log.deposit("p", "a", 100)
    await feed_all(projector, log, before)
    async with projector.connect() as connection:
        (account,) = (await connection.execute(select(ACCOUNTS))).all()
    assert (account.available_minor, account.reserved_minor) == (5_100, 0)
    await projector.close()


# ---- atomic ------------------------------------------------------------------------------------


async def test_rows_and_position_are_committed_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = busy_log(rounds=2, bets=20)
    write, cuts = row_writer.write, [0]

    async def cut(connection: AsyncConnection, changes: Changes) -> None:
        await write(connection, changes)
        if cuts[0] < 2:
            cuts[0] += 1
            raise OperationalError("the connection broke", {}, Exception())

    monkeypatch.setattr(projection_store, "write", cut)
    monkeypatch.setattr(projections, "RETRY_FIRST_S", 0.01)
    projector = await opened(TableProjection(), url_of(tmp_path), nothing)
    for entry in log.entries:
        projector.feed(*entry)
    await until(lambda: cuts[0])
    seen = await rows_of(projector)
    assert seen["bets"] == []
    assert projector.position.sequence == 0
    await feed_all(projector, log)
    assert cuts == [2]
    assert await rows_of(projector) == await folded(TableProjection, log, tmp_path)
    await projector.close()


async def test_a_commit_whose_answer_was_lost_is_not_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = busy_log(rounds=2, bets=20)
    projector = await opened(WalletProjection(), url_of(tmp_path), nothing)
    commit, lost = projector._store.commit, [False]

    async def lose(*args: Any) -> None:
        await commit(*args)
        if not lost[0]:
            lost[0] = True
            raise OperationalError("the answer did not come", {}, Exception())

    monkeypatch.setattr(projector._store, "commit", lose)
    monkeypatch.setattr(projections, "RETRY_FIRST_S", 0.01)
    await feed_all(projector, log)
    assert lost[0]
    assert await rows_of(projector) == await folded(WalletProjection, log, tmp_path)
    await projector.close()


KILLED = """
import asyncio, sys
from services.kernel import projection_store, projections, row_writer
from tests.unit.projection_log import busy_log
from services.wallet.projection import WalletProjection

projections.BATCH_EVENTS = 40

async def main() -> None:
    log = busy_log(rounds=60, bets=60, entry_events=7)
    url, after = sys.argv[1], int(sys.argv[2])
    projector = projections.Projector(WalletProjection(), url, log.read)
    task = asyncio.ensure_future(projector.start())
    while projector.position.sequence < after:
        await asyncio.sleep(0)
    print(projector.position.sequence, flush=True)
    await task
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [1, 200, 1_000])
async def test_a_killed_process_leaves_rows_that_fit_the_position(
    tmp_path: Path, after: int
) -> None:
    log = busy_log(rounds=60, bets=60, entry_events=7)
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED, url_of(tmp_path), str(after)),
        stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert child.stdout is not None
    assert await child.stdout.readline()
    child.kill()
    await child.wait()
    stored = sqlite3.connect(tmp_path / "projection.db")
    (sequence,) = stored.execute("SELECT sequence FROM projection_positions").fetchone()
    (legs,) = stored.execute("SELECT count(*) FROM journal").fetchone()
    stored.close()
    assert sequence >= after
    expected = await folded(WalletProjection, log, tmp_path, sequence)
    assert legs == len(expected["journal"])
    projector = await opened(WalletProjection(), url_of(tmp_path), log.read)
    assert await projector.caught_up(WAIT_S)
    assert await rows_of(projector) == await folded(WalletProjection, log, tmp_path)
    await projector.close()


async def test_two_replicas_may_share_a_database(tmp_path: Path) -> None:
    log = busy_log(rounds=4, bets=40, entry_events=3)
    both = [await opened(WalletProjection(), url_of(tmp_path), log.read) for _ in range(2)]
    rng = random.Random(3)
    for entry in log.entries:
        for projector in rng.sample(both, 2):
            projector.feed(*entry)
        if rng.random() < 0.2:
            await asyncio.sleep(0)
    for projector in both:
        assert await projector.reached(Position(1, len(log.entries), 0), WAIT_S)
        assert projector.error is None
    assert await rows_of(both[0]) == await folded(WalletProjection, log, tmp_path)
    for projector in both:
        await projector.close()


# ---- the witness -------------------------------------------------------------------------------


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
    assert isinstance(projector.error, sqlite3.IntegrityError)
    await projector.close()


# ---- overflow, catching up, a database that is away --------------------------------------------


async def test_a_queue_that_overflows_is_dropped_and_read_again(tmp_path: Path) -> None:
    log = busy_log(rounds=6, bets=50, entry_events=10)
    known = HandMadeLog()
    projector = await opened(TableProjection(), url_of(tmp_path), known.read, max_queued_events=200)
    assert await projector.caught_up(WAIT_S)
    for entry in log.entries:
        known.entries.append(entry)
        projector.feed(*entry)
    assert projector.overflows > 0
    assert projector._queued_events <= 200 + 11
    assert projector.lag == len(log.entries)
    assert await projector.reached(Position(1, len(log.entries), 0), WAIT_S)
    assert projector.catch_ups > 1
    assert projector.lag == 0
    assert await rows_of(projector) == await folded(TableProjection, log, tmp_path)
    await projector.close()


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


@pytest.mark.parametrize("make", ALL)
async def test_lists_and_executemany_write_the_same_rows(
    make: type[Projection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite is written by lists, other databases by SQLAlchemy's `executemany`."""
    log = busy_log(rounds=4, bets=30, entry_events=9)
    monkeypatch.setattr(projections, "BATCH_EVENTS", 50)
    by_lists = await folded(make, log, tmp_path)

    async def write_many(connection: AsyncConnection, changes: Changes) -> None:
        for table, one in changes.tables.items():
            await row_writer._write_many(connection, table, one)

    monkeypatch.setattr(projection_store, "write", write_many)
    (tmp_path / "many").mkdir()
    assert await folded(make, log, tmp_path / "many") == by_lists
