"""What a process folds: one reader of the log, the replicas of its services, and the observers that
decide others' answers again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from sabot.log.v1 import events_pb2
from services.kernel.entry import EventTypes
from services.kernel.event import Core, InvariantViolated
from services.kernel.log import Log
from services.kernel.outcomes import Alarm
from services.kernel.reader import LogBroken, LogReader, ReadEntry
from services.kernel.recovery import AnyReplica, Window, entries_until, heads_of, rebuild
from services.kernel.replica import Diverged, Replica
from services.kernel.snapshot import Snapshot, SnapshotSet, SnapshotUnusable, reader_of
from services.kernel.witness import Witnessed

MAX_DIFFERENCES = 100
"""Differences kept whole; the rest is counted."""
MAX_HELD_EVENTS = 50_000
"""Events kept for observers that stand still: some seconds of a busy cell. Beyond it everything
waits for them, since memory would grow without end."""
MAX_NAMED = 10_000
"""Names of snapshots kept, the newest: what is folded anew begins at one of the last."""
MAX_REBUILDS = 3
"""A replica that differs from the record again and again is another build: it stops."""


READ_OTHERWISE = "its chain hash is not the one that was read before"


@dataclass(slots=True)
class _Lost:
    """An observer that found a difference while the log is being read at a start."""

    found: Diverged
    behind: list[ReadEntry] | None = field(default_factory=list[ReadEntry])
    """What it has not read since; None: all up to the end of the log is taken as it stands."""


Kept = Callable[[int], Iterable[SnapshotSet]]
"""The snapshots that are kept and stand before an entry, newest first."""


class Folding:
    """See the module. `observed`: cores that are decided again and compared, and never append.
    `kept`: where what must be folded anew may begin; from nothing without it."""

    def __init__(
        self,
        *,
        log: Log,
        types: EventTypes,
        cores: Sequence[Core[Any]],
        observed: Sequence[Core[Any]],
        writer: str,
        build: str,
        clock: Callable[[], int],
        alarm: Alarm,
        accepted: Mapping[int, bytes] | None,
        kept: Kept | None = None,
    ) -> None:
        self._log = log
        self._kept = kept
        self._types = types
        self._cores = list(cores)
        self._observed = list(observed)
        self._writer = writer
        self._build = build
        self._clock = clock
        self._alarm = alarm
        self._accepted = accepted
        self.reader = self._new_reader()
        self.replicas: dict[str, AnyReplica] = {}
        self.observers: dict[str, AnyReplica] = {}
        self.observed = (0, b"")
        """Entry and chain hash up to which the observers have decided everything again."""
        self._held: deque[tuple[ReadEntry, float]] | None = None
        """While the observers stand still: what they have not read."""
        self._held_events = 0
        self._let_go = asyncio.Event()
        self._stand(None)
        self.differences: list[Diverged] = []
        """Answers that do not follow from the log, as the observers found."""
        self.difference_count = 0
        self._observers_lost: dict[str, _Lost] = {}
        self._read_anew = 0
        """Entries that were read again to fold some service anew."""
        self._answers_given_up = 0
        self._rebuilds: dict[str, int] = {}
        self._snapshots_named: dict[tuple[str, int, bytes], None] = {}
        self.started_from = 0
        """The entry at which the snapshot stood that this began from; 0: from nothing."""
        self.before_replacing: Callable[[str], Awaitable[None]] | None = None
        """Told of a service whose replica is about to be folded anew: it must append no more."""

    @property
    def answers_compared(self) -> int:
        """How many recorded answers the observers have decided again."""
        live = sum(observer.answers_compared for observer in self.observers.values())
        return live + self._answers_given_up

    def snapshots(self) -> list[tuple[Core[Any], Snapshot]]:
        """All states as they stand: observers' where there are any, else replicas'."""
        reader = deepcopy(self.reader.state)
        here = {**self.replicas, **self.observers}
        return [
            (one.core, Snapshot(service, one.core.schema, reader, one.state))
            for service, one in here.items()
        ]

    # ---- standing still ------------------------------------------------------------------------

    def hold(self) -> None:
        """Let the observers stand still until `let_go`, so that another thread may read their
        states, which change in place. They are between two entries."""
        if self._held is not None:
            raise InvariantViolated("the observers stand still already")
        self._held = deque()
        self._held_events = 0
        self._let_go.clear()

    async def let_go(self) -> None:
        """Let the observers read what came meanwhile, entry by entry, and go on."""
        held = self._held
        while held:
            await self._observe(*held.popleft())
            await asyncio.sleep(0)
        self._held = None
        self._let_go.set()

    # ---- starting ------------------------------------------------------------------------------

    def begin_from(self, snapshot_set: SnapshotSet | None, last: int) -> bool:
        """Set everything to where a snapshot was taken, or to the beginning; whether that
        works."""
        if snapshot_set is not None and snapshot_set.sequence > last:
            return False
        self._snapshots_named.clear()
        try:
            self._stand(snapshot_set)
        except SnapshotUnusable as unusable:
            about = {"sequence": snapshot_set.sequence if snapshot_set else 0}
            self._alarm("snapshot_unusable", {**about, "why": str(unusable)})
            return False
        self.started_from = snapshot_set.sequence if snapshot_set else 0
        return True

    def _stand(self, snapshot_set: SnapshotSet | None) -> None:
        """Raises SnapshotUnusable; then nothing has changed."""
        reader = self._new_reader()
        if snapshot_set is not None:
            state = reader_of(next(iter(snapshot_set.raw.values())))
            reader = LogReader(self._log.cell, self._types, state, accepted=self._accepted)
        replicas = {core.service: self._made(core, snapshot_set, "") for core in self._cores}
        observers = {
            core.service: self._made(core, snapshot_set, "-observer") for core in self._observed
        }
        self.replicas, self.observers, self.reader = replicas, observers, reader
        self.observed = (reader.state.sequence, reader.state.head)

    def _made(self, core: Core[Any], snapshot_set: SnapshotSet | None, role: str) -> AnyReplica:
        # Each has a state of its own, decoded anew: states change in place.
        taken = snapshot_set.decode(core) if snapshot_set else None
        return Replica(
            core,
            writer=f"{self._writer}{role}",
            build=self._build,
            state=taken.replica if taken else None,
            wall_time_us=self._clock,
        )

    def is_named(self, snapshot_set: SnapshotSet) -> bool:
        """Whether the log says of every part of a set that audit took it there."""
        services = {core.service for core in (*self._cores, *self._observed)}
        return all(snapshot_set.name_of(service) in self._snapshots_named for service in services)

    async def recover(
        self, last: int, noted: Sequence[Witnessed], hear: Callable[[ReadEntry], None]
    ) -> None:
        """Fold up to entry `last`. `noted`: what this process and others had read before; `hear`:
        told of each entry. Raises LogBroken where the log is not what it was."""
        furthest = max((one.sequence for one in noted), default=0)
        if last < furthest:
            raise LogBroken(
                last + 1,
                f"missing: it was read up to entry {furthest} before, the log ends at {last}",
            )
        heads: dict[int, set[bytes]] = {}
        for one in noted:
            heads.setdefault(one.sequence, set()).add(one.head)
        await self._hold_below(heads)
        no_heads: set[bytes] = set()
        self._observers_lost.clear()
        most_anew = self._read_anew + last - self.reader.state.sequence
        window = Window(list(self.replicas.values()))

        def fed(entry: ReadEntry) -> None:
            self._observe_in_recovery(entry)
            hear(entry)

        window.on_fed = fed
        async for entries in entries_until(self._log, self.reader, last):
            for entry in entries:
                if not heads.get(entry.sequence, no_heads) <= {entry.head}:
                    raise LogBroken(entry.sequence, READ_OTHERWISE)
                try:
                    window.push(entry, _now())
                except Diverged as diverged:
                    await self._rebuild_all(diverged, last, window)
                if self._observers_lost:
                    await self._go_on_behind(most_anew)
            await asyncio.sleep(0)
        try:
            window.drain(_now())
        except Diverged as diverged:
            await self._rebuild_all(diverged, last, window)
            window.drain(_now())
        await self._go_on_behind(most_anew)
        for service, lost in list(self._observers_lost.items()):
            await self._note_difference(service, lost.found, last)
        self._observers_lost.clear()

    async def _hold_below(self, heads: Mapping[int, set[bytes]]) -> None:
        """Hold the log against what was read of it before the place where this begins: a snapshot
        says nothing of that. The chain goes on from the first note, and comes to another hash here
        where that was not this log's. Raises LogBroken."""
        begins, head = self.reader.state.sequence, self.reader.state.head
        below = {sequence: seen for sequence, seen in heads.items() if sequence <= begins}
        if not below:
            return
        first = min(below)
        comes_to, *others = below[first]
        if others:
            raise LogBroken(first, READ_OTHERWISE)
        async for sequence, gives in heads_of(self._log, first, comes_to, begins):
            if not below.get(sequence, {gives}) <= {gives}:
                raise LogBroken(sequence, READ_OTHERWISE)
            comes_to = gives
        if comes_to != head:
            raise LogBroken(begins, "what was read before does not lead to the snapshot there")

    def _observe_in_recovery(self, entry: ReadEntry) -> None:
        self.observed = (entry.sequence, entry.head)
        self._hear_names(entry)
        for service, observer in self.observers.items():
            lost = self._observers_lost.get(service)
            if lost is not None:
                if lost.behind is not None:
                    lost.behind.append(entry)
                continue
            try:
                observer.read(entry, _now())
            except Diverged as diverged:
                self._observers_lost[service] = _Lost(diverged)

    async def _go_on_behind(self, most_anew: int) -> None:
        """Let observers that found a difference at a start go on behind it: there may be more. Not
        where so much was read again for that already that a start would take twice as long: then
        what is left of the log is taken as it stands."""
        for service in list(self._observers_lost):
            lost: _Lost | None = self._observers_lost.pop(service)
            while lost is not None and lost.behind is not None:
                at = lost.found.position.sequence
                if self._read_anew > most_anew:
                    lost.behind = None
                    why = f"from entry {at} to the end nothing was decided again: it takes too long"
                    self._alarm("audit_gave_up", {"service": service, "why": why})
                    break
                await self._note_difference(service, lost.found, at)
                again = self.observers.get(service)
                lost = _read_behind(again, lost.behind) if again is not None else None
            if lost is not None:
                self._observers_lost[service] = lost

    def _hear_names(self, entry: ReadEntry) -> None:
        for event in entry.events:
            if isinstance(event.body, events_pb2.RecordSnapshot):
                named = event.body
                self._snapshots_named[named.service, named.sequence, named.digest] = None
                if len(self._snapshots_named) > MAX_NAMED:
                    del self._snapshots_named[next(iter(self._snapshots_named))]

    async def _rebuild_all(self, diverged: Diverged, last: int, window: Window) -> None:
        """The window was too short for some answer: fold every replica with all answers known. The
        observers go on where they are."""
        self._alarm("answer_differs", {"service": diverged.service, "why": str(diverged)})
        for service in list(self.replicas):
            self.replicas[service] = await self._rebuilt(self.replicas[service].core, last)
        window.let_go_of_replicas()

    # ---- going on ------------------------------------------------------------------------------

    async def fold(self, entry: ReadEntry, now: float) -> list[str]:
        """Fold the next entry. Returns the services whose replica was folded anew."""
        replaced: list[str] = []
        self._hear_names(entry)
        for service, replica in self.replicas.items():
            try:
                replica.read(entry, now)
            except Diverged as diverged:
                await self._replace(service, diverged, entry.sequence)
                replaced.append(service)
        if self._held is None:
            await self._observe(entry, now)
        elif self.observers:
            self._held.append((entry, now))
            self._held_events += len(entry.events)
            if self._held_events > MAX_HELD_EVENTS:
                await self._let_go.wait()
        return replaced

    async def _observe(self, entry: ReadEntry, now: float) -> None:
        for service, observer in list(self.observers.items()):
            try:
                observer.read(entry, now)
            except Diverged as diverged:
                await self._note_difference(service, diverged, entry.sequence)
        self.observed = (entry.sequence, entry.head)

    async def _replace(self, service: str, diverged: Diverged, last: int) -> None:
        """Another replica recorded other answers: its record stands. Take it, and raise an
        alarm."""
        self._alarm("answer_differs", {"service": service, "why": str(diverged)})
        count = self._rebuilds[service] = self._rebuilds.get(service, 0) + 1
        if count > MAX_REBUILDS:
            raise diverged
        if self.before_replacing is not None:
            await self.before_replacing(service)
        self.replicas[service] = await self._rebuilt_before(
            diverged, self.replicas[service].core, last
        )

    async def _note_difference(self, service: str, diverged: Diverged, last: int) -> None:
        """An observed service recorded what does not follow. Its record stands; audit goes on."""
        self.difference_count += 1
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(diverged)
        self._alarm("answer_does_not_follow", {"service": service, "why": str(diverged)})
        lost = self.observers.pop(service)
        try:
            again = await self._rebuilt_before(diverged, lost.core, last)
        except (Diverged, LogBroken) as error:
            # Not even what is recorded can be followed. The others are still audited.
            self._alarm("audit_gave_up", {"service": service, "why": str(error)})
            self._answers_given_up += lost.answers_compared
            return
        # What was folded anew was taken as recorded: it is compared once.
        again.answers_compared = lost.answers_compared
        self.observers[service] = again

    async def _rebuilt_before(self, diverged: Diverged, core: Core[Any], last: int) -> AnyReplica:
        """Fold a service's record anew, from a snapshot where there is one. It must stand before
        the causes of what differs: behind them it holds what was decided here, not what was
        recorded."""
        cause = diverged.recorded.cause.sequence
        if diverged.expected is not None:
            cause = min(cause, diverged.expected.cause.sequence)
        taken: Snapshot | None = None
        self._read_anew += last
        if self._kept is not None:
            # Decoding a large state takes a second.
            taken = await asyncio.to_thread(self._newest_of, self._kept(cause), core)
        if taken is not None:
            self._read_anew -= taken.sequence
            try:
                return await self._rebuilt(core, last, taken)
            except (Diverged, LogBroken) as error:
                about = {"sequence": taken.sequence, "why": f"{type(error).__name__}: {error}"}
                self._alarm("snapshot_unusable", about)
        return await self._rebuilt(core, last)

    def _newest_of(self, kept: Iterable[SnapshotSet], core: Core[Any]) -> Snapshot | None:
        """The first snapshot of a core that can be used and that the log names."""
        for one in kept:
            try:
                taken = one.decode(core)
            except SnapshotUnusable:
                continue
            if one.name_of(core.service) in self._snapshots_named:
                return taken
        return None

    async def _rebuilt(
        self, core: Core[Any], last: int, taken: Snapshot | None = None
    ) -> AnyReplica:
        return await rebuild(
            core,
            log=self._log,
            new_reader=lambda: self._new_reader(taken),
            last=last,
            writer=self._writer,
            build=self._build,
            now=_now,
            pause=lambda: asyncio.sleep(0),
            state=taken.replica if taken is not None else None,
        )

    def _new_reader(self, taken: Snapshot | None = None) -> LogReader:
        # A reader's state changes as it reads, and two begin here.
        state = deepcopy(taken.reader) if taken is not None else None
        return LogReader(self._log.cell, self._types, state, accepted=self._accepted)


def _read_behind(observer: AnyReplica, entries: list[ReadEntry]) -> _Lost | None:
    """Let an observer read on; where it finds a difference, that with what it has not read."""
    for place, entry in enumerate(entries):
        try:
            observer.read(entry, _now())
        except Diverged as diverged:
            return _Lost(diverged, entries[place + 1 :])
    return None


def _now() -> float:
    return asyncio.get_running_loop().time()
