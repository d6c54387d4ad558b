"""What a process does in which order: the witness before the callers, and how fresh it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.events import event_types
from services.kernel.edge import OutcomeUnknown
from services.kernel.event import Event
from services.kernel.freshness import FRESH_S
from services.kernel.log import LogInfo, LogUnavailable
from services.kernel.log_end import ASK_EVERY_S
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.process import Process
from services.kernel.witness import MemoryWitness
from services.simulator.virtual_time import run_virtual
from tests.unit.test_process import clock, submit
from tests.unit.toy import CELL, LIMITS, TABLE


def process_on(log: MemoryLog, witness: MemoryWitness | None = None, **how: Any) -> Process:
    return Process(
        log=log, types=event_types(), cores=[TABLE, LIMITS], writer="a", build="", clock=clock,
        alarm=lambda _kind, _facts: None, witness=witness, **how,
    )  # fmt: skip


async def started(process: Process) -> None:
    await process.start()
    while not process.ready:  # noqa: ASYNC110 - readiness is no event, and time is virtual
        await asyncio.sleep(0.01)


class Listening:
    """Keeps what projections and followers are told, and asks how far the witness was by then."""

    def __init__(self, witness: MemoryWitness) -> None:
        self.witness = witness
        self.early: list[str] = []
        self.told = 0

    def _hear(self, who: str, sequence: int) -> None:
        noted = self.witness.read()
        self.told += 1
        if noted is None or noted.sequence < sequence:
            self.early.append(f"{who} of {sequence}, noted: {noted and noted.sequence}")

    def feed(self, sequence: int, head: bytes, events: list[Event]) -> None:
        del head, events
        self._hear("projection", sequence)

    def follow(self, events: list[Event]) -> None:
        self._hear("follower", events[-1].position.sequence)

    def caller(self, sequence: int) -> None:
        self._hear("caller", sequence)


def test_nobody_is_told_of_an_entry_before_the_witness_has_noted_it() -> None:
    async def main() -> None:
        witness = MemoryWitness()
        listening = Listening(witness)
        process = process_on(MemoryLog(MemoryStore(CELL, clock)), witness, listeners=[listening])
        await started(process)
        process.follow(listening.follow)

        async def call(name: str) -> None:
            outcome = await submit(process, name)
            listening.caller(outcome.event.position.sequence)

        for wave in range(10):
            await asyncio.gather(*(call(f"t{wave}-{number}") for number in range(5)))
        await process.stop()
        assert listening.early == []
        assert listening.told >= 10 * (5 + 2 * 3), "callers; and twice each of three entries"

    run_virtual(main())


class Broken(MemoryWitness):
    """Cannot be written once it is broken: its disk is full, say."""

    broken = False

    def write(self, sequence: int, head: bytes) -> None:
        if self.broken:
            raise OSError("no space left on device")
        super().write(sequence, head)


def test_what_the_witness_cannot_note_is_told_to_nobody() -> None:
    async def main() -> None:
        witness = Broken()
        listening = Listening(witness)
        process = process_on(MemoryLog(MemoryStore(CELL, clock)), witness, listeners=[listening])
        await started(process)
        await submit(process, "one")
        told = listening.told
        witness.broken = True
        with pytest.raises(OutcomeUnknown):
            await submit(process, "two")
        assert listening.told == told
        assert process.stopped is not None
        assert isinstance(process.stopped.result(), OSError)
        await process.stop()

    run_virtual(main())


class SlowToTell(MemoryLog):
    """Knows how the log stands when it is asked, and says so late; then it says nothing more."""

    late_s = 0.0
    mute = False

    async def info(self, *, wait_s: float) -> LogInfo:
        if self.mute:
            await asyncio.sleep(wait_s)
            raise LogUnavailable("no answer")
        found = await super().info(wait_s=wait_s)
        if self.late_s:
            self.mute = True
            await asyncio.sleep(self.late_s)
        return found


def test_an_answer_is_as_old_as_its_question() -> None:
    """What the log stored after it was asked, a late answer does not know of."""

    async def main() -> None:
        log = SlowToTell(MemoryStore(CELL, clock))
        process = process_on(log)
        await started(process)
        log.late_s = FRESH_S - 0.1
        while not log.mute:  # noqa: ASYNC110 - the next question comes by the clock
            await asyncio.sleep(ASK_EVERY_S / 20)
        await asyncio.sleep(log.late_s + 0.05)
        assert process.ready
        await asyncio.sleep(0.1)
        assert process.why_not_ready().startswith("not at the head of the log")
        await process.stop()

    run_virtual(main())
