"""Where a tool begins to fold: at a snapshot that the log names, as a start of the fleet does, or
at the beginning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from sabot.log.v1 import events_pb2
from services.audit.snapshots import EVERY_ENTRIES
from services.cli.cores import CORES
from services.cli.skim import SkimReader, skim
from services.events import event_types
from services.kernel.event import Core
from services.kernel.log import Log
from services.kernel.reader import LogBroken, LogReader, ReaderState
from services.kernel.snapshot import (
    Snapshot,
    SnapshotFolder,
    SnapshotSet,
    SnapshotUnusable,
    is_snapshot_of,
    reader_of,
)

NAMED_WITHIN = EVERY_ENTRIES
"""Entries behind a snapshot among which it is looked for by name: it is named within seconds, and
after so many entries there is the next one."""


async def start_for(
    log: Log,
    folder: Path,
    cores: Collection[Core],  # type: ignore[type-arg]  # of any state
    fits: Callable[[ReaderState], bool],
    last: int,
    accepted: Mapping[int, bytes] | None = None,
    before: int | None = None,
) -> SnapshotSet | None:
    """The newest snapshot that fits, of which these cores' parts can be read, and of which every
    core's part is named in the log by its digest; None: fold from the beginning. `last`: where the
    log ends; `before`: an entry before which it must have been taken: no other is opened."""
    found = await start_with(log, folder, cores, fits, last, accepted, before)
    return found[0] if found is not None else None


async def start_with(
    log: Log,
    folder: Path,
    cores: Collection[Core],  # type: ignore[type-arg]  # of any state
    fits: Callable[[ReaderState], bool],
    last: int,
    accepted: Mapping[int, bytes] | None = None,
    before: int | None = None,
) -> tuple[SnapshotSet, dict[str, Snapshot]] | None:
    """The same with these cores' parts, by service: a large one takes a second to read."""
    for one in SnapshotFolder(folder).older(before):
        try:
            reader = reader_of(next(iter(one.raw.values())))
            if one.sequence > last or not fits(reader) or not _is_of_this_release(one):
                continue
            parts = {core.service: one.decode(core) for core in cores}
        except SnapshotUnusable:
            continue
        if await is_named(log, one, one.raw.keys(), last, accepted):
            return one, parts
    return None


def _is_of_this_release(snapshots: SnapshotSet) -> bool:
    """Whether a set has every core's part, each of the schema that it has now."""
    return all(is_snapshot_of(core, snapshots.raw.get(core.service, b"")) for core in CORES)


async def is_named(
    log: Log,
    snapshots: SnapshotSet,
    services: Collection[str],
    last: int,
    accepted: Mapping[int, bytes] | None = None,
) -> bool:
    """Whether the log says of each service's part that audit took it, at this chain hash."""
    types = event_types()
    reader = SkimReader(log.cell, types, reader_of(next(iter(snapshots.raw.values()))), accepted)
    head = reader.state.head
    missing = {snapshots.name_of(service) for service in services}
    try:
        async for entries in skim(log, reader, min(last, snapshots.sequence + NAMED_WITHIN)):
            for entry in entries:
                if entry.read.service != "audit" or not entry.read.is_input:
                    continue
                entry.decode(types)
                for event in entry.read.events:
                    body = event.body
                    if isinstance(body, events_pb2.RecordSnapshot) and body.head == head:
                        missing.discard((body.service, body.sequence, body.digest))
            if not missing:
                return True
    except LogBroken:
        return False  # Of another log; a reading from the beginning names what is broken.
    return False


def reader_at(
    log: Log, snapshots: SnapshotSet | None, accepted: Mapping[int, bytes] | None
) -> LogReader:
    """A reader that goes on behind a snapshot, or begins."""
    if snapshots is None:
        return LogReader(log.cell, event_types(), accepted=accepted)
    state = reader_of(next(iter(snapshots.raw.values())))
    return LogReader(log.cell, event_types(), state, accepted)
