"""A process's attachment to a cell: reads the log, runs replicas, appends, answers callers.

Everything that waits is here; everything that decides is in `reader`, `replica`, `input_writer` and
the cores. The order of things in one process:

1. Entries come from the log in order, are read once, and folded by every replica that lives here.
2. The witness notes how far that is. Only then do callers learn outcomes and shells act.
3. Answers and inputs that wait are appended, one append at a time on each subject.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2, events_pb2
from services.kernel.edge import (
    EdgeBusy,
    EdgeNotReady,
    LogIsFull,
    NotTaken,
    Outcome,
    OutcomeUnknown,
)
from services.kernel.entry import EventTypes, encode_body, position_of
from services.kernel.event import Core, Event, Position
from services.kernel.freshness import Freshness
from services.kernel.input_writer import InputAppend, InputWriter
from services.kernel.log import (
    AppendRefused,
    AppendUnknown,
    FenceLost,
    Log,
    LogFull,
    LogUnavailable,
)
from services.kernel.reader import LogBroken, LogReader, ReadEntry
from services.kernel.recovery import AnyReplica, Window, entries_until, read_message, rebuild
from services.kernel.replica import Append, Diverged, Replica
from services.kernel.room import Room
from services.kernel.snapshot import Snapshot, SnapshotSet, SnapshotUnusable
from services.kernel.telemetry import Tracing
from services.kernel.telemetry_names import SPAN_ANSWER, SPAN_INPUT
from services.kernel.witness import Witness

APPEND_WAIT_S = 2.0
"""How long one sending of an append waits for its acknowledgement before it is sent again."""
RESEND_PAUSE_S = 0.05
"""Between two sendings of the same append, so that a server that is down is not flooded."""
REFUSED_PAUSE_S = 0.5
"""Before answers are offered again to a log that refused them (full)."""
INFO_EVERY_S = 0.2
"""How often the log's head is asked for."""
CUT_AFTER_ANSWERS = 10
"""So many answers in a row that know less than was read: the log was cut, the server is not new."""
SHELL_TICK_S = 0.02
"""How often shells look for what time has made due."""
BUSY_AFTER_S = 1.0
"""An input that has waited so long for its answer, or a bet for its outcome, means overload."""
MAX_DIFFERENCES = 100
"""Differences kept whole; the rest is counted."""
MAX_REBUILDS = 3
"""A replica that differs from the record again and again is another build: it stops."""

_END_OF_CHAIN = frozenset(
    (
        events_pb2.InputNoted,
        events_pb2.InputIgnored,
        events_pb2.InputFailed,
        events_pb2.RequestRepeated,
    )
)
_WATCHED = frozenset((events_pb2.InputFailed, events_pb2.InputIgnored))
_UNTRUE = frozenset((events_pb2.IGNORED_REASON_CONTRADICTS, events_pb2.IGNORED_REASON_IMPOSSIBLE))


class Shell(Protocol):
    """What acts on the outside for a service: timers, the custodian. It looks at state, not at
    events, so that it goes on rightly after any crash."""

    service: str
    """Whose state it looks at, and whose inputs it makes."""
    wakes: frozenset[type[Message]]
    """Events after which it must look at once."""
    problems: dict[str, str]
    """What it cannot do, and why, by what it concerns: each is an alarm."""

    def poll(
        self, state: Any, now_us: int, leading: bool, answered: Position | None
    ) -> Sequence[Message]:
        """Inputs to append now. `now_us`: this process's clock. `leading`: whether the replica here
        wrote its service's last answers; another one waits a little longer before it acts.

        `answered`: the answers to everything before this position have been read back; None: to
        all. The state is ahead of the log by the others, and nothing outside may come of them
        yet."""
        ...


class EntryListener(Protocol):
    """Hears every entry as it is folded: projections."""

    def feed(self, sequence: int, head: bytes, events: list[Event]) -> None:
        """Queue; must be quick and must not raise."""
        ...


@dataclass(slots=True)
class _Chain:
    """A caller that waits for what becomes of its input."""

    future: asyncio.Future[Outcome]
    until: frozenset[type[Message]]
    input_position: Position
    since: float


@dataclass(slots=True)
class _Submitted:
    """A caller's input on its way into the log; without a future, a shell's."""

    future: asyncio.Future[Outcome] | None
    until: frozenset[type[Message]]


class Process:
    """See the module.

    - cores: those that run here as replicas.
    - observed: those that are decided again here and compared, and never append: audit.
    - alarm: told `(kind, facts)` of everything an operator must see.
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
        alarm: Callable[[str, dict[str, Any]], None],
        witness: Witness | None = None,
        observed: Sequence[Core[Any]] = (),
        shells: Sequence[Shell] = (),
        listeners: Sequence[EntryListener] = (),
        accepted: dict[int, bytes] | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._log = log
        self._types = types
        self._writer = writer
        self._build = build
        self._clock = clock
        self._alarm = alarm
        self._witness = witness
        self._shells = list(shells)
        self._listeners: list[EntryListener] = list(listeners)
        self._accepted = accepted
        self._tracing = tracing
        self._reader = self._new_reader()
        self._replicas: dict[str, AnyReplica] = {
            core.service: Replica(core, writer=writer, build=build, wall_time_us=clock)
            for core in cores
        }
        self._observers: dict[str, AnyReplica] = {
            core.service: Replica(core, writer=f"{writer}-observer", build=build)
            for core in observed
        }
        self.differences: list[Diverged] = []
        """Answers that do not follow from the log, as the observers found; at most
        MAX_DIFFERENCES."""
        self.difference_count = 0
        self._observers_lost: dict[str, Diverged] = {}
        self._answers_given_up = 0
        self._inputs: dict[str, InputWriter[_Submitted]] = {}
        self._kicks: dict[str, asyncio.Event] = {}
        self._chains: dict[Position, _Chain] = {}
        self._open_inputs: dict[Position, float] = {}
        self._followers: list[Callable[[list[Event]], None]] = []
        self._reached: list[tuple[Position, asyncio.Future[None]]] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rebuilds: dict[str, int] = {}
        self._snapshots_named: set[tuple[str, int, bytes]] = set()
        self.started_from = 0
        """The entry at which the snapshot stood that this process began from; 0: from nothing."""
        self._freshness = Freshness()
        self._room = Room()
        self._problems: dict[str, str] = {}
        self._draining = False
        self._live = False
        self.weak: list[str] = []
        """Why the log may not be relied on, in words; empty where it may. Set by preflight."""
        self.stopped: asyncio.Future[BaseException] | None = None
        """Done when this process must not go on; holds why."""

    # ---- life ----------------------------------------------------------------------------------

    async def start(self, snapshots: Sequence[SnapshotSet] = ()) -> None:
        """Fold the log to its head and begin to take part. The first of `snapshots` is the start
        that can be used: of every service here, of its schema, and named in the log.

        Raises LogBroken where the log is not what it was, LogUnavailable where it cannot be
        read."""
        self.stopped = asyncio.get_running_loop().create_future()
        info = await self._log.info(wait_s=5.0)
        for snapshot_set in (*snapshots, None):
            if self._begin_from(snapshot_set, info.last_sequence):
                await self._recover(info.last_sequence)
                if snapshot_set is None or self._is_named(snapshot_set):
                    break
                self._alarm("snapshot_unknown", {"sequence": snapshot_set.sequence})
        self._note_witness()
        self._live = True
        self._spawn("read", self._read_loop())
        self._spawn("info", self._info_loop())
        for service in self._replicas:
            self._start_answering(service)
        if self._shells:
            self._spawn("shells", self._shell_loop())

    def _begin_from(self, snapshot_set: SnapshotSet | None, last: int) -> bool:
        """Set everything to where a snapshot was taken, or to the beginning; whether that works."""
        self._snapshots_named.clear()
        self.started_from = snapshot_set.sequence if snapshot_set else 0
        cores = [replica.core for replica in self._replicas.values()]
        observed = [observer.core for observer in self._observers.values()]
        if snapshot_set is None:
            self._reader = self._new_reader()
            states: dict[str, tuple[Any, Any]] = {}
        else:
            if snapshot_set.sequence > last:
                return False
            try:
                states = {
                    core.service: (snapshot_set.decode(core), snapshot_set.decode(core))
                    for core in (*cores, *observed)
                }
            except SnapshotUnusable as unusable:
                self._alarm(
                    "snapshot_unusable",
                    {"sequence": snapshot_set.sequence, "why": str(unusable)},
                )
                return False
            first = next(iter(states.values()))[0]
            self._reader = LogReader(
                self._log.cell, self._types, first.reader, accepted=self._accepted
            )
        for core in cores:
            state = states[core.service][0].replica if states else None
            self._replicas[core.service] = Replica(
                core, writer=self._writer, build=self._build, state=state,
                wall_time_us=self._clock,
            )  # fmt: skip
        for core in observed:
            state = states[core.service][1].replica if states else None
            self._observers[core.service] = Replica(
                core, writer=f"{self._writer}-observer", build=self._build, state=state
            )
        return True

    def _is_named(self, snapshot_set: SnapshotSet) -> bool:
        """Whether the log says of every part of a set that audit took it there."""
        services = {*self._replicas, *self._observers}
        return all(snapshot_set.name_of(service) in self._snapshots_named for service in services)

    async def _recover(self, last: int) -> None:
        noted = self._witness.read() if self._witness else None
        if noted and last < noted.sequence:
            raise LogBroken(
                last + 1,
                f"missing: this process has read up to entry {noted.sequence}, the log ends at "
                f"{last}",
            )
        window = Window(list(self._replicas.values()))
        window.on_fed = self._fed_in_recovery
        async for entries in entries_until(self._log, self._reader, last):
            now = self._now()
            for entry in entries:
                if noted and entry.sequence == noted.sequence and entry.head != noted.head:
                    raise LogBroken(
                        entry.sequence, "its chain hash is not the one that this process has read"
                    )
                try:
                    window.push(entry, now)
                except Diverged as diverged:
                    await self._recover_by_rebuilding(diverged, last)
                    window = Window([])
            await asyncio.sleep(0)
        try:
            window.drain(self._now())
        except Diverged as diverged:
            await self._recover_by_rebuilding(diverged, last)
        for service, lost in self._observers_lost.items():
            await self._note_difference(service, lost, last)

    async def drain(self, wait_s: float) -> None:
        """Take no more inputs; let what is under way come to its end, at most `wait_s` seconds."""
        self._draining = True
        deadline = self._now() + wait_s
        while self._now() < deadline and not self._halted():
            # Chains leave their earlier steps behind until the next caller comes.
            busy = any(not chain.future.done() for chain in self._chains.values()) or any(
                len(writer) for writer in self._inputs.values()
            )
            if not busy and all(r.unanswered_since is None for r in self._replicas.values()):
                break
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """End all tasks. Callers that still wait get OutcomeUnknown. The log is not closed."""
        self._draining = True
        for task in self._tasks.values():
            task.cancel()
        for task in self._tasks.values():
            with suppress(asyncio.CancelledError, Exception):
                await task
        self._tasks.clear()
        self._forsake(OutcomeUnknown("the process stops"))

    @property
    def ready(self) -> bool:
        """Whether inputs are taken now, overload apart."""
        return self._live and not self._draining and not self._halted() and not self.why_not_ready()

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
        return self._freshness.problem(self._now())

    # ---- the edge ------------------------------------------------------------------------------

    @property
    def cell(self) -> str:
        return self._log.cell

    @property
    def position(self) -> Position:
        return self._reader.position

    @property
    def head(self) -> bytes:
        """The chain hash at the last entry read."""
        return self._reader.state.head

    @property
    def log_time_us(self) -> int:
        return self._reader.state.time_us

    @property
    def behaviour(self) -> int:
        return self._reader.state.behaviour

    def state(self, service: str) -> Any:
        return self._replicas[service].state.core

    def replica(self, service: str) -> AnyReplica:
        """The replica of a service here."""
        return self._replicas[service]

    def observer(self, service: str) -> AnyReplica | None:
        """The observer of a service here; None where its record could not be followed."""
        return self._observers.get(service)

    @property
    def answers_compared(self) -> int:
        """How many recorded answers the observers have decided again."""
        live = sum(observer.answers_compared for observer in self._observers.values())
        return live + self._answers_given_up

    def follow(self, listener: Callable[[list[Event]], None]) -> Callable[[], None]:
        self._followers.append(listener)
        return lambda: self._followers.remove(listener)

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
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._put(service, body, partner, actor, traceparent, _Submitted(future, until))
        timer = asyncio.get_running_loop().call_later(wait_s, self._give_up, future)
        try:
            return await future
        finally:
            timer.cancel()

    def tell(self, service: str, body: Message, actor: str) -> None:
        """Append an input that nobody waits for."""
        self._put(service, body, "", actor, "", _Submitted(None, frozenset()))

    def snapshots(self) -> list[tuple[Core[Any], Snapshot]]:
        """What lives here, as it stands: observers where there are any, else replicas. To be
        encoded before anything else happens."""
        here = {**self._replicas, **self._observers}
        return [
            (one.core, Snapshot(service, one.core.schema, self._reader.state, one.state))
            for service, one in here.items()
        ]

    def _admit(self) -> None:
        why_not = self.why_not_ready()
        if why_not:
            raise EdgeNotReady(why_not)
        oldest = self.oldest_unanswered_s
        if oldest > BUSY_AFTER_S:
            raise EdgeBusy(f"the oldest input has waited {oldest:.1f} s for its answer")

    @property
    def oldest_unanswered_s(self) -> float:
        """How long the oldest input without an answer, or bet without an outcome, has waited."""
        oldest = self._now()
        now = oldest
        if self._open_inputs:
            oldest = min(oldest, next(iter(self._open_inputs.values())))
        while self._chains:
            position, chain = next(iter(self._chains.items()))
            if not chain.future.done():
                oldest = min(oldest, chain.since)
                break
            del self._chains[position]  # Its caller gave up.
        return now - oldest

    @staticmethod
    def _give_up(future: asyncio.Future[Outcome]) -> None:
        if not future.done():
            future.set_exception(OutcomeUnknown("no outcome within the time given"))

    def _put(
        self,
        service: str,
        body: Message,
        partner: str,
        actor: str,
        traceparent: str,
        token: _Submitted,
    ) -> None:
        event = entry_pb2.Event(
            type=str(body.DESCRIPTOR.full_name),
            body=encode_body(body),
            partner=partner,
            actor=actor,
            time_us=self._clock(),
        )
        event.note.build = self._build
        if traceparent:
            event.note.traceparent = traceparent
        writer = self._inputs.get(service)
        if writer is None:
            writer = self._inputs[service] = InputWriter(self._writer)
            self._kicks[f"in:{service}"] = asyncio.Event()
            self._spawn(f"in:{service}", self._input_loop(service, writer))
        writer.put(event, token)
        self._kicks[f"in:{service}"].set()

    # ---- reading -------------------------------------------------------------------------------

    async def _read_loop(self) -> None:
        messages = self._log.read(self._reader.state.sequence)
        try:
            async for batch in messages:
                for message in batch:
                    entry = read_message(self._reader, message)
                    await self._fold(entry)
                self._note_witness()
                self._after_batch()
        finally:
            await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract

    async def _fold(self, entry: ReadEntry) -> None:
        now = self._now()
        for service, replica in self._replicas.items():
            try:
                replica.read(entry, now)
            except Diverged as diverged:
                await self._replace(service, diverged, entry.sequence)
            else:
                if replica.ready_at() is not None:
                    self._kicks[service].set()
        for service, observer in list(self._observers.items()):
            try:
                observer.read(entry, now)
            except Diverged as diverged:
                await self._note_difference(service, diverged, entry.sequence)
        self._tell(entry, now)

    def _tell(self, entry: ReadEntry, now: float) -> None:
        """Let callers, followers and projections know of an entry, after the witness does: they are
        woken here, and run only when the batch is noted."""
        if self._tracing is not None and entry.writer == self._writer:
            self._trace(self._tracing, entry)
        if entry.is_input:
            self._tell_input(entry, now)
        else:
            self._tell_answers(entry)
        for listener in self._listeners:
            listener.feed(entry.sequence, entry.head, entry.events)
        if entry.events:
            for follower in self._followers:
                follower(entry.events)

    def _trace(self, tracing: Tracing, entry: ReadEntry) -> None:
        """One span for each event of a traced request that this process wrote: from when it was
        taken or decided until it was read back, durable. Replays trace nothing."""
        for event, proto in zip(entry.events, entry.protos, strict=False):
            if not event.traceparent:
                continue
            if entry.is_input:
                span = tracing.start(SPAN_INPUT, event.traceparent, start_us=proto.time_us)
            else:
                decided_us = proto.note.wall_time_us
                span = tracing.start(SPAN_ANSWER, event.traceparent, start_us=decided_us)
            if span is not None:
                span.set_attribute("sabot.service", entry.service)
                span.set_attribute("sabot.event", proto.type)
                span.set_attribute("sabot.position", str(event.position))
                span.end()

    def _tell_input(self, entry: ReadEntry, now: float) -> None:
        if entry.copy:
            return
        for event in entry.events:
            self._open_inputs[event.position] = now
        if entry.writer != self._writer:
            return
        writer = self._inputs.get(entry.service)
        append = writer.seen(entry.counter) if writer else None
        if append is None:
            return
        self._kicks[f"in:{entry.service}"].set()
        for event, token in zip(entry.events, append.tokens, strict=True):
            if token.future is not None and not token.future.done():
                self._chains[event.position] = _Chain(
                    token.future, token.until, event.position, now
                )

    def _tell_answers(self, entry: ReadEntry) -> None:
        chains = self._chains
        for event in entry.events:
            cause = event.cause
            if cause is None:
                continue
            self._open_inputs.pop(cause, None)
            if type(event.body) in _WATCHED:
                self._watch(event, cause)
            chain = chains.get(cause)
            if chain is None:
                continue
            if chain.future.done():
                del chains[cause]
            elif type(event.body) in chain.until or type(event.body) in _END_OF_CHAIN:
                del chains[cause]
                chain.future.set_result(Outcome(chain.input_position, event))
            else:
                chains[event.position] = chain

    def _watch(self, event: Event, cause: Position) -> None:
        """A decision that failed, and an input that cannot be true, is for a person to look at."""
        facts = {"service": event.service, "position": str(event.position), "cause": str(cause)}
        body = event.body
        if isinstance(body, events_pb2.InputFailed):
            self._alarm("input_failed", {**facts, "input": body.input_type, "error": body.error})
        elif isinstance(body, events_pb2.InputIgnored) and body.reason in _UNTRUE:
            reason = events_pb2.IgnoredReason.Name(body.reason)
            self._alarm("input_untrue", {**facts, "reason": reason})

    def _after_batch(self) -> None:
        self._freshness.read(self._reader.state.sequence)
        if self._reached:
            position = self.position
            for wanted, future in list(self._reached):
                if wanted <= position and not future.done():
                    future.set_result(None)

    def _fed_in_recovery(self, entry: ReadEntry) -> None:
        now = self._now()
        for event in entry.events:
            if isinstance(event.body, events_pb2.RecordSnapshot):
                named = event.body
                self._snapshots_named.add((named.service, named.sequence, named.digest))
        for service, observer in self._observers.items():
            if service in self._observers_lost:
                continue
            try:
                observer.read(entry, now)
            except Diverged as diverged:
                self._observers_lost[service] = diverged
        for listener in self._listeners:
            listener.feed(entry.sequence, entry.head, entry.events)

    def _note_witness(self) -> None:
        if self._witness is not None and self._reader.state.sequence:
            self._witness.write(self._reader.state.sequence, self._reader.state.head)

    # ---- divergence ----------------------------------------------------------------------------

    async def _replace(self, service: str, diverged: Diverged, last: int) -> None:
        """Another replica recorded other answers: its record stands. Take it, and raise an
        alarm."""
        self._alarm("answer_differs", {"service": service, "why": str(diverged)})
        count = self._rebuilds[service] = self._rebuilds.get(service, 0) + 1
        if count > MAX_REBUILDS:
            raise diverged
        task = self._tasks.pop(service)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        self._replicas[service] = await self._rebuilt(self._replicas[service].core, last)
        self._start_answering(service)

    async def _note_difference(self, service: str, diverged: Diverged, last: int) -> None:
        """An observed service recorded what does not follow. Its record stands; audit goes on."""
        self.difference_count += 1
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(diverged)
        self._alarm("answer_does_not_follow", {"service": service, "why": str(diverged)})
        lost = self._observers.pop(service)
        try:
            again = await self._rebuilt(lost.core, last)
        except (Diverged, LogBroken) as error:
            # Not even what is recorded can be followed. The others are still audited.
            self._alarm("audit_gave_up", {"service": service, "why": str(error)})
            self._answers_given_up += lost.answers_compared
            return
        again.answers_compared += lost.answers_compared
        self._observers[service] = again

    async def _recover_by_rebuilding(self, diverged: Diverged, last: int) -> None:
        """The window was too short for some answer: recover every replica with all answers
        known."""
        self._alarm("answer_differs", {"service": diverged.service, "why": str(diverged)})
        for service in list(self._replicas):
            self._replicas[service] = await self._rebuilt(self._replicas[service].core, last)

    async def _rebuilt(self, core: Core[Any], last: int) -> AnyReplica:
        return await rebuild(
            core,
            log=self._log,
            new_reader=self._new_reader,
            last=last,
            writer=self._writer,
            build=self._build,
            now=self._now,
            pause=lambda: asyncio.sleep(0),
        )

    def _new_reader(self) -> LogReader:
        return LogReader(self._log.cell, self._types, accepted=self._accepted)

    # ---- appending -----------------------------------------------------------------------------

    def _start_answering(self, service: str) -> None:
        self._kicks[service] = asyncio.Event()
        self._spawn(service, self._answer_loop(self._replicas[service], self._kicks[service]))

    async def _answer_loop(self, replica: AnyReplica, kick: asyncio.Event) -> None:
        while True:
            ready_at = replica.ready_at()
            if ready_at is None:
                await kick.wait()
                kick.clear()
                continue
            delay = ready_at - self._now()
            if delay > 0:
                await asyncio.sleep(delay)
                continue
            append = replica.next_append()
            if append is not None:
                await self._send_answers(replica, append)

    async def _send_answers(self, replica: AnyReplica, append: Append) -> None:
        """Send the same bytes with the same fence until it is known what stands there."""
        subject = f"sabot.{self._log.cell}.{replica.core.service}.out"
        while replica.in_flight is append:
            try:
                sequence = await self._log.append(
                    subject, append.payload, expected=append.expected, wait_s=APPEND_WAIT_S
                )
            except FenceLost as lost:
                replica.fence_lost(append, lost.last_sequence, self._now())
            except AppendUnknown:
                await asyncio.sleep(RESEND_PAUSE_S)
            except AppendRefused as refused:
                self._alarm(
                    "answers_refused", {"service": replica.core.service, "why": str(refused)}
                )
                await asyncio.sleep(REFUSED_PAUSE_S)
            else:
                replica.stored(append, sequence)

    async def _input_loop(self, service: str, writer: InputWriter[_Submitted]) -> None:
        kick = self._kicks[f"in:{service}"]
        subject = f"sabot.{self._log.cell}.{service}.in"
        while True:
            append = writer.next_append()
            if append is None:
                await kick.wait()
                kick.clear()
                continue
            await self._send_inputs(subject, writer, append)

    async def _send_inputs(
        self, subject: str, writer: InputWriter[_Submitted], append: InputAppend[_Submitted]
    ) -> None:
        """Send the same bytes until they are acknowledged or read back."""
        while writer.in_flight is append:
            try:
                await self._log.append(subject, append.payload, expected=None, wait_s=APPEND_WAIT_S)
            except AppendUnknown:
                append.maybe_stored = True
                await asyncio.sleep(RESEND_PAUSE_S)
            except AppendRefused as refused:
                lost = writer.refused(append)
                if lost is None:
                    await asyncio.sleep(REFUSED_PAUSE_S)
                    continue
                self._alarm("inputs_refused", {"subject": subject, "why": str(refused)})
                error: NotTaken = (
                    LogIsFull("the log is full")
                    if isinstance(refused, LogFull)
                    else EdgeNotReady("the log refused the input")
                )
                for token in lost:
                    if token.future is not None and not token.future.done():
                        token.future.set_exception(error)
            else:
                writer.stored(append)

    # ---- shells, freshness ---------------------------------------------------------------------

    async def _shell_loop(self) -> None:
        wake = asyncio.Event()
        wakes: frozenset[type[Message]] = frozenset().union(*(one.wakes for one in self._shells))

        def listen(events: list[Event]) -> None:
            if not wake.is_set() and any(type(event.body) in wakes for event in events):
                wake.set()

        unfollow = self.follow(listen)
        try:
            while True:
                if not self._draining and self._freshness.fresh(self._now()):
                    self._poll_shells()
                with suppress(TimeoutError):
                    async with asyncio.timeout(SHELL_TICK_S):
                        await wake.wait()
                wake.clear()
        finally:
            unfollow()

    def _poll_shells(self) -> None:
        now_us = self._clock()
        for shell in self._shells:
            replica = self._replicas[shell.service]
            actor = f"system:{type(shell).__name__.lower()}"
            pending = replica.state.pending
            answered = position_of(pending[0].proto.cause) if pending else None
            for body in shell.poll(replica.state.core, now_us, replica.leading, answered):
                self.tell(shell.service, body, actor)
            for about, why in shell.problems.items():
                if self._problems.get(about) != why:
                    self._problems[about] = why
                    self._alarm("shell_cannot", {"about": about, "why": why})

    async def _info_loop(self) -> None:
        shorter = 0
        while True:
            read_before = self._reader.state.sequence
            try:
                info = await self._log.info(wait_s=1.0)
            except LogUnavailable:
                pass
            else:
                if self._room.told(info):
                    room = {"bytes_used": info.bytes_used, "bytes_max": info.bytes_max}
                    self._alarm("log_nearly_full", room)
                # A new leader may answer before it has caught up; a log that was cut stays short.
                shorter = shorter + 1 if info.last_sequence < read_before else 0
                if shorter >= CUT_AFTER_ANSWERS:
                    raise LogBroken(
                        info.last_sequence + 1,
                        f"missing: entry {read_before} was read, the log ends at "
                        f"{info.last_sequence}",
                    )
                self._freshness.told(
                    info.last_sequence, info.server_time_us, self._now(), self._clock()
                )
                self._freshness.read(self._reader.state.sequence)
            await asyncio.sleep(INFO_EVERY_S)

    # ---- tasks ---------------------------------------------------------------------------------

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _halted(self) -> bool:
        return self.stopped is not None and self.stopped.done()

    def _spawn(self, name: str, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self._halted():
            return
        error = task.exception() or RuntimeError(f"task {task.get_name()} ended")
        self._halt(error)

    def _halt(self, error: BaseException) -> None:
        """Stop here and now: nothing may be served from a log that is not understood."""
        self._alarm("process_stopped", {"why": f"{type(error).__name__}: {error}"})
        if self.stopped is not None and not self.stopped.done():
            self.stopped.set_result(error)
        for task in self._tasks.values():
            task.cancel()
        self._forsake(OutcomeUnknown("the process stopped"))

    def _forsake(self, error: Exception) -> None:
        chains = list(self._chains.values())
        self._chains.clear()
        for chain in chains:
            if not chain.future.done():
                chain.future.set_exception(error)
        for writer in self._inputs.values():
            for token in writer.forsake():
                if token.future is not None and not token.future.done():
                    token.future.set_exception(error)
