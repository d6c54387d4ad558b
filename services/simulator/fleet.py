"""A simulated deployment: machines with some services each, on one log; every service runs twice.

A machine is kept running like a container: what crashes, or stops by itself, is started again, with
the witness it had. Only the log, the clock and chance are simulated.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.audit.fact_checker import FactChecker
from services.audit.snapshots import Snapshots
from services.events import SERVICES, event_types
from services.kernel.event import Position
from services.kernel.key_file import KeyRing
from services.kernel.log import LogUnavailable
from services.kernel.memory_log import NO_FAULTS, Faults, MemoryLog
from services.kernel.process import Process
from services.kernel.reader import LogBroken
from services.kernel.replica import BehaviourUnknown, Diverged
from services.kernel.shells import Shell
from services.kernel.snapshot import SnapshotFolder, SnapshotSet
from services.kernel.witness import MemoryWitness
from services.settlement.queries import Fact
from services.settlement.recaller import Recaller
from services.shoe.custodian import Custodian
from services.shoe.generator import Generator
from services.simulator.inline import Inline
from services.simulator.log_facts import facts_in
from services.simulator.releases import Cores
from services.simulator.store import WatchedStore
from services.table.risk import Risk
from services.table.timers import Timers
from services.wallet.debit_timers import DebitTimers
from services.wallet.partner_calls import PartnerCaller
from services.wallet.partner_wallet import PartnerWallets

EPOCH_US = 1_767_225_600_000_000
"""When every simulation begins: 2026-01-01 UTC."""
SHELL_OF = {"table": "timers", "shoe": "custodian"}
RESTART_S = (0.05, 0.6)
"""How soon a machine is started again."""
REFUSED_S = 1.5
"""Before a machine is started once more on a store that lost its tail."""
KEPT_SETS = 3


def now_us() -> int:
    """The true time, microseconds since 1970 UTC."""
    return EPOCH_US + int(asyncio.get_running_loop().time() * 1e6)


class MemorySnapshots(SnapshotFolder):
    """Snapshots that live as long as the simulation."""

    def __init__(self) -> None:
        super().__init__(Path())
        self._kept: list[SnapshotSet] = []

    def save(self, snapshot_set: SnapshotSet) -> None:
        """Keep a set, and the newest few."""
        self._kept = [snapshot_set, *self._kept][:KEPT_SETS]

    def sets(self) -> list[SnapshotSet]:
        """All that are kept, newest first."""
        return list(self._kept)

    def lose(self) -> bool:
        """Lose the newest set; whether there was one."""
        return bool(self._kept) and self._kept.pop(0) is not None


@dataclass(slots=True)
class Machine:
    """Where some services run."""

    name: str
    services: tuple[str, ...]
    release: int
    rng: random.Random
    observes: bool = False
    """Whether it is audit's: it decides every service's answers again."""
    witness: MemoryWitness = field(default_factory=MemoryWitness)
    boots: int = 0
    process: Process | None = None
    log: MemoryLog | None = None
    skew_us: int = 0
    """How far its clock is off."""
    doomed: bool = False
    """Whether it is to crash once more while it starts."""
    held: bool = False
    """Whether it must not be started now."""
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    work: list[Callable[[Process], Coroutine[Any, Any, None]]] = field(default_factory=list)
    """What its shells do in the background."""
    stopped_by: list[str] = field(default_factory=list)
    """Why its processes stopped by themselves."""

    @property
    def ready(self) -> bool:
        """Whether it takes inputs."""
        return self.process is not None and self.process.ready

    def kill(self) -> None:
        """Let it crash, whatever it is doing."""
        self.killed.set()


class Fleet:
    """See the module. `releases`: the cores of release 1 and 2."""

    def __init__(self, store: WatchedStore, releases: Sequence[Cores], rng: random.Random) -> None:
        self.store = store
        self.releases = releases
        self.types = event_types()
        self.rng = rng
        self.faults: Faults = NO_FAULTS
        self.machines: list[Machine] = []
        self.snapshots = MemorySnapshots()
        self.partner: PartnerCaller | None = None
        """Where the money of a seamless partner's accounts is."""
        self.counts: Counter[str] = Counter()
        self.alarms: list[tuple[str, str, dict[str, Any]]] = []
        """(machine, kind, facts)"""
        self._keys = KeyRing({"k1": rng.randbytes(32)}, "k1")
        self._keepers: list[asyncio.Task[None]] = []
        self._ending = False

    # ---- who runs where ------------------------------------------------------------------------

    def deploy(self) -> None:
        """Split the services over machines, twice, and start them all."""
        for letter in "ab":
            groups = self._split(self.rng.choice((1, 1, 1, 2, 2, 3)))
            for number, services in enumerate(groups, start=1):
                machine = Machine(
                    f"{letter}{number}", services, 1, random.Random(self.rng.random())  # noqa: S311 -- from the seed
                )  # fmt: skip
                partial = "audit" in services and len(services) < len(SERVICES)
                machine.observes = partial and self.rng.random() < 0.7
                self.machines.append(machine)
        loop = asyncio.get_running_loop()
        self._keepers = [
            loop.create_task(self._keep(machine), name=f"keep-{machine.name}")
            for machine in self.machines
        ]

    def _split(self, parts: int) -> list[tuple[str, ...]]:
        groups: list[list[str]] = [[] for _ in range(parts)]
        for service in SERVICES:
            self.rng.choice(groups).append(service)
        return [tuple(group) for group in groups if group]

    def hosting(self, service: str) -> list[Machine]:
        """The machines of a service that take inputs now."""
        return [one for one in self.machines if service in one.services and one.ready]

    def leader(self, service: str) -> Machine | None:
        """The machine whose replica wrote the service's last answers."""
        for one in self.machines:
            process = one.process
            if process is not None and service in one.services and process.replica(service).leading:
                return one
        return None

    @property
    def live(self) -> list[Machine]:
        """The machines with a started process that goes on."""
        return [one for one in self.machines if one.process is not None]

    # ---- life of a machine ---------------------------------------------------------------------

    async def _keep(self, machine: Machine) -> None:
        while not self._ending:
            while machine.held:  # noqa: ASYNC110 -- an operator lets go of it
                await asyncio.sleep(0.1)
            machine.killed.clear()
            process = self._boot(machine)
            await self._run(machine, process)
            machine.process = None
            await process.stop()
            await asyncio.sleep(machine.rng.uniform(*RESTART_S))
            if self.store.forked:
                await asyncio.sleep(REFUSED_S)

    def _boot(self, machine: Machine) -> Process:
        machine.boots += 1
        machine.log = MemoryLog(
            self.store, self.faults, random.Random(machine.rng.random())  # noqa: S311 -- from the seed
        )  # fmt: skip
        cores = self.releases[machine.release - 1]
        return Process(
            log=machine.log,
            types=self.types,
            cores=[cores[service] for service in machine.services],
            observed=list(cores.values()) if machine.observes else (),
            writer=f"{machine.name}-{machine.boots}",
            build=f"release-{machine.release}",
            clock=lambda: now_us() + machine.skew_us,
            alarm=lambda kind, facts: self.alarms.append((machine.name, kind, facts)),
            witness=machine.witness,
            shells=self._shells(machine),
        )

    def _shells(self, machine: Machine) -> list[Shell]:
        shells: list[Shell] = []
        if "table" in machine.services:
            shells += [Timers(), Risk(Inline())]
        if "shoe" in machine.services:
            generator = Generator(machine.rng.randbytes)
            shells.append(Custodian(self.store.cell, self._keys, generator))
        machine.work = []
        if "wallet" in machine.services:
            shells.append(DebitTimers())
            if self.partner is not None:
                calls = PartnerWallets(self.partner, chance=machine.rng.random)
                machine.work.append(calls.run)
        if "settlement" in machine.services:
            recaller = Recaller()
            recaller.facts_of = self._facts
            shells.append(recaller)
            machine.work.append(recaller.run)
        if "audit" in machine.services:
            checker = FactChecker()
            shells.append(checker)
            machine.work.append(checker.run)
        return shells

    async def _facts(self, round_id: str, position: Position) -> Sequence[Fact]:
        del position  # The store is ahead of everybody.
        return facts_in(self.store.entries(), round_id)

    async def _run(self, machine: Machine, process: Process) -> None:
        """Start a process and let it run until it is killed or stops by itself."""
        loop = asyncio.get_running_loop()
        kill = loop.create_task(machine.killed.wait())
        start = loop.create_task(process.start(self.snapshots.sets()))
        if machine.doomed:
            machine.doomed = False
            loop.call_later(machine.rng.uniform(0.0005, 0.004), machine.kill)
        try:
            await asyncio.wait((kill, start), return_when=asyncio.FIRST_COMPLETED)
            if not start.done():
                start.cancel()
                with suppress(asyncio.CancelledError):
                    await start
                self.counts["crash while starting"] += 1
                return
            try:
                start.result()
            except (LogBroken, LogUnavailable, Diverged) as refused:
                self.counts["start refused"] += 1
                forked = " (missing tail)" if self.store.forked else ""
                facts = {"why": f"{type(refused).__name__}: {refused}{forked}"}
                self.alarms.append((machine.name, "start_refused", facts))
                return
            except BehaviourUnknown as unknown:
                self._too_old(machine, unknown)
                return
            if process.started_from:
                self.counts["start from a snapshot"] += 1
            machine.process = process
            stopped = process.stopped
            if stopped is None:
                return
            work = [loop.create_task(one(process)) for one in machine.work]
            await asyncio.wait((kill, stopped), return_when=asyncio.FIRST_COMPLETED)
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            if stopped.done():
                why = stopped.result()
                machine.stopped_by.append(type(why).__name__)
                if isinstance(why, BehaviourUnknown):
                    self._too_old(machine, why)
        finally:
            kill.cancel()

    def _too_old(self, machine: Machine, unknown: BehaviourUnknown) -> None:
        """A release that cannot decide by the behaviour in force stops; the next one takes over."""
        if machine.release > 1:
            raise unknown
        self.counts["release 1 stopped at behaviour 2"] += 1
        machine.release = 2

    # ---- what operators do ---------------------------------------------------------------------

    def crash(self, machine: Machine) -> None:
        """Let a machine crash; it is started again a little later."""
        if machine.process is not None:
            self.counts["crash"] += 1
            if any(machine.process.replica(one).in_flight for one in machine.services):
                self.counts["crash with an append in flight"] += 1
        machine.kill()

    def take_snapshots(self) -> None:
        """Let audit take a set of snapshots now, as its shell does now and then."""
        for machine in self.machines:
            process = machine.process
            if process is None or "audit" not in machine.services or not process.ready:
                continue
            in_flight = any(
                process.replica(one).in_flight or process.replica(one).state.pending
                for one in machine.services
            )
            Snapshots(self.snapshots).take(process)
            self.counts["snapshots taken"] += 1
            self.counts["snapshots taken around an append"] += in_flight
            return

    def upgrade(self, machine: Machine) -> None:
        """Restart a machine on release 2."""
        if machine.release == 1:
            machine.release = 2
            self.counts["upgrade"] += 1
            machine.kill()

    def heal(self) -> None:
        """No faults any more, from now on."""
        self.faults = NO_FAULTS
        for machine in self.machines:
            machine.held = False
            machine.skew_us = 0
            if machine.log is not None:
                machine.log.faults = NO_FAULTS

    async def stop(self) -> None:
        """End everything."""
        self._ending = True
        for keeper in self._keepers:
            keeper.cancel()
        for keeper in self._keepers:
            with suppress(asyncio.CancelledError):
                await keeper
        for machine in self.machines:
            if machine.process is not None:
                await machine.process.stop()
