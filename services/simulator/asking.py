"""How simulated callers ask: at any machine that takes inputs, again with the same request id after
an unknown outcome, and now and then at two machines at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as logs
from sabot.table.v1 import events_pb2 as table
from services.kernel.edge import EdgeBusy, NotTaken, Outcome, OutcomeUnknown
from services.kernel.entry import encode_body, position_of
from services.kernel.event import Position
from services.kernel.log import LogFull
from services.simulator.fleet import Fleet, now_us
from services.simulator.world import World

ATTEMPTS = 60
"""A caller gives up after so many: then nobody knows, which is allowed."""
WAIT_S = (0.5, 2.5)
"""How long a caller waits for an outcome."""
NOBODY_S = (0.1, 0.5)
"""Before it looks again whether somebody takes inputs."""
LOOKS = 40
LOOK_S = 0.2
"""How often and after how long at most it asks what became of the first request with its id."""
AGAIN_S = (0.05, 0.5)
"""Before it asks again."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """An outcome as a caller was told it: it must stand in the log for ever."""

    partner: str
    request_id: str
    input_position: Position
    position: Position
    body: Message
    while_forked: bool


def request_id(rng: random.Random, time_us: int) -> str:
    """A UUIDv7."""
    made = f"{time_us // 1000:012x}"
    tail = f"{rng.getrandbits(76):019x}"
    return f"{made[:8]}-{made[8:]}-7{tail[:3]}-8{tail[3:6]}-{tail[6:18]}"


def hashed(body: Any) -> Any:
    """The body with the hash of what it asks for."""
    bare = type(body)()
    bare.CopyFrom(body)
    bare.ClearField("request_id")
    bare.ClearField("request_hash")
    body.request_hash = hashlib.sha256(encode_body(bare)).digest()
    return body


class Callers:
    """What all callers of a simulation share. `asked` counts what they do."""

    def __init__(self, fleet: Fleet, world: World, rng: random.Random) -> None:
        self.fleet = fleet
        self.world = world
        self.rng = rng
        self.asked: Counter[str] = Counter()
        self.acknowledged: list[Acknowledged] = []

    def new_id(self) -> str:
        """A fresh request id, made now."""
        return request_id(self.rng, now_us())

    async def ask(
        self,
        service: str,
        body: Any,
        *,
        partner: str,
        actor: str,
        until: tuple[type[Message], ...],
    ) -> Message | None:
        """Ask until the outcome is known; None where it stays unknown."""
        rng = self.rng
        for attempt in range(ATTEMPTS):
            if attempt:
                self.asked["retry with the same id"] += 1
                await asyncio.sleep(rng.uniform(*AGAIN_S))
            if rng.random() < 0.04:
                self.asked["the same request at two machines at once"] += 1
                outcomes = await asyncio.gather(
                    self._once(service, body, partner, actor, until),
                    self._once(service, body, partner, actor, until),
                )
                outcome = outcomes[0] or outcomes[1]
            else:
                outcome = await self._once(service, body, partner, actor, until)
            if outcome is None:
                continue
            known = await self._known(partner, body.request_id, outcome, until)
            if known is not None:
                return known
        self.asked["gave up"] += 1
        return None

    async def _once(
        self,
        service: str,
        body: Message,
        partner: str,
        actor: str,
        until: tuple[type[Message], ...],
    ) -> Outcome | None:
        machines = self.fleet.hosting(service)
        while not machines:
            self.asked["nobody ready"] += 1
            await asyncio.sleep(self.rng.uniform(*NOBODY_S))
            machines = self.fleet.hosting(service)
        process = self.rng.choice(machines).process
        if process is None:
            return None
        try:
            outcome = await process.submit(
                service,
                body,
                partner=partner,
                actor=actor,
                until=frozenset(until),
                wait_s=self.rng.uniform(*WAIT_S),
            )
        except EdgeBusy:
            self.asked["refused: busy"] += 1
            return None
        except NotTaken:
            self.asked["refused: not taken"] += 1
            return None
        except OutcomeUnknown:
            self.asked["outcome unknown"] += 1
            return None
        self.acknowledged.append(
            Acknowledged(
                partner,
                getattr(body, "request_id", ""),
                outcome.input_position,
                outcome.event.position,
                outcome.event.body,
                self.fleet.store.forked,
            )
        )
        return outcome

    async def _known(
        self, partner: str, asked_id: str, outcome: Outcome, until: tuple[type[Message], ...]
    ) -> Message | None:
        """The outcome itself; for a repeat that of the first, as GetRequest tells it."""
        body: Any = outcome.event.body
        if isinstance(body, logs.RequestRepeated):
            self.asked["answered as repeated"] += 1
            for _ in range(LOOKS):
                first = self.world.outcome_of(position_of(body.first), until)
                if first is not None:
                    made: Message = first.body
                    return made
                await self.world.changed(LOOK_S)
            return None
        rejected = isinstance(
            body, table.BetsRejected | table.WithdrawalRejected | table.ActionRejected
        )
        seen = self.world.outcomes.get((partner, asked_id))
        if rejected and body.refusal == table.REFUSAL_REQUEST_EXPIRED and seen is not None:
            body = seen.body
        told: Message = body
        return told


class LuckyEdge:
    """An edge whose inputs stand in the log the instant they are made: right behind what was stored
    last, so in any gap of the pipeline that a simulation wants. `writer`: its name in the log."""

    def __init__(self, fleet: Fleet, writer: str = "lucky") -> None:
        self._fleet = fleet
        self._writer = writer
        self._counters: Counter[str] = Counter()

    def put(self, service: str, body: Any, *, partner: str = "", actor: str) -> bool:
        """Store an input now; whether the log took it."""
        store = self._fleet.store
        if store.forked:
            return False
        counter = self._counters[service] + 1
        entry = entry_pb2.Entry(writer=self._writer, counter=counter)
        entry.events.add(
            type=str(body.DESCRIPTOR.full_name),
            body=encode_body(body),
            partner=partner,
            actor=actor,
            time_us=now_us(),
        )
        subject = f"sabot.{store.cell}.{service}.in"
        # The count goes up first: what is stored here may make a watcher put the next one.
        self._counters[service] = counter
        try:
            store.store(subject, entry.SerializeToString(deterministic=True), None)
        except LogFull:
            self._counters[service] = counter - 1
            return False
        return True
