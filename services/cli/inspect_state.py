"""`sabot state`: what a service knows at a position of the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.cli.cores import CORES
from services.cli.moments import At, Moment, place, written
from services.cli.readable import readable
from services.cli.starts import reader_at, start_for
from services.cli.state_checkpoint import StateCheckpoint
from services.events import event_types
from services.kernel.event import Core, Event, Position
from services.kernel.log import Log
from services.kernel.reader import END_OF_ENTRY, SEGMENT, LogReader, ReadEntry, ReaderState
from services.kernel.recovery import AnyReplica, Window, entries_until, rebuild
from services.kernel.replica import Diverged, Replica
from services.kernel.snapshot import StateCodec, state_digest


class PositionUnknown(Exception):
    """The log has no such position."""


@dataclass(frozen=True, slots=True)
class StateAt:
    """A state, folded up to a position."""

    service: str
    position: Position
    log_time_us: int
    digest: str
    """SHA-256 of the whole state: equal states, equal digests."""
    unanswered: int
    """Answers that are decided and not recorded up to there."""
    state: Any
    """As JSON."""

    def json(self) -> dict[str, Any]:
        return {
            "service": self.service,
            "position": place(self.position),
            "log_time_us": self.log_time_us,
            "digest": self.digest,
            "unanswered": self.unanswered,
            "state": self.state,
        }


async def state_at(
    log: Log,
    service: str,
    at: At | None = None,
    accepted: Mapping[int, bytes] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
    snapshots: Path | None = None,
    kept: StateCheckpoint | None = None,
) -> StateAt:
    """Fold a service up to a position or log time, or to the end of the log; answers as they are
    recorded. `snapshots`: a folder of them, where there is one: the newest before that place saves
    the folding of what it holds. `kept`: where an interruption leaves how far it is.

    Raises PositionUnknown, LogBroken, LogUnavailable, CheckpointUnusable.
    """
    core: Core[Any] = next(one for one in CORES if one.service == service)
    last = (await log.info(wait_s=5.0)).last_sequence
    at = at or Position(SEGMENT, last, END_OF_ENTRY)
    if isinstance(at, Position) and at.sequence > last:
        raise PositionUnknown(f"the log ends at entry {last}, before {place(at)}")
    start = None
    if snapshots is not None:
        start = await start_for(log, snapshots, [core], _before(at), last, accepted)
    if isinstance(at, Moment):
        at = await _position_at(log, at, reader_at(log, start, accepted), last)
    taken = start.decode(core).replica if start is not None else None
    reader = reader_at(log, start, accepted)
    if kept is not None:
        further = await kept.begin(log, core, reader, at.sequence, accepted)
        taken, reader = further or (taken, reader)
    replica: AnyReplica = Replica(core, writer="state", state=taken)
    fold = _Fold(replica, at)
    if at.sequence == reader.state.sequence:
        return fold.take(reader.state.time_us)
    try:
        await _feed(log, reader, last, fold, progress)
    except asyncio.CancelledError:
        sequence, head = fold.last_fed
        if kept is not None and 0 < sequence < at.sequence:
            kept.keep(replica, sequence, head)
        raise
    except Diverged:
        # Some answer was recorded so late that the window could not know it: read twice instead.
        if kept is not None:
            kept.remove()
        replica = await _rebuilt(core, log, at, accepted)
        return _Fold(replica, at).take(fold.time_us)
    if fold.found is None:
        raise PositionUnknown(f"the log has no {place(at)}")
    if kept is not None:
        kept.remove()
    return fold.found


def _before(at: At) -> Callable[[ReaderState], bool]:
    """Whether a snapshot stands no later than a place. One in the middle of nothing: all events of
    its last entry are folded in."""
    if isinstance(at, Moment):
        return lambda reader: reader.time_us <= at.time_us
    if at.index == END_OF_ENTRY:
        return lambda reader: reader.sequence <= at.sequence
    return lambda reader: reader.sequence < at.sequence


async def _position_at(log: Log, moment: Moment, reader: LogReader, last: int) -> Position:
    """The last event that is no later than a moment; nothing is folded to find it."""
    found = Position(SEGMENT, reader.state.sequence, END_OF_ENTRY)
    async for entries in entries_until(log, reader, last):
        for entry in entries:
            later = [place for place, one in enumerate(entry.events) if _after(one, moment)]
            if later:
                return Position(SEGMENT, entry.sequence, later[0] - 1) if later[0] else found
            found = Position(SEGMENT, entry.sequence, END_OF_ENTRY)
        await asyncio.sleep(0)
    if reader.state.time_us < moment.time_us:
        raise PositionUnknown(f"the log ends at {written(reader.state.time_us)}, before {moment}")
    return found


def _after(event: Event, moment: Moment) -> bool:
    return event.time_us > moment.time_us


async def _feed(
    log: Log,
    reader: LogReader,
    last: int,
    fold: _Fold,
    progress: Callable[[int, int, int], None] | None,
) -> None:
    window = Window([fold.replica])
    window.on_fed = fold.fed
    events = 0
    try:
        async for entries in entries_until(log, reader, last):
            for entry in entries:
                events += len(entry.events)
                window.push(entry, 0.0)
                fold.pushed(entry)
            if progress is not None:
                progress(min(reader.state.sequence, fold.at.sequence), fold.at.sequence, events)
            await asyncio.sleep(0)
        window.drain(0.0)
    except _Taken:
        return
    fold.ended()


class _Taken(Exception):
    """The state that was asked for has been taken."""


class _Fold:
    """Stops at a position."""

    def __init__(self, replica: AnyReplica, at: Position) -> None:
        self.replica = replica
        self.at = at
        self.found: StateAt | None = None
        self.time_us = 0
        self.last_fed = (0, b"")
        """The last entry that the replica has folded, between two batches, and the chain hash."""
        self._pushed = False

    def pushed(self, entry: ReadEntry) -> None:
        """Cut the last entry behind the event asked for; its answers are known by now."""
        if entry.sequence > self.at.sequence:
            return
        if entry.sequence == self.at.sequence:
            self._pushed = True
            if self.at.index != END_OF_ENTRY and self.at.index >= len(entry.events):
                raise PositionUnknown(
                    f"entry {entry.sequence} has {len(entry.events)} events, no {place(self.at)}"
                )
            del entry.events[self.at.index + 1 :]
            del entry.protos[self.at.index + 1 :]
        if entry.events:
            self.time_us = entry.events[-1].time_us

    def fed(self, entry: ReadEntry) -> None:
        """An entry is about to be folded: one behind the place asked for is not."""
        if entry.sequence > self.at.sequence:
            self.found = self.take(self.time_us)
            raise _Taken
        self.last_fed = (entry.sequence, entry.head)

    def ended(self) -> None:
        """The log ended; all of it is folded."""
        if self._pushed:
            self.found = self.take(self.time_us)

    def take(self, time_us: int) -> StateAt:
        state, core = self.replica.state, self.replica.core
        return StateAt(
            core.service,
            self.at,
            time_us,
            state_digest(StateCodec(), core, state.core),
            len(state.pending),
            readable(state.core),
        )


async def _rebuilt(
    core: Core[Any], log: Log, at: Position, accepted: Mapping[int, bytes] | None
) -> AnyReplica:
    return await rebuild(
        core,
        log=log,
        new_reader=lambda: LogReader(log.cell, event_types(), accepted=accepted),
        last=at.sequence,
        writer="state",
        build="",
        now=lambda: 0.0,
        pause=lambda: asyncio.sleep(0),
    )
