"""Processes on the memory log, under virtual time: outcomes, standby, unknown appends, refusals."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2
from sabot.table.v1 import events_pb2 as table
from services.audit.domain.core import CORE as AUDIT
from services.events import event_types
from services.kernel.edge import EdgeNotReady, LogIsFull, Outcome, OutcomeUnknown
from services.kernel.event import Core
from services.kernel.log import LogUnavailable
from services.kernel.memory_log import NO_FAULTS, Faults, MemoryLog, MemoryStore
from services.kernel.process import Process
from services.kernel.reader import LogBroken
from services.kernel.snapshot import SnapshotSet, StateCodec, digest, encode_snapshot
from services.kernel.witness import MemoryWitness
from services.simulator.virtual_time import run_virtual
from tests.unit.toy import CELL, LIMITS, TABLE, Toys, open_table

EPOCH_US = 1_700_000_000_000_000
UNTIL = frozenset({limits.BookClosed})


def clock() -> int:
    return EPOCH_US + int(asyncio.get_running_loop().time() * 1e6)


class Cell:
    """A memory log and processes on it."""

    def __init__(self, faults: Faults = NO_FAULTS, bytes_max: int = -1) -> None:
        self.store = MemoryStore(CELL, clock, bytes_max=bytes_max)
        self.faults = faults
        self.alarms: list[tuple[str, dict[str, Any]]] = []
        self.processes: list[Process] = []

    async def process(
        self, name: str, cores: list[Core[Any]], witness: MemoryWitness | None = None
    ) -> Process:
        process = Process(
            log=MemoryLog(self.store, self.faults, random.Random(name)),
            types=event_types(),
            cores=cores,
            writer=name,
            build="test",
            clock=clock,
            alarm=lambda kind, facts: self.alarms.append((kind, facts)),
            witness=witness,
        )
        self.processes.append(process)
        await process.start()
        while not process.ready:  # noqa: ASYNC110 - readiness is no event, and time is virtual
            await asyncio.sleep(0.01)
        return process

    async def stop(self) -> None:
        for process in self.processes:
            await process.stop()


async def submit(process: Process, name: str, wait_s: float = 5.0) -> Outcome:
    return await process.submit(
        "table", open_table(name), partner="p", actor="partner:p", until=UNTIL, wait_s=wait_s
    )


def test_a_caller_gets_the_outcome_at_the_end_of_the_path() -> None:
    async def main() -> None:
        cell = Cell()
        process = await cell.process("a", [TABLE, LIMITS])
        outcome = await submit(process, "one")
        assert isinstance(outcome.event.body, limits.BookClosed)
        assert outcome.input_position < outcome.event.position
        assert outcome.event.partner == "p"
        repeated = await asyncio.gather(*(submit(process, f"t{n}") for n in range(300)))
        names = [answer.event.body.table_id for answer in repeated]  # type: ignore[attr-defined]  # BookClosed
        assert names == [f"t{n}" for n in range(300)]
        assert process.state("limits").booked == ["one", *names]
        assert cell.alarms == []
        await cell.stop()

    run_virtual(main())


def test_services_may_live_in_processes_of_their_own_and_twice() -> None:
    async def main() -> None:
        cell = Cell()
        front = await cell.process("front", [TABLE])
        await cell.process("front2", [TABLE])
        one = await cell.process("one", [LIMITS])
        two = await cell.process("two", [LIMITS])
        await submit(front, "a")
        leader, other = (one, two) if one.replica("limits").leading else (two, one)
        await leader.stop()
        outcome = await submit(front, "b")
        assert isinstance(outcome.event.body, limits.BookClosed)
        assert other.state("limits").booked == ["a", "b"]
        assert other.replica("limits").leading
        await cell.stop()

    run_virtual(main())


@pytest.mark.parametrize("seed", range(20))
def test_lost_replies_ghosts_and_losses_change_nothing(seed: int) -> None:
    async def main() -> None:
        cell = Cell(
            Faults(
                lost_reply=0.1,
                ghost=0.1,
                lost=0.1,
                busy=0.1,
                reply_delay=0.3,
                delivery_delay=0.3,
                duplicate=0.1,
            )
        )
        one = await cell.process(f"one{seed}", [TABLE, LIMITS])
        two = await cell.process(f"two{seed}", [TABLE, LIMITS])
        outcomes = await asyncio.gather(
            *(submit((one, two)[n % 2], f"t{n}", wait_s=600.0) for n in range(60))
        )
        assert len({outcome.event.position for outcome in outcomes}) == 60
        await two.reached(one.position, wait_s=60.0)
        await one.reached(two.position, wait_s=60.0)
        assert one.state("limits").booked == two.state("limits").booked
        assert sorted(one.state("limits").booked) == sorted(f"t{n}" for n in range(60))
        assert [kind for kind, _ in cell.alarms] == []
        await cell.stop()

    run_virtual(main())


def test_a_cut_off_process_takes_no_inputs_and_answers_unknown() -> None:
    async def main() -> None:
        cell = Cell()
        process = await cell.process("a", [TABLE, LIMITS])
        process.log.cut_off(10.0)  # type: ignore[attr-defined]  # the memory log's
        with pytest.raises(OutcomeUnknown):
            await submit(process, "unknown", wait_s=1.0)
        with pytest.raises(EdgeNotReady, match="not at the head"):
            await submit(process, "refused")
        await asyncio.sleep(15.0)
        await submit(process, "again")
        assert process.state("limits").booked == ["unknown", "again"]
        await cell.stop()

    run_virtual(main())


def test_a_full_log_refuses_cleanly() -> None:
    async def main() -> None:
        cell = Cell(bytes_max=20_000)
        process = await cell.process("a", [TABLE, LIMITS])
        taken = 0
        with suppress(LogIsFull):
            while taken < 1000:
                await submit(process, f"t{taken}", wait_s=2.0)
                taken += 1
        assert 10 < taken < 1000
        with pytest.raises(LogIsFull):
            await submit(process, "more", wait_s=2.0)
        assert len(process.state("table").opened) == taken
        await cell.stop()

    run_virtual(main())


def test_a_log_shorter_than_the_witness_is_not_served() -> None:
    async def main() -> None:
        cell = Cell()
        witness = MemoryWitness()
        process = await cell.process("a", [TABLE, LIMITS], witness)
        for name in "abc":
            await submit(process, name)
        await process.stop()
        noted = witness.read()
        assert noted is not None
        cell.store.cut_back(noted.sequence - 2)
        with pytest.raises(LogBroken, match=f"missing.*up to entry {noted.sequence}"):
            await cell.process("b", [TABLE, LIMITS], witness)

    run_virtual(main())


def test_a_lost_tail_stops_a_running_process() -> None:
    async def main() -> None:
        cell = Cell()
        process = await cell.process("a", [TABLE, LIMITS])
        for name in "abc":
            await submit(process, name)
        cell.store.cut_back(2)
        assert process.stopped is not None
        async with asyncio.timeout(10.0):
            error = await process.stopped
        assert isinstance(error, LogBroken | LogUnavailable)
        with pytest.raises(EdgeNotReady):
            await submit(process, "d")

    run_virtual(main())


def test_a_replica_of_another_mind_takes_the_record_and_raises_an_alarm() -> None:
    def decide(state: Any, event: Any) -> Any:
        answers: Any = LIMITS.decide(state, event)
        return [*answers, limits.BookVoided()] if event.body.spec.table_id == "odd" else answers

    other = Core(
        "limits", 1, 2, LIMITS.state_type, LIMITS.initial, LIMITS.evolve, decide, LIMITS.folds,
        LIMITS.answers | {limits.BookVoided},
    )  # fmt: skip

    async def main() -> None:
        cell = Cell()
        right = await cell.process("right", [TABLE, LIMITS])
        await submit(right, "first")
        wrong = await cell.process("wrong", [other])
        await submit(right, "odd")
        await submit(right, "last")
        await wrong.reached(right.position, wait_s=5.0)
        assert [kind for kind, _ in cell.alarms] == ["answer_differs"]
        assert wrong.state("limits").booked == ["first", "odd", "last"]
        await cell.stop()

    run_virtual(main())


def test_a_failed_decision_reaches_the_caller_as_such() -> None:
    async def main() -> None:
        Toys.broken = True
        cell = Cell()
        process = await cell.process("a", [TABLE, LIMITS])
        outcome = await submit(process, "boom")
        assert isinstance(outcome.event.body, events_pb2.InputFailed)
        failed = outcome.event.cause
        assert failed is not None
        assert process.failed_input(failed) == failed
        assert process.failed_input(outcome.input_position) is None, "the table's part was right"
        assert isinstance((await submit(process, "fine")).event.body, limits.BookClosed)
        await cell.stop()

    run_virtual(main())


def test_draining_lets_what_is_under_way_end_and_takes_nothing_new() -> None:
    async def main() -> None:
        cell = Cell()
        process = await cell.process("a", [TABLE, LIMITS])
        under_way = [asyncio.create_task(submit(process, f"t{n}")) for n in range(5)]
        await asyncio.sleep(0)
        began = clock()
        draining = asyncio.create_task(process.drain(5.0))
        await asyncio.sleep(0)
        with pytest.raises(EdgeNotReady, match="stopping"):
            await submit(process, "late")
        for outcome in await asyncio.gather(*under_way):
            assert isinstance(outcome.event.body, limits.BookClosed)
        await draining
        assert clock() - began < 1_000_000  # as soon as nothing is under way
        await cell.stop()

    run_virtual(main())


def test_table_events_are_named_as_the_toys_name_them() -> None:
    assert table.OpenTable in TABLE.folds


def test_a_process_begins_from_a_snapshot_that_the_log_names_and_from_no_other() -> None:
    async def main(named: bool, damaged: bool) -> tuple[int, list[str], list[str]]:
        cell = Cell()
        audit = await cell.process("a", [TABLE, LIMITS, AUDIT])
        for name in "abc":
            await submit(audit, name)
        codec = StateCodec()
        raw = {core.service: encode_snapshot(codec, core, one) for core, one in audit.snapshots()}
        sequence = audit.position.sequence
        for service in raw if named else ():
            audit.tell(
                "audit",
                events_pb2.RecordSnapshot(
                    service=service, sequence=sequence, digest=digest(raw[service])
                ),
                "system:audit",
            )
        await submit(audit, "d")
        await asyncio.sleep(1.0)
        await audit.stop()
        if damaged:
            raw["limits"] = raw["limits"].replace(b'"b"', b'"x"', 1)
        process = Process(
            log=MemoryLog(cell.store), types=event_types(), cores=[TABLE, LIMITS, AUDIT],
            writer="b", build="", clock=clock,
            alarm=lambda kind, facts: cell.alarms.append((kind, facts)),
        )  # fmt: skip
        await process.start([SnapshotSet(sequence, raw)])
        await process.stop()
        return process.started_from, process.state("limits").booked, [k for k, _ in cell.alarms]

    booked = ["a", "b", "c", "d"]
    began, state, alarms = run_virtual(main(named=True, damaged=False))
    assert (began > 0, state, alarms) == (True, booked, [])
    assert run_virtual(main(named=False, damaged=False)) == (0, booked, ["snapshot_unknown"])
    assert run_virtual(main(named=True, damaged=True)) == (0, booked, ["snapshot_unknown"])


def test_a_snapshot_of_another_log_is_passed_over() -> None:
    async def main() -> tuple[int, list[str]]:
        other = Cell()
        process = await other.process("o", [TABLE, LIMITS])
        for name in "xyz":
            await submit(process, name)
        codec = StateCodec()
        raw = {core.service: encode_snapshot(codec, core, one) for core, one in process.snapshots()}
        stale = SnapshotSet(process.position.sequence, raw)
        await other.stop()
        cell = Cell()
        first = await cell.process("a", [TABLE, LIMITS])
        for name in "abcdef":
            await submit(first, name)
        await cell.stop()
        again = Process(
            log=MemoryLog(cell.store), types=event_types(), cores=[TABLE, LIMITS], writer="b",
            build="", clock=clock, alarm=lambda kind, facts: cell.alarms.append((kind, facts)),
        )  # fmt: skip
        await again.start([stale])
        await again.stop()
        assert again.state("limits").booked == list("abcdef")
        return again.started_from, [kind for kind, _ in cell.alarms]

    assert run_virtual(main()) == (0, ["snapshot_unusable"])
