"""`sabot state`: what a service knows at a position of the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from services.cli.cores import CORES
from services.cli.readable import readable
from services.events import event_types
from services.kernel.event import Core, Position
from services.kernel.log import Log
from services.kernel.reader import SEGMENT, LogReader, ReadEntry
from services.kernel.recovery import AnyReplica, Window, entries_until, rebuild
from services.kernel.replica import Diverged, Replica
from services.kernel.snapshot import StateCodec, state_digest

END_OF_ENTRY = 0xFFFFFFFF
"""As an index: everything of the entry."""


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


def parse_position(text: str) -> Position:
    """`1/123/4`, `1/123` or `123`: without an index, all of the entry. Raises ValueError."""
    numbers = [int(part) for part in text.split("/")]
    if len(numbers) == 1:
        numbers.insert(0, SEGMENT)
    if len(numbers) == 2:
        numbers.append(END_OF_ENTRY)
    if len(numbers) != 3 or numbers[0] != SEGMENT or min(numbers) < 0:
        raise ValueError(f"{text!r} is no position; write 1/123/0, or 123 for a whole entry")
    return Position(*numbers)


def place(position: Position) -> str:
    """A position in words that `parse_position` takes."""
    if position.index == END_OF_ENTRY:
        return f"{position.segment}/{position.sequence}"
    return str(position)


async def state_at(
    log: Log,
    service: str,
    at: Position | None = None,
    accepted: Mapping[int, bytes] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> StateAt:
    """Fold a service up to a position, or to the end of the log; answers as they are recorded.

    Raises PositionUnknown, LogBroken, LogUnavailable.
    """
    core: Core[Any] = next(one for one in CORES if one.service == service)
    last = (await log.info(wait_s=5.0)).last_sequence
    at = at or Position(SEGMENT, last, END_OF_ENTRY)
    if at.sequence > last:
        raise PositionUnknown(f"the log ends at entry {last}, before {place(at)}")
    replica: AnyReplica = Replica(core, writer="state")
    reader = LogReader(log.cell, event_types(), accepted=accepted)
    fold = _Fold(replica, at)
    if at.sequence == 0:
        return fold.take(0)
    try:
        await _feed(log, reader, last, fold, progress)
    except Diverged:
        # Some answer was recorded so late that the window could not know it: read twice instead.
        replica = await _rebuilt(core, log, at, accepted)
        return _Fold(replica, at).take(reader.state.time_us)
    if fold.found is None:
        raise PositionUnknown(f"the log has no {place(at)}")
    return fold.found


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


class _Taken(Exception):
    """The state that was asked for has been taken."""


class _Fold:
    """Stops at a position."""

    def __init__(self, replica: AnyReplica, at: Position) -> None:
        self.replica = replica
        self.at = at
        self.found: StateAt | None = None

    def pushed(self, entry: ReadEntry) -> None:
        """Cut the last entry behind the event asked for; its answers are known by now."""
        if entry.sequence == self.at.sequence:
            if self.at.index != END_OF_ENTRY and self.at.index >= len(entry.events):
                raise PositionUnknown(
                    f"entry {entry.sequence} has {len(entry.events)} events, no {place(self.at)}"
                )
            del entry.events[self.at.index + 1 :]
            del entry.protos[self.at.index + 1 :]

    def fed(self, entry: ReadEntry) -> None:
        if entry.sequence == self.at.sequence:
            time_us = entry.events[-1].time_us if entry.events else 0
            self.found = self.take(time_us)
            raise _Taken

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
