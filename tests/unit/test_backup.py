"""Backups: a file goes on where it ended, what does not belong together is refused, and what is
restored is the log to the byte."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from services.cli.backup import BackedUp, BackupRefused, RestoreCut, Restored, back_up, restore
from services.cli.export import export_log
from services.cli.verify_export import ENTRY, HASH_BYTES, OLD_MAGIC, read_start, verify
from services.kernel.host import clock_us
from services.kernel.log import AppendUnknown, Log, LogInfo, LogMessage
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import memory_cell

END_BYTES = ENTRY.size + HASH_BYTES
"""Of the end that is written behind the last entry."""
NOBODY: frozenset[bytes] = frozenset()


@lru_cache
def played() -> tuple[MemoryStore, int]:
    """A log of two rounds, and its length after the first."""

    async def main() -> tuple[MemoryStore, int]:
        async with memory_cell() as (cell, store):
            await cell.open_table()
            await cell.open_account("ann", 1_000_000)
            await cell.play(1, ["ann"])
            await cell.until(lambda: cell.process.between_entries, "nothing is half-way")
            first = store.last_sequence
            await cell.play(1, ["ann"])
        return store, first

    return run_virtual(main())


def whole() -> MemoryLog:
    return MemoryLog(played()[0])


class Beginning(MemoryLog):
    """The log as it was earlier: its first `last` entries."""

    def __init__(self, store: MemoryStore, last: int) -> None:
        super().__init__(store)
        self._last = last

    async def info(self, *, wait_s: float) -> LogInfo:
        return replace(await super().info(wait_s=wait_s), last_sequence=self._last)


def saved(log: Log, path: Path) -> BackedUp:
    return run_virtual(back_up(log, path, lambda _done, _all: None))


def restored(
    path: Path, log: Log, trusted: frozenset[bytes] = NOBODY, *, cut: bool = False
) -> Restored:
    async def log_of(_service: str) -> Log:
        return log

    return run_virtual(restore(path, log_of, log, trusted, lambda _done, _all: None, cut=cut))


def empty(cell: str = whole().cell) -> MemoryLog:
    return MemoryLog(MemoryStore(cell, clock_us))


def messages(log: Log, last: int) -> list[LogMessage]:
    async def main() -> list[LogMessage]:
        found: list[LogMessage] = []
        async for batch in log.read(0):
            found += batch
            if found[-1].sequence >= last:
                break
        return found

    return run_virtual(main())


def test_a_backup_goes_on_from_its_end_and_is_the_export_of_the_whole(tmp_path: Path) -> None:
    store, first = played()
    path, at_once = tmp_path / "backup", tmp_path / "export"
    early = saved(Beginning(store, first), path)
    assert (early.entries, early.added) == (first, first)
    late = saved(whole(), path)
    assert (late.entries, late.added) == (store.last_sequence, store.last_sequence - first)
    again = saved(whole(), path)
    assert (again.head, again.added, again.size) == (late.head, 0, path.stat().st_size)
    run_virtual(export_log(whole(), at_once, lambda _: None))
    assert path.read_bytes() == at_once.read_bytes()


@pytest.mark.parametrize("cut", [1, END_BYTES, END_BYTES + 1, END_BYTES + 200])
def test_an_entry_that_was_cut_off_is_written_anew(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "backup"
    saved(whole(), path)
    right = path.read_bytes()
    path.write_bytes(right[:-cut])
    assert saved(whole(), path).added == (cut > END_BYTES)
    assert path.read_bytes() == right


def test_a_backup_that_an_early_release_began_goes_on_as_it_is(tmp_path: Path) -> None:
    store, first = played()
    path = tmp_path / "backup"
    saved(Beginning(store, first), path)
    raw = path.read_bytes()
    with path.open("rb") as file:
        read_start(file)
        at = file.tell()
    old = OLD_MAGIC + raw[len(OLD_MAGIC) : at - HASH_BYTES] + raw[at:-END_BYTES]
    path.write_bytes(old)
    assert saved(whole(), path).added == store.last_sequence - first
    assert path.read_bytes().startswith(old)
    with path.open("rb") as file:
        assert verify(file).entries == store.last_sequence
    log = empty()
    assert restored(path, log).entries == store.last_sequence


def test_what_does_not_belong_together_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    store, first = played()
    path = tmp_path / "backup"
    saved(whole(), path)
    raw = path.read_bytes()

    def refused(log: Log) -> str:
        with pytest.raises(BackupRefused) as told:
            saved(log, path)
        return str(told.value)

    assert "has lost its end" in refused(Beginning(store, first))
    assert "of the cell" in refused(empty("other"))
    changed = bytearray(raw)
    changed[-100] ^= 1
    path.write_bytes(changed)
    assert f"damaged at entry {store.last_sequence}" in refused(whole())
    assert path.read_bytes() == changed
    path.write_bytes(b"sabot\n")
    assert "no backup" in refused(whole())


def test_what_is_restored_is_the_log_to_the_byte_and_twice_is_once(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    made = saved(whole(), path)
    log = empty()
    found = restored(path, log)
    assert (found.entries, found.added, found.head) == (made.entries, made.entries, made.head)
    assert messages(log, made.entries) == messages(whole(), made.entries)
    again = restored(path, log)
    assert (again.entries, again.added, again.head) == (made.entries, 0, made.head)


@pytest.mark.parametrize("away", [1, END_BYTES, END_BYTES + 40])
def test_a_backup_that_was_cut_is_restored_only_where_that_is_asked_for(
    tmp_path: Path, away: int
) -> None:
    path = tmp_path / "backup"
    made = saved(whole(), path)
    path.write_bytes(path.read_bytes()[:-away])
    log = empty()
    with pytest.raises(BackupRefused, match="--cut restores what it holds whole"):
        restored(path, log)
    found = restored(path, log, cut=True)
    assert found.entries == made.entries - (away > END_BYTES)
    assert messages(log, found.entries) == messages(whole(), made.entries)[: found.entries]
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(BackupRefused, match="not right"):
        restored(path, empty(), cut=True)


def test_a_restore_that_was_cut_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    made = saved(whole(), path)

    class Failing(MemoryLog):
        left = 7

        async def append(
            self, subject: str, payload: bytes, *, expected: int | None, wait_s: float
        ) -> int:
            if not self.left:
                raise AppendUnknown("the server went away")
            self.left -= 1
            return await super().append(subject, payload, expected=expected, wait_s=wait_s)

    store = MemoryStore(whole().cell, clock_us)
    with pytest.raises(RestoreCut, match="entry 8 may or may not be stored"):
        restored(path, Failing(store))
    found = restored(path, MemoryLog(store))
    assert (found.added, found.head) == (made.entries - 7, made.head)


def test_nothing_is_restored_from_a_file_that_is_not_right_or_onto_another_log(
    tmp_path: Path,
) -> None:
    path = tmp_path / "backup"
    made = saved(whole(), path)
    raw = path.read_bytes()

    def refused(log: MemoryLog, trusted: frozenset[bytes] = NOBODY) -> str:
        before = log.store.last_sequence
        with pytest.raises(BackupRefused) as told:
            restored(path, log, trusted)
        assert log.store.last_sequence == before
        return str(told.value)

    changed = bytearray(raw)
    changed[len(raw) // 2] ^= 4
    path.write_bytes(changed)
    assert "not right: entry " in refused(empty())
    path.write_bytes(raw[:-10])
    assert "the file ends within its end; --cut " in refused(empty())
    path.write_bytes(raw)
    assert "of the cell" in refused(empty("other"))

    longer = empty()
    restored(path, longer)
    run_virtual(longer.append(f"sabot.{longer.cell}.table.in", b"x", expected=None, wait_s=1.0))
    assert f"holds {made.entries + 1} entries" in refused(longer)

    another = empty()
    run_virtual(another.append(f"sabot.{another.cell}.table.in", b"x", expected=None, wait_s=1.0))
    assert "another entry 1 than the backup" in refused(another)
