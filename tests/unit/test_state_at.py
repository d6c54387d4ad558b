"""`sabot state`: at every position and every time what a plain fold gives, by snapshots where there
are any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from services.audit.snapshots import Snapshots
from services.cli import inspect_state
from services.cli.cores import CORES
from services.cli.inspect_state import PositionUnknown, StateAt, state_at
from services.cli.moments import Moment, parse_at, parse_position, parse_time, place, written
from services.cli.prove_checkpoint import CheckpointUnusable
from services.cli.state_checkpoint import StateCheckpoint
from services.events import event_types
from services.kernel.event import Position
from services.kernel.log import Log, LogMessage
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import END_OF_ENTRY, LogReader, ReadEntry
from services.kernel.recovery import Window, entries_until
from services.kernel.replica import Replica
from services.kernel.snapshot import SnapshotFolder, StateCodec, state_digest
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import memory_cell

BY_NAME = {core.service: core for core in CORES}


class Past(NamedTuple):
    """A log of three rounds with a snapshot behind the second, and what it says."""

    store: MemoryStore
    folder: Path
    snapshot: int
    entries: list[ReadEntry]

    @property
    def log(self) -> MemoryLog:
        return MemoryLog(self.store)


class Watched(MemoryLog):
    """A log that notes where it is read from."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.read_after: list[int] = []

    def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        self.read_after.append(after)
        return super().read(after)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    folder = tmp_path_factory.mktemp("snapshots")

    async def main() -> Past:
        async with memory_cell() as (cell, store):
            await cell.open_table()
            await cell.open_account("ann", 1_000_000)
            await cell.play(2, ["ann"])
            await cell.until(lambda: cell.process.between_entries, "nothing is half-way")
            taken = Snapshots(SnapshotFolder(folder)).take(cell.process)
            await cell.play(1, ["ann"])
        log = MemoryLog(store)
        last = (await log.info(wait_s=1.0)).last_sequence
        entries: list[ReadEntry] = []
        async for some in entries_until(log, LogReader(log.cell, event_types()), last):
            entries += some
        return Past(store, folder, taken, entries)

    return run_virtual(main())


def asked(past: Past, service: str, at: Any, snapshots: Path | None = None) -> StateAt:
    async def main() -> StateAt:
        return await state_at(past.log, service, at, None, None, snapshots)

    return run_virtual(main())


@pytest.mark.parametrize("service", ["table", "wallet", "settlement", "audit"])
def test_every_entry_as_a_plain_fold_has_it(past: Past, service: str) -> None:
    core = BY_NAME[service]
    replica: Replica[Any] = Replica(core, writer="test")
    codec = StateCodec()
    for entry in past.entries:
        replica.read(entry, 0.0)
        if entry.sequence % 3:
            continue
        expected = state_digest(codec, core, replica.state.core)
        at = Position(1, entry.sequence, END_OF_ENTRY)
        for snapshots in (None, past.folder):
            found = asked(past, service, at, snapshots)
            assert (found.digest, found.position) == (expected, at)
            assert found.unanswered == len(replica.state.pending)
            assert found.log_time_us == entry.events[-1].time_us


def test_a_position_within_an_entry_is_before_what_stands_behind_it(past: Past) -> None:
    entry = next(one for one in past.entries if len(one.events) > 1)
    first = asked(past, entry.service, Position(1, entry.sequence, 0))
    whole = asked(past, entry.service, Position(1, entry.sequence, len(entry.events) - 1))
    assert whole.digest == asked(past, entry.service, parse_position(str(entry.sequence))).digest
    assert first.unanswered > whole.unanswered


def test_a_time_is_behind_all_that_is_no_later(past: Past) -> None:
    events = [event for entry in past.entries for event in entry.events]
    for earlier, later in pairwise(events):
        if earlier.time_us == later.time_us:
            continue
        by_position = asked(past, "wallet", earlier.position)
        for time_us in (earlier.time_us, later.time_us - 1):
            for snapshots in (None, past.folder):
                found = asked(past, "wallet", Moment(time_us), snapshots)
                assert found.digest == by_position.digest
                assert found.log_time_us == earlier.time_us


def test_before_the_first_event_there_is_nothing(past: Past) -> None:
    found = asked(past, "wallet", parse_time("1999-12-31T23:59:59Z"))
    assert found.state["accounts"] == {}
    assert found.position.sequence == 0


def test_places_beyond_the_log_are_refused(past: Past) -> None:
    last = past.entries[-1].events[-1].time_us
    ends = f"the log ends at {written(last)}, before"
    with pytest.raises(PositionUnknown, match=ends):
        asked(past, "wallet", Moment(last + 1), past.folder)
    assert asked(past, "wallet", Moment(last)).digest == asked(past, "wallet", None).digest
    with pytest.raises(PositionUnknown, match="the log ends at entry"):
        asked(past, "wallet", parse_position("999999"))
    with pytest.raises(PositionUnknown, match="events, no 1/5/77"):
        asked(past, "wallet", parse_position("1/5/77"))


class OneByOne(Watched):
    """Gives every entry by itself."""

    async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        async for batch in super().read(after):
            for one in batch:
                yield [one]


def another() -> MemoryStore:
    """A log of another shoe."""

    async def main() -> MemoryStore:
        async with memory_cell(2) as (cell, store):
            await cell.open_table()
            await cell.open_account("ann", 1_000_000)
            await cell.play(5, ["ann"])
        return store

    return run_virtual(main())


@pytest.mark.parametrize("service", ["wallet", "table"])
def test_a_fold_that_is_interrupted_goes_on(
    past: Past, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_state, "Window", lambda replicas: Window(replicas, 10))
    path, until, told = tmp_path / "checkpoint", past.store.last_sequence // 2, list[int]()

    def stop(done: int, _total: int, _events: int) -> None:
        task = asyncio.current_task()
        if done >= until and task is not None:
            task.cancel()

    def ask(log: MemoryLog, name: str, at: int, progress: Any = None) -> StateAt:
        kept = StateCheckpoint(path, lambda _path, sequence: told.append(sequence))
        place = Position(1, at, END_OF_ENTRY)
        return run_virtual(state_at(log, name, place, None, progress, None, kept))

    last = past.store.last_sequence
    with pytest.raises(asyncio.CancelledError):
        ask(OneByOne(past.store), service, last, stop)
    left = path.read_bytes()
    for log, name, at, why in (
        (past.log, "limits", last, f"is of {service}"),
        (past.log, service, 5, "reaches to entry"),
        (MemoryLog(another()), service, last, "does not fit"),
    ):
        with pytest.raises(CheckpointUnusable, match=why):
            ask(log, name, at)
    path.write_bytes(left[:-1])
    with pytest.raises(CheckpointUnusable, match="cannot be read"):
        ask(past.log, service, last)
    assert told == []

    path.write_bytes(left)
    found = ask(past.log, service, last)
    assert found == asked(past, service, Position(1, last, END_OF_ENTRY))
    (sequence,) = told
    assert until - 15 < sequence < until
    assert not path.exists()


def test_an_answer_behind_a_snapshot_reads_nothing_before_it(past: Past) -> None:
    for at in (None, Moment(past.entries[-1].events[-1].time_us)):
        log = Watched(past.store)

        async def main(log: Log = log, at: Any = at) -> StateAt:
            return await state_at(log, "wallet", at, None, None, past.folder)

        run_virtual(main())
        assert set(log.read_after) == {past.snapshot}


def test_a_snapshot_that_is_not_as_it_was_named_is_passed_over(past: Past, tmp_path: Path) -> None:
    """Another state under the right sequence: whole as a file, but the log names another digest."""
    sets = SnapshotFolder(past.folder).sets()
    forged = dict(sets[0].raw)
    forged["wallet"] = forged["wallet"].replace(b'"ann"', b'"eve"')
    folder = SnapshotFolder(tmp_path)
    folder.save(type(sets[0])(sets[0].sequence, forged))
    assert folder.sets()[0].raw["wallet"] != sets[0].raw["wallet"]
    log = Watched(past.store)

    async def main() -> StateAt:
        return await state_at(log, "wallet", None, None, None, tmp_path)

    found = run_virtual(main())
    assert found.digest == asked(past, "wallet", None).digest
    assert 0 in log.read_after


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00.000001+01:00", 1),
        ("2023-11-14T22:13:20+00:00", 1_700_000_000_000_000),
    ],
)
def test_times_have_a_zone(text: str, time_us: int) -> None:
    assert parse_at(text) == Moment(time_us)
    assert parse_time(written(time_us)) == Moment(time_us)


@pytest.mark.parametrize(
    "text",
    ["2026-01-01T00:00:00", "2026-01-01", "now", "12:00", "-5", "1/-2/3", "1/2/3/4", "2/5/0", ""],
)
def test_what_is_neither_a_position_nor_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write "):
        parse_at(text)


def test_positions_are_read_as_they_are_written() -> None:
    for text in ("1/12/3", "1/12"):
        assert place(parse_position(text)) == text
    assert parse_position("12") == parse_position("1/12")
