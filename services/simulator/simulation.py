"""One seed: a deployment, its players and operators, everything that goes wrong, and the audit."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from services.simulator.asking import Callers
from services.simulator.auditor import audit
from services.simulator.chaos import Chaos, drawn_faults
from services.simulator.corrections import Correctors
from services.simulator.director import Director
from services.simulator.fleet import Fleet, now_us
from services.simulator.floor import Floor
from services.simulator.guardians import Guardians
from services.simulator.operators import QUIET_ROUNDS, Operators
from services.simulator.partners import PARTNER, SeamlessDesk, SimulatedPartner
from services.simulator.players import Player
from services.simulator.releases import BASE, PLANTABLE, Cores, release, small_steps
from services.simulator.seats import Seats
from services.simulator.store import WatchedStore
from services.simulator.supervisors import Supervisors
from services.simulator.tables import LONG, Kind, drawn_games, kind_of
from services.simulator.virtual_time import run_virtual
from services.simulator.world import World

CELL = "sim"
ROUNDS = 20
"""Rounds of a seed, at least."""
QUIET_WITHIN_S = 300.0
"""So long at most nobody plays."""
LOOK_S = 0.1
STUCK_AFTER_S = 60.0
"""A simulation in which no round ends for so long is stuck."""
REST_WITHIN_S = 90.0
"""Once nothing goes wrong any more, everything is over by then."""
MAX_VIOLATIONS = 100
"""Of a seed, kept."""
QUIET_S = 3.2
"""So long nothing was stored: longer than any shell waits before it asks again."""
EXPECTED_STOPS = ("missing", "rolled back", "BehaviourUnknown", "does not answer")
"""A process stops by itself for a hole, a lost tail, or a behaviour that is not its release's."""


@dataclass(slots=True)
class SeedResult:
    """What a seed came to. The same seed always gives the same one."""

    seed: int
    rounds: int = 0
    bets_settled: int = 0
    entries: int = 0
    events: int = 0
    answers_compared: int = 0
    virtual_s: float = 0.0
    log_hash: str = ""
    """SHA-256 over all entries: equal logs, equal hashes."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each fault was injected."""
    violations: list[str] = field(default_factory=list)


def run_seed(
    seed: int, *, rounds: int = ROUNDS, base: Cores = BASE, games: Sequence[str] = ()
) -> SeedResult:
    """Run a simulation and audit it.

    - base: the cores, where a test plants a fault in them.
    - games: what its tables play; empty: each table draws one of all.
    """
    with small_steps(), _uncollected():
        return run_virtual(Simulation(seed, rounds, base, games).run())


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which would end forgotten generators at moments that depend on
    what this process did before: a seed must repeat itself."""
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
        gc.collect()


class Simulation:
    """See the module."""

    def __init__(self, seed: int, rounds: int, base: Cores, games: Sequence[str]) -> None:
        self.result = SeedResult(seed)
        rng = self.rng = random.Random(seed)  # noqa: S311 -- a seed is to be repeated
        names = drawn_games(rng, games)
        self.kinds = [kind_of(name) for name in names]
        self.rounds = rounds + (QUIET_ROUNDS if LONG in names else 0)
        planted = self.planted = [service for service in PLANTABLE if rng.random() < 0.3]
        releases = [release(number, base, planted) for number in (1, 2)]
        self.poisons = bool(planted)
        self.store = WatchedStore(CELL, now_us)
        self.fleet = Fleet(self.store, releases, self._rng())
        self.world = World(self.fleet.types)
        self.store.watch(self.world.see)
        self.callers = Callers(self.fleet, self.world, self._rng())
        self.operators = Operators(self.fleet, self.world, self.callers, self._rng())
        self.operators.lasting = LONG in names
        self.director = Director(self.fleet, self.world, self.callers, self._rng())
        self.world.listen(self.director.see)
        self.seats = Seats(self.world, self.callers, self._rng())
        self.world.listen(self.seats.see)
        self.floor = Floor(self.fleet, self.world, self.callers, self.operators, self._rng())
        self.world.listen(self.floor.see)
        self.supervisors = Supervisors(self.operators, self.floor, self._rng())
        self.operators.supervise = self.supervisors.supervise
        self.world.listen(self.supervisors.see)
        self.chaos = Chaos(self.fleet, self.world, self._rng())
        self.players = [
            Player(
                self.callers,
                self._rng(),
                ("acme", "bravo")[number % 2],
                f"account-{number // 2}",
                self.poisons,
            )
            for number in range(rng.randint(3, 6))
        ]
        self.partner = SimulatedPartner(self._rng())
        self.fleet.partner = self.partner
        self.desk = SeamlessDesk(self.fleet, self.callers, self.partner)
        for number in range(self.rng.randint(0, 2)):
            account_id = f"account-{number}"
            self.partner.open(account_id)
            self.players.append(
                Player(self.callers, self._rng(), PARTNER, account_id, self.poisons)
            )
        self.correctors = Correctors(self.fleet, self.world, self.callers, self._rng())
        self.guardians = Guardians(self.callers, self.players, self._rng())
        self.tasks: list[asyncio.Task[None]] = []

    def _rng(self) -> random.Random:
        """A generator of one's own: what one part draws does not shift the others."""
        return random.Random(self.rng.random())  # noqa: S311 -- from the seed

    async def run(self) -> SeedResult:
        """Play, come to rest, audit."""
        loop = asyncio.get_running_loop()
        result = self.result
        self.fleet.faults = drawn_faults(self._rng())
        self.fleet.deploy()
        tables = [loop.create_task(self._run_table(*one)) for one in enumerate(self.kinds, 1)]
        tables += [
            loop.create_task(self.floor.serve(f"t{number}"), name=f"floor of t{number}")
            for number, kind in enumerate(self.kinds, 1)
            if kind.may_move or kind.floor
        ]
        players = [loop.create_task(self._play_late(player)) for player in self.players]
        repairs = loop.create_task(self._repair())
        desk = loop.create_task(self._seamless(), name="the seamless partner's desk")
        correctors = loop.create_task(self.correctors.work(), name="correctors")
        guardians = loop.create_task(self.guardians.work(), name="guardians")
        try:
            await self._play()
            for player in self.players:
                player.playing = False
            self.operators.closing = self.correctors.closing = self.guardians.closing = True
            await self._rest([*tables, *players, repairs, correctors, guardians, desk])
            self._audit(at_rest=not self.result.violations)
        finally:
            left = (*tables, *players, repairs, correctors, guardians, desk, *self._deeds())
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self.fleet.stop()
        result.virtual_s = loop.time()
        return result

    def _deeds(self) -> list[asyncio.Task[Any]]:
        """What was begun behind certain events."""
        return [*self.director.tasks, *self.seats.tasks]

    async def _run_table(self, number: int, kind: Kind) -> None:
        timed = self.rng.random() < 0.6 and not self.operators.lasting
        await self.operators.run_table(f"t{number}", kind, timed=timed)

    async def _play_late(self, player: Player) -> None:
        """A player comes when there is something to see."""
        await self._quiet_rounds()
        if player.partner == PARTNER:
            await self.desk.taken_on.wait()
        await player.play()

    async def _seamless(self) -> None:
        """The partner comes, goes and is asked about what is stuck, until nothing is."""
        away = asyncio.get_running_loop().create_task(self.partner.come_and_go())
        try:
            await self.desk.take_on()
            await self.desk.work()
        finally:
            away.cancel()
            await asyncio.gather(away, return_exceptions=True)

    async def _quiet_rounds(self) -> None:
        until = asyncio.get_running_loop().time() + QUIET_WITHIN_S
        while self.operators.hurries and asyncio.get_running_loop().time() < until:
            await self.world.changed(LOOK_S)

    async def _play(self) -> None:
        """Rounds and mishaps, until there were enough rounds."""
        loop = asyncio.get_running_loop()
        self.director.resting = True
        await self._quiet_rounds()
        self.director.resting = False
        closed, since = self.world.rounds_closed, loop.time()
        while self.world.rounds_closed < self.rounds and not self._alarms():
            if self.world.rounds_closed > closed:
                closed, since = self.world.rounds_closed, loop.time()
            elif loop.time() > since + STUCK_AFTER_S:
                self.result.violations.append(
                    f"stuck: {closed} rounds, and no further one in {STUCK_AFTER_S:.0f} s"
                )
                return
            await self.chaos.pause()
            await self.chaos.mishap()

    async def _repair(self) -> None:
        """Bring behaviour 2 into force, at some time or because something failed, and have what
        failed decided again."""
        at = self.rng.randint(2, max(3, self.rounds - 2))
        while not self.operators.closing and self.world.rounds_closed < at:
            await asyncio.sleep(0.1)
            if self.world.failures and self.rng.random() < 0.1:
                break
        await self.director.activate(carefully=self.rng.random() < 0.7)
        while not self.operators.closing or self.world.failures:
            await asyncio.sleep(0.1)
            await self.operators.retry_failures()

    async def _rest(self, tasks: list[asyncio.Task[None]]) -> None:
        """Let everything end that is under way; then nothing must be left open. Where something is
        wrong already, that is to be seen, not what follows from it."""
        if self._alarms() or self.result.violations:
            return
        self.director.resting = True
        self.fleet.heal()
        await self.partner.mend()
        self.desk.closing = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + REST_WITHIN_S
        await asyncio.wait((*tasks, *self._deeds()), timeout=REST_WITHIN_S)
        stored, since = self.store.last_sequence, loop.time()
        while loop.time() < deadline + QUIET_S and loop.time() < since + QUIET_S:
            await asyncio.sleep(0.1)
            if self.store.last_sequence != stored or not self._at_rest():
                stored, since = self.store.last_sequence, loop.time()
        left = [task.get_name() for task in tasks if not task.done()]
        left += [f"{name} {one.running.phase}" for name, one in self.world.tables.items()
                 if one.running is not None]  # fmt: skip
        if left or not self._at_rest():
            self.result.violations.append(f"does not come to rest: {left}")
        for task in (*tasks, *self._deeds()):
            if task.done() and not task.cancelled() and task.exception() is not None:
                self.result.violations.append(f"a caller failed: {task.exception()!r}")

    def _at_rest(self) -> bool:
        """Whether every machine runs, at the head of the log, with nothing to say."""
        return not self.world.inputs_open and all(
            machine.ready
            and machine.process is not None
            and machine.process.position.sequence == self.store.last_sequence
            and all(
                not machine.process.replica(service).state.pending for service in machine.services
            )
            for machine in self.fleet.machines
        )

    def _audit(self, *, at_rest: bool) -> None:
        result, store = self.result, self.store
        messages = store.entries()
        found = audit(
            messages,
            self.fleet.types,
            self.fleet.releases[1],
            cell=CELL,
            at_rest=at_rest,
            planted=self.planted,
            acknowledged=self.callers.acknowledged,
            books={(PARTNER, one): minor for one, minor in self.partner.moved().items()},
            processes=[
                (machine.name, machine.process)
                for machine in self.fleet.machines
                if machine.process is not None
            ],
        )
        result.rounds = self.world.rounds_closed
        result.bets_settled = found.bets_settled
        result.entries, result.events = len(messages), found.events
        result.answers_compared = found.answers_compared
        result.counts.update(found.reached)
        digest = hashlib.sha256()
        for message in messages:
            digest.update(repr(message).encode())
        result.log_hash = digest.hexdigest()
        result.violations += [*found.violations, *self.chaos.violations, *self._alarms()]
        # One that is found everywhere is told a few times.
        del result.violations[MAX_VIOLATIONS:]
        self._count()

    def _alarms(self) -> list[str]:
        """Alarms that nothing here should raise."""
        wrong = []
        for machine, kind, facts in self.fleet.alarms:
            if kind in ("answer_differs", "answer_does_not_follow"):
                wrong.append(f"{machine}: {kind}: {facts}")
            elif kind in ("process_stopped", "start_refused"):
                why = str(facts.get("why", ""))
                if not any(sign in why for sign in EXPECTED_STOPS):
                    wrong.append(f"{machine}: {kind}: {why}")
        return wrong

    def _count(self) -> None:
        counts = self.result.counts
        del self.chaos.counts["tail lost"]  # the store counts it
        counts.update(self.store.injected)
        counts.update(self.fleet.counts)
        counts.update(self.chaos.counts)
        counts.update(self.director.counts)
        counts.update(self.callers.asked)
        counts.update(self.partner.counts)
        counts["late result"] += self.world.late_results
        counts["result held by a suspension"] += self.world.held_results
        for machine in self.fleet.machines:
            for why in machine.stopped_by:
                counts[f"process stopped: {why}"] += 1
        counts["turn ended by the clock"] += self.world.turns_timed_out
        counts["second draw of a toss"] += self.world.second_tosses
        for reason, refused in self.world.refusals.items():
            counts[f"refused: {reason}"] += refused
        for service, failed in self.world.failed.items():
            counts[f"decision of {service} failed"] += failed
