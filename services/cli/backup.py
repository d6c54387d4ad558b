"""`sabot backup` and `sabot restore`: a log as a file that proves itself, and back again.

A backup is an export (see `verify_export`), so that what it holds can be checked anywhere, and what
is restored is the log to the byte: the same sequences, headers, payloads and chain of hashes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from services.cli.export import end_export, start_export, write_entry
from services.cli.verify_export import (
    ExportCut,
    Exported,
    NotAnExport,
    first_head,
    next_head,
    read_entries,
    read_start,
    verify,
)
from services.kernel.entry import next_head as log_head
from services.kernel.fence import FENCE_HEADER, fence_headers
from services.kernel.log import AppendUnknown, FenceLost, Log, LogMessage

VERSION = 1
APPEND_WAIT_S = 30.0
"""For one entry to be stored: a restored cluster may be choosing a leader."""
SUBJECT_PARTS = 4
"""`sabot.<cell>.<service>.in` or `.out`."""

Progress = Callable[[int, int], None]
"""Told of (entries done, entries in all)."""


class BackupRefused(Exception):
    """The file is not right, or it and the log do not belong together."""


class RestoreCut(Exception):
    """A restore did not come to its end; what is there is right, and it may be run again."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What a backup file holds now."""

    cell: str
    entries: int
    head: bytes
    added: int
    """Entries that it did not hold before."""
    size: int
    """Bytes of the file."""

    def manifest(self, build: str, made_at_us: int) -> dict[str, Any]:
        """What stands beside the file, for people and schedulers. The file needs it for nothing."""
        return {
            "version": VERSION,
            "cell": self.cell,
            "entries": self.entries,
            "head": self.head.hex(),
            "bytes": self.size,
            "made_at_us": made_at_us,
            "build": build,
        }


@dataclass(frozen=True, slots=True)
class Restored:
    """A log that holds what a backup holds."""

    entries: int
    head: bytes
    added: int


@dataclass(slots=True)
class _End:
    """Where a file ends, whole entries counted."""

    at: int
    sequence: int
    head: bytes
    head_before: bytes
    marked: bool
    """Whether an end is written behind them: not where an early release began the file."""


async def back_up(log: Log, path: Path, progress: Progress) -> BackedUp:
    """Have the file hold all entries that the log has now. One that is there already is checked
    against its own chain and the log, and goes on; an entry that a crash cut off is written anew.

    Raises BackupRefused, LogUnavailable, OSError."""
    last = (await log.info(wait_s=APPEND_WAIT_S)).last_sequence
    fresh = not path.exists()  # noqa: ASYNC240 - the file is written in the same way: nobody waits
    with path.open("w+b" if fresh else "r+b") as file:
        if fresh:
            start_export(file, log.cell)
            head = first_head(log.cell)
            end = _End(file.tell(), 0, head, head, True)
        else:
            end = _end_of(file, log.cell)
            await _belongs(log, end, last)
            file.seek(end.at)
            file.truncate()
        done, head = end.sequence, end.head
        if done < last:
            async for batch in log.read(done):
                for message in batch:
                    if message.sequence <= last:
                        head = write_entry(file, head, message)
                        done = message.sequence
                progress(done, last)
                if done >= last:
                    break
        if end.marked:
            end_export(file, head if done else b"")
        file.flush()
        os.fsync(file.fileno())
        return BackedUp(log.cell, done, head, done - end.sequence, file.tell())


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> Path:
    """Write it beside the backup, whole or not at all; where."""
    beside = path.with_name(f"{path.name}.json")
    part = beside.with_name(f"{beside.name}.new")
    part.write_text(json.dumps(manifest, indent=2) + "\n")
    part.replace(beside)
    return beside


def _end_of(file: BinaryIO, cell: str) -> _End:
    """The end of a file's whole entries, its chain checked on the way. Raises BackupRefused."""
    try:
        start = read_start(file)
    except NotAnExport as error:
        raise BackupRefused(f"it is no backup: {error}") from None
    if start.cell != cell:
        raise BackupRefused(f"it is of the cell {start.cell}, and this log of {cell}")
    head = first_head(cell)
    end = _End(file.tell(), 0, head, head, start.marked)
    try:
        for entry in read_entries(file, start.marked):
            if entry.sequence != end.sequence + 1 or next_head(end.head, entry) != entry.head:
                raise BackupRefused(f"it is damaged at entry {end.sequence + 1}")
            end = _End(file.tell(), entry.sequence, entry.head, end.head, start.marked)
    except NotAnExport:
        pass  # It was cut off while it was written: it goes on from its last whole entry.
    return end


async def _belongs(log: Log, end: _End, last: int) -> None:
    """The log must hold what the file holds. Raises BackupRefused."""
    if last < end.sequence:
        raise BackupRefused(
            f"the log ends at entry {last} and the backup holds {end.sequence}: the log has lost "
            "its end; keep this file, and back up into another"
        )
    if end.sequence:
        async for batch in log.read(end.sequence - 1):
            if _head_after(end.head_before, batch[0]) != end.head:
                raise BackupRefused(f"the log has another entry {end.sequence} than the backup")
            break


def _head_after(head: bytes, message: LogMessage) -> bytes:
    return log_head(head, message.sequence, message.subject, message.headers, message.payload)


# ---- back again ----------------------------------------------------------------------------------

LogOf = Callable[[str], Awaitable[Log]]
"""The log as the user of a service reads it and appends to that service's subjects."""


async def restore(
    path: Path,
    log_of: LogOf,
    reader: Log,
    trusted: frozenset[bytes],
    progress: Progress,
    *,
    cut: bool = False,
) -> Restored:
    """Append what a backup holds to a log that is empty, or holds the backup's beginning already.

    The whole file is checked first: chain, answers, seals, and with `trusted` by whose keys they
    are signed. At the end the log is read back and must give the same chain hash. `cut`: the file
    may have lost its end, and then what it holds whole is restored.

    Raises BackupRefused, RestoreCut, LogUnavailable, AppendRefused."""
    with path.open("rb") as file:
        try:
            found = verify(file, trusted, cut=cut)
        except ExportCut as error:
            raise BackupRefused(f"{error}; --cut restores what it holds whole") from None
        except NotAnExport as error:
            raise BackupRefused(f"it is no backup: {error}") from None
    if not found.right:
        sequence, what = found.faults[0]
        raise BackupRefused(f"it is not right: entry {sequence}: {what}")
    if found.cell != reader.cell:
        raise BackupRefused(f"it is of the cell {found.cell}, and this log of {reader.cell}")
    there = (await reader.info(wait_s=APPEND_WAIT_S)).last_sequence
    if there > found.entries:
        raise BackupRefused(
            f"the log holds {there} entries and the backup {found.entries}: it is no empty log"
        )
    await _same(path, reader, there)
    with path.open("rb") as file:
        for entry in read_entries(file, read_start(file).marked):
            if entry.sequence > there:
                await _append(log_of, entry)
                progress(entry.sequence, found.entries)
            if entry.sequence == found.entries:
                break
    await _same(path, reader, found.entries)
    return Restored(found.entries, found.head, found.entries - there)


async def _append(log_of: LogOf, entry: Exported) -> None:
    subject = entry.subject.decode()
    parts = subject.split(".")
    if len(parts) != SUBJECT_PARTS:
        raise BackupRefused(f"entry {entry.sequence} stands on the subject {subject}")
    log = await log_of(parts[2])
    try:
        stored = await log.append(
            subject, entry.payload, expected=_fence(entry), wait_s=APPEND_WAIT_S
        )
    except (AppendUnknown, FenceLost) as error:
        raise RestoreCut(
            f"entry {entry.sequence} may or may not be stored ({error}); run it again, and where "
            "that is refused, on a stream that is new"
        ) from error
    if stored != entry.sequence:
        raise BackupRefused(
            f"entry {entry.sequence} was stored as {stored}: somebody else writes to this log; "
            "take everything else off it, and restore into a new stream"
        )


def _fence(entry: Exported) -> int | None:
    """The fence that an entry was appended with. It is among its headers, and so in the chain."""
    lines = entry.headers.decode().splitlines()
    headers = {name: value for name, _, value in (line.partition(":") for line in lines)}
    fence = headers.get(FENCE_HEADER)
    expected = None if fence is None else int(fence)
    if headers != fence_headers(expected):
        raise BackupRefused(f"entry {entry.sequence} has headers that no log of ours writes")
    return expected


async def _same(path: Path, log: Log, until: int) -> None:
    """The log's first `until` entries must be the file's. Raises BackupRefused."""
    if not until:
        return
    with path.open("rb") as file:
        start = read_start(file)
        head = first_head(start.cell)
        entries = read_entries(file, start.marked)
        async for batch in log.read(0):
            for message, entry in zip(batch, entries, strict=False):
                head = _head_after(head, message)
                if head != entry.head:
                    raise BackupRefused(
                        f"the log has another entry {message.sequence} than the backup"
                    )
                if entry.sequence >= until:
                    return
