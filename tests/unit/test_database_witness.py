"""What services remember of the log in a database: the highest stands, another log is found out,
and nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text, update

from services.kernel import database_witness, migrations
from services.kernel.database_witness import DatabaseWitness
from services.kernel.databases import open_engine
from services.kernel.event import Event
from services.kernel.log import LogInfo
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import LogBroken
from services.kernel.witness import Witnessed
from services.kernel.witness_rows import METADATA, REVISIONS, WITNESSES, Turn, all_rows
from tests.postgres import PostgresServer, postgresql
from tests.unit.projecting import ON_BOTH, url_of
from tests.unit.test_host import Alarms

PATIENCE_S = 60.0


def head(sequence: int, log: str = "log") -> bytes:
    return f"{log} {sequence}".encode()


class OneLog(MemoryLog):
    """Ends where it is told to; its entries are their heads."""

    def __init__(self, last: int, name: str = "log") -> None:
        super().__init__(MemoryStore("c", lambda: 0))
        self.last = last
        self.name = name
        self.reads: list[int] = []

    async def info(self, *, wait_s: float) -> LogInfo:
        del wait_s
        return LogInfo(1, self.last, 0, 0, -1)

    async def entries(self, after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        self.reads.append(after)
        for sequence in range(after + 1, self.last + 1):
            yield sequence, head(sequence, self.name), []


class Reader:
    """A process with its witness."""

    def __init__(self, url: str, log: OneLog, service: str = "wallet") -> None:
        self.alarms = Alarms()
        self.broken: list[LogBroken] = []
        self.log = log
        self.witness = DatabaseWitness(
            url, service, log, log.entries, alarm=self.alarms, on_broken=self.broken.append
        )

    def read(self, first: int, last: int) -> None:
        for sequence in range(first, last + 1):
            self.witness.feed(sequence, head(sequence, self.log.name), [])

    async def noted(self, sequence: int, log: str = "log", service: str = "wallet") -> None:
        """Wait until the row stands there."""
        wanted = Witnessed(sequence, head(sequence, log))
        await eventually(lambda: self.row(service), lambda found: found == wanted)

    async def row(self, service: str = "wallet") -> Witnessed | None:
        return (await all_rows(self.witness.engine)).get(service)


async def eventually(ask: Callable[[], Any], holds: Callable[[Any], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds(await ask()):  # noqa: ASYNC110 - rows are no event
            await asyncio.sleep(0.01)


async def told(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for is in the code under test
            await asyncio.sleep(0.01)


@asynccontextmanager
async def reader(
    url: str, log: OneLog, service: str = "wallet", *, asked: bool = True
) -> AsyncIterator[Reader]:
    one = Reader(url, log, service)
    if asked:
        await one.witness.remembered()
    one.witness.start()
    try:
        yield one
    finally:
        await one.witness.close()


@ON_BOTH
async def test_revisions_and_the_table_agree(tmp_path: Path) -> None:
    engine = open_engine(url_of(tmp_path))
    await migrations.upgrade_engine(engine, REVISIONS)
    async with engine.connect() as connection:
        assert await connection.run_sync(migrations.differences, METADATA) == []
        names = await connection.run_sync(lambda one: inspect(one).get_table_names())
    await engine.dispose()
    assert set(names) == {"witnesses", "alembic_version"}
    assert len(migrations.scripts(REVISIONS).get_heads()) == 1


@ON_BOTH
async def test_a_start_is_told_what_every_service_has_read(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    async with reader(url, OneLog(5)) as wallet, reader(url, OneLog(7), "table") as table:
        assert await wallet.witness.remembered() == []
        wallet.read(1, 5)
        table.read(1, 7)
        await wallet.noted(5)
        await table.noted(7, service="table")
        fresh = Reader(url, OneLog(7))
        found = await fresh.witness.remembered()
        await fresh.witness.close()
    assert found is not None
    assert sorted(found) == [Witnessed(5, head(5)), Witnessed(7, head(7))]
    assert wallet.alarms == table.alarms == fresh.alarms == []


@ON_BOTH
async def test_of_replicas_the_highest_stands_and_the_slower_goes_on(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    async with reader(url, OneLog(9)) as quick, reader(url, OneLog(9)) as slow:
        quick.read(1, 9)
        await quick.noted(9)
        slow.read(1, 4)
        await told(lambda: slow.witness._ahead == Witnessed(9, head(9)))
        assert await slow.row() == Witnessed(9, head(9)), "it never goes back"
        slow.read(5, 9)
        await told(lambda: slow.witness._ahead is None)
        slow.read(10, 12)
        await slow.noted(12)
    assert quick.broken == slow.broken == []
    assert quick.alarms == slow.alarms == []


@ON_BOTH
async def test_two_that_note_at_once_lose_nothing(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    engine = open_engine(url)
    await migrations.upgrade_engine(engine, REVISIONS)

    async def note(sequence: int) -> None:
        async with Turn(engine, "wallet") as turn:
            if turn.stands.sequence < sequence:
                await turn.note(Witnessed(sequence, head(sequence)))

    await asyncio.gather(*(note(sequence) for sequence in (3, 8, 1, 7, 2, 5)))
    assert await all_rows(engine) == {"wallet": Witnessed(8, head(8))}
    await engine.dispose()


@ON_BOTH
@pytest.mark.parametrize("first", [4, 9], ids=["behind", "ahead"])
async def test_a_fork_is_seen_by_the_one_that_comes_later(first: int, tmp_path: Path) -> None:
    """Two replicas that read different logs: one of them is not the one that was acknowledged."""
    url = url_of(tmp_path)
    async with reader(url, OneLog(9)) as right, reader(url, OneLog(9, "fork")) as other:
        right.read(1, first)
        await right.noted(first)
        other.read(1, 6)
        if first > 6:
            await told(lambda: other.witness._ahead is not None)
            other.read(7, 9)
        await told(lambda: other.broken)
        assert await right.row() == Witnessed(first, head(first)), "what stood there stands"
    (broken,) = other.broken
    assert broken.sequence == first
    assert "noted in the database" in str(broken)
    assert right.broken == []


@ON_BOTH
async def test_a_log_that_ends_before_what_another_read_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_witness, "LOOK_EVERY_S", 0.001)
    url = url_of(tmp_path)
    async with reader(url, OneLog(9)) as whole, reader(url, OneLog(6)) as short:
        whole.read(1, 9)
        await whole.noted(9)
        short.read(1, 6)
        await told(lambda: short.broken)
    assert "has read up to entry 9, the log ends at 6" in str(short.broken[0])
    assert whole.broken == []


@ON_BOTH
async def test_an_older_state_of_the_database_is_held_against_the_log_and_overtaken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup of the database was put back: lower rows of the same log, or of another."""
    monkeypatch.setattr(database_witness, "HEADS", 2)
    url = url_of(tmp_path)
    async with reader(url, OneLog(9)) as one:
        one.read(1, 9)
        await one.noted(9)
        await put(one, Witnessed(3, head(3)))
        one.read(10, 10)
        await one.noted(10)
        assert one.log.reads == [2], "what is no more in memory is read from the log, once"
        await put(one, Witnessed(3, head(3, "another")))
        one.read(11, 11)
        await told(lambda: one.broken)
        assert await one.row() == Witnessed(3, head(3, "another"))
    assert one.alarms == []


async def put(one: Reader, stands: Witnessed) -> None:
    async with one.witness.engine.begin() as connection:
        await connection.execute(
            update(WITNESSES).values(sequence=stands.sequence, head=stands.head)
        )


@ON_BOTH
async def test_a_row_or_a_table_that_is_gone_is_told_and_made_again(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    async with reader(url, OneLog(9)) as one:
        one.read(1, 2)
        await one.noted(2)
        for number, lost in enumerate(
            ("DELETE FROM witnesses", "DROP TABLE witnesses; DROP TABLE alembic_version"), 3
        ):
            async with one.witness.engine.begin() as connection:
                for statement in lost.split(";"):
                    await connection.execute(text(statement))
            one.read(number, number)
            await eventually(lambda: gone(one), lambda found: found is not None)
            await one.noted(number)
    assert one.alarms.kinds == ["witness_missing"] * 2
    assert one.broken == []


async def gone(one: Reader) -> Witnessed | None:
    try:
        return await one.row()
    except Exception:  # noqa: BLE001 - the table is being made
        return None


@ON_BOTH
async def test_what_was_read_last_is_noted_at_the_end(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    async with reader(url, OneLog(9)) as one:
        one.read(1, 9)
    fresh = Reader(url, OneLog(9))
    assert await fresh.witness.remembered() == [Witnessed(9, head(9))]
    await fresh.witness.close()


@pytest.mark.timeout(120)
async def test_while_the_database_is_away_nobody_waits_and_operators_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_witness, "AWAY_S", 0.0)
    monkeypatch.setattr(database_witness, "ASK_S", 0.0)
    del tmp_path
    with postgresql() as server:
        url = server.url("main_witness")
        async with reader(url, OneLog(9)) as one:
            one.read(1, 3)
            await one.noted(3)
            await asyncio.to_thread(server.kill)
            one.read(4, 5)
            await told(lambda: one.alarms)
            await started_without(url)
            await asyncio.to_thread(server.start)
            await eventually(lambda: gone(one), lambda found: found == Witnessed(5, head(5)))
        assert one.alarms.kinds == ["witness_away"]
        await lost_while_nobody_asked(url, server)


async def started_without(url: str) -> None:
    """A start while it is away: it goes on, and says that it does not know."""
    one = Reader(url, OneLog(9))
    assert await one.witness.remembered() is None
    assert one.alarms.kinds == ["witness_away"]
    await one.witness.close()


async def lost_while_nobody_asked(url: str, server: PostgresServer) -> None:
    """A start that could not ask finds out later: whether another log was noted, or nothing is."""
    async with reader(url, OneLog(9, "fork"), asked=False) as fork:
        fork.witness._unasked = True
        fork.read(1, 9)
        await told(lambda: fork.broken)
        assert fork.broken[0].sequence == 5
    server.sql("DROP SCHEMA main_witness CASCADE")
    async with reader(url, OneLog(9), asked=False) as one:
        one.witness._unasked = True
        one.read(1, 9)
        await one_noted(one)
    assert one.alarms.kinds == ["witness_missing"]


async def one_noted(one: Reader) -> None:
    await eventually(lambda: gone(one), lambda found: found == Witnessed(9, head(9)))
