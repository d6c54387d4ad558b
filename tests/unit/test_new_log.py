"""A new log begins with the newest behaviour; another keeps its own until an operator says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sabot.log.v1 import events_pb2
from sabot.table.v1 import events_pb2 as table
from services.cli.cores import CORES
from services.events import event_types
from services.games.steps import STEP_BETS, step_bets
from services.kernel import appending, host
from services.kernel.edge import LogIsFull
from services.kernel.entry import decode_entry
from services.kernel.event import NEWEST_BEHAVIOUR
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.new_log import ACTOR, begin_anew
from services.kernel.process import Process
from tests.unit.test_host import Alarms
from tests.unit.test_host_start import play, started
from tests.unit.toy import CELL, LIMITS, TABLE, input_entry, open_table


def inputs(store: MemoryStore) -> list[tuple[str, str]]:
    """The table's inputs in the log, with who gave them; what its process tells of itself apart."""
    return [
        (proto.type.rpartition(".")[2], proto.actor)
        for one in store.entries()
        if one.subject == f"sabot.{CELL}.table.in"
        for proto in decode_entry(one.payload).events
        if proto.type != "sabot.log.v1.Attest"
    ]


async def ready(process: Process) -> None:
    """Wait until it takes inputs."""
    async with asyncio.timeout(30.0):
        while not process.ready:  # noqa: ASYNC110 - the log brings it
            await asyncio.sleep(0.01)


async def decided_by(process: Process, name: str) -> int:
    """Open a table of the toys: it tells the behaviour by which that was decided."""
    await ready(process)
    outcome = await process.submit(
        "table",
        open_table(name),
        partner="p",
        actor="partner:p",
        until=frozenset({table.TableOpened}),
        wait_s=30.0,
    )
    assert isinstance(outcome.event.body, table.TableOpened)
    return outcome.event.body.revision


async def test_a_new_log_begins_with_the_newest_behaviour_in_front_of_everything(
    tmp_path: Path,
) -> None:
    store = MemoryStore(CELL, host.clock_us)
    async with started(store, tmp_path) as running:
        process = running.process
        assert process.known_behaviour == 2
        assert await decided_by(process, "one") == 2
        assert process.behaviour == 2
    assert inputs(store) == [("ActivateBehaviour", ACTOR), ("OpenTable", "partner:p")]
    async with started(store, tmp_path) as running:
        await play(running, "two")
        assert running.process.behaviour == 2
    assert [kind for kind, _ in inputs(store)] == ["ActivateBehaviour", "OpenTable", "OpenTable"]


async def test_an_older_log_stays_as_it_is(tmp_path: Path) -> None:
    store = MemoryStore(CELL, host.clock_us)
    store.store(f"sabot.{CELL}.table.in", input_entry("older", 1, open_table("old")), None)
    for _ in range(2):  # its answer is missing at first; then it stands there
        async with started(store, tmp_path) as running:
            assert await decided_by(running.process, "new") == 1
    assert {kind for kind, _ in inputs(store)} == {"OpenTable"}


async def test_a_log_that_only_others_have_written_to_is_new(tmp_path: Path) -> None:
    """Accounts are opened, and heads sealed, before there is a table."""
    store = MemoryStore(CELL, host.clock_us)
    noted = events_pb2.AcceptLog(sequence=1, head=b"h", reason="why")
    store.store(f"sabot.{CELL}.audit.in", input_entry("audit", 1, noted), None)
    async with started(store, tmp_path) as running:
        assert await decided_by(running.process, "one") == 2


async def test_a_start_that_dies_before_its_order_is_stored_leaves_the_log_new(
    tmp_path: Path,
) -> None:
    store = MemoryStore(CELL, host.clock_us)
    process = new_process(store, "killed")
    await process.start()
    begin_anew(process)
    await process.stop()
    assert store.last_sequence == 0
    async with started(store, tmp_path) as running:
        assert await decided_by(running.process, "one") == 2


async def test_the_order_does_not_go_by_itself() -> None:
    """It needs no entry of its own, and a log that nobody writes to stays empty."""
    store = MemoryStore(CELL, host.clock_us)
    process = new_process(store, "idle")
    await process.start()
    begin_anew(process)
    await ready(process)
    await process.drain(5.0)
    await process.stop()
    assert store.last_sequence == 0


async def test_an_order_that_the_log_refused_stands_in_front_of_what_is_taken_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(appending, "FULL_S", 0.0)  # it is asked again at once
    store = MemoryStore(CELL, host.clock_us, bytes_max=0)
    process = new_process(store, "refused")
    await process.start()
    begin_anew(process)
    for _ in range(2):
        with pytest.raises(LogIsFull):
            await decided_by(process, "one")
    assert process.behaviour_behind("table") == NEWEST_BEHAVIOUR
    store.bytes_max = -1
    assert await decided_by(process, "two") == NEWEST_BEHAVIOUR
    assert inputs(store) == [("ActivateBehaviour", ACTOR), ("OpenTable", "partner:p")]
    assert await decided_by(process, "three") == NEWEST_BEHAVIOUR
    assert [kind for kind, _ in inputs(store)] == ["ActivateBehaviour", "OpenTable", "OpenTable"]
    await process.stop()


async def test_two_that_begin_at_once_order_it_twice_and_the_second_changes_nothing() -> None:
    store = MemoryStore(CELL, host.clock_us)
    both = [new_process(store, name) for name in ("one", "two")]
    for process in both:
        await process.start()
        begin_anew(process)
        await ready(process)
    revisions = await asyncio.gather(*(decided_by(process, "t") for process in both))
    assert revisions == [2, 2]
    assert inputs(store) == [("ActivateBehaviour", ACTOR), ("OpenTable", "partner:p")] * 2
    for process in both:
        await process.stop()


async def test_who_begins_when_another_has_already_orders_nothing() -> None:
    store = MemoryStore(CELL, host.clock_us)
    both = [new_process(store, name) for name in ("one", "two")]
    for process in both:
        await process.start()
        begin_anew(process)
    for process in both:
        assert await decided_by(process, "t") == 2
        assert await both[1].reached(both[0].position, wait_s=30.0)
    kinds = [kind for kind, _ in inputs(store)]
    assert kinds == ["ActivateBehaviour", "OpenTable", "OpenTable"]
    for process in both:
        await process.stop()


def new_process(store: MemoryStore, name: str) -> Process:
    """One that hosts both toys."""
    return Process(
        log=MemoryLog(store),
        types=event_types(),
        cores=[TABLE, LIMITS],
        writer=name,
        build="test",
        clock=host.clock_us,
        alarm=Alarms(),
    )


def test_every_core_of_a_build_knows_the_same_behaviours() -> None:
    """One that did not would stop the cell, or hide from operators what they may activate."""
    assert {core.service: core.behaviour for core in CORES} == {
        core.service: NEWEST_BEHAVIOUR for core in CORES
    }


@pytest.mark.parametrize(("behaviour", "bets"), [(1, 400), (2, 40), (3, 40), (100, 40)])
def test_the_size_of_a_step_is_its_behaviour_s(behaviour: int, bets: int) -> None:
    assert step_bets(behaviour) == bets
    assert len(STEP_BETS) <= NEWEST_BEHAVIOUR
