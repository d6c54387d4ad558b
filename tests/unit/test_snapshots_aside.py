"""Snapshots are encoded by another thread while the observers stand still: what answers callers
goes on, the observers catch up, and what was taken is one place of the log."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from services.audit import snapshots as audit_snapshots
from services.audit.auditor import Auditor
from services.audit.domain.core import CORE as AUDIT
from services.audit.ledger_check import LedgerCheck
from services.audit.snapshots import Snapshots
from services.events import event_types
from services.kernel import folding
from services.kernel.event import Core, InvariantViolated
from services.kernel.host import clock_us
from services.kernel.log import LogMessage
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.process import Process
from services.kernel.reader import LogBroken
from services.kernel.snapshot import (
    Snapshot,
    SnapshotFolder,
    SnapshotSet,
    StateCodec,
    encode_snapshot,
)
from services.kernel.witness import Witnessed
from services.simulator.virtual_time import run_virtual
from tests.unit.test_process import EPOCH_US, submit
from tests.unit.toy import CELL, LIMITS, TABLE

PATIENCE_S = 30.0


class Gate:
    """Holds up what another thread encodes until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()
        encoded = Snapshots._encoded

        def behind_the_gate(snapshots: Snapshots, taken: Any) -> dict[str, bytes]:
            if threading.current_thread() is not threading.main_thread():
                self.reached.set()
                assert self.open.wait(timeout=PATIENCE_S)
            return encoded(snapshots, taken)

        monkeypatch.setattr(Snapshots, "_encoded", behind_the_gate)


def process_on(
    log: MemoryLog,
    cores: Sequence[Core[Any]],
    observed: Sequence[Core[Any]] = (TABLE, LIMITS),
    clock: Callable[[], int] = clock_us,
    writer: str = "a",
    kept: SnapshotFolder | None = None,
) -> Process:
    return Process(
        log=log, types=event_types(), cores=cores, observed=observed, writer=writer, build="",
        clock=clock, alarm=lambda _kind, _facts: None, kept=kept.older if kept else None,
    )  # fmt: skip


@asynccontextmanager
async def running(process: Process, *start: Any) -> AsyncIterator[Process]:
    await process.start(*start)
    while not process.ready:  # noqa: ASYNC110 - readiness is no event
        await asyncio.sleep(0.01)
    try:
        yield process
    finally:
        await process.stop()


async def test_callers_are_answered_while_a_snapshot_is_taken_and_observers_catch_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    store, folder = MemoryStore(CELL, clock_us), SnapshotFolder(tmp_path)
    async with running(process_on(MemoryLog(store), [TABLE, LIMITS, AUDIT])) as process:
        for name in "abc":
            await submit(process, name)
        report = Auditor(process, LedgerCheck()).report
        before, compared = process.position.sequence, report().answers
        assert compared == 6
        taking = asyncio.create_task(Snapshots(folder).take_aside(process))
        assert await asyncio.to_thread(gate.reached.wait, PATIENCE_S)
        for name in "de":
            await submit(process, name)
        assert process.position.sequence > before
        assert report().position.sequence == before, "audit is as far as it says"
        assert report().answers == compared
        gate.open.set()
        assert await taking == before
        await submit(process, "f")
        assert report().position.sequence == process.position.sequence
        assert (report().answers, report().differences) == (process_answers(process), 0)

    (taken,) = folder.sets()
    assert taken.sequence == before
    assert taken.decode(LIMITS).replica.core.booked == ["a", "b", "c"]
    again = process_on(MemoryLog(store), [TABLE, LIMITS, AUDIT])
    async with running(again, folder.sets()):
        assert again.started_from == before, "the log names it"
        assert again.state("limits").booked == list("abcdef")


def process_answers(process: Process) -> int:
    """What services that are observed have answered: each table and each booking."""
    return len(process.state("table").opened) + len(process.state("limits").booked)


def virtual_clock() -> int:
    return EPOCH_US + int(asyncio.get_running_loop().time() * 1e6)


def decide_otherwise(state: Any, event: Any) -> Any:
    answers: Any = LIMITS.decide(state, event)
    odd = event.body.spec.table_id.startswith("odd")
    return [limits.BookVoided(), *answers] if odd else answers


OF_ANOTHER_MIND = dataclasses.replace(
    LIMITS, decide=decide_otherwise, answers=LIMITS.answers | {limits.BookVoided}
)


def test_a_difference_is_found_by_an_observer_that_stood_still() -> None:

    async def main() -> None:
        log = MemoryLog(MemoryStore(CELL, virtual_clock))
        process = process_on(log, [TABLE, LIMITS], [TABLE, OF_ANOTHER_MIND], virtual_clock)
        async with running(process):
            await submit(process, "even")
            assert process.hold() == {"table", "limits"}
            with pytest.raises(InvariantViolated):
                process.hold()
            for name in ("odd", "last"):
                await submit(process, name)
            assert process.folding.difference_count == 0
            await process.let_go()
            assert process.folding.difference_count == 1
            assert process.folding.observed == (process.position.sequence, process.head)
            observer = process.observer("limits")
            assert observer is not None
            assert observer.state.core.booked == ["even", "odd", "last"]

    run_virtual(main())


def test_everything_waits_for_observers_that_stand_still_for_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folding, "MAX_HELD_EVENTS", 7)

    async def main() -> None:
        log = MemoryLog(MemoryStore(CELL, virtual_clock))
        async with running(process_on(log, [TABLE, LIMITS], clock=virtual_clock)) as process:
            process.hold()
            for name in "ab":
                await submit(process, name)
            late = asyncio.create_task(submit(process, "c", wait_s=60.0))
            await asyncio.sleep(5.0)
            assert not late.done()
            assert not process.ready, "it is no longer at the head of the log"
            await process.let_go()
            await late
            assert process.state("limits").booked == ["a", "b", "c"]

    run_virtual(main())


class Slow(MemoryLog):
    """Once it is told to, a new reader of the log gets nothing until it is told to go on."""

    held: asyncio.Event | None = None

    async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        if self.held is not None:
            await self.held.wait()
        async for batch in super().read(after):
            yield batch


def test_no_snapshot_is_taken_half_way_through_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica is folded anew within an entry: the reader is past it, the others are not."""
    taken: list[int] = []

    async def take(_: Snapshots, process: Process) -> int:
        assert process.snapshots()[0][1].sequence == process.position.sequence
        taken.append(process.position.sequence)
        return taken[-1]

    monkeypatch.setattr(Snapshots, "take_aside", take)
    monkeypatch.setattr(audit_snapshots, "LOOK_EVERY_S", 0.01)

    async def main() -> None:
        store = MemoryStore(CELL, virtual_clock)
        front = process_on(MemoryLog(store), [TABLE, LIMITS], [], virtual_clock)
        log = Slow(store)
        behind = process_on(log, [OF_ANOTHER_MIND, AUDIT], [], virtual_clock, "b")
        async with running(front), running(behind):
            await submit(front, "even")
            await behind.reached(front.position, wait_s=5.0)
            taking = asyncio.create_task(Snapshots(SnapshotFolder(Path()), 1).run(behind))
            await asyncio.sleep(0.1)
            assert taken == [behind.position.sequence]
            log.held = asyncio.Event()
            await submit(front, "odd")
            await asyncio.sleep(0.4)  # it is taken for at the head of the log for half a second
            assert not behind.between_entries
            assert behind.position < front.position
            assert len(taken) <= 2, "of what stands before the entry, and not again"
            log.held.set()
            await behind.reached(front.position, wait_s=5.0)
            await asyncio.sleep(0.1)
            assert taken[-1] == front.position.sequence
            taking.cancel()
            await asyncio.wait([taking])

    run_virtual(main())


async def test_what_was_read_before_the_snapshot_is_held_against_the_log(tmp_path: Path) -> None:
    store, folder = MemoryStore(CELL, clock_us), SnapshotFolder(tmp_path)
    cores: list[Core[Any]] = [TABLE, LIMITS, AUDIT]
    seen: list[Witnessed] = []
    async with running(process_on(MemoryLog(store), cores)) as process:
        for name in "abc":
            await submit(process, name)
            seen.append(Witnessed(process.position.sequence, process.head))
        taken = await Snapshots(folder).take_aside(process)
        await submit(process, "d")
    for kept in (None, folder):
        again = process_on(MemoryLog(store), cores, kept=kept)
        async with running(again, folder.sets(), seen):
            assert again.started_from == taken
        for one in seen:
            forked = [Witnessed(one.sequence, bytes(32)), *seen]
            told = rf"entry {one.sequence}: its chain hash is not the one that was read before"
            with pytest.raises(LogBroken, match=told):
                await process_on(MemoryLog(store), cores, kept=kept).start(folder.sets(), forked)
    log = Counting(store)
    async with running(process_on(log, cores), folder.sets(), seen[-1:]):
        behind = store.last_sequence - seen[-1].sequence
        assert log.given <= 2 * behind < store.last_sequence, "nothing before what was noted"


class Counting(MemoryLog):
    """Counts the entries that its readers are given."""

    given = 0

    async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        async for batch in super().read(after):
            self.given += len(batch)
            yield batch


def set_of(taken: Sequence[tuple[Core[Any], Snapshot]]) -> SnapshotSet:
    codec = StateCodec()
    raw = {core.service: encode_snapshot(codec, core, one) for core, one in taken}
    return SnapshotSet(taken[0][1].sequence, raw)


async def read_anew(folder: SnapshotFolder, tables: int, named: bool = True) -> int:
    """How many entries are read again because of a difference behind a snapshot that was taken
    after so many tables were opened."""
    store = MemoryStore(CELL, clock_us)
    log = Counting(store)
    observed: list[Core[Any]] = [TABLE, OF_ANOTHER_MIND]
    names = [f"t{number}" for number in range(tables)]
    async with running(process_on(log, [TABLE, LIMITS, AUDIT], observed, kept=folder)) as process:
        for name in names:
            await submit(process, name)
        if named:
            await Snapshots(folder).take_aside(process)
        else:
            folder.save(set_of(process.snapshots()))
        await submit(process, "behind")
        last, log.given = process.position.sequence, 0
        await submit(process, "odd")
        assert process.folding.difference_count == 1
        again = log.given - (process.position.sequence - last)
        await submit(process, "last")
        observer = process.observer("limits")
        assert observer is not None
        assert observer.state.core.booked == [*names, "behind", "odd", "last"]
        assert process.folding.difference_count == 1
        assert process.folding.answers_compared == process_answers(process) - 1
    return again


async def test_an_old_log_is_not_read_anew_from_its_beginning_for_a_difference(
    tmp_path: Path,
) -> None:
    short = await read_anew(SnapshotFolder(tmp_path / "short"), 3)
    long = await read_anew(SnapshotFolder(tmp_path / "long"), 60)
    assert 0 < long <= short + 4, "audit tells of its snapshot in one entry or in some"
    # A snapshot that the log does not name is believed by nobody.
    assert await read_anew(SnapshotFolder(tmp_path / "unnamed"), 60, named=False) > 200


@pytest.mark.parametrize("odd", [3, 40])
async def test_a_start_finds_every_difference_that_came_while_audit_was_away(odd: int) -> None:
    """Not so many that it would take for ever without a snapshot: then it says so."""
    store = MemoryStore(CELL, clock_us)
    names = [name for number in range(odd) for name in (f"even{number}", f"odd{number}")]
    async with running(process_on(MemoryLog(store), [TABLE, LIMITS, AUDIT], [])) as process:
        for name in names:
            await submit(process, name)
    alarms: list[Any] = []
    audit = Process(
        log=MemoryLog(store), types=event_types(), cores=[AUDIT],
        observed=[TABLE, OF_ANOTHER_MIND], writer="b", build="", clock=clock_us,
        alarm=lambda kind, _facts: alarms.append(kind),
    )  # fmt: skip
    async with running(audit):
        found = audit.folding.difference_count
        assert alarms.count("answer_does_not_follow") == found
        assert alarms.count("audit_gave_up") == (0 if found == odd else 1)
        assert found == odd if odd == 3 else 3 < found < odd
        observer = audit.observer("limits")
        assert observer is not None
        assert observer.state.core.booked == names
