"""A log that answers no append, though it may be read and asked, as a nats-server whose disk was
full: an alarm, and no calls until there is an answer."""

from __future__ import annotations

import asyncio

import pytest

from services.events import event_types
from services.kernel.appending import APPEND_WAIT_S, FULL_S, SILENT_S
from services.kernel.edge import EdgeNotReady, LogIsFull, OutcomeUnknown
from services.kernel.log import AppendUnknown, LogFull
from services.kernel.memory_log import MemoryLog
from services.kernel.process import Process
from services.simulator.virtual_time import run_virtual
from tests.unit.test_process import Cell, clock, submit
from tests.unit.toy import LIMITS, TABLE


class Stubborn(MemoryLog):
    """Takes no append while it is `mute`, and has no room while it is `full`, for subjects that end
    as `about` says."""

    mute = False
    full = False
    about = ""

    async def append(
        self, subject: str, payload: bytes, *, expected: int | None, wait_s: float
    ) -> int:
        if subject.endswith(self.about):
            if self.mute:
                await asyncio.sleep(wait_s)
                raise AppendUnknown("no answer in time")
            if self.full:
                raise LogFull("insufficient resources")
        return await super().append(subject, payload, expected=expected, wait_s=wait_s)


async def stubborn(cell: Cell) -> tuple[Process, Stubborn]:
    log = Stubborn(cell.store)
    process = Process(
        log=log, types=event_types(), cores=[TABLE, LIMITS], writer="a", build="", clock=clock,
        alarm=lambda kind, facts: cell.alarms.append((kind, facts)), log_advice="restart it",
    )  # fmt: skip
    cell.processes.append(process)
    await process.start()
    while not process.ready:  # noqa: ASYNC110 - readiness is no event, and time is virtual
        await asyncio.sleep(0.01)
    return process, log


@pytest.mark.parametrize("about", ["table.in", "table.out"])
def test_a_log_that_takes_no_append_is_an_alarm_and_takes_no_calls(about: str) -> None:
    async def main() -> None:
        cell = Cell()
        process, log = await stubborn(cell)
        await submit(process, "before")
        log.mute, log.about = True, about
        with pytest.raises(OutcomeUnknown):
            await submit(process, "waits", wait_s=SILENT_S - 2 * APPEND_WAIT_S)
        assert (cell.alarms, process.ready) == ([], True), "a new leader may take as long"
        await asyncio.sleep(3 * APPEND_WAIT_S)
        (kind, facts), *more = cell.alarms
        assert (kind, more) == ("log_does_not_answer", [])
        assert facts["subject"] == f"sabot.toy.{about}"
        assert facts["do"] == "restart it"
        assert "takes no append" in process.why_not_ready()
        with pytest.raises(EdgeNotReady, match="takes no append"):
            await submit(process, "turned away")
        await asyncio.sleep(SILENT_S)
        assert [kind for kind, _ in cell.alarms] == ["log_does_not_answer"] * 2, "told again"

        log.mute = False
        await asyncio.sleep(2 * APPEND_WAIT_S)
        assert process.ready
        await submit(process, "after")
        assert process.state("limits").booked == ["before", "waits", "after"]
        await cell.stop()

    run_virtual(main())


def test_a_log_without_room_for_answers_takes_no_calls_until_there_is_some() -> None:
    async def main() -> None:
        cell = Cell()
        process, log = await stubborn(cell)
        log.full, log.about = True, "limits.out"
        with pytest.raises(OutcomeUnknown):
            await submit(process, "waits", wait_s=1.0)
        assert process.why_not_ready() == "the log is full"
        with pytest.raises(LogIsFull):
            await submit(process, "turned away")
        assert {(kind, facts["do"]) for kind, facts in cell.alarms} == {
            ("answers_refused", "restart it")
        }
        await asyncio.sleep(2 * FULL_S)
        assert not process.ready, "answers are offered again all the time"
        log.full = False
        await asyncio.sleep(1.0)
        await submit(process, "after")
        assert process.state("limits").booked == ["waits", "after"]
        await cell.stop()

    run_virtual(main())


def test_answers_that_another_replica_stored_wait_for_no_room() -> None:
    """It got in before the log was full, say: nothing waits here any more."""

    async def main() -> None:
        cell = Cell()
        process, log = await stubborn(cell)
        await submit(process, "before")
        await cell.process("b", [LIMITS])
        log.full, log.about = True, "limits.out"
        await submit(process, "one")
        assert process.state("limits").booked == ["before", "one"]
        assert {kind for kind, _ in cell.alarms} == {"answers_refused"}
        await asyncio.sleep(1.0)
        assert process.ready
        await cell.stop()

    run_virtual(main())


def test_a_log_without_room_for_inputs_is_tried_again_after_a_while() -> None:
    async def main() -> None:
        cell = Cell()
        process, log = await stubborn(cell)
        log.full, log.about = True, "table.in"
        with pytest.raises(LogIsFull):
            await submit(process, "refused")
        assert process.why_not_ready() == "the log is full"
        assert cell.alarms[0][1]["do"] == "restart it"
        with pytest.raises(LogIsFull):
            await submit(process, "turned away")
        assert len(cell.alarms) == 1, "that one never reached the log"
        log.full = False
        await asyncio.sleep(FULL_S)
        assert process.ready
        await submit(process, "after")
        assert process.state("limits").booked == ["after"]
        await cell.stop()

    run_virtual(main())
