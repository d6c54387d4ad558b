"""Every core over one log, each at its own pace: what stands in the log is the same for all, and
how far each has read is up to the test. So every order of arrival can be tried, of inputs and of
answers."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from services.cli.cores import CORES
from services.kernel.event import UNLOGGED, Core, Event, Position, Unfinished
from tests.unit.deciding import START_US

STEP_US = 1_000


@dataclass(slots=True)
class _Replica:
    """A core, how far it has read, and which of its own answers go on."""

    core: Core[Any]
    state: Any
    read: int = 0
    unfinished: deque[int] = field(default_factory=deque)


class Together:
    """See the module. `seed`: of the paces."""

    def __init__(self, seed: int = 0) -> None:
        self.log: list[Event] = []
        self.chance = random.Random(seed)
        self._replicas = [_Replica(core, core.initial()) for core in CORES]
        self._time_us = START_US

    def state(self, service: str) -> Any:
        """A core's state."""
        return next(one.state for one in self._replicas if one.core.service == service)

    def tell(
        self, service: str, body: Message, *, partner: str = "", actor: str = "", edge_us: int = 0
    ) -> Event:
        """Append an input. `edge_us`: when its edge took it, since the start; log time goes on by
        itself."""
        self._time_us += STEP_US
        return self._append(
            Event(
                Position(1, len(self.log) + 1, 0),
                service,
                True,
                body,
                None,
                partner,
                actor or (f"partner:{partner}" if partner else "operator:dana"),
                self._time_us,
                1,
                edge_us=START_US + edge_us,
            )
        )

    def settle(self, most: int = 10_000) -> None:
        """Let every core read to the end."""
        for _ in range(most):
            waiting = self._behind()
            if not waiting:
                return
            self._step(waiting[0])
        raise AssertionError("the cores never come to rest")

    def stir(self, steps: int) -> None:
        """Let cores read on by so many events in all, each time another one."""
        for _ in range(steps):
            waiting = self._behind()
            if not waiting:
                return
            self._step(self.chance.choice(waiting))

    def said(self, *kinds: type[Message]) -> list[Any]:
        """The bodies in the log of these types, in order."""
        return [event.body for event in self.log if isinstance(event.body, kinds)]

    def _behind(self) -> list[_Replica]:
        return [one for one in self._replicas if one.read < len(self.log)]

    def _append(self, event: Event) -> Event:
        self.log.append(event)
        return event

    def _step(self, one: _Replica) -> None:
        event = self.log[one.read]
        one.read += 1
        own = event.service == one.core.service and not event.is_input
        if own:
            if one.unfinished and one.unfinished[0] == event.position.sequence:
                one.unfinished.popleft()
                self._decide(one, event)
        elif type(event.body) in one.core.folds:
            one.core.evolve(one.state, event)
            self._decide(one, event)

    def _decide(self, one: _Replica, event: Event) -> None:
        answers = one.core.decide(one.state, event)
        bodies: Sequence[Message]
        unfinished = isinstance(answers, Unfinished)
        bodies = answers.answers if isinstance(answers, Unfinished) else answers
        if not bodies and event.is_input and event.service == one.core.service:
            bodies = [log.InputNoted()]
        for body in bodies:
            answer = Event(
                UNLOGGED,
                one.core.service,
                False,
                body,
                event.position,
                event.partner,
                event.actor,
                event.time_us,
                1,
            )
            if type(body) in one.core.answers:
                one.core.evolve(one.state, answer)
            self._append(answer._replace(position=Position(1, len(self.log) + 1, 0)))
        if unfinished:
            one.unfinished.append(len(self.log))
