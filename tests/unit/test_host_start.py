"""What a start says of its log: where nobody can tell how strong it is, and where nothing remembers
how far it was read."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from sabot.log.v1 import events_pb2
from services.audit.domain.core import CORE as AUDIT
from services.audit.sealer import Sealer
from services.audit.snapshots import Snapshots
from services.audit.tree_file import TreeFile
from services.events import event_types
from services.kernel import database_witness, host, log_end, new_log
from services.kernel.accepted import Acceptance, Accepted, read_accepted, write_accepted
from services.kernel.edge import EdgeNotReady
from services.kernel.log import LogMessage
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.preflight import Preflight
from services.kernel.reader import LogBroken
from services.kernel.settings import ServiceSettings
from services.kernel.snapshot import SnapshotFolder
from services.kernel.strength import AskServers
from services.kernel.telemetry_names import LOG_READING
from services.kernel.tokens import Caller
from services.kernel.witness import any_witness
from tests.unit.projecting import WAIT_S
from tests.unit.test_host import Alarms
from tests.unit.test_process import submit
from tests.unit.toy import CELL, LIMITS, TABLE, open_table


class Nobody:
    def caller(self, token: str) -> Caller | None:
        del token
        return None


async def strong() -> Preflight:
    return Preflight((), ())


def serve_nothing(*_: object) -> host.Served:
    return []


class WatchedLog(MemoryLog):
    """Remembers after which entries it was read."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.read_after: list[int] = []

    def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        self.read_after.append(after)
        return super().read(after)


@asynccontextmanager
async def started(
    store: MemoryStore | MemoryLog,
    data: Path,
    name: str = "fleet",
    preflight: AskServers = strong,
    more: Sequence[host.Parts] = (),
    only: Sequence[host.Parts] = (),
) -> AsyncIterator[host.Host]:
    """The toys and `more`; or `only` these."""
    running = await host.start(
        only or [*(host.Parts(core, serve_nothing) for core in (TABLE, LIMITS)), *more],
        name=name,
        log=store if isinstance(store, MemoryLog) else MemoryLog(store),
        types=event_types(),
        settings=ServiceSettings(cell=CELL, data=data),
        tokens=Nobody(),
        preflight=preflight,
        build="test",
    )
    try:
        yield running
    finally:
        await running.stop(5.0)


@pytest.fixture
def alarms(monkeypatch: pytest.MonkeyPatch) -> Alarms:
    told = Alarms()
    monkeypatch.setattr(host.Alarms, "__call__", lambda _, kind, facts: told(kind, facts))
    return told


async def play(running: host.Host, name: str) -> None:
    running.process.tell("table", open_table(name), "operator:test")
    await running.process.drain(5.0)


async def test_a_folder_without_its_witness_is_told_and_the_log_is_noted_again(
    tmp_path: Path, alarms: Alarms
) -> None:
    store = MemoryStore(CELL, host.clock_us)
    async with started(store, tmp_path) as running:
        await play(running, "one")
    async with started(store, tmp_path) as running:
        assert running.process.position.sequence == store.last_sequence > 0
    assert alarms == [], "neither a new log nor a known one is worth a word"

    shutil.rmtree(tmp_path / "witness")
    async with started(store, tmp_path) as running:
        ((kind, facts),) = alarms
        assert (kind, facts["folder"]) == ("witness_missing", str(tmp_path / "witness"))
        assert "nobody would know" in facts["why"]
        assert running.process.state("table").opened == ["one"], "it goes on all the same"
    assert any_witness(tmp_path / "witness")
    async with started(store, tmp_path):
        assert len(alarms) == 1


async def test_a_new_pod_remembers_by_the_database(
    tmp_path: Path, alarms: Alarms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is empty; what its service has read stands in a row."""
    url = f"sqlite+aiosqlite:///{tmp_path / 'witness.db'}"
    other, store, short = (MemoryStore(CELL, host.clock_us) for _ in range(3))
    async with started(other, tmp_path / "elsewhere") as running:
        for name in ("three", "four", "five"):
            await play(running, name)
    monkeypatch.setattr(host, "witness_url", lambda _: url)
    async with started(store, tmp_path / "pod-1") as running:
        await play(running, "one")
        short._entries = list(store._entries)
        await play(running, "two")
    async with started(store, tmp_path / "pod-2") as running:
        assert running.process.state("table").opened == ["one", "two"]
    assert alarms == []

    monkeypatch.setattr(log_end, "ASK_EVERY_S", 0.01)
    cut = f"read up to entry {store.last_sequence} before, the log ends at {short.last_sequence}"
    for number, (log, why) in enumerate(((short, cut), (other, "chain hash")), 3):
        with pytest.raises(LogBroken, match=why):
            async with started(log, tmp_path / f"pod-{number}"):
                pass

    monkeypatch.setattr(host, "NOTED_WITHIN_S", 0.05)
    (tmp_path / "witness.db").unlink()
    async with started(store, tmp_path / "pod-5"):
        assert alarms.kinds == ["witness_missing"]
    async with started(store, tmp_path / "pod-6"):
        assert len(alarms) == 1


@pytest.mark.parametrize("young", [True, False])
async def test_a_database_that_is_away_at_a_cells_first_start_has_lost_nothing(
    young: bool, tmp_path: Path, alarms: Alarms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other pods began the log a moment ago, while it was away; or long ago, and noted that."""
    store = MemoryStore(CELL, host.clock_us)
    async with started(store, tmp_path / "pod-1") as running:
        await play(running, "one")
    if not young:
        monkeypatch.setattr(new_log, "YOUNG_US", 0)
    folder = tmp_path / "database"
    monkeypatch.setattr(host, "witness_url", lambda _: f"sqlite+aiosqlite:///{folder / 'w.db'}")
    monkeypatch.setattr(database_witness, "ASK_S", 0.0)
    async with started(store, tmp_path / "pod-2") as running:
        assert alarms.kinds == ["witness_away"]
        folder.mkdir()
        await play(running, "two")
        shared = running.shared
        assert shared is not None
        async with asyncio.timeout(WAIT_S):
            while shared._agreed.sequence < store.last_sequence:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
    assert alarms.kinds == ["witness_away", *([] if young else ["witness_missing"])]


async def test_what_an_operator_accepted_is_logged_by_audit_s_process_alone(tmp_path: Path) -> None:
    """Another service's user of NATS may not append to audit's inputs: it would try for ever."""
    body = events_pb2.AcceptLog(sequence=1, head=b"h", witnessed_sequence=2, reason="why")
    write_accepted(tmp_path, Accepted({}, [Acceptance(body, "operator:dana")]))
    async with started(MemoryStore(CELL, host.clock_us), tmp_path) as running:
        assert host.ACCEPTED not in {task.get_name() for task in running.tasks}
    assert len(read_accepted(tmp_path).to_log) == 1


async def test_an_emptied_witness_is_none_and_another_process_s_is_one(
    tmp_path: Path, alarms: Alarms
) -> None:
    store = MemoryStore(CELL, host.clock_us)
    async with started(store, tmp_path) as running:
        await play(running, "one")
    async with started(store, tmp_path, "fleet-2"):
        assert alarms == []
    for path in (tmp_path / "witness").iterdir():
        path.write_bytes(b"")
    async with started(store, tmp_path):
        assert alarms.kinds == ["witness_missing"]


async def test_while_nobody_can_tell_how_strong_the_log_is_no_bets_are_taken(
    tmp_path: Path, alarms: Alarms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "WEAK_EVERY_S", 0.05)
    known = asyncio.Event()

    async def ask() -> Preflight:
        if not known.is_set():
            raise ValueError("an answer of another shape")
        return await strong()

    async with started(MemoryStore(CELL, host.clock_us), tmp_path, preflight=ask) as running:
        with pytest.raises(EdgeNotReady, match="too weak: preflight failed: ValueError"):
            await submit(running.process, "turned away")
        async with asyncio.timeout(WAIT_S):
            while not alarms:  # noqa: ASYNC110 - raised by the clock
                await asyncio.sleep(0.01)
        assert alarms.kinds == ["log_weak"]
        known.set()
        async with asyncio.timeout(WAIT_S):
            while not running.process.ready:  # noqa: ASYNC110 - readiness is no event
                await asyncio.sleep(0.01)
        await submit(running.process, "taken")
        assert running.process.state("table").opened == ["taken"]


async def test_a_start_from_a_snapshot_reads_nothing_before_it_for_the_tree_either(
    tmp_path: Path,
) -> None:
    """A long log is not read from its beginning at each start."""
    log = WatchedLog(MemoryStore(CELL, host.clock_us))

    def audit() -> tuple[Sealer, host.Parts]:
        sealer = Sealer(CELL, TreeFile(tmp_path / "seals"), None)
        return sealer, host.Parts(
            AUDIT, serve_nothing, observed=(TABLE, LIMITS), listeners=[sealer]
        )

    sealer, part = audit()
    async with started(log, tmp_path, more=[part]) as running:
        await play(running, "one")
        taken_at = Snapshots(SnapshotFolder(tmp_path / "snapshots")).take(running.process)
        await play(running, "two")
        assert sealer.tree.size == running.process.position.sequence > taken_at > 0
    log.read_after.clear()

    sealer, part = audit()
    async with started(log, tmp_path, more=[part]) as running:
        assert running.process.started_from == taken_at
        assert min(log.read_after) == taken_at
        assert running.process.state("table").opened == ["one", "two"]
        assert sealer.problems == {}
        await play(running, "three")
        assert sealer.tree.size == running.process.position.sequence

    (tmp_path / "seals" / "heads").write_bytes(b"")
    sealer, part = audit()
    async with started(log, tmp_path, more=[part]) as running:
        assert sealer.problems == {}, "a tree that is gone is made anew from the whole log"
        assert sealer.tree.size == running.process.position.sequence
        assert min(log.read_after) == 0


async def test_a_start_that_takes_long_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "READING_TOLD_EVERY_S", 0.01)
    store = MemoryStore(CELL, host.clock_us)
    async with started(store, tmp_path) as running:
        await play(running, "one")

    class SlowLog(MemoryLog):
        async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
            async for messages in super().read(after):
                for message in messages:
                    await asyncio.sleep(0.05)
                    yield [message]

    with capture_logs() as lines:
        async with started(SlowLog(store), tmp_path) as running:
            last = running.process.position.sequence
    told = [line for line in lines if line["event"] == LOG_READING]
    assert {line["last"] for line in told} == {last}
    assert [line["entry"] for line in told] == sorted(line["entry"] for line in told)
    assert 0 < told[-1]["entry"] <= last
    assert told[-1]["left_s"] >= 0
    assert told[0]["log_level"] == "warning"
