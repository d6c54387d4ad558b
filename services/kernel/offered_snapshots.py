"""What a start may begin from: snapshots of this process's own folder and of the cell's bucket,
newest first. One of the bucket is offered only once the log is seen to name it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from typing import Any, Literal

from sabot.log.v1 import events_pb2
from services.kernel import telemetry
from services.kernel.entry import EventTypes
from services.kernel.event import Core, Event
from services.kernel.log import Log
from services.kernel.object_store import StoreAway
from services.kernel.outcomes import Alarm
from services.kernel.reader import LogBroken, LogReader, ReaderState
from services.kernel.recovery import entries_until
from services.kernel.shared_snapshots import SharedSnapshot, SharedSnapshots, whole_sets
from services.kernel.snapshot import (
    KEPT,
    SnapshotFolder,
    SnapshotSet,
    SnapshotUnusable,
    digest,
    reader_of,
)
from services.kernel.telemetry_names import SNAPSHOTS_AWAY, SNAPSHOTS_NONE

NAMED_WITHIN = 200_000
"""Entries behind a snapshot among which the log names it. It does within seconds, of a cell of tens
of thousands of accounts within a minute: their states are encoded first."""
INFO_WAIT_S = 5.0

Origin = Literal["folder", "bucket", "none"]
"""Where a start began: from a snapshot of either, or at the log's first entry."""


async def is_named(
    log: Log,
    types: EventTypes,
    one: SnapshotSet,
    services: Collection[str],
    accepted: Mapping[int, bytes] | None = None,
) -> bool:
    """Whether the log, read on from where a set was taken, says of these services' parts that audit
    took them there, with this chain hash. Raises LogUnavailable and SnapshotUnusable."""
    reader = LogReader(log.cell, types, reader_of(next(iter(one.raw.values()))), accepted=accepted)
    head = reader.state.head
    missing = {one.name_of(service) for service in services}
    last = (await log.info(wait_s=INFO_WAIT_S)).last_sequence
    try:
        async for entries in entries_until(log, reader, min(last, one.sequence + NAMED_WITHIN)):
            for event in (event for entry in entries for event in entry.events):
                body = event.body
                if isinstance(body, events_pb2.RecordSnapshot) and body.head == head:
                    missing.discard((body.service, body.sequence, body.digest))
            if not missing:
                return True
    except LogBroken:
        return False  # Of another log; a reading from elsewhere tells what is broken.
    return False


def events_of(
    log: Log,
    types: EventTypes,
    accepted: Mapping[int, bytes] | None = None,
    before: Callable[[int], Awaitable[ReaderState | None]] | None = None,
) -> Callable[[int], AsyncIterator[tuple[int, bytes, list[Event]]]]:
    """A reader of the log's entries for projections. Log time and the chain of hashes come from the
    log's beginning; a snapshot holds both, so that it need not be read from there each time:
    `before` finds one that was taken no later than an entry. `accepted`: see LogReader."""

    async def read(after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        info = await log.info(wait_s=INFO_WAIT_S)
        state = await before(after) if before is not None else None
        reader = LogReader(log.cell, types, state, accepted=accepted)
        async for entries in entries_until(log, reader, info.last_sequence):
            for entry in entries:
                if entry.sequence > after:
                    yield entry.sequence, entry.head, entry.events
            await asyncio.sleep(0)

    return read


class Offered:
    """See the module. `cores`: all that a start needs a state of."""

    def __init__(
        self,
        folder: SnapshotFolder,
        shared: SharedSnapshots | None,
        cores: Sequence[Core[Any]],
        *,
        log: Log,
        types: EventTypes,
        accepted: Mapping[int, bytes] | None,
        alarm: Alarm,
    ) -> None:
        self._folder = folder
        self._shared = shared
        self._cores = cores
        self._log = log
        self._types = types
        self._accepted = accepted
        self._alarm = alarm
        self._there: list[Mapping[str, SharedSnapshot]] = []
        self._loaded: SnapshotSet | None = None
        """The last one that was found right: projections and the start itself want the same. Not
        kept behind the start: all states of a cell may be large."""
        self._started = False
        self._origins: dict[int, Origin] = {}
        self.read = events_of(log, types, accepted, self.reader_before)
        """Reads the log's entries for projections, from the nearest snapshot on."""

    def origin(self, sequence: int) -> Origin:
        """Where the set that was offered of this entry came from."""
        return self._origins.get(sequence, "none")

    async def look(self) -> None:
        """See what the bucket holds. Before the log's end is asked for: what is told of then is
        named before that."""
        if self._shared is None:
            return
        services = [core.service for core in self._cores]
        self._there = []
        try:
            told = await self._shared.listed(services)
        except StoreAway as error:
            telemetry.logger().warning(SNAPSHOTS_AWAY, why=str(error))
            return
        self._there = whole_sets(told, self._cores)
        if not self._there:
            schemas = {core.service: core.schema for core in self._cores}
            telemetry.logger().warning(SNAPSHOTS_NONE, schemas=schemas, others=len(told))

    async def sets(self) -> AsyncGenerator[SnapshotSet, None]:
        """What there is, newest first; each is read when it is asked for."""
        own = self._folder.sequences()[:KEPT]
        there = {next(iter(one.values())).sequence: one for one in self._there}
        try:
            for sequence in sorted({*own, *there}, reverse=True):
                if sequence in own:
                    for one in self._folder.at([sequence]):
                        self._origins[sequence] = "folder"
                        yield one
                if sequence in there:
                    shared = await self._believed(there[sequence])
                    if shared is not None:
                        self._origins[sequence] = "bucket"
                        yield shared
        finally:
            self._loaded, self._started = None, True

    async def reader_before(self, sequence: int) -> ReaderState | None:
        """What a reader knows at the newest place up to an entry of which there is a snapshot;
        None: it begins at the first entry."""
        for taken in self._folder.older(before=sequence + 1):
            with contextlib.suppress(SnapshotUnusable):
                return reader_of(next(iter(taken.raw.values())))
        if sequence:
            await self.look()
        for one in self._there:
            if next(iter(one.values())).sequence <= sequence:
                shared = await self._believed(one)
                if shared is not None:
                    return reader_of(next(iter(shared.raw.values())))
        return None

    async def _believed(self, parts: Mapping[str, SharedSnapshot]) -> SnapshotSet | None:
        """A set of the bucket, where it is whole and the log names it."""
        first = next(iter(parts.values()))
        about = {"sequence": first.sequence, "where": "bucket"}
        if self._loaded is not None and all(
            digest(self._loaded.raw.get(service, b"")) == one.digest
            for service, one in parts.items()
        ):
            return self._loaded
        if (await self._log.info(wait_s=INFO_WAIT_S)).last_sequence < first.sequence:
            return None  # Of a log that had gone further: this one was put back.
        try:
            made = SnapshotSet(first.sequence, await self._load(parts))
            named = await is_named(self._log, self._types, made, parts.keys(), self._accepted)
        except StoreAway as error:
            telemetry.logger().warning(SNAPSHOTS_AWAY, why=str(error))
            return None
        except SnapshotUnusable as error:
            self._alarm("snapshot_unusable", {**about, "why": str(error)})
            return None
        if not named:
            self._alarm("snapshot_unknown", about)
            return None
        if not self._started:
            self._loaded = made
        return made

    async def _load(self, parts: Mapping[str, SharedSnapshot]) -> dict[str, bytes]:
        if self._shared is None:
            return {}
        raw = {}
        for service, one in parts.items():
            raw[service] = await self._shared.load(one)
            if digest(raw[service]) != one.digest:
                raise SnapshotUnusable(f"{one.stored.name} is not what it is said to be")
        return raw
