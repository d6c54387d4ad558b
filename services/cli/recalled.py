"""Facts that corrections brought back, held against the places in the log that they name: what
audit's shell told once is seen again by whoever reads the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sabot.audit.v1 import correction_events_pb2 as audit
from sabot.settlement.v1 import correction_events_pb2 as settlement
from services.audit.fact_checker import answers_of
from services.kernel.entry import position_of
from services.kernel.event import Event, Position
from services.kernel.log import Log
from services.kernel.log_places import events_at


class Fact(NamedTuple):
    """A fact as it was recalled."""

    correction_id: str
    position: Position
    type: str
    body: bytes


class Recalled:
    """Hears a log from its beginning, and keeps the facts of corrections that were confirmed."""

    def __init__(self) -> None:
        self._brought: dict[Position, settlement.RecallFacts] = {}
        self._steps: dict[str, list[Position]] = {}
        self.facts: list[Fact] = []

    def hear(self, events: Iterable[Event]) -> None:
        """The next events of the log."""
        for event in events:
            body = event.body
            match body:
                case settlement.RecallFacts():
                    self._brought[event.position] = body
                case settlement.FactsRecalled():
                    self._steps[body.correction_id] = [position_of(step) for step in body.steps]
                case audit.FactsConfirmed():
                    self._keep(body.correction_id)
                case _:
                    pass

    def kept(self) -> dict[str, Any]:
        """All that was heard, as JSON."""
        return {
            "brought": [
                [position, body.SerializeToString().hex()]
                for position, body in self._brought.items()
            ],
            "steps": self._steps,
            "facts": [
                [fact.correction_id, fact.position, fact.type, fact.body.hex()]
                for fact in self.facts
            ],
        }

    @classmethod
    def of(cls, kept: dict[str, Any]) -> Recalled:
        """What `kept` gave, to hear on. Raises ValueError, TypeError, KeyError, DecodeError."""
        one = cls()
        one._brought = {
            Position(*at): settlement.RecallFacts.FromString(bytes.fromhex(raw))
            for at, raw in kept["brought"]
        }
        one._steps = {
            name: [Position(*step) for step in steps] for name, steps in kept["steps"].items()
        }
        one.facts = [
            Fact(name, Position(*at), kind, bytes.fromhex(raw))
            for name, at, kind, raw in kept["facts"]
        ]
        return one

    def _keep(self, correction_id: str) -> None:
        for step in self._steps.pop(correction_id, []):
            brought = self._brought.pop(step, None)
            if brought is not None:
                self.facts += [
                    Fact(correction_id, position_of(fact.position), fact.type, fact.body)
                    for fact in brought.facts
                ]

    async def untrue(self, log: Log) -> list[str]:
        """What was confirmed and is not what the log says. Raises LogUnavailable."""
        if not self.facts:
            return []
        found = await events_at(log, [fact.position for fact in self.facts])
        told: list[str] = []
        for fact in self.facts:
            stored = found.get(fact.position)
            subject = answers_of(log.cell, fact.type)
            if stored is None or (stored.subject, stored.event.type, stored.event.body) != (
                subject,
                fact.type,
                fact.body,
            ):
                told.append(f"{fact.correction_id} rests on {fact.type} at {fact.position}, untrue")
        return told
