"""What goes wrong with machines, network and store, at moments that a seed draws."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from services.kernel.memory_log import Faults
from services.simulator.fleet import Fleet
from services.simulator.world import World

RATES = {
    "lost_reply": 0.012,
    "ghost": 0.008,
    "lost": 0.006,
    "busy": 0.02,
    "reply_delay": 0.1,
    "delivery_delay": 0.08,
    "duplicate": 0.05,
    "cut_off": 0.0006,
}
"""The most often that each fault strikes, per call."""
PAUSE_S = (0.1, 1.6)
"""Between two mishaps."""
STOP_WITHIN_S = 8.0
"""A process that has read what the log lost must have stopped by then."""
LAST_GHOST_S = 5.5
"""By then every append that was under way has landed or been given up."""


def drawn_faults(rng: random.Random) -> Faults:
    """How often the log fails in a simulation: some faults never, so that others come to bear."""
    rates = {
        name: rate * rng.uniform(0.3, 1.0) if rng.random() < 0.65 else 0.0
        for name, rate in RATES.items()
    }
    return Faults(**rates, ghost_delay_s=rng.choice((0.05, 0.5, 3.0)), reply_delay_s=0.04)


class Chaos:
    """See the module. `violations`: what must not have followed."""

    def __init__(self, fleet: Fleet, world: World, rng: random.Random) -> None:
        self.fleet = fleet
        self.world = world
        self.rng = rng
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self._mishaps = (
            self._crash,
            self._crash_twins,
            self._cut_off,
            self._clock_off,
            self._fill_log,
            self._punch_hole,
            self._lose_tail,
            self._take_snapshots,
            self._lose_snapshots,
        )
        self._weights = [
            weight * rng.choice((0.0, 1.0, 1.0, 2.0)) + 0.01
            for weight in (8, 2, 6, 2, 0.7, 0.5, 0.5, 5, 2)
        ]

    async def pause(self) -> None:
        """Nothing, for a while."""
        await asyncio.sleep(self.rng.uniform(*PAUSE_S))

    async def mishap(self) -> None:
        """Let one thing go wrong."""
        await self.rng.choices(self._mishaps, self._weights)[0]()

    async def _crash(self) -> None:
        if self.fleet.live:
            machine = self.rng.choice(self.fleet.live)
            machine.doomed = self.rng.random() < 0.3
            self.counts["crash at random"] += 1
            self.fleet.crash(machine)

    async def _crash_twins(self) -> None:
        """Both machines of a service at once."""
        service = self.rng.choice(list(self.fleet.releases[0]))
        self.counts["crash of both replicas"] += 1
        for machine in self.fleet.live:
            if service in machine.services:
                self.fleet.crash(machine)

    async def _cut_off(self) -> None:
        if self.fleet.live:
            log = self.rng.choice(self.fleet.live).log
            if log is not None:
                self.counts["machine cut off"] += 1
                log.cut_off(self.rng.choice((0.1, 0.4, 0.8, 2.0, 3.0)))

    async def _clock_off(self) -> None:
        if self.fleet.live:
            machine = self.rng.choice(self.fleet.live)
            self.counts["clock off"] += 1
            machine.skew_us = self.rng.choice((-1_500_000, -200_000, 200_000, 1_500_000))
            await asyncio.sleep(self.rng.uniform(0.2, 1.0))
            machine.skew_us = 0

    async def _fill_log(self) -> None:
        store = self.fleet.store
        self.counts["log full"] += 1
        store.bytes_max = store.bytes_used + self.rng.choice((0, 200, 2000))
        await asyncio.sleep(self.rng.uniform(0.1, 0.6))
        store.bytes_max = -1

    async def _take_snapshots(self) -> None:
        self.fleet.take_snapshots()

    async def _lose_snapshots(self) -> None:
        if self.fleet.snapshots.lose():
            self.counts["snapshots lost"] += 1

    async def _punch_hole(self) -> None:
        """An entry is gone: whoever still has to read it stops or does not start."""
        store = self.fleet.store
        if store.last_sequence < 20 or not self.fleet.live:
            return
        sequence = store.last_sequence - self.rng.choice((0, 0, 1, 3, 10))
        entry = store.at(sequence)
        if entry is None:
            return
        before = [
            one.process
            for one in self.fleet.live
            if one.process is not None and one.process.position.sequence < sequence
        ]
        store.punch(sequence)
        if self.rng.random() < 0.5:
            self.fleet.crash(self.rng.choice(self.fleet.live))
        await asyncio.sleep(self.rng.uniform(0.2, 1.0))
        self.violations += [
            f"a process read on to {process.position} over a hole at {sequence}"
            for process in before
            if process.position.sequence >= sequence
        ]
        store.mend(entry)

    async def _lose_tail(self) -> None:
        """The store is cut back. Every process that has read further stops, and none starts; then
        an operator restores the store. Machines that had not read so far know nothing of it and
        are kept down."""
        fleet, store = self.fleet, self.fleet.store
        if store.last_sequence < 20 or self.counts["tail lost"]:
            return
        self.counts["tail lost"] += 1
        cut = store.last_sequence - self.rng.randint(1, 6)
        backup = store.backup()
        for machine in fleet.machines:
            noted = machine.witness.read()
            read = noted.sequence if noted is not None else 0
            if machine.process is not None:
                read = machine.process.position.sequence
            if read <= cut:
                machine.held = True
                machine.kill()
        running = [one for one in fleet.live if not one.held]
        boots = {one.name: one.boots for one in running}
        store.forked = True
        store.cut_back(cut)
        deadline = asyncio.get_running_loop().time() + STOP_WITHIN_S
        while asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.1)
            if not any(one.process is not None for one in fleet.machines):
                break
        for machine in fleet.machines:
            if machine.process is not None:
                again = machine.boots > boots.get(machine.name, machine.boots)
                self.violations.append(
                    f"{machine.name} {'started' if again else 'goes on'} at "
                    f"{machine.process.position} on a log that lost its tail behind {cut}"
                )
        # What was sent to the damaged server must not land on the restored one.
        await asyncio.sleep(LAST_GHOST_S)
        store.restore(backup)
        store.forked = False
        for machine in fleet.machines:
            machine.held = False
