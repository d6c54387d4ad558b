"""A witness that outlives the folder of a process: a row in the database, for each service.

A file beside the process is written before an acknowledgement leaves it (`witness.FileWitness`);
in a cluster it goes with its pod. So what was read is noted in the database too, a moment later and
never on the path of a write: bets go on while the database is away. A start compares the log with
what every service of the cell has noted there.

Several processes note in one row. The highest stands; who finds another hash there than the one it
read stops, since one of the two reads a log that is not the one that was acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress

from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from services.kernel.databases import open_engine
from services.kernel.event import Event
from services.kernel.log import Log, LogUnavailable
from services.kernel.outcomes import Alarm
from services.kernel.projections import ReadEvents
from services.kernel.reader import LogBroken
from services.kernel.schema import Schema, SchemaBehind, make_schema
from services.kernel.witness import Witnessed
from services.kernel.witness_rows import NOTHING, REVISIONS, Turn, all_rows

NOTE_EVERY_S = 0.1
"""The least time between two notes. So much of the log's end, and what a commit takes, may be lost
unnoticed by a pod that has no other memory; its replicas' own notice that too."""
HEADS = 10_000
"""Chain hashes kept in memory, to compare a row with that another process wrote: some seconds of a
busy cell. What is older is read from the log."""
POOL = 1
"""Connections: one writer, and nobody reads."""
AWAY_S = 5.0
"""How long the database may be away before operators are told: a failover takes some seconds."""
ASK_S = 10.0
"""How long a start asks for what was noted: the tables may be being made."""
SCHEMA_S = 300.0
"""How long it waits for who makes the tables: a Job that is applied with a release, or before it.
Beyond that it takes part without them, as while the database is away."""
ANSWER_S = 5.0
"""How long a statement on one row may take."""
RETRY_FIRST_S = 0.1
RETRY_MOST_S = 5.0
"""Pauses before the next attempt while the database is away: doubled each time."""
LOOK_EVERY_S = 0.2
LOOKS = 10
"""How often, and how many times in a row, the log must end before what another process has read
until it is taken for cut: a server that is new to leading answers late, a cut log stays short."""
GONE = (
    "the database does not hold how far the log was read: its row is gone; from now on it is noted "
    "again"
)

_log = logging.getLogger(__name__)


class DatabaseWitness:
    """See the module.

    - service: whose row it is; replicas of it share the row.
    - read_events: reads the log again; see `projections.ReadEvents`.
    - on_broken: told once when the log is not what was noted; nothing may be served from it.
    """

    def __init__(
        self,
        url: str | URL,
        service: str,
        log: Log,
        read_events: ReadEvents,
        *,
        alarm: Alarm,
        on_broken: Callable[[LogBroken], None],
        engine: AsyncEngine | None = None,
        schema: Schema = make_schema,
    ) -> None:
        self._schema = schema
        self.engine = engine or open_engine(url, pool=POOL, answer_s=ANSWER_S)
        self._service = service
        self._cell_log = log
        self._read_events = read_events
        self._alarm = alarm
        self._on_broken = on_broken
        self._newest = NOTHING
        self._heads: dict[int, bytes] = {}
        self._order: deque[int] = deque()
        self._agreed = NOTHING
        """What stood in the row last and is known to be this log's."""
        self._ahead: Witnessed | None = None
        """What another process has read, and this one has not yet."""
        self._migrated = False
        self._away_since: float | None = None
        self._told_away = False
        self._unasked = False
        """Whether it began without having heard from the database."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # ---- a start -------------------------------------------------------------------------------

    async def remembered(self) -> Sequence[Witnessed] | None:
        """What the services of the cell have noted; None where the database does not tell within
        ASK_S, or has no tables within SCHEMA_S. Then the log is held against it as soon as it
        does."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            try:
                await self._migrate()
                rows = await all_rows(self.engine)
            except (SQLAlchemyError, OSError, SchemaBehind) as error:
                self._fails(error)
                patience_s = SCHEMA_S if isinstance(error, SchemaBehind) else ASK_S
                if loop.time() - began < patience_s:
                    await asyncio.sleep(RETRY_FIRST_S)
                    continue
                self._unasked = True
                self._tell_away(error)
                return None
            self._away_since = None
            own = rows.get(self._service)
            if own is not None:
                self._agreed = own  # The start holds the log against it.
            return list(rows.values())

    def expect_nothing(self) -> None:
        """There is nothing to be remembered: where nothing is noted, nothing is missing."""
        self._unasked = False

    def start(self) -> None:
        """Begin to note."""
        self._task = asyncio.create_task(self._run(), name="witness")

    async def close(self) -> None:
        """Note what was read last, where the database answers, and let go of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                with suppress(Exception):
                    self._task.result()
            if self._away_since is None and self._newest.sequence > self._agreed.sequence:
                with suppress(SQLAlchemyError, OSError, LogUnavailable, LogBroken):
                    await self._note()
        await self.engine.dispose()

    # ---- for the process -----------------------------------------------------------------------

    def feed(self, sequence: int, head: bytes, events: list[Event]) -> None:
        """The next entry of the cell was read. Only queues it."""
        del events
        self._newest = Witnessed(sequence, head)
        self._heads[sequence] = head
        self._order.append(sequence)
        if len(self._order) > HEADS:
            self._heads.pop(self._order.popleft(), None)
        self._wake.set()

    # ---- its own task --------------------------------------------------------------------------

    async def _run(self) -> None:
        pause_s = RETRY_FIRST_S
        while True:
            try:
                await self._step()
            except LogBroken as broken:
                self._on_broken(broken)
                return
            except LogUnavailable:
                await asyncio.sleep(LOOK_EVERY_S)  # it has its own alarms
            except Exception as error:  # noqa: BLE001 - whatever it is, bets go on without the row
                self._fails(error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, RETRY_MOST_S)
            else:
                pause_s = RETRY_FIRST_S
                await asyncio.sleep(NOTE_EVERY_S)

    async def _step(self) -> None:
        """Wait for something to note, or for what another process has read; and note."""
        if self._ahead is None and self._away_since is None:
            await self._wake.wait()
        self._wake.clear()
        if not self._migrated:
            await self._migrate()
        if self._newest.sequence:
            await self._note()
        self._away_since = None
        self._told_away = False
        if self._ahead is not None:
            await self._look_ahead()

    async def _note(self) -> None:
        """Let the row stand at the newest entry, unless it stands further on. Raises LogBroken."""
        while True:
            newest = self._newest
            async with Turn(self.engine, self._service) as turn:
                stands = turn.stands
                if stands == NOTHING and (self._agreed.sequence or self._unasked):
                    self._agreed = NOTHING
                    self._alarm("witness_missing", {"service": self._service, "why": GONE})
                self._unasked = False
                agrees = self._agrees(stands)
                if agrees and stands.sequence < newest.sequence:
                    await turn.note(newest)
            if agrees:
                if stands.sequence <= newest.sequence:
                    self._agreed = newest
                return
            await self._ask_the_log(stands)

    def _agrees(self, stands: Witnessed) -> bool:
        """Whether what stands in the row is known to be of this log, or is still to be read.
        Raises LogBroken where it is of another."""
        if stands in (NOTHING, self._agreed):
            return True
        if stands.sequence > self._newest.sequence:
            self._ahead = stands
            return True
        read = self._heads.get(stands.sequence)
        if read is None:
            return False
        self._hold(stands, read)
        return True

    async def _ask_the_log(self, stands: Witnessed) -> None:
        """Hold an entry that was read long ago against the row. Raises LogBroken, and
        LogUnavailable where the log does not tell."""
        reading = self._read_events(stands.sequence - 1)
        try:
            async for sequence, head, _ in reading:
                if sequence == stands.sequence:
                    self._hold(stands, head)
                    self._agreed = stands
                    return
                break
        finally:
            if isinstance(reading, AsyncGenerator):
                await reading.aclose()
        raise LogUnavailable(f"entry {stands.sequence} could not be read again")

    async def _look_ahead(self) -> None:
        """Wait for the entry that another process has read. Raises LogBroken where the log has
        another there, or ends before."""
        ahead, short = self._ahead, 0
        while ahead is not None and self._newest.sequence < ahead.sequence:
            await asyncio.sleep(LOOK_EVERY_S)
            info = await self._cell_log.info(wait_s=1.0)
            short = short + 1 if info.last_sequence < ahead.sequence else 0
            if short >= LOOKS:
                raise LogBroken(
                    info.last_sequence + 1,
                    f"missing: a process of {self._service} has read up to entry "
                    f"{ahead.sequence}, the log ends at {info.last_sequence}",
                )
        if ahead is not None:
            read = self._heads.get(ahead.sequence)
            if read is not None:
                self._hold(ahead, read)
            else:
                await self._ask_the_log(ahead)
        self._ahead = None

    def _hold(self, stands: Witnessed, read: bytes) -> None:
        if stands.head != read:
            raise LogBroken(
                stands.sequence,
                f"its chain hash is not the one that a process of {self._service} has noted in "
                "the database",
            )

    async def _migrate(self) -> None:
        await self._schema(self.engine, REVISIONS)
        self._migrated = True

    # ---- while the database is away ------------------------------------------------------------

    def _fails(self, error: Exception) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._away_since is None:
            self._away_since = now_s
            _log.warning("the witness in the database waits: %s", error)
        elif self._task is not None and now_s - self._away_since > AWAY_S:
            self._tell_away(error)
        # A schema that was dropped is made again.
        self._migrated = False

    def _tell_away(self, error: Exception) -> None:
        """Once each time that it goes away."""
        if not self._told_away:
            self._told_away = True
            why = f"{type(error).__name__}: {error}"
            self._alarm("witness_away", {"service": self._service, "why": why})
