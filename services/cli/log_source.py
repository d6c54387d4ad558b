"""Where a tool reads the log of a data folder: through its running server, or from the raw store.

A store is never opened by a second server, and never by one for reading alone: that would "repair"
it.
"""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from services.kernel.accepted import read_accepted
from services.kernel.embedded import (
    FolderInUse,
    FolderLock,
    find_running,
    noted_cell,
    stream_folder,
)
from services.kernel.jetstream import JetStreamLog
from services.kernel.log import AppendRefused, Log, LogInfo, LogMessage, LogUnavailable
from services.kernel.store_check import BlockNote, StoreNotTheLog, check_store, note_blocks
from services.kernel.store_scan import (
    StoreDamaged,
    StoreMissing,
    before_bytes,
    before_last_block,
    has_store,
    scan_store,
)
from services.kernel.witness import FileWitness, Witnessed

CHECKED = "checked.json"
"""In a data folder: what its store's blocks were when they were last seen to be right."""
CANNOT_BE_WRITTEN = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
BATCH = 100
"""Entries read from the raw store before the event loop gets its turn. Of a busy log each has tens
of events, and who looks for one entry takes the whole batch."""


class NoLog(Exception):
    """There is no log in that folder."""


class StoreLog:
    """A raw store as a `Log` that cannot be appended to, and ends."""

    def __init__(self, folder: Path, cell: str) -> None:
        self._folder = folder
        self._cell = cell
        self._last: int | None = None

    @property
    def cell(self) -> str:
        return self._cell

    async def append(
        self, subject: str, payload: bytes, *, expected: int | None, wait_s: float
    ) -> int:
        del subject, payload, expected, wait_s
        raise AppendRefused("a store that is read raw takes nothing")

    async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        batch: list[LogMessage] = []
        try:
            for message in scan_store(self._folder, after=after):
                batch.append(message)
                if len(batch) == BATCH:
                    yield batch
                    batch = []
                    await asyncio.sleep(0)
        except StoreDamaged as damage:
            if not damage.torn:
                raise LogUnavailable(str(damage)) from damage
        if batch:
            yield batch

    def before(self, needle: bytes) -> int | None:
        """See `before_bytes`."""
        return before_bytes(self._folder, needle)

    async def info(self, *, wait_s: float) -> LogInfo:
        del wait_s
        if self._last is None:
            self._last = before_last_block(self._folder)
            async for batch in self.read(self._last):
                self._last = batch[-1].sequence
        return LogInfo(1, self._last, 0, 0, -1)

    async def close(self) -> None:
        """Nothing is held."""


def witnesses_of(data: Path) -> dict[str, Witnessed]:
    """What the processes of a data folder had read, by their names. Raises WitnessDamaged."""
    found: dict[str, Witnessed] = {}
    folder = data / "witness"
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        seen = FileWitness(path).read()
        if seen is not None:
            found[path.name] = seen
    return found


def check_folder(
    data: Path,
    cell: str,
    *,
    hash_all: bool = False,
    progress: Callable[[int], None] = lambda _sequence: None,
) -> None:
    """Hold the raw store of a data folder, which must be locked, against all that vouches for it.
    A folder that never held a log is right.

    Raises StoreNotTheLog, WitnessDamaged, AcceptedDamaged."""
    folder, witnesses = stream_folder(data, cell), witnesses_of(data)
    accepted = read_accepted(data).entries
    if has_store(folder):
        check_store(
            folder,
            cell,
            witnesses,
            hash_all=hash_all,
            accepted=accepted,
            notes=_notes_of(data),
            progress=progress,
        )
    elif witnesses:
        sequence = max(seen.sequence for seen in witnesses.values())
        raise StoreNotTheLog(1, f"missing: entries 1 to {sequence} were read, the store is gone")


def note_folder(data: Path, cell: str) -> None:
    """Note the store of a data folder as right: it was checked just now, or its server closed it in
    order. The next check then looks at what is new."""
    folder = stream_folder(data, cell)
    if not has_store(folder):
        return
    notes = {name: [note.size, note.sha256] for name, note in note_blocks(folder).items()}
    fresh = data / f"{CHECKED}.new"
    fresh.write_text(json.dumps(notes) + "\n")
    fresh.replace(data / CHECKED)


def _notes_of(data: Path) -> dict[str, BlockNote]:
    """What was noted; nothing where there is no such file, or a damaged one: then all is new."""
    try:
        notes: dict[str, list[Any]] = json.loads((data / CHECKED).read_text())
        return {name: BlockNote(int(size), str(digest)) for name, (size, digest) in notes.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}


@asynccontextmanager
async def open_source(
    data: Path,
    *,
    check: bool = False,
    hash_all: bool = False,
    progress: Callable[[int], None] = lambda _sequence: None,
) -> AsyncIterator[Log]:
    """The log of a data folder. With `check`, a store that is read raw is checked first; with
    `hash_all`, every record's own checksum too.

    Raises NoLog, NoteDamaged, FolderInUse, StoreNotTheLog, StoreMissing, LogUnavailable."""
    cell = noted_cell(data)
    if cell is None:
        raise NoLog(f"there is no log in {data}")
    running = find_running(data)
    lock = FolderLock(data)
    try:
        await lock.acquire(wait_s=0.0)
    except FolderInUse:
        if running is None:
            raise
        raw = False
    except OSError as error:
        # A copy that cannot be written: no server can have it open either.
        if error.errno not in CANNOT_BE_WRITTEN:
            raise
        raw = True
    else:
        raw = True
    if raw or running is None:
        try:
            folder = stream_folder(data, cell)
            if check:
                check_folder(data, cell, hash_all=hash_all, progress=progress)
            if not has_store(folder):
                raise StoreMissing(f"the stream of cell {cell} is gone from {data}")
            yield StoreLog(folder, cell)
        finally:
            lock.release()
        return
    async with through_server(data) as log:
        yield log


@asynccontextmanager
async def through_server(data: Path, name: str = "sabot-tools") -> AsyncIterator[Log]:
    """The log of a data folder through its server, which must be running. Raises NoLog."""
    running = find_running(data)
    if running is None:
        raise NoLog(f"no server runs in {data} any more")
    log = await JetStreamLog.connect(
        [running.client_url],
        running.cell,
        name=name,
        consumer_prefix=running.tools.consumer_prefix,
        user=running.tools.user,
        password=running.tools.password,
        inbox_prefix=running.tools.inbox_prefix,
    )
    try:
        yield log
    finally:
        await log.close()
