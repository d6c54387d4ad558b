"""A process's attachment to a cell: reads the log, runs replicas, appends, answers callers.

Everything that waits is here; everything that decides is in `reader`, `replica`, `input_writer` and
the cores. The order of things in one process:

1. Entries come from the log in order, are read once, and folded by every replica that lives here.
2. The witness notes how far that is. Only then do callers learn outcomes and shells act.
3. Answers and inputs that wait are appended, one append at a time on each subject.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Protocol

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2
from services.kernel.appending import LOG_IS_FULL, Appending
from services.kernel.edge import EdgeBusy, EdgeNotReady, LogIsFull, Outcome, OutcomeUnknown
from services.kernel.entry import EventTypes
from services.kernel.event import Core, Event, Position
from services.kernel.folding import Folding, Kept
from services.kernel.log import Log, LogMessage, LogUnavailable
from services.kernel.log_end import LogEnd
from services.kernel.outcomes import Alarm, Outcomes, Submitted
from services.kernel.reader import END_OF_ENTRY, SEGMENT, LogBroken, ReadEntry
from services.kernel.recovery import AnyReplica, read_message
from services.kernel.replica import BehaviourUnknown
from services.kernel.shared_snapshots import SharedSnapshots
from services.kernel.shells import Shell, Shells
from services.kernel.snapshot import Snapshot, SnapshotSet
from services.kernel.tasks import Tasks
from services.kernel.telemetry import Tracing
from services.kernel.telemetry_names import AlarmKind
from services.kernel.traced import trace_entry
from services.kernel.witness import Witness, Witnessed

BUSY_AFTER_S = 1.0
"""An input that has waited so long for its answer, or a bet for its outcome, means overload."""
DRAIN_LOOK_S = 0.01
"""How often a drain looks whether everything has ended."""


class EntryListener(Protocol):
    """Hears every entry as it is folded: projections."""

    def feed(self, sequence: int, head: bytes, events: list[Event]) -> None:
        """Queue; must be quick and must not raise."""
        ...


class Process:
    """See the module.

    - cores: those that run here as replicas.
    - observed: those that are decided again here and compared, and never append: audit.
    - alarm: told `(kind, facts)` of everything an operator must see.
    - log_advice: what an operator does about a log that takes no append.
    - kept: snapshots from which a service may be folded anew.
    """

    def __init__(
        self,
        *,
        log: Log,
        types: EventTypes,
        cores: Sequence[Core[Any]],
        writer: str,
        build: str,
        clock: Callable[[], int],
        alarm: Alarm,
        witness: Witness | None = None,
        observed: Sequence[Core[Any]] = (),
        shells: Sequence[Shell] = (),
        listeners: Sequence[EntryListener] = (),
        accepted: dict[int, bytes] | None = None,
        tracing: Tracing | None = None,
        log_advice: str = "",
        kept: Kept | None = None,
    ) -> None:
        self.log = log
        self._writer = writer
        self._alarm = alarm
        self._witness = witness
        self._listeners: list[EntryListener] = list(listeners)
        self._tracing = tracing
        self._tasks = Tasks(self._halt)
        self._outcomes = Outcomes(
            alarm, {kind: name for core in cores for kind, name in core.alarms.items()}
        )
        self._callers = 0
        self.log_end = LogEnd(log, alarm=alarm, clock=clock)
        self.read_counts: dict[tuple[str, bool], list[int]] = {}
        """Entries and events read since the start was over, by service and whether inputs."""
        self.folding = Folding(
            log=log,
            types=types,
            cores=cores,
            observed=observed,
            writer=writer,
            build=build,
            clock=clock,
            alarm=alarm,
            accepted=accepted,
            kept=kept,
        )
        self.appending = Appending(
            log=log,
            writer=writer,
            build=build,
            clock=clock,
            alarm=alarm,
            tasks=self._tasks,
            callers=lambda: self._callers,
            advice=log_advice,
        )
        self.folding.before_replacing = self.appending.stop_answering
        self._shells = Shells(
            shells,
            replica=self.replica,
            tell=self.tell,
            may_act=lambda: not self._draining and not self.log_end.problem(),
            clock=clock,
            alarm=alarm,
            behaviour=self.behaviour_behind,
        )
        self._has_shells = bool(shells)
        self._followers: list[Callable[[list[Event]], None]] = []
        self._reached: list[tuple[Position, asyncio.Future[None]]] = []
        self._folded = 0
        self._draining = False
        self._live = False
        self.shared: SharedSnapshots | None = None
        """Where the cell's processes share snapshots; None: nowhere. Set by the host."""
        self.weak: list[str] = []
        """Why the log may not be relied on, in words; empty where it may. Set by preflight."""
        self.stopped: asyncio.Future[BaseException] | None = None
        """Done when this process must not go on; holds why."""

    # ---- life ----------------------------------------------------------------------------------

    async def start(
        self,
        snapshots: Sequence[SnapshotSet] | AsyncGenerator[SnapshotSet, None] = (),
        remembered: Sequence[Witnessed] = (),
    ) -> None:
        """Fold the log to its head and begin to take part. The first of `snapshots` is the start
        that can be used: of every service here, of its schema, and named in the log. `remembered`:
        what others have read of the log.

        Raises LogBroken where the log is not what it was, LogUnavailable where it cannot be
        read."""
        self.stopped = asyncio.get_running_loop().create_future()
        own = self._witness.read() if self._witness else None
        noted = [*([own] if own else []), *remembered]
        last = await self.log_end.first(max((one.sequence for one in noted), default=0))
        async with aclosing(_offers(snapshots)) as offers:
            async for snapshot_set in offers:
                if await self._recovered(snapshot_set, last, noted):
                    break
        self._folded = last
        self._note_witness()
        self._live = True
        self._tasks.spawn("read", self._read_loop())
        self._tasks.spawn("info", self.log_end.watch(lambda: self._folded))
        for replica in self.folding.replicas.values():
            self.appending.start_answering(replica)
        if self._has_shells:
            self._tasks.spawn("shells", self._shells.run())

    async def _recovered(
        self, snapshot_set: SnapshotSet | None, last: int, noted: Sequence[Witnessed]
    ) -> bool:
        """Fold the log from a snapshot or from nothing; whether that start stands."""
        if not self.folding.begin_from(snapshot_set, last):
            return False
        if snapshot_set is None:
            await self.folding.recover(last, noted, self._feed)
            return True
        about = {"sequence": snapshot_set.sequence}
        try:
            await self.folding.recover(last, noted, self._feed)
        except (LogUnavailable, BehaviourUnknown):
            raise  # no other start would help
        except Exception as error:  # noqa: BLE001 - a snapshot is a cache: without it, it is the log's
            self._alarm("snapshot_unusable", {**about, "why": f"{type(error).__name__}: {error}"})
            return False
        if not self.folding.is_named(snapshot_set):
            self._alarm("snapshot_unknown", about)
            return False
        return True

    async def drain(self, wait_s: float) -> None:
        """Take no more inputs; let what is under way come to its end, at most `wait_s` seconds."""
        self._draining = True
        deadline = self._now() + wait_s
        while self._now() < deadline and not self._halted() and self._busy():  # noqa: ASYNC110 - many things must end, none of them an event
            await asyncio.sleep(DRAIN_LOOK_S)

    def _busy(self) -> bool:
        replicas = self.folding.replicas.values()
        return (
            self._outcomes.awaited()
            or self.appending.unread()
            or any(replica.unanswered_since is not None for replica in replicas)
        )

    async def stop(self) -> None:
        """End all tasks. Callers that still wait get OutcomeUnknown. The log is not closed."""
        self._draining = True
        await self._tasks.end()
        self._forsake(OutcomeUnknown("the process stops"))

    @property
    def ready(self) -> bool:
        """Whether inputs are taken now, overload apart."""
        return not self.why_not_ready()

    def why_not_ready(self) -> str:
        """Why inputs are not taken; empty where they are."""
        if not self._live:
            return "the log is being read"
        if self._draining:
            return "stopping"
        if self._halted():
            return "stopped by a broken log"
        if self.weak:
            return f"the log is too weak: {self.weak[0]}"
        return self.log_end.problem() or self.appending.problem(self._now())

    # ---- the edge ------------------------------------------------------------------------------

    @property
    def cell(self) -> str:
        return self.log.cell

    @property
    def position(self) -> Position:
        return Position(SEGMENT, self._folded, END_OF_ENTRY)

    @property
    def between_entries(self) -> bool:
        """Whether every replica and observer here stands at `position`, none of them half-way."""
        return self._folded == self.folding.reader.state.sequence

    @property
    def head(self) -> bytes:
        """The chain hash at the last entry read."""
        return self.folding.reader.state.head

    @property
    def log_time_us(self) -> int:
        return self.folding.reader.state.time_us

    @property
    def behaviour(self) -> int:
        return self.folding.reader.state.behaviour

    def behaviour_behind(self, service: str) -> int:
        """The behaviour in force where this process's next input of a service will stand."""
        first = self.appending.in_front(service)
        if isinstance(first, events_pb2.ActivateBehaviour):
            return max(first.behaviour, self.behaviour)
        return self.behaviour

    @property
    def known_behaviour(self) -> int:
        return min(replica.core.behaviour for replica in self.folding.replicas.values())

    def failed_input(self, position: Position) -> Position | None:
        return self.folding.reader.state.failed.get(position)

    @property
    def started_from(self) -> int:
        """The entry at which the snapshot stood that this process began from; 0: from nothing."""
        return self.folding.started_from

    def state(self, service: str) -> Any:
        return self.folding.replicas[service].state.core

    def replica(self, service: str) -> AnyReplica:
        """The replica of a service here."""
        return self.folding.replicas[service]

    def observer(self, service: str) -> AnyReplica | None:
        """The observer of a service here; None where its record could not be followed."""
        return self.folding.observers.get(service)

    def shell_problems(self) -> dict[str, int]:
        """How many things each shell here cannot do, by the shell's name."""
        return self._shells.problems()

    def snapshots(self) -> list[tuple[Core[Any], Snapshot]]:
        """What lives here, as it stands. To be encoded before anything else happens, those of
        observers that `hold` keeps apart."""
        return self.folding.snapshots()

    def hold(self) -> frozenset[str]:
        """Let the observers stand still until `let_go`; the services whose states may be read by
        another thread meanwhile."""
        self.folding.hold()
        return frozenset(self.folding.observers)

    async def let_go(self) -> None:
        """Let the observers read what came meanwhile, and go on."""
        try:
            await self.folding.let_go()
        except Exception as error:  # noqa: BLE001 - as when they read along
            self._halt(error)

    def follow(self, listener: Callable[[list[Event]], None]) -> Callable[[], None]:
        self._followers.append(listener)
        return lambda: self._followers.remove(listener)

    def alarm(self, kind: AlarmKind, facts: dict[str, Any]) -> None:
        """Tell operators of something that they must see."""
        self._alarm(kind, facts)

    def add_listener(self, listener: EntryListener) -> None:
        """Let a projection hear every entry from the next one on."""
        self._listeners.append(listener)

    async def reached(self, position: Position, *, wait_s: float) -> bool:
        if self.position >= position:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (position, future)
        self._reached.append(waiter)
        try:
            async with asyncio.timeout(wait_s):
                await future
        except TimeoutError:
            return False
        finally:
            with suppress(ValueError):
                self._reached.remove(waiter)
        return True

    async def submit(
        self,
        service: str,
        body: Message,
        *,
        partner: str,
        actor: str,
        until: frozenset[type[Message]],
        wait_s: float,
        traceparent: str = "",
    ) -> Outcome:
        self._admit()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self.appending.put(
            service,
            body,
            Submitted(future, until),
            partner=partner,
            actor=actor,
            traceparent=traceparent,
        )
        timer = loop.call_later(wait_s, _give_up, future)
        self._callers += 1
        try:
            return await future
        finally:
            self._callers -= 1
            timer.cancel()

    def tell(
        self, service: str, body: Message, actor: str, partner: str = "", traceparent: str = ""
    ) -> None:
        """Append an input that nobody waits for."""
        token = Submitted(None, frozenset())
        self.appending.put(
            service, body, token, partner=partner, actor=actor, traceparent=traceparent
        )

    def _admit(self) -> None:
        why_not = self.why_not_ready()
        if why_not == LOG_IS_FULL:
            raise LogIsFull(why_not)
        if why_not:
            raise EdgeNotReady(why_not)
        oldest_s = self.oldest_unanswered_s
        if oldest_s > BUSY_AFTER_S:
            raise EdgeBusy(f"the oldest input has waited {oldest_s:.1f} s for its answer")

    @property
    def oldest_unanswered_s(self) -> float:
        """How long the oldest input without an answer, or bet without an outcome, has waited."""
        since = self._outcomes.oldest_since()
        return 0.0 if since is None else self._now() - since

    # ---- reading -------------------------------------------------------------------------------

    async def _read_loop(self) -> None:
        messages = self.log.read(self.folding.reader.state.sequence)
        try:
            async for batch in messages:
                now = self._now()
                entries = [await self._take(message, now) for message in batch]
                self._note_witness()
                for entry in entries:
                    self._tell(entry, now)
                self._after_batch()
        finally:
            await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract

    async def _take(self, message: LogMessage, now: float) -> ReadEntry:
        entry = read_message(self.folding.reader, message)
        replaced = await self.folding.fold(entry, now)
        self._folded = entry.sequence
        for service, replica in self.folding.replicas.items():
            if service in replaced:
                self.appending.start_answering(replica)
            else:
                self.appending.look(replica)
        return entry

    def _tell(self, entry: ReadEntry, now: float) -> None:
        """Let callers, followers and projections know of an entry that the witness has noted."""
        counts = self.read_counts.get((entry.service, entry.is_input))
        if counts is None:
            counts = self.read_counts[entry.service, entry.is_input] = [0, 0]
        counts[0] += 1
        counts[1] += len(entry.protos)
        if self._tracing is not None and self.appending.wrote(entry):
            trace_entry(self._tracing, entry)
        if not entry.is_input:
            self._outcomes.answered(entry)
        elif not entry.copy:
            self._outcomes.entered(entry, self.appending.seen(entry), now)
        self._feed(entry)
        if entry.events:
            self._shells.hear(entry.events)
            for follower in self._followers:
                follower(entry.events)

    def _feed(self, entry: ReadEntry) -> None:
        for listener in self._listeners:
            listener.feed(entry.sequence, entry.head, entry.events)

    def _after_batch(self) -> None:
        self.log_end.read(self._folded)
        if self._reached:
            position = self.position
            for wanted, future in list(self._reached):
                if wanted <= position and not future.done():
                    future.set_result(None)

    def _note_witness(self) -> None:
        state = self.folding.reader.state
        if self._witness is not None and state.sequence:
            self._witness.write(state.sequence, state.head)

    # ---- the end -------------------------------------------------------------------------------

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def halt(self, broken: LogBroken) -> None:
        """Stop: somebody beside the process found that the log is not what it was."""
        self._halt(broken)

    def _halted(self) -> bool:
        return self.stopped is not None and self.stopped.done()

    def _halt(self, error: BaseException) -> None:
        """Stop here and now: nothing may be served from a log that is not understood."""
        if self._halted():
            return
        self._alarm("process_stopped", {"why": f"{type(error).__name__}: {error}"})
        if self.stopped is not None:
            self.stopped.set_result(error)
        self._tasks.cancel_all()
        self._forsake(OutcomeUnknown("the process stopped"))

    def _forsake(self, error: Exception) -> None:
        self._outcomes.forsake(error)
        self.appending.forsake(error)


async def _offers(
    snapshots: Sequence[SnapshotSet] | AsyncGenerator[SnapshotSet, None],
) -> AsyncGenerator[SnapshotSet | None, None]:
    """What a start may begin from, the log's beginning last."""
    if isinstance(snapshots, Sequence):
        for one in snapshots:
            yield one
    else:
        async with aclosing(snapshots) as offered:
            async for one in offered:
                yield one
    yield None


def _give_up(future: asyncio.Future[Outcome]) -> None:
    if not future.done():
        future.set_exception(OutcomeUnknown("no outcome within the time given"))
