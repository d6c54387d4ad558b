"""given(log).when(event).then(answers): a core run as the kernel runs it, in a test that reads as
one sentence.

    Deciding(CORE).given(a, b).when(c).then(d, e)

Every fact is folded, decided, and its answers are folded at once; an unfinished step is read back
and decided on. On the way the harness holds the core to what the kernel expects of it: decide
leaves the state alone and says the same thing twice, answers only what the core declares, and every
step fits one entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2, events_pb2
from services.kernel.event import NEWEST_BEHAVIOUR, UNLOGGED, Core, Event, Position, Unfinished

S = TypeVar("S")

START_US = 1_767_225_600_000_000
"""Log time of a test's first event, 2026-01-01 UTC."""
TICK_US = 1_000
"""Log time between two events whose time a test does not care about."""
MAX_EVENTS = 800
MAX_BYTES = 256 * 1024
PARTNER = "acme"
OPERATOR = "operator:dana"


@dataclass(frozen=True, slots=True)
class Fact:
    """A body with what stands beside it in the log, where a test cares."""

    body: Message
    partner: str | None = None
    actor: str | None = None
    at_us: int | None = None
    """Log time since the start of the test."""
    service: str | None = None
    """Whose it is; else the package of the body says so."""
    behaviour: int = NEWEST_BEHAVIOUR
    cause: Position | None = None
    edge_us: int | None = None
    """When its edge took it, since the start of the test; else its log time."""


def by(
    body: Message,
    *,
    partner: str | None = None,
    actor: str | None = None,
    at_us: int | None = None,
    service: str | None = None,
    behaviour: int = NEWEST_BEHAVIOUR,
    edge_us: int | None = None,
) -> Fact:
    """A body, and who did it when."""
    return Fact(body, partner, actor, at_us, service, behaviour, edge_us=edge_us)


def request_id(number: int, at_us: int = 0) -> str:
    """A UUIDv7, made `at_us` after the start of the test; the number makes it differ."""
    made = f"{(START_US + at_us) // 1000:012x}"
    return f"{made[:8]}-{made[8:]}-7000-8000-{number:012x}"


def failure_of(body: Message, error: str = "ValueError") -> events_pb2.InputFailed:
    """The `InputFailed` that the kernel answers to an event whose decision raised an error."""
    return events_pb2.InputFailed(
        input_type=str(body.DESCRIPTOR.full_name),
        input_body=body.SerializeToString(deterministic=True),
        error=error,
    )


@dataclass(slots=True)
class Deciding(Generic[S]):
    """A core over a log that a test writes."""

    core: Core[S]
    careful: bool = True
    """Whether to check on every event that decide is pure; costs a rendering of the whole state."""
    state: S = field(init=False)
    log: list[Event] = field(default_factory=list)
    steps: list[list[Message]] = field(default_factory=list)
    """What the last `when` was answered with, step by step."""
    sequence: int = 0
    time_us: int = START_US

    def __post_init__(self) -> None:
        self.state = self.core.initial()

    @property
    def answers(self) -> list[Message]:
        """All that the last event was answered with."""
        return [body for step in self.steps for body in step]

    @property
    def last(self) -> Event:
        """The last event that was not an answer of this core."""
        return self.log[-1]

    def given(self, *facts: Message | Fact) -> Deciding[S]:
        """Let these have happened."""
        for fact in facts:
            self._happen(fact)
        self.steps = []
        return self

    def when(self, fact: Message | Fact) -> Deciding[S]:
        """Let this happen, and remember the answers."""
        self._happen(fact)
        return self

    def then(self, *expected: Message) -> Deciding[S]:
        """The last event was answered with exactly this."""
        got = self.answers
        assert [type(one).__name__ for one in got] == [type(one).__name__ for one in expected], (
            "\n".join(f"{type(one).__name__} {one}" for one in got) or "nothing was answered"
        )
        for one, other in zip(got, expected, strict=True):
            assert one == other, f"{type(one).__name__}\n{one}\n--- expected\n{other}"
        return self

    def then_only(self, *types: type[Message]) -> Deciding[S]:
        """The last event was answered with messages of these types."""
        assert [type(one) for one in self.answers] == list(types), self.answers
        return self

    def retry(self, event: Event) -> Deciding[S]:
        """Decide an event once more, as after an operator's `RetryInput`: without folding it."""
        self.sequence += 1
        cause = Position(1, self.sequence, 0)
        self.time_us += TICK_US
        again = event._replace(retried=True, time_us=self.time_us)
        self.steps = [self._answer(cause, again)[0]]
        return self

    def _happen(self, fact: Message | Fact) -> None:
        if not isinstance(fact, Fact):
            fact = Fact(fact)
        event = self._event(fact)
        assert type(event.body) in self.core.folds, f"not folded: {type(event.body).__name__}"
        self.log.append(event)
        self.core.evolve(self.state, event)
        answers, unfinished = self._answer(event.position, event)
        self.steps = [answers]
        while unfinished:
            self.sequence += 1
            last = event._replace(
                position=Position(1, self.sequence, 0),
                service=self.core.service,
                is_input=False,
                body=self.steps[-1][-1],
                cause=event.position,
            )
            answers, unfinished = self._answer(last.position, last)
            self.steps.append(answers)
            event = last

    def _event(self, fact: Fact) -> Event:
        self.sequence += 1
        self.time_us += TICK_US
        if fact.at_us is not None:
            self.time_us = max(self.time_us, START_US + fact.at_us)
        service = fact.service or service_of(fact.body)
        own = service == self.core.service
        partner = PARTNER if fact.partner is None else fact.partner
        return Event(
            position=Position(1, self.sequence, 0),
            service=service,
            is_input=own,
            body=fact.body,
            cause=None if own else fact.cause or Position(1, max(self.sequence - 1, 1), 0),
            partner=partner,
            actor=fact.actor or (f"partner:{partner}" if partner else OPERATOR),
            time_us=self.time_us,
            behaviour=fact.behaviour,
            edge_us=self._edge_us(fact) if own else 0,
        )

    def _edge_us(self, fact: Fact) -> int:
        return self.time_us if fact.edge_us is None else START_US + fact.edge_us

    def _answer(self, cause: Position, event: Event) -> tuple[list[Message], bool]:
        before = repr(self.state) if self.careful else ""
        answers, unfinished = unwrapped(self.core.decide(self.state, event))
        if self.careful:
            assert repr(self.state) == before, "decide changed the state"
            again, _ = unwrapped(self.core.decide(self.state, event))
            assert again == answers, "decide is not a function"
        assert answers or not unfinished, "an unfinished step without an answer never goes on"
        _check_entry(event, answers)
        for body in answers:
            assert type(body) in self.core.answers, f"undeclared: {type(body).__name__}"
            own = event._replace(
                position=UNLOGGED,
                service=self.core.service,
                is_input=False,
                body=body,
                cause=cause,
            )
            self.core.evolve(self.state, own)
        return answers, unfinished


def service_of(body: Message) -> str:
    """The service whose package a body stands in."""
    return str(body.DESCRIPTOR.full_name).split(".")[1]


def unwrapped(answers: Any) -> tuple[list[Message], bool]:
    """The answers of one step, and whether another follows."""
    if isinstance(answers, Unfinished):
        return list(answers.answers), True
    assert isinstance(answers, Sequence)
    return list(answers), False


def _check_entry(event: Event, answers: Sequence[Message]) -> None:
    """All answers to one cause fit one entry, header and note included."""
    assert len(answers) <= MAX_EVENTS, len(answers)
    size = 0
    for index, body in enumerate(answers):
        size += (
            8
            + entry_pb2.Event(
                type=str(body.DESCRIPTOR.full_name),
                body=body.SerializeToString(deterministic=True),
                cause=entry_pb2.Position(segment=1, sequence=1 << 40, index=799),
                index=index,
                partner=event.partner,
                actor=event.actor,
                time_us=event.time_us,
                note=entry_pb2.Note(
                    traceparent="0" * 55, build="0" * 20, wall_time_us=event.time_us
                ),
            ).ByteSize()
        )
    assert size <= MAX_BYTES, size
