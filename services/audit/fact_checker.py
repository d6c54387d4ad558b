"""Audit's shell that looks recalled facts up in the log: at the places that they name, what does
the log itself have? It tells how many facts it found there and their digest; the core compares.

The places come from the inputs that brought the facts, which stand in the log too; what those say a
fact is counts for nothing here. A fact counts only where it stands on the answers' subject of the
service whose it is: an input that looks like one is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from google.protobuf.message import Message

from sabot.audit.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1 import correction_events_pb2 as settlement
from services.audit.domain.core import AuditState
from services.kernel.entry import position_of, position_proto
from services.kernel.event import Position
from services.kernel.log import LogUnavailable
from services.kernel.log_places import events_at
from services.kernel.process import Process
from services.settlement.domain.facts import NOTHING_YET, digest_with

STANDBY_US = 5_000_000
"""How much longer a replica waits that did not write the last answers."""
AGAIN_US = 5_000_000
"""What was told and is not in the log yet is not told again before this."""
AGAIN_S = 2.0
"""Before a log that could not be read is read again."""
LOOK_S = 0.05
"""How often it looks whether there is something to look up."""
_RECALL = str(settlement.RecallFacts.DESCRIPTOR.full_name)


class FactChecker:
    """See the module; a `services.kernel.shells.Shell` with background work."""

    service = "audit"
    wakes: frozenset[type[Message]] = frozenset({settlement.FactsRecalled})
    since = 1

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}
        self._wanted: dict[Position, settlement.FactsRecalled] = {}
        """By what asked for them."""
        self._found: dict[Position, corrections.ConfirmFacts] = {}
        self._seen_us: dict[Position, int] = {}
        self._told_us: dict[Position, int] = {}

    def poll(
        self, state: AuditState, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message]:
        """What was found, to append now."""
        del answered  # What is asked is another service's answer, read back.
        asked = {one.asked_by: one for one in state.asked.values()}
        self._forget(asked)
        told: list[Message] = []
        for place, one in asked.items():
            since_us = self._seen_us.setdefault(place, now_us)
            found = self._found.get(place)
            if found is None:
                self._wanted.setdefault(place, one.recalled)
                continue
            due_us = since_us + (0 if leading else STANDBY_US)
            if now_us >= max(due_us, self._told_us.get(place, -AGAIN_US) + AGAIN_US):
                self._told_us[place] = now_us
                told.append(found)
        return told

    def _forget(self, asked: Collection[Position]) -> None:
        """What is asked no more is over."""
        for place in [place for place in self._seen_us if place not in asked]:
            self._seen_us.pop(place)
            self._told_us.pop(place, None)
            self._found.pop(place, None)
            self._wanted.pop(place, None)

    async def run(self, process: Process) -> None:
        """Look up what is wanted. Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            for place, recalled in list(self._wanted.items()):
                about = f"facts of {recalled.correction_id}"
                try:
                    found = await self._look_up(process, place, recalled)
                except LogUnavailable as error:
                    self.problems[about] = str(error)
                    await asyncio.sleep(AGAIN_S)
                    continue
                self.problems.pop(about, None)
                if self._wanted.pop(place, None) is not None:
                    self._found[place] = found

    async def _look_up(
        self, process: Process, asked_by: Position, recalled: settlement.FactsRecalled
    ) -> corrections.ConfirmFacts:
        """What the log has where the facts are said to stand. Raises LogUnavailable."""
        steps = [position_of(step) for step in recalled.steps]
        inputs = await events_at(process.log, steps)
        told: list[settlement.RecalledFact] = []
        for step in steps:
            stored = inputs.get(step)
            if stored is not None and stored.event.type == _RECALL:
                told.extend(settlement.RecallFacts.FromString(stored.event.body).facts)
        places = [position_of(fact.position) for fact in told]
        stands = await events_at(process.log, places)
        count, digest = 0, NOTHING_YET
        for at in places:
            fact = stands.get(at)
            if fact is None or fact.subject != answers_of(process.cell, fact.event.type):
                continue
            count += 1
            digest = digest_with(digest, at, fact.event.type, fact.event.body)
        return corrections.ConfirmFacts(
            correction_id=recalled.correction_id,
            count=count,
            digest=digest,
            asked_by=position_proto(asked_by),
        )


def answers_of(cell: str, event_type: str) -> str:
    """The subject on which an answer of this type stands: its package names its service."""
    return f"sabot.{cell}.{event_type.split('.')[1]}.out"
