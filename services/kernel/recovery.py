"""From stored entries to folded replicas: recovery, replay and rebuilding.

One reading pass. Entries pass through a window; a service's recorded answers are known as soon as
they enter it, so when their cause leaves it they are taken instead of decided. What is not recorded
within the window is decided, and compared when its record comes. Thus an old log folds to what was
said when it was written, memory stays bounded, and the log is read once for all services.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from sabot.log.v1 import entry_pb2
from services.kernel.entry import next_head
from services.kernel.event import Core
from services.kernel.log import Log, LogMessage
from services.kernel.reader import LogBroken, LogReader, ReadEntry
from services.kernel.replica import Replica, ReplicaState

WINDOW_EVENTS = 20_000
"""Events held in the window: answers come within a few hundred events of their cause unless a
service stood still; 20,000 are about 20 MB."""

AnyReplica = Replica[Any]


class Window:
    """Feeds replicas with entries, their own recorded answers known some way ahead."""

    def __init__(self, replicas: Sequence[AnyReplica], events: int = WINDOW_EVENTS) -> None:
        self._replicas = replicas
        self._events = events
        self._entries: deque[ReadEntry] = deque()
        self._held = 0
        self._fed: int | None = None
        """The last entry that the replicas have folded; known with the first one that comes: they
        may begin at a snapshot."""
        self._ahead: dict[str, deque[entry_pb2.Event]] = {
            replica.core.service: deque() for replica in replicas
        }
        self.on_fed: Callable[[ReadEntry], None] | None = None
        """Told of each entry that leaves the window, before the replicas are."""

    def push(self, entry: ReadEntry, now: float) -> None:
        """Take the next entry; feed those that leave the window."""
        if self._fed is None:
            self._fed = entry.sequence - 1
        self._entries.append(entry)
        self._held += len(entry.protos)
        if not entry.is_input and entry.service in self._ahead:
            ahead = self._ahead[entry.service]
            # A cause that was fed already has been decided: its record will be compared.
            fed = self._fed
            ahead.extend(proto for proto in entry.protos if proto.cause.sequence > fed)
        while self._held > self._events:
            self._feed(now)

    def drain(self, now: float) -> None:
        """Feed all that is left: the log ends here."""
        while self._entries:
            self._feed(now)
        for service, ahead in self._ahead.items():
            if ahead:
                raise LogBroken(
                    ahead[0].cause.sequence, f"{service} answered an event that it does not fold"
                )

    def let_go_of_replicas(self) -> None:
        """Feed no replicas any more: they were folded some other way. `on_fed` still hears of every
        entry."""
        self._replicas = []
        self._ahead = {}

    def _feed(self, now: float) -> None:
        entry = self._entries.popleft()
        self._held -= len(entry.protos)
        self._fed = entry.sequence
        if self.on_fed is not None:
            self.on_fed(entry)
        for replica in self._replicas:
            replica.read(entry, now, self._ahead[replica.core.service])


async def entries_until(log: Log, reader: LogReader, last: int) -> AsyncIterator[list[ReadEntry]]:
    """Read on until entry `last` is read, in batches. Raises LogBroken."""
    if reader.state.sequence >= last:
        return
    messages = log.read(reader.state.sequence)
    try:
        async for batch in messages:
            entries = [
                read_message(reader, message) for message in batch if message.sequence <= last
            ]
            yield entries
            if reader.state.sequence >= last:
                return
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract


async def heads_of(
    log: Log, after: int, head: bytes, until: int
) -> AsyncIterator[tuple[int, bytes]]:
    """The chain hashes behind entry `after`, whose own is `head`, up to entry `until`. Raises
    LogBroken where an entry is missing."""
    if after >= until:
        return
    messages = log.read(after)
    try:
        async for batch in messages:
            for one in batch:
                if one.sequence != after + 1:
                    raise LogBroken(after + 1, "missing")
                after = one.sequence
                head = next_head(head, after, one.subject, one.headers, one.payload)
                yield after, head
                if after == until:
                    return
            await asyncio.sleep(0)
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    raise LogBroken(after + 1, "missing")


def read_message(reader: LogReader, message: LogMessage) -> ReadEntry:
    """A stored message as an entry. Raises LogBroken."""
    return reader.read(message.sequence, message.subject, message.headers, message.payload)


async def rebuild(
    core: Core[Any],
    *,
    log: Log,
    new_reader: Callable[[], LogReader],
    last: int,
    writer: str,
    build: str,
    now: Callable[[], float],
    pause: Callable[[], Awaitable[None]],
    state: ReplicaState[Any] | None = None,
) -> AnyReplica:
    """A replica from nothing up to entry `last`, every recorded answer taken as it stands. Two
    passes: however late an answer was recorded, it is known when its cause is folded.

    `state`: of a snapshot, to begin from; `new_reader` then gives one that stands there. What was
    decided before it and recorded behind it is compared. Raises Diverged and LogBroken."""
    recorded: deque[entry_pb2.Event] = deque()
    reader = new_reader()
    begins = reader.state.sequence
    async for entries in entries_until(log, reader, last):
        for entry in entries:
            if entry.service == core.service and not entry.is_input:
                recorded.extend(one for one in entry.protos if one.cause.sequence > begins)
        await pause()
    replica: AnyReplica = Replica(
        core, writer=writer, build=build, state=state or ReplicaState(core.initial())
    )
    reader = new_reader()
    async for entries in entries_until(log, reader, last):
        for entry in entries:
            replica.read(entry, now(), recorded or None)
        await pause()
    return replica
