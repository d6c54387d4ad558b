"""The final log as plain facts, decoded by the auditor itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sabot.log.v1 import entry_pb2
from services.kernel.entry import EventTypes
from services.kernel.log import LogMessage

Place = tuple[int, int]
"""(sequence, index): where an event stands. There is one segment."""


class Fact(NamedTuple):
    """One event of the log."""

    place: Place
    service: str
    is_input: bool
    copy: bool
    """Whether its entry is a copy of an earlier one: it must have no effect."""
    body: Any
    cause: Place
    """(0, 0) on inputs."""
    rank: int
    """Among the answers to its cause."""
    partner: str
    actor: str
    time_us: int
    continues: bool


@dataclass(slots=True)
class Findings:
    """What is wrong, in the order of discovery; and what there was to look at."""

    found: list[tuple[Place, str]] = field(default_factory=list)
    reached: Counter[str] = field(default_factory=Counter)
    """How often the log went each way that an auditor knows."""

    def reach(self, path: str) -> None:
        """The log went this way."""
        self.reached[path] += 1

    def add(self, place: Place, what: str) -> None:
        """Something at a place of the log."""
        self.found.append((place, what))

    def check(self, holds: object, place: Place, what: str) -> None:
        """Note `what` unless it holds."""
        if not holds:
            self.found.append((place, what))

    def lines(self) -> list[str]:
        """All of it, in the order of the log."""
        return [f"1/{place[0]}/{place[1]}: {what}" for place, what in sorted(self.found)]


def decoded(messages: Sequence[LogMessage], types: EventTypes, findings: Findings) -> list[Fact]:
    """All events, in order. Writers' counts are followed here: a copy is told from a gap."""
    facts: list[Fact] = []
    counters: dict[tuple[str, str], int] = {}
    payloads: dict[tuple[str, str, int], bytes] = {}
    for number, message in enumerate(messages, start=1):
        findings.check(message.sequence == number, (number, 0), "the log has a hole")
        service, kind = message.subject.split(".")[2:]
        entry = entry_pb2.Entry.FromString(message.payload)
        is_input, copy = kind == "in", False
        if is_input:
            key = (message.subject, entry.writer)
            known = payloads.setdefault((*key, entry.counter), message.payload)
            findings.check(known == message.payload, (number, 0), "a copy that differs")
            copy = entry.counter <= counters.get(key, 0)
            if not copy:
                expected = counters.get(key, 0) + 1
                findings.check(
                    entry.counter == expected,
                    (number, 0),
                    f"writer {entry.writer} goes on with {entry.counter} instead of {expected}",
                )
                counters[key] = entry.counter
        for index, event in enumerate(entry.events):
            facts.append(
                Fact(
                    (number, index),
                    service,
                    is_input,
                    copy,
                    types.decode(event.type, event.body),
                    (event.cause.sequence, event.cause.index),
                    event.index,
                    event.partner,
                    event.actor,
                    event.time_us,
                    event.continues,
                )
            )
    return facts
