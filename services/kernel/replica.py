"""One replica of a service: its core run over the log. Pure; `process` moves the bytes.

For every event of another service, and every input of its own, in log order: evolve it, decide, and
evolve the answers at once. Answers wait in `pending` until they are read back: recorded by this
replica or by another, they must be the same, event by event. What nobody has recorded yet is
appended behind a fence, so of many replicas exactly one wins."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2, events_pb2
from services.kernel.entry import (
    KERNEL_ANSWERS,
    KERNEL_INPUTS,
    MAX_ENTRY_BYTES,
    MAX_EVENTS,
    TELLING_INPUTS,
    encode_body,
    position_of,
    position_proto,
)
from services.kernel.event import (
    UNLOGGED,
    Core,
    Event,
    InvariantViolated,
    Position,
    Unfinished,
)
from services.kernel.reader import LogBroken, ReadEntry
from services.kernel.traces import Traces

S = TypeVar("S")

STANDBY_WAIT_S = 0.3
"""How long an answer must stand unanswered before a standby appends it: long enough that no fence
is lost while the winner lives, short against a player's patience when it died."""

MAX_FAILED = 10_000
"""Failed inputs kept for a retry. So many are one bug met again and again; the oldest go first."""

NOT_DETERMINISTIC = (MemoryError, RecursionError, OSError, EOFError, SystemError)
"""Errors that say something of this machine, not of the decision: they stop the process."""


class Diverged(Exception):
    """A recorded answer is not the one that this replica decided."""

    def __init__(
        self,
        service: str,
        position: Position,
        expected: entry_pb2.Event | None,
        recorded: entry_pb2.Event,
        due: Sequence[entry_pb2.Event] = (),
        told: Sequence[entry_pb2.Event] = (),
    ) -> None:
        super().__init__(
            f"{service}: the answer at {position} is {recorded.type} to "
            f"{position_of(recorded.cause)}, decided here: "
            f"{f'{expected.type} to {position_of(expected.cause)}' if expected else 'nothing'}"
        )
        self.service = service
        self.position = position
        self.expected = expected
        self.recorded = recorded
        self.due = due
        """All answers that were decided here and not recorded yet, `expected` the first."""
        self.told = told
        """What else the entry records, `recorded` the first: whoever folds the service's record
        anew takes all of it as it stands, so this is the only place where it is compared."""


class BehaviourUnknown(Exception):
    """The log asks for a behaviour that this build does not have."""


@dataclass(slots=True)
class Pending:
    """An answer that has not been read back yet."""

    proto: entry_pb2.Event
    cause_head: bytes
    """The chain hash at the entry of its cause."""
    since: float = field(default=0.0, metadata={"snapshot": False})
    """When it was decided, by the process's own monotonic clock, seconds."""


@dataclass(slots=True)
class Append:
    """An append of answers on its way. Its bytes never change: sent again, they are the same."""

    payload: bytes
    expected: int
    count: int


@dataclass(slots=True)
class ReplicaState(Generic[S]):
    """All that a replica keeps of the log; a snapshot holds it."""

    core: S
    out_sequence: int = 0
    """The last entry on its own `.out` subject."""
    failed: dict[Position, Event] = field(default_factory=dict[Position, Event])
    """Inputs whose decision failed and was not retried with success."""
    pending: deque[Pending] = field(default_factory=deque[Pending])


class Replica(Generic[S]):
    """A core on the log. `writer` and `build` stand in what it appends; neither is compared."""

    def __init__(
        self,
        core: Core[S],
        *,
        writer: str,
        build: str = "",
        state: ReplicaState[S] | None = None,
        wall_time_us: Callable[[], int] = lambda: 0,
    ) -> None:
        self.core = core
        self.state: ReplicaState[S] = state or ReplicaState(core.initial())
        self._writer = writer
        self._build = build
        self._wall_time_us = wall_time_us
        self._folds = core.folds
        self._traces = Traces(core.service, core.begins, core.ends)
        self._answers = core.answers | frozenset(KERNEL_ANSWERS)
        self._answer_types = {str(one.DESCRIPTOR.full_name): one for one in self._answers}
        self._sent = 0
        """How many of the pending answers are stored, as acknowledged, but not yet read back."""
        self._in_flight: Append | None = None
        self.leading = False
        """Whether this replica wrote the last entry of its subject."""
        self.answers_compared = 0

    # ---- reading -------------------------------------------------------------------------------

    def read(
        self, entry: ReadEntry, now: float, ahead: deque[entry_pb2.Event] | None = None
    ) -> None:
        """Take the next entry of the cell.

        `ahead`: this service's answers that are known to stand further on, oldest first. Where an
        answer is recorded it is taken instead of decided, so that a log that an older build wrote
        folds to what was said then.

        Raises Diverged, LogBroken, BehaviourUnknown, or what `evolve` raised.
        """
        if entry.events and entry.events[-1].behaviour > self.core.behaviour:
            raise BehaviourUnknown(
                f"{self.core.service} decides by behaviours up to {self.core.behaviour}; "
                f"{entry.events[-1].behaviour} is in force at entry {entry.sequence}: run a "
                "release that knows it"
            )
        own = entry.service == self.core.service
        if own and not entry.is_input:
            self._read_back(entry, now, ahead)
            return
        for event in entry.events:
            body_type = type(event.body)
            if body_type in KERNEL_INPUTS:
                self._kernel_input(event, entry.head, now, ahead)
            elif body_type in self._folds:
                self._fold(event, entry.head, now, ahead)
            elif own:
                raise LogBroken(
                    entry.sequence, f"{self.core.service} takes no input {body_type.__name__}"
                )

    def _fold(
        self, event: Event, head: bytes, now: float, ahead: deque[entry_pb2.Event] | None
    ) -> None:
        self.core.evolve(self.state.core, event)
        if event.traceparent:
            self._traces.heard(event.body, event.partner, event.traceparent)
        if ahead is not None and self._take_recorded(event, event, head, now, ahead):
            return
        self._decide(event, event, head, now)

    def _kernel_input(
        self, event: Event, head: bytes, now: float, ahead: deque[entry_pb2.Event] | None
    ) -> None:
        body = event.body
        if type(body) in self._folds:
            self.core.evolve(self.state.core, event)
        failed: Event | None = None
        if isinstance(body, events_pb2.RetryInput):
            # Where it fails again it is kept again.
            failed = self.state.failed.pop(position_of(body.position), None)
        again = (
            failed._replace(time_us=event.time_us, behaviour=event.behaviour, retried=True)
            if failed is not None
            else event
        )
        if ahead is not None and self._take_recorded(event, again, head, now, ahead):
            return
        if failed is not None:
            self._decide(event, again, head, now)
        elif isinstance(body, TELLING_INPUTS) and type(body) in self._folds:
            # It tells whoever listens, and asks nothing of the service that it stands on.
            self._decide(event, event, head, now)
        elif event.service == self.core.service:
            self._answer(event, [events_pb2.InputNoted()], False, head, now)

    def _decide(self, cause: Event, event: Event, head: bytes, now: float) -> None:
        """Decide `event`, in answer to `cause`: the same event, or a retry of it."""
        try:
            answers = self.core.decide(self.state.core, event)
            unfinished = False
            bodies: Sequence[Message]
            if isinstance(answers, Unfinished):
                bodies, unfinished = answers.answers, True
            else:
                bodies = answers
            if not bodies and cause.is_input and cause.service == self.core.service:
                bodies = [events_pb2.InputNoted()]
            if not bodies:
                return
            protos = self._protos(cause, event, bodies, unfinished)
        except NOT_DETERMINISTIC:
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong is the answer
            failed = events_pb2.InputFailed(
                input_type=str(event.body.DESCRIPTOR.full_name),
                input_body=encode_body(event.body),
                error=type(error).__qualname__,
            )
            bodies = [failed]
            # A core that acts on failures acts on its own too, once that is in the log; but a
            # failure to act on a failure ends there.
            acts = events_pb2.InputFailed in self._folds
            protos = self._protos(
                cause, event, bodies, acts and not isinstance(event.body, events_pb2.InputFailed)
            )
        self._evolve_own(cause, event, bodies, protos, head, now)

    def _answer(
        self, cause: Event, bodies: Sequence[Message], unfinished: bool, head: bytes, now: float
    ) -> None:
        protos = self._protos(cause, cause, bodies, unfinished)
        self._evolve_own(cause, cause, bodies, protos, head, now)

    def _protos(
        self, cause: Event, event: Event, bodies: Sequence[Message], unfinished: bool
    ) -> list[entry_pb2.Event]:
        """Answers to `cause` as recorded. They are about whom the decided event is about: a retry
        is an operator's, what it decides again remains the partner's."""
        cause_proto = position_proto(cause.position)
        wall_time_us = self._wall_time_us()
        protos: list[entry_pb2.Event] = []
        size = 0
        for index, body in enumerate(bodies):
            if type(body) not in self._answers:
                raise InvariantViolated(f"{self.core.service} may not answer {type(body).__name__}")
            traceparent, links = self._traces.of_answer(body, event.partner, cause)
            note = entry_pb2.Note(
                traceparent=traceparent, build=self._build, wall_time_us=wall_time_us, links=links
            )
            proto = entry_pb2.Event(
                type=str(body.DESCRIPTOR.full_name),
                body=encode_body(body),
                cause=cause_proto,
                index=index,
                partner=event.partner,
                actor=event.actor,
                time_us=cause.time_us,
                note=note,
            )
            size += proto.ByteSize() + 8
            protos.append(proto)
        if unfinished:
            if not protos:
                raise InvariantViolated("an unfinished step without an answer would never go on")
            protos[-1].continues = True
        if len(protos) > MAX_EVENTS or size > MAX_ENTRY_BYTES:
            raise InvariantViolated(f"{len(protos)} answers of {size} bytes do not fit an entry")
        return protos

    def _evolve_own(
        self,
        cause: Event,
        event: Event,
        bodies: Sequence[Message],
        protos: Sequence[entry_pb2.Event],
        head: bytes,
        now: float,
    ) -> None:
        """Fold one's own answers and let them wait to be read back."""
        state = self.state
        service = self.core.service
        core_answers = self.core.answers
        retried = isinstance(cause.body, events_pb2.RetryInput)
        for body, proto in zip(bodies, protos, strict=True):
            if proto.note.traceparent:
                self._traces.heard(body, proto.partner, proto.note.traceparent)
            if type(body) in core_answers:
                self.core.evolve(
                    state.core,
                    Event(
                        UNLOGGED,
                        service,
                        False,
                        body,
                        cause.position,
                        proto.partner,
                        proto.actor,
                        cause.time_us,
                        cause.behaviour,
                        retried,
                        proto.note.traceparent,
                    ),
                )
            state.pending.append(Pending(proto, head, now))
        if isinstance(bodies[0], events_pb2.InputFailed):
            state.failed[event.position] = event
            if len(state.failed) > MAX_FAILED:
                del state.failed[next(iter(state.failed))]

    def _take_recorded(
        self,
        cause: Event,
        event: Event,
        head: bytes,
        now: float,
        ahead: deque[entry_pb2.Event],
    ) -> bool:
        """Take the recorded answers to `cause`, where it is known what they are; else say no."""
        if not ahead:
            return False
        position = cause.position
        first = position_of(ahead[0].cause)
        if first < position:
            raise LogBroken(
                position.sequence,
                f"{self.core.service} answered {first} out of order, after later ones",
            )
        protos: list[entry_pb2.Event] = []
        bodies: list[Message] = []
        while ahead and position_of(ahead[0].cause) == position:
            proto = ahead.popleft()
            protos.append(proto)
            answer_type = self._answer_types.get(proto.type)
            if answer_type is None:
                raise LogBroken(
                    position.sequence, f"{self.core.service} is recorded to answer {proto.type}"
                )
            bodies.append(answer_type.FromString(proto.body))
        if protos:
            self._evolve_own(cause, event, bodies, protos, head, now)
        return True

    def _read_back(
        self, entry: ReadEntry, now: float, ahead: deque[entry_pb2.Event] | None
    ) -> None:
        """Compare recorded answers with one's own, and go on with unfinished steps."""
        state = self.state
        pending = state.pending
        for event, recorded in zip(entry.events, entry.protos, strict=True):
            expected = pending[0].proto if pending else None
            if expected is None or not same_answer(expected, recorded):
                at = event.position.index
                due = [one.proto for one in pending]
                raise Diverged(
                    self.core.service, event.position, expected, recorded, due, entry.protos[at:]
                )
            pending.popleft()
            self.answers_compared += 1
            if self._sent:
                self._sent -= 1
            if recorded.continues:
                if ahead is not None and self._take_recorded(event, event, entry.head, now, ahead):
                    continue
                self._decide(event, event, entry.head, now)
        state.out_sequence = max(state.out_sequence, entry.sequence)
        self.leading = entry.writer == self._writer
        flight = self._in_flight
        if flight is not None and entry.sequence > flight.expected:
            # The fence lets only one entry stand there: this one, mine or another's.
            self._in_flight = None

    # ---- appending -----------------------------------------------------------------------------

    @property
    def in_flight(self) -> Append | None:
        """The append on its way, if any."""
        return self._in_flight

    @property
    def unanswered_since(self) -> float | None:
        """When the oldest answer was decided that is not stored yet; None where there is none."""
        pending = self.state.pending
        return pending[self._sent].since if len(pending) > self._sent else None

    def waiting(self) -> int:
        """How many answers wait for an append to begin."""
        return len(self.state.pending) - self._sent

    def ready_at(self) -> float | None:
        """When the next append may start, by the process's monotonic clock; None: nothing to do."""
        since = self.unanswered_since
        if since is None or self._in_flight is not None:
            return None
        return since if self.leading else since + STANDBY_WAIT_S

    def next_append(self) -> Append | None:
        """Begin to append what waits: as many whole groups of answers to one cause as fit."""
        pending = self.state.pending
        if self._in_flight is not None or len(pending) <= self._sent:
            return None
        entry = entry_pb2.Entry(writer=self._writer)
        size = 0
        group: list[entry_pb2.Event] = []
        group_size = 0
        for index in range(self._sent, len(pending)):
            item = pending[index]
            group.append(item.proto)
            group_size += item.proto.ByteSize() + 8
            last = index + 1 == len(pending)
            if not last and pending[index + 1].proto.cause == item.proto.cause:
                continue
            if entry.events and (
                len(entry.events) + len(group) > MAX_EVENTS or size + group_size > MAX_ENTRY_BYTES
            ):
                break
            entry.events.extend(group)
            entry.head = item.cause_head
            size += group_size
            group, group_size = [], 0
        self._in_flight = Append(
            entry.SerializeToString(deterministic=True),
            self.state.out_sequence,
            len(entry.events),
        )
        return self._in_flight

    def stored(self, append: Append, sequence: int) -> None:
        """The log acknowledged an append."""
        if self._in_flight is not append:
            return  # It was read back first.
        self._in_flight = None
        self._sent += append.count
        self.state.out_sequence = sequence
        self.leading = True

    def fence_lost(self, append: Append, last_sequence: int | None, now: float) -> None:
        """Another replica wrote first: read on, and stand by.

        Raises LogBroken where the log names an older entry than has been read: it was rolled
        back."""
        if self._in_flight is not append:
            return
        if last_sequence is not None and last_sequence < append.expected:
            raise LogBroken(
                last_sequence + 1,
                f"the log of {self.core.service} ends at {last_sequence}, entry {append.expected} "
                f"was read: it was rolled back",
            )
        self._in_flight = None
        self.leading = False
        for item in self.state.pending:
            item.since = max(item.since, now)


def same_answer(one: entry_pb2.Event, other: entry_pb2.Event) -> bool:
    """Whether two answers are the same: body and deterministic header, bit for bit."""
    return (
        one.body == other.body
        and one.type == other.type
        and one.index == other.index
        and one.cause == other.cause
        and one.time_us == other.time_us
        and one.partner == other.partner
        and one.actor == other.actor
        and one.continues == other.continues
    )
