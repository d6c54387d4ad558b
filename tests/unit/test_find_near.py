"""Of a long log `sabot find` reads what may concern an id, and finds what the whole log has."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as logs
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.audit.snapshots import Snapshots
from services.cli import find_near
from services.cli.find import NothingFound, Sought, find
from services.cli.log_source import StoreLog
from services.events import event_types
from services.kernel.embedded import stream_folder
from services.kernel.event import Event
from services.kernel.log import Log, LogMessage
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import LogBroken, LogReader
from services.kernel.snapshot import SnapshotFolder
from services.kernel.store_scan import HAS_HEADERS, HASH_BYTES, HEAD, HEADERS_LENGTH
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import memory_cell

CELL = "main"
NOT_CHECKED = b"\xff" * HASH_BYTES
"""A checksum, which nobody looks at here; zeros would be none."""
EACH = 8
"""Entries of a block."""
ROUNDS = 12


class Counted(StoreLog):
    """A raw store that counts what is read of it."""

    read_entries = 0

    async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        async for batch in super().read(after):
            for one in batch:
                self.read_entries += 1
                yield [one]


def write_blocks(store: MemoryStore, data: Path) -> Path:
    """The files that a server would keep; their checksums are not looked at here."""
    folder = stream_folder(data, CELL)
    (folder / "msgs").mkdir(parents=True, exist_ok=True)
    entries = list(store.entries())
    for first in range(0, len(entries), EACH):
        raw = bytearray()
        for one in entries[first : first + EACH]:
            subject, headers = one.subject.encode(), b""
            if one.headers:
                told = "".join(f"{name}: {value}\r\n" for name, value in one.headers.items())
                headers = f"NATS/1.0\r\n{told}\r\n".encode()
                headers = HEADERS_LENGTH.pack(len(headers)) + headers
            size = HEAD.size + len(subject) + len(headers) + len(one.payload) + HASH_BYTES
            length = size | HAS_HEADERS if headers else size
            raw += HEAD.pack(length, one.sequence, 0, len(subject)) + subject + headers
            raw += one.payload + NOT_CHECKED
        (folder / "msgs" / f"{first // EACH + 1}.blk").write_bytes(raw)
    return folder


def answered_late(store: MemoryStore) -> list[Event]:
    """Put an answer that names nothing to the second bet behind all else; every event."""
    types, heads = event_types(), dict[int, bytes]()

    def read() -> list[Event]:
        reader, events = LogReader(CELL, types), list[Event]()
        for one in store.entries():
            events += reader.read(one.sequence, one.subject, one.headers, one.payload).events
            heads[one.sequence] = reader.state.head
        return events

    asked = [event for event in read() if isinstance(event.body, tables.PlaceBets)][1]
    late = entry_pb2.Event(
        type=str(logs.InputNoted.DESCRIPTOR.full_name),
        cause=entry_pb2.Position(segment=1, sequence=asked.position.sequence),
        time_us=asked.time_us,
        partner=asked.partner,
    )
    entry = entry_pb2.Entry(writer="late", head=heads[asked.position.sequence], events=[late])
    store.store(f"sabot.{CELL}.wallet.out", entry.SerializeToString(deterministic=True), None)
    return read()


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> tuple[MemoryStore, Path, list[Event]]:
    """Rounds, a snapshot now and then, and an answer that came very late."""
    data = tmp_path_factory.mktemp("data")

    async def main() -> MemoryStore:
        async with memory_cell() as (cell, store):
            await cell.open_table()
            for account in ("ann", "ben"):
                await cell.open_account(account, 100_000)
            for number in range(ROUNDS):
                round_id = await cell.open_round()
                await cell.bet(round_id, "ann", ("player", 500))
                if number == 1:
                    await cell.bet(round_id, "ben", ("tie", 400))
                await cell.close_betting(round_id)
                await cell.until(lambda: cell.process.between_entries, "nothing is half-way")
                if number % 3 == 0:
                    Snapshots(SnapshotFolder(data / "snapshots")).take(cell.process)
            return store

    store = run_virtual(main())
    events = answered_late(store)
    write_blocks(store, data)
    return store, data, events


def ids_of(events: Sequence[Event]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for event in events:
        body: Any = event.body
        for kind in ("round", "account", "request", "table"):
            value = getattr(body, f"{kind}_id", "")
            found |= {(kind, value)} if value else set()
        if isinstance(body, wallets.StakeReserved):
            found |= {("bet", bet.bet_id) for bet in body.bets}
    return found


def searched(log: Log, ids: dict[str, str], data: Path | None) -> list[Event]:
    return run_virtual(find(log, Sought(ids), None, None, data))


@pytest.mark.parametrize("raw", [True, False])
def test_it_finds_what_the_whole_log_has(
    past: tuple[MemoryStore, Path, list[Event]], raw: bool
) -> None:
    store, data, events = past
    near = 0
    for kind, value in sorted(ids_of(events))[:: 1 if raw else 5]:
        whole = searched(MemoryLog(store), {kind: value}, None)
        log = Counted(stream_folder(data, CELL), CELL) if raw else MemoryLog(store)
        assert searched(log, {kind: value}, data) == whole, (kind, value)
        if isinstance(log, Counted) and log.read_entries < store.last_sequence:
            near += 1
        both = {"account": "ann", kind: value}
        if kind == "round":
            expected = searched(MemoryLog(store), both, None)
            assert searched(log, both, data) == expected
    if raw:
        assert near > 2 * ROUNDS, "of rounds, bets and requests not all is read"
    late = events[-1]
    assert late.position.sequence == store.last_sequence
    asked: Any = next(event.body for event in events if event.position == late.cause)
    told = searched(StoreLog(stream_folder(data, CELL), CELL), {"request": asked.request_id}, data)
    assert told[-1] == late, "however late it came"


def test_what_is_nowhere_is_said_of_the_whole_log_alone(
    past: tuple[MemoryStore, Path, list[Event]], tmp_path: Path
) -> None:
    store, data, events = past
    log = Counted(stream_folder(data, CELL), CELL)
    with pytest.raises(NothingFound):
        searched(log, {"round": "t1-999"}, data)
    assert log.read_entries >= store.last_sequence
    # Damage that stands in the way is told, whether the bytes can be found or not.
    folder = write_blocks(store, tmp_path)
    first = folder / "msgs" / "1.blk"
    first.write_bytes(first.read_bytes().replace(b"ann", b"anm"))
    with pytest.raises(LogBroken):
        searched(StoreLog(folder, CELL), {"account": "anm"}, tmp_path)
    del events


def test_a_snapshot_that_the_log_does_not_name_is_no_beginning(
    past: tuple[MemoryStore, Path, list[Event]], tmp_path: Path
) -> None:
    store, data, _ = past
    folder = write_blocks(store, tmp_path)
    for one in SnapshotFolder(data / "snapshots").older():
        changed = {name: raw + b" " for name, raw in one.raw.items()}
        SnapshotFolder(tmp_path / "snapshots").save(type(one)(one.sequence, changed))
    log = Counted(folder, CELL)
    found = searched(log, {"round": "t1-10"}, tmp_path)
    assert found == searched(MemoryLog(store), {"round": "t1-10"}, None)
    assert log.read_entries > found[-1].position.sequence, "it began at the beginning"


def test_positions_are_known_as_processes_write_them() -> None:
    for sequence in (1, 127, 128, 20_000, 1 << 40):
        raw = entry_pb2.Event(
            type="t", cause=entry_pb2.Position(segment=1, sequence=sequence, index=7)
        ).SerializeToString(deterministic=True)
        assert find_near.POSITIONS.findall(raw) == [find_near._varint(sequence)]
