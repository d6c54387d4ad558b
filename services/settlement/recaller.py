"""Settlement's shell that brings back the facts of a closed round, once its correction is approved:
in steps that fit an entry, and closed by their count and digest.

It reads them from the projection. A projection is a cache and may be wrong; audit looks every fact
up in the log before anything is settled by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from google.protobuf.message import Message

from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import correction_events_pb2 as table_corrections
from services.kernel.entry import position_proto
from services.kernel.event import Position
from services.kernel.process import Process
from services.kernel.projections import ProjectionUnavailable
from services.settlement.domain.facts import NOTHING_YET, digest_with
from services.settlement.domain.state import Recall, SettlementState
from services.settlement.queries import Fact

STEP_FACTS = 400
STEP_BYTES = 120 * 1024
"""Of one step, which stays one event in one entry: half of what an entry holds. The largest fact is
an account with 500 bets, corrected before: about 130 KiB, a step of its own."""
STANDBY_US = 5_000_000
"""How much longer a replica waits that did not write the last answers."""
AGAIN_US = 5_000_000
"""What was told and is not in the log yet is not told again before this."""
AGAIN_S = 2.0
"""Before facts that could not be read are read again."""
LOOK_S = 0.05
"""How often it looks whether there is something to read."""

FactsOf = Callable[[str, Position], Awaitable[Sequence[Fact]]]
"""From a round and a position to all of its facts, as they stand there or later. Raises
ProjectionUnavailable."""


class Recaller:
    """See the module; a `services.kernel.shells.Shell` with background work."""

    service = "settlement"
    wakes: frozenset[type[Message]] = frozenset(
        {table_corrections.CorrectionApproved, corrections.FactsTaken}
    )
    since = 1

    def __init__(self) -> None:
        self.facts_of: FactsOf = _from_nowhere
        """Where facts are read; set before the process takes part."""
        self.problems: dict[str, str] = {}
        self._wanted: dict[Position, str] = {}
        """By approval, the round."""
        self._steps: dict[Position, list[corrections.RecallFacts | corrections.EndRecall]] = {}
        self._seen_us: dict[Position, int] = {}
        self._told_us: dict[tuple[Position, int], int] = {}

    def poll(
        self, state: SettlementState, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message]:
        """The next step of each recall."""
        del answered  # An approval is another service's answer, read back.
        waiting = {
            one.asked_by: (correction_id, one)
            for correction_id, one in state.recalls.items()
            if not one.is_recalled
        }
        for place in [place for place in self._seen_us if place not in waiting]:
            self._forget(place)
        told: list[Message] = []
        for place, (correction_id, recall) in waiting.items():
            since_us = self._seen_us.setdefault(place, now_us)
            step = self._next(correction_id, recall)
            if step is None or (not leading and now_us < since_us + STANDBY_US):
                continue
            key = (place, len(recall.steps))
            if now_us >= self._told_us.get(key, -AGAIN_US) + AGAIN_US:
                self._told_us[key] = now_us
                told.append(step)
        return told

    def _next(self, correction_id: str, recall: Recall) -> Message | None:
        """What comes next of a recall; None while its facts are being read."""
        steps = self._steps.get(recall.asked_by)
        if steps is None:
            self._wanted.setdefault(recall.asked_by, recall.round_id)
            return None
        step = steps[min(len(recall.steps), len(steps) - 1)]
        step.correction_id = correction_id
        return step

    def _forget(self, place: Position) -> None:
        self._seen_us.pop(place)
        self._wanted.pop(place, None)
        self._steps.pop(place, None)
        for key in [key for key in self._told_us if key[0] == place]:
            del self._told_us[key]

    async def run(self, process: Process) -> None:
        """Read what is wanted. Until cancelled."""
        del process
        while True:
            await asyncio.sleep(LOOK_S)
            for place, round_id in list(self._wanted.items()):
                about = f"facts of round {round_id}"
                try:
                    facts = await self.facts_of(round_id, place)
                except ProjectionUnavailable as error:
                    self.problems[about] = str(error)
                    await asyncio.sleep(AGAIN_S)
                    continue
                self.problems.pop(about, None)
                if self._wanted.pop(place, None) is not None:
                    self._steps[place] = steps_of(facts, place)


async def _from_nowhere(round_id: str, position: Position) -> Sequence[Fact]:
    raise ProjectionUnavailable(f"nobody said where facts of {round_id} at {position} are")


def steps_of(
    facts: Sequence[Fact], asked_by: Position
) -> list[corrections.RecallFacts | corrections.EndRecall]:
    """Facts as inputs, but for the correction's id: steps, and their end."""
    asked = position_proto(asked_by)
    steps: list[corrections.RecallFacts | corrections.EndRecall] = []
    digest, size = NOTHING_YET, 0
    step: corrections.RecallFacts | None = None
    for fact in facts:
        digest = digest_with(digest, fact.position, fact.type, fact.body)
        told = corrections.RecalledFact(
            position=position_proto(fact.position), type=fact.type, body=fact.body
        )
        size += told.ByteSize() + 4
        if step is None or len(step.facts) >= STEP_FACTS or size > STEP_BYTES:
            step = corrections.RecallFacts(step=len(steps) + 1, asked_by=asked)
            steps.append(step)
            size = told.ByteSize() + 4
        step.facts.append(told)
    steps.append(corrections.EndRecall(count=len(facts), digest=digest, asked_by=asked))
    return steps
