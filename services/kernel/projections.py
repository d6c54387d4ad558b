"""Projections: what may be asked of a log, kept in SQL beside it.

A `Projector` takes every entry of the cell in log order, folds it by its `Projection` and commits
the changed rows together with the position and chain hash that they stand for. It is never on the
path of a write: feeding it only queues; a database that is away is tried again while everything
else goes on; a queue that overflows is dropped and read from the log later.

Its position is also a witness. Where the log is shorter than the projection, or another one, it
refuses to go on (`ProjectionAhead`): rebuilding is somebody's explicit act.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.kernel.databases import is_away, open_engine, reading
from services.kernel.event import Event, Position
from services.kernel.log import LogUnavailable
from services.kernel.projection_queue import Entry, EntryQueue, OtherEntry
from services.kernel.projection_store import Mark, Overtaken, Projection, ProjectionStore
from services.kernel.row_changes import Changes
from services.kernel.schema import Schema, SchemaBehind, make_schema

SEGMENT = 1
"""The only segment so far of every cell's log."""
END_OF_ENTRY = 0xFFFFFFFF
"""As an index: everything of the entry."""
MAX_QUEUED_EVENTS = 50_000
"""Events that wait to be projected: some seconds of a busy cell. Beyond it memory would grow with
every second that the database is away, and reading the log again is as quick."""
BATCH_EVENTS = 4_000
"""Events of one transaction: enough that a commit costs little, so few that others on the same
database are not kept waiting."""
SLICE_EVENTS = 200
"""Events folded before the event loop gets its turn: about a millisecond."""
GATHER_S = 0.1
HURRY_S = 0.01
"""The least time between two commits, while nobody waits for a position and while somebody does. A
commit costs the event loop about a millisecond, whatever it holds."""
RETRY_FIRST_S = 0.1
RETRY_MOST_S = 5.0
"""Pauses before the next attempt while the database or the log is away: doubled each time."""
FOLLOW_S = 0.1
FOLLOW_HURRY_S = 0.02
"""How often a replica looks how far the one is that writes, while nobody waits here for a position
and while somebody does."""
TAKE_OVER_S = 1.0
"""How long that one may stand still with entries to take before another takes its place."""
CLOSE_WAIT_S = 5.0
"""How long `close` waits for the last batch."""

Reading = AsyncIterator[tuple[int, bytes, list[Event]]]
ReadEvents = Callable[[int], Reading]
"""`read_events(after_sequence)`: every entry of the log after a sequence, in order, as (sequence,
chain hash, events), to the end that the log had when it was asked, or beyond. It may raise
`LogUnavailable`, which is tried again."""

_log = logging.getLogger(__name__)


class ProjectionAhead(Exception):
    """A projection has seen entries that the log does not hold: the log lost its tail or is another
    one. Nobody but an operator may decide to go on (and rebuild)."""

    def __init__(self, name: str, mark: Mark, sequence: int | None, head: bytes | None) -> None:
        if head is not None:
            found = f"the log has {head.hex()[:16]} at {mark.segment}/{sequence}"
        elif sequence is not None:
            found = f"the log ends at {mark.segment}/{sequence}"
        else:
            found = f"the log ends before {mark.segment}/{mark.sequence}"
        super().__init__(
            f"projection {name} stands at {mark.segment}/{mark.sequence} with head "
            f"{mark.head.hex()[:16]}, but {found}"
        )
        self.name = name
        self.mark = mark
        self.log_sequence = sequence
        self.log_head = head


class ProjectionUnavailable(Exception):
    """The projection's database cannot be read now. Try again later."""


class _Batch(NamedTuple):
    before: Mark
    after: Mark
    changes: Changes
    entries: list[Entry]


class Projector:
    """Keeps one projection in one database.

    - url: SQLAlchemy's, `sqlite+aiosqlite:///…` or `postgresql+asyncpg://…`.
    - read_events: reads the log again; see `ReadEvents`.
    - schema: makes its tables, or waits for who does.
    - on_failure: told once when it stops for good (a bug in the projection, `ProjectionAhead`).
    """

    def __init__(
        self,
        projection: Projection,
        url: str | URL,
        read_events: ReadEvents,
        *,
        on_failure: Callable[[Exception], None] | None = None,
        max_queued_events: int = MAX_QUEUED_EVENTS,
        engine: AsyncEngine | None = None,
        schema: Schema = make_schema,
    ) -> None:
        self.projection = projection
        self.engine = engine or open_engine(url)
        self._to_read = reading(self.engine)
        self._schema = schema
        self._read_events = read_events
        self._on_failure = on_failure
        self._store = ProjectionStore(self.engine, projection, SEGMENT)
        self._queue = EntryQueue(max_queued_events)
        self._mark = Mark(SEGMENT, 0, b"")
        self._batch: _Batch | None = None
        self._reading: Reading | None = None
        self._migrated = False
        self._open = False
        self._suspect = False
        self._follows = False
        self._moved_s = 0.0
        self._caught_up = False
        self._rebuild = False
        self._stopping = False
        self._last_commit_s = 0.0
        self._waiting = 0
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._advanced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.error: Exception | None = None
        """Why it stopped for good."""
        self.away: Exception | None = None
        """Why the database or the log cannot be used now; None while all is well."""
        self.catch_ups = 0
        """How often it read from the log."""
        self.events = 0
        """Events committed by this process."""

    # ---- for the process -----------------------------------------------------------------------

    async def start(self, *, wait_s: float = 5.0, rebuild: bool = False) -> bool:
        """Begin, from the committed position or (`rebuild`) from nothing. Returns whether the
        database answered within `wait_s` seconds; where not, it goes on trying by itself.

        Raises ProjectionAhead, and what else stopped it for good.
        """
        self._rebuild = rebuild
        self._task = asyncio.create_task(self._run(), name=f"projection {self.projection.name}")
        await self._until(lambda: self._open, wait_s)
        if self.error is not None:
            raise self.error
        return self._open

    def feed(self, sequence: int, head: bytes, events: list[Event]) -> None:
        """The next entry of the cell, with all its events, as it is folded. Only queues it.

        Entries that are in already are passed over; after a gap it reads from the log.
        """
        if self.error is not None:
            return
        self._queue.put(Entry(sequence, head, events))
        self._wake.set()
        if self._queue.events >= BATCH_EVENTS:
            self._hurry.set()

    async def rebuild(self, *, wait_s: float | None = None) -> bool:
        """Empty the tables and fold the log from its beginning; whether that was done within
        `wait_s` seconds. Meanwhile queries see what is folded so far, and `position` says so."""
        self._rebuild = True
        self._open = False
        self._wake.set()
        await self._until(lambda: self._open and self._caught_up, wait_s)
        if self.error is not None:
            raise self.error
        return self._open and self._caught_up

    async def close(self) -> None:
        """Commit what is queued, within CLOSE_WAIT_S seconds, and let go of the database."""
        self._stopping = True
        self._wake.set()
        self._hurry.set()
        if self._task is not None:
            done, _ = await asyncio.wait([self._task], timeout=CLOSE_WAIT_S)
            if not done:
                self._task.cancel()
                await asyncio.wait([self._task])
        await self.engine.dispose()

    # ---- for queries ---------------------------------------------------------------------------

    @property
    def position(self) -> Position:
        """Everything up to here is in the tables."""
        return Position(self._mark.segment, self._mark.sequence, END_OF_ENTRY)

    @property
    def head(self) -> bytes:
        """The log's chain hash at the last entry that is in."""
        return self._mark.head

    @property
    def lag(self) -> int:
        """How many entries it is behind what it was fed."""
        return max(0, self._queue.last - self._mark.sequence)

    async def reached(self, position: Position, wait_s: float) -> bool:
        """Wait until everything up to `position` is in; whether it was, within `wait_s` seconds."""
        wanted = (position.segment, position.sequence)
        return await self._until(
            lambda: self._open and (self._mark.segment, self._mark.sequence) >= wanted, wait_s
        )

    async def caught_up(self, wait_s: float) -> bool:
        """Wait until it has read to the end of the log once since it was opened."""
        return await self._until(lambda: self._open and self._caught_up, wait_s)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """A connection to read by. Raises ProjectionUnavailable."""
        if not self._migrated:
            raise ProjectionUnavailable(f"projection {self.projection.name} is not open yet")
        try:
            async with self._to_read.connect() as connection:
                yield connection
        except Exception as error:
            if is_away(error):
                raise ProjectionUnavailable(f"projection {self.projection.name}") from error
            raise

    async def _until(self, holds: Callable[[], bool], wait_s: float | None) -> bool:
        """Wait until something holds; it is asked after each commit, and when all is over."""
        loop = asyncio.get_running_loop()
        end_s = None if wait_s is None else loop.time() + wait_s
        self._waiting += 1
        self._hurry.set()
        try:
            while not holds():
                if self.error is not None or (self._task is not None and self._task.done()):
                    return False
                advanced = self._advanced
                try:
                    async with asyncio.timeout_at(end_s):
                        await advanced.wait()
                except TimeoutError:
                    return holds()
            return True
        finally:
            self._waiting -= 1

    # ---- its own task --------------------------------------------------------------------------

    async def _run(self) -> None:
        pause_s = RETRY_FIRST_S
        try:
            while not (self._stopping and self._idle()):
                try:
                    await self._step()
                except Overtaken:
                    self._give_way()
                except OtherEntry as other:
                    raise ProjectionAhead(
                        self.projection.name, self._mark, other.sequence, other.head
                    ) from None
                except Exception as error:
                    if not (is_away(error) or isinstance(error, LogUnavailable | SchemaBehind)):
                        raise
                    if self._stopping:
                        return
                    self._say_away(error)
                    self._suspect = True
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, RETRY_MOST_S)
                else:
                    pause_s = RETRY_FIRST_S
                    self.away = None
        except Exception as error:  # noqa: BLE001  # kept, logged and told; bets go on without it
            self.error = error
            self._queue.clear()
            _log.exception("projection %s stopped", self.projection.name)
            if self._on_failure is not None:
                self._on_failure(error)
        finally:
            await self._stop_reading()
            self._announce()

    async def _stop_reading(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            await _end(reading)

    def _idle(self) -> bool:
        return not self._open or self._follows or (self._batch is None and not self._queue)

    def _say_away(self, error: Exception) -> None:
        if self.away is None:
            _log.warning("projection %s waits: %s", self.projection.name, error)
        self.away = error

    async def _step(self) -> None:
        """One thing: open, make sure after an error, keep up with another replica, read from the
        log, or commit a batch."""
        if not self._open:
            await self._begin()
        elif self._suspect:
            await self._make_sure()
        elif self._follows:
            await self._follow()
        elif self._batch is not None:
            await self._commit()
        elif not self._caught_up:
            await self._catch_up()
        else:
            await self._take_queued()

    async def _begin(self) -> None:
        if not self._migrated:
            await self._schema(self.engine, self.projection.migrations)
            self._migrated = True
        self._batch = None
        await self._stop_reading()
        if self._rebuild:
            await self._store.clear()
        self._mark = await self._store.load()
        self._reading = await self._hold_against_log()
        self._rebuild = False
        self._suspect = False
        self._follows = False
        self._caught_up = False
        self._open = True
        self._announce()

    async def _hold_against_log(self) -> Reading | None:
        """The log must hold what this projection has seen. Returns where it may be read on from."""
        mark = self._mark
        if not mark.sequence:
            return None
        reading = self._read_events(mark.sequence - 1)
        sequence, head = None, None
        async for sequence, head, _ in reading:
            if (sequence, head) == (mark.sequence, mark.head):
                return reading
            break
        await _end(reading)
        if sequence is None and 0 < self._queue.last < mark.sequence:
            sequence = self._queue.last
        raise ProjectionAhead(self.projection.name, mark, sequence, head)

    async def _make_sure(self) -> None:
        """After an error: whose commit stands? A commit whose answer was lost may have been done,
        and another replica may have been first."""
        stands = await self._store.mark()
        batch = self._batch
        if batch is not None and stands == batch.after:
            self._committed(batch)
        elif stands != self._mark:
            self._give_way()
        self._suspect = False

    def _give_way(self) -> None:
        """Another replica writes to this database: two that race would undo one another's work."""
        if self._batch is not None:
            self._queue.put_back(self._batch.entries)
            self._batch = None
        self._follows = True
        self._moved_s = asyncio.get_running_loop().time()

    async def _follow(self) -> None:
        """Keep up with the replica that writes; take its place when it stands still."""
        now_s = asyncio.get_running_loop().time()
        stands = await self._store.mark()
        if stands != self._mark:
            self._mark = stands
            self._moved_s = now_s
            self._announce()
        self._queue.pass_over(stands)
        if self._queue.last <= stands.sequence:
            self._moved_s = now_s
            self._caught_up = True
        elif now_s - self._moved_s > TAKE_OVER_S:
            self._mark = await self._store.load()
            self._queue.pass_over(self._mark)
            self._caught_up = self._queue.meets(self._mark.sequence)
            self._follows = False
            return
        await asyncio.sleep(FOLLOW_HURRY_S if self._waiting else FOLLOW_S)

    async def _take_queued(self) -> None:
        """Wait for entries, and make them a batch."""
        if not self._queue:
            self._wake.clear()
            if self._queue.last > self._mark.sequence:
                self._caught_up = False  # What lay between was dropped.
            elif not self._stopping:
                await self._wake.wait()
            return
        await self._gather()
        entries = self._queue.take(self._mark, BATCH_EVENTS)
        if entries:
            await self._fold(entries)
        elif self._queue:
            self._caught_up = False

    async def _gather(self) -> None:
        """Let entries come together, unless enough are there."""
        now_s = asyncio.get_running_loop().time()
        if self._queue.events >= BATCH_EVENTS or self._stopping:
            return
        await asyncio.sleep(max(0.0, self._last_commit_s + HURRY_S - now_s))
        with suppress(TimeoutError):
            async with asyncio.timeout(self._last_commit_s + GATHER_S - now_s):
                await self._hurry.wait()
        if not self._waiting and not self._stopping:
            self._hurry.clear()

    async def _catch_up(self) -> None:
        """Read from the log what is missing, until the queue goes on from there."""
        self.catch_ups += 1
        begun_at = self._mark.sequence
        entries: list[Entry] = []
        count = 0
        expected = self._mark.sequence + 1
        reading, self._reading = self._reading or self._read_events(self._mark.sequence), None
        try:
            async for sequence, head, events in reading:
                if sequence != expected:
                    raise LogUnavailable(f"entry {expected} is missing before {sequence}")
                entries.append(Entry(sequence, head, events))
                expected += 1
                count += len(events)
                if count >= BATCH_EVENTS:
                    await self._fold(entries)
                    await self._commit()
                    entries, count = [], 0
                if self._stopping or self._rebuild or self._queue.meets(sequence):
                    break
        finally:
            await _end(reading)
        if entries:
            await self._fold(entries)
            await self._commit()
        last = self._queue.last
        if last <= self._mark.sequence or self._queue.meets(self._mark.sequence):
            self._caught_up = True
            self._announce()
        elif self._stopping:
            self._queue.clear()
        elif self._mark.sequence == begun_at:
            await asyncio.sleep(GATHER_S)  # The log's reader is itself a little behind.

    async def _fold(self, entries: list[Entry]) -> None:
        """Fold entries into a batch, which is then committed, however often that is tried."""
        changes = Changes()
        slice_: list[Event] = []
        for entry in entries:
            slice_.extend(entry.events)
            if len(slice_) >= SLICE_EVENTS:
                self.projection.apply(slice_, changes)
                slice_ = []
                await asyncio.sleep(0)
        self.projection.apply(slice_, changes)
        last = entries[-1]
        self._batch = _Batch(self._mark, Mark(SEGMENT, last.sequence, last.head), changes, entries)

    async def _commit(self) -> None:
        batch = self._batch
        if batch is None:
            return
        await self._store.commit(batch.before, batch.after, batch.changes)
        self._committed(batch)

    def _committed(self, batch: _Batch) -> None:
        self._batch = None
        self._mark = batch.after
        self.events += sum(len(entry.events) for entry in batch.entries)
        self._last_commit_s = asyncio.get_running_loop().time()
        self._announce()

    def _announce(self) -> None:
        advanced, self._advanced = self._advanced, asyncio.Event()
        advanced.set()


async def _end(reading: Reading) -> None:
    """Let go of a reader, where it is a generator."""
    if isinstance(reading, AsyncGenerator):
        await reading.aclose()
