"""Shells: what acts on the outside for a service, such as timers and the custodian."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from google.protobuf.message import Message

from services.kernel.entry import position_of
from services.kernel.event import Event, Position
from services.kernel.outcomes import Alarm
from services.kernel.recovery import AnyReplica

TICK_S = 0.02
"""How often shells look for what time has made due."""


class ForPartner(NamedTuple):
    """An input that concerns one partner: it and its answers name the partner in their headers."""

    body: Message
    partner: str


class Shell(Protocol):
    """It looks at state, not at events, so that it goes on rightly after any crash."""

    service: str
    """Whose state it looks at, and whose inputs it makes."""
    wakes: frozenset[type[Message]]
    """Events after which it must look at once."""
    since: int
    """The behaviour that brought the kinds of inputs that it makes. Before it is in force builds
    may run, or be gone back to, that take a log with such inputs for broken."""
    problems: dict[str, str]
    """What it cannot do, and why, by what it concerns: each is an alarm."""

    def poll(
        self, state: Any, now_us: int, leading: bool, answered: Position | None
    ) -> Sequence[Message | ForPartner]:
        """Inputs to append now. `now_us`: this process's clock. `leading`: whether the replica here
        wrote its service's last answers; another one waits a little longer before it acts.

        `answered`: the answers to everything before this position have been read back; None: to
        all. The state is ahead of the log by the others, and nothing outside may come of them
        yet."""
        ...


class Shells:
    """The shells of one process. `tell(service, body, actor, partner)` appends an input;
    `behaviour(service)`: what is in force where this process's next one of a service will stand."""

    def __init__(
        self,
        shells: Sequence[Shell],
        *,
        replica: Callable[[str], AnyReplica],
        tell: Callable[[str, Message, str, str], None],
        may_act: Callable[[], bool],
        clock: Callable[[], int],
        alarm: Alarm,
        behaviour: Callable[[str], int],
    ) -> None:
        self._shells = list(shells)
        self._behaviour = behaviour
        self._replica = replica
        self._tell = tell
        self._may_act = may_act
        self._clock = clock
        self._alarm = alarm
        self._wakes: frozenset[type[Message]] = frozenset().union(*(one.wakes for one in shells))
        self._wake = asyncio.Event()
        self._problems: dict[str, str] = {}

    def problems(self) -> dict[str, int]:
        """How many things each shell cannot do, by its name."""
        return {name_of(shell): len(shell.problems) for shell in self._shells}

    def hear(self, events: list[Event]) -> None:
        """Events were folded."""
        if not self._wake.is_set() and any(type(event.body) in self._wakes for event in events):
            self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if self._may_act():
                self._poll()
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._wake.wait()
            self._wake.clear()

    def _poll(self) -> None:
        now_us = self._clock()
        for shell in self._shells:
            if shell.since > self._behaviour(shell.service):
                continue
            replica = self._replica(shell.service)
            actor = f"system:{name_of(shell)}"
            pending = replica.state.pending
            answered = position_of(pending[0].proto.cause) if pending else None
            for told in shell.poll(replica.state.core, now_us, replica.leading, answered):
                body, partner = told if isinstance(told, ForPartner) else (told, "")
                self._tell(shell.service, body, actor, partner)
        problems = {key: why for shell in self._shells for key, why in shell.problems.items()}
        for about, why in problems.items():
            if self._problems.get(about) != why:
                self._alarm("shell_cannot", {"about": about, "why": why})
        self._problems = problems


def name_of(shell: Shell) -> str:
    """What a shell is called: `custodian`, `timers`."""
    return type(shell).__name__.lower()
