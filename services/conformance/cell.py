"""A cell in memory: every core that has to do with a round, over one log.

Each core reads the whole log in order, as replicas do: foreign events are folded and decided, and
its answers folded at once and appended. Nothing is chained, stored or compared here; that is the
kernel's matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from services.kernel.event import UNLOGGED, Core, Event, Position, Unfinished
from services.limits.domain.core import CORE as LIMITS
from services.rules.domain.core import CORE as RULES
from services.settlement.domain.core import CORE as SETTLEMENT
from services.shoe.domain.core import CORE as SHOE
from services.table.domain.core import CORE as TABLE
from services.wallet.domain.core import CORE as WALLET

CORES: tuple[Core[Any], ...] = (TABLE, LIMITS, WALLET, SHOE, RULES, SETTLEMENT)
"""In the order of a bet's path."""
START_US = 1_767_225_600_000_000
"""When every cell begins: 2026-01-01 UTC."""
STEP_US = 1_000
"""Log time between two inputs."""


class DecisionFailed(Exception):
    """A core could not decide: in a fleet this would be answered `InputFailed`."""


class Cell:
    """See the module. It begins with nothing in its log; or with `states`, by service, which it
    changes, behind an entry."""

    def __init__(self, states: dict[str, Any] | None = None, sequence: int = 0) -> None:
        self.states = states or {core.service: core.initial() for core in CORES}
        self.behaviour = min(core.behaviour for core in CORES)
        """The newest that every core knows."""
        self.time_us = START_US
        self._sequence = sequence

    def tell(
        self,
        service: str,
        body: Message,
        *,
        partner: str = "",
        actor: str = "",
        at_us: int | None = None,
        edge_us: int = 0,
    ) -> list[Event]:
        """Append an input and let every core answer, until nothing is left to be said. Returns the
        input and all that followed. `at_us`: its log time; else a step after the one before.
        `edge_us`: the edge's, where it matters. Raises DecisionFailed."""
        self.time_us = self.time_us + STEP_US if at_us is None else max(self.time_us, at_us)
        asked = self._event(
            service,
            body,
            partner=partner,
            actor=actor or (f"partner:{partner}" if partner else "operator:conformance"),
        )
        return self.follow([(asked._replace(edge_us=edge_us), False)])

    def follow(self, begun: Sequence[tuple[Event, bool]]) -> list[Event]:
        """Let every core answer to some events, and to the answers; with each event, whether it
        ends an unfinished step. Returns them and all that followed. Raises DecisionFailed."""
        waiting = deque(begun)
        told: list[Event] = []
        while waiting:
            event, unfinished = waiting.popleft()
            told.append(event)
            for core in CORES:
                own = event.service == core.service and not event.is_input
                if unfinished if own else type(event.body) in core.folds:
                    waiting.extend(self._answers(core, event, own=own))
        return told

    def _answers(self, core: Core[Any], event: Event, *, own: bool) -> list[tuple[Event, bool]]:
        """What a core says to an event; with each answer, whether it asks for the next step."""
        state = self.states[core.service]
        try:
            if not own:
                core.evolve(state, event)
            decided = core.decide(state, event)
        except Exception as fault:
            what = f"{core.service} could not decide on {type(event.body).__name__}"
            raise DecisionFailed(f"{what}: {type(fault).__name__}: {fault}") from fault
        bodies: Sequence[Message] = decided.answers if isinstance(decided, Unfinished) else decided
        answers: list[tuple[Event, bool]] = []
        for body in bodies:
            answer = self._event(core.service, body, answers=event)
            core.evolve(state, answer._replace(position=UNLOGGED))
            answers.append((answer, False))
        if isinstance(decided, Unfinished):
            answers[-1] = (answers[-1][0], True)
        return answers

    def _event(
        self,
        service: str,
        body: Message,
        *,
        partner: str = "",
        actor: str = "",
        answers: Event | None = None,
    ) -> Event:
        self._sequence += 1
        return Event(
            position=Position(1, self._sequence, 0),
            service=service,
            is_input=answers is None,
            body=body,
            cause=None if answers is None else answers.position,
            partner=partner if answers is None else answers.partner,
            actor=actor if answers is None else answers.actor,
            time_us=self.time_us,
            behaviour=self.behaviour,
        )
