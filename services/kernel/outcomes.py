"""Who waits for what: from an input, along the chain of answers, to the one that ends it. Pure but
for the futures of callers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2
from services.kernel.edge import Outcome
from services.kernel.event import Event, Position, waiting_since
from services.kernel.reader import ReadEntry
from services.kernel.telemetry_names import AlarmKind

END_OF_CHAIN = frozenset(
    (
        events_pb2.InputNoted,
        events_pb2.InputIgnored,
        events_pb2.InputFailed,
        events_pb2.RequestRepeated,
    )
)
"""Answers behind which nothing more comes of an input, whatever it was."""
_WATCHED = frozenset((events_pb2.InputFailed, events_pb2.InputIgnored))
_UNTRUE = frozenset((events_pb2.IGNORED_REASON_CONTRADICTS, events_pb2.IGNORED_REASON_IMPOSSIBLE))

Alarm = Callable[[AlarmKind, dict[str, Any]], None]
"""Told `(kind, facts)` of what an operator must see."""


@dataclass(slots=True)
class Submitted:
    """An input on its way into the log; without a future, nobody waits for it."""

    future: asyncio.Future[Outcome] | None
    until: frozenset[type[Message]]


@dataclass(slots=True)
class _Chain:
    """A caller that waits for what becomes of its input."""

    future: asyncio.Future[Outcome]
    until: frozenset[type[Message]]
    input_position: Position
    since: float
    outside: bool = False
    """Whether something outside of the cell is waited for, such as a partner's wallet: that is not
    this cell's delay, and no ground to refuse further calls."""


class Outcomes:
    """The callers of one process, and the inputs of the whole cell that have no answer yet."""

    def __init__(self, alarm: Alarm, alarming: Mapping[type[Message], AlarmKind]) -> None:
        """`alarming`: answers of the cores here that are alarms, with their kinds."""
        self._alarm = alarm
        self._alarming = alarming
        self._chains: dict[Position, _Chain] = {}
        self._outside: dict[Position, _Chain] = {}
        """Those that wait for the outside, by what answers name in `waiting_since`."""
        self._open_inputs: dict[Position, float] = {}

    def entered(self, entry: ReadEntry, tokens: Sequence[Submitted], now: float) -> None:
        """Inputs were read. `tokens`: of those that this process submitted, one for each event."""
        for event in entry.events:
            self._open_inputs[event.position] = now
        for event, token in zip(entry.events, tokens, strict=False):
            if token.future is not None and not token.future.done():
                self._chains[event.position] = _Chain(
                    token.future, token.until, event.position, now
                )

    def answered(self, entry: ReadEntry) -> None:
        """Answers were read: some end a chain, some carry it on."""
        chains = self._chains
        for event in entry.events:
            cause = event.cause
            if cause is None:
                continue
            self._open_inputs.pop(cause, None)
            if type(event.body) in _WATCHED:
                self._watch(event, cause)
            elif type(event.body) in self._alarming:
                self._alarm(self._alarming[type(event.body)], _facts_of(event))
            chain = chains.get(cause)
            since = waiting_since(event.body)
            if since is not None:
                if since == cause:
                    self._waits(since, chain)
                    continue
                chain = self._outside.pop(since, None)
            if chain is None:
                continue
            chain.outside = False
            if chain.future.done():
                chains.pop(cause, None)
            elif type(event.body) in chain.until or type(event.body) in END_OF_CHAIN:
                chains.pop(cause, None)
                chain.future.set_result(Outcome(chain.input_position, event))
            else:
                chains[event.position] = chain

    def oldest_since(self) -> float | None:
        """Since when the oldest input without an answer, or caller without an outcome, waits."""
        since = next(iter(self._open_inputs.values()), None)
        while self._chains:
            position, chain = next(iter(self._chains.items()))
            if not chain.future.done() and not chain.outside:
                return chain.since if since is None else min(since, chain.since)
            # It has its outcome, its caller gave up, or the outside is waited for.
            del self._chains[position]
        return since

    def awaited(self) -> bool:
        """Whether a caller waits."""
        chains = (*self._chains.values(), *self._outside.values())
        return any(not chain.future.done() for chain in chains)

    def forsake(self, error: Exception) -> None:
        """Tell every caller that nobody will know."""
        chains = [*self._chains.values(), *self._outside.values()]
        self._chains.clear()
        self._outside.clear()
        for chain in chains:
            if not chain.future.done():
                chain.future.set_exception(error)

    def _waits(self, since: Position, chain: _Chain | None) -> None:
        """A caller waits for the outside from here on."""
        if chain is not None and not chain.future.done():
            chain.outside = True
            self._outside[since] = chain
            self._chains.pop(since, None)

    def _watch(self, event: Event, cause: Position) -> None:
        """A decision that failed, and an input that cannot be true, is for a person to look at."""
        facts = {"service": event.service, "position": str(event.position), "cause": str(cause)}
        body = event.body
        if isinstance(body, events_pb2.InputFailed):
            self._alarm("input_failed", {**facts, "input": body.input_type, "error": body.error})
        elif isinstance(body, events_pb2.InputIgnored) and body.reason in _UNTRUE:
            reason = events_pb2.IgnoredReason.Name(body.reason)
            self._alarm("input_untrue", {**facts, "reason": reason})


def _facts_of(event: Event) -> dict[str, Any]:
    """What an alarming answer says, its plain fields, and where it stands."""
    facts: dict[str, Any] = {"service": event.service, "position": str(event.position)}
    for field, value in event.body.ListFields():
        if field.enum_type is not None and not field.is_repeated:
            known = field.enum_type.values_by_number
            facts[field.name] = known[value].name if value in known else value
        elif field.message_type is None and not field.is_repeated:
            facts[field.name] = value
    return facts
