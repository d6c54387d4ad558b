"""The vocabulary of cores: events, positions, and what a core is.

A core is three pure functions over a state of plain dataclasses. It knows no clock, no I/O and no
randomness; whatever it needs to know stands in an event. Everything else in the kernel exists to
run cores over a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from google.protobuf.message import Message

from services.kernel.telemetry_names import AlarmKind

S = TypeVar("S")

NEWEST_BEHAVIOUR = 2
"""The newest behaviour of this build, of every core in it: one that decides nothing in another way
goes along all the same, since a behaviour is in force for all services at once.

1: as it was in the beginning. 2: big work goes in smaller steps (`services.games.steps`), and a
round that was settled wrongly is settled again to the result that it has."""


class Position(NamedTuple):
    """Where an event stands in a cell's log; ordered as tuples are."""

    segment: int
    sequence: int
    index: int  # type: ignore[assignment]  # the field hides tuple.index, which nobody needs here

    def __str__(self) -> str:
        return f"{self.segment}/{self.sequence}/{self.index}"


UNLOGGED = Position(0, 0, 0)
"""The position of an answer that is evolved by its own service before it is in the log."""


class Event(NamedTuple):
    """One event as a core sees it."""

    position: Position
    """Where it stands; `UNLOGGED` for one's own answers, which are evolved as they are decided."""
    service: str
    """Whose subject it stands on."""
    is_input: bool
    """Whether it is an input (`.in`) or an answer (`.out`)."""
    body: Message
    """The event itself."""
    cause: Position | None
    """What it answers; None on inputs."""
    partner: str
    """The partner on whose behalf it happened; empty where none is concerned."""
    actor: str
    """Who did it: `partner:<id>`, `operator:<id>` or `system:<part>`."""
    time_us: int
    """Log time at this position, microseconds since 1970-01-01 UTC."""
    behaviour: int
    """The behaviour in force at this position."""
    retried: bool = False
    """Whether this input failed before and an operator has it decided again."""
    traceparent: str = ""
    """W3C trace context; a core never looks at it."""
    edge_us: int = 0
    """Inputs: when their edge took them, by its clock, microseconds since 1970 UTC. Log time may be
    later, where another edge's clock is ahead. Answers: 0."""
    caused_us: int = 0
    """Answers as they are read: log time at their cause, which is what the core that decided them
    has for their time. Inputs, and one's own answers before they are read back: 0."""


_WAITING: dict[str, bool] = {}
"""By full name: whether messages of this type may name such a place."""


def waiting_since(body: Message) -> Position | None:
    """Where the outside is waited for: what an answer names that begins or ends such a wait.

    An answer whose own cause it is begins one: what happens next stands behind an input, which no
    chain of causes leads to. The answer that ends it, whatever its own cause is, names the same."""
    descriptor = body.DESCRIPTOR
    may = _WAITING.get(descriptor.full_name)
    if may is None:
        may = _WAITING[descriptor.full_name] = "waiting_since" in descriptor.fields_by_name
    if not may or not body.HasField("waiting_since"):
        return None
    since: Any = getattr(body, "waiting_since")  # noqa: B009  # by its contract
    return Position(since.segment, since.sequence, since.index)


class InvariantViolated(Exception):
    """Something that cannot be is so: a bug. The message holds the facts."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The answers of a step of bigger work. The last one, read back, is decided like an input."""

    answers: Sequence[Message]


Answers = Sequence[Message] | Unfinished

Matter = Callable[[Any, str], tuple[str, ...]]
"""What a body is about, by ids, given the partner of its event's header; empty: nothing."""


@dataclass(frozen=True, slots=True)
class Core(Generic[S]):
    """A service as a pure function of the log.

    `evolve(state, event)` changes the state in place by one event: another service's, an input, or
    one's own answer. It must not fail on anything that the log may hold.

    `decide(state, event)` returns the answers to an event that `evolve` has just folded; it leaves
    the state alone. An exception in it is answered `InputFailed`, which other services see like any
    answer.
    """

    service: str
    """Its name, also in its subjects."""
    schema: int
    """Version of the state's shape; a snapshot of another one is not used."""
    behaviour: int
    """The highest behaviour that it can decide by."""
    state_type: type[S]
    """The dataclass of the state, for snapshots."""
    initial: Callable[[], S]
    """The state before the first event."""
    evolve: Callable[[S, Event], None]
    decide: Callable[[S, Event], Answers]
    folds: frozenset[type[Message]]
    """Inputs and other services' answers that `evolve` and `decide` must see. The kernel's own
    inputs, such as `RetryInput`, may be among them: the kernel decides about those, and the core
    only evolves."""
    answers: frozenset[type[Message]]
    """What it may answer; `evolve` must see these too."""
    alarms: Mapping[type[Message], AlarmKind] = field(
        default_factory=dict[type[Message], AlarmKind]
    )
    """Its answers that an operator must see as they come, with the kind of alarm that each is."""
    begins: Mapping[type[Message], Matter] = field(default_factory=dict[type[Message], "Matter"])
    ends: Mapping[type[Message], Matter] = field(default_factory=dict[type[Message], "Matter"])
    """What events are about, for traces alone: an answer of a type in `ends` goes on in the trace
    of what it folded or answered in `begins` about the same matter, every other in its cause's."""
