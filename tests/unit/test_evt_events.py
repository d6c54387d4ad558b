"""Scenarios of events: snapshots (EVT-04) and poison input (EVT-06), on the whole fleet's cores."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import pytest

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.cores import CORES
from services.cli.replay import verify
from services.kernel.event import Answers, Core, Event, Position
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.process import Process
from services.kernel.reader import LogBroken
from services.kernel.snapshot import SnapshotSet, StateCodec, digest, encode_snapshot
from services.settlement.domain.core import CORE as SETTLEMENT
from services.simulator.virtual_time import run_virtual
from services.table.domain.state import Table
from services.wallet.domain.core import CORE as WALLET
from tests.fleet.small_cell import (
    SUPERVISOR,
    SmallCell,
    memory_cell,
    spec,
    virtual_clock,
)
from tests.histories.history import fold

ACCOUNTS = ("ann", "ben")


async def furnish(cell: SmallCell, tables: tuple[str, ...] = ("t1",)) -> None:
    """Tables and accounts."""
    for table_id in tables:
        await cell.open_table(spec(table_id))
    for account in ACCOUNTS:
        await cell.open_account(account, 500_000)


# ---- EVT-04 ------------------------------------------------------------------------------------


def take(process: Process) -> SnapshotSet:
    """A set of snapshots as it is stored."""
    codec = StateCodec()
    taken = {
        core.service: encode_snapshot(codec, core, snapshot)
        for core, snapshot in process.snapshots()
    }
    return SnapshotSet(process.position.sequence, taken)


async def name(cell: SmallCell, taken: SnapshotSet, head: bytes) -> None:
    """Let the log name a set, as audit does."""
    for core in CORES:
        named = log.RecordSnapshot(
            service=core.service,
            schema=core.schema,
            sequence=taken.sequence,
            head=head,
            digest=digest(taken.raw[core.service]),
        )
        await cell.submit("audit", named, frozenset({log.InputNoted}), "system:audit")


async def restarted(store: MemoryStore, *sets: SnapshotSet) -> SmallCell:
    """A fleet that starts on a log with these snapshots."""
    cell = SmallCell(MemoryLog(store), virtual_clock, writer=f"again-{store.last_sequence}")
    await cell.start(snapshots=sets)
    return cell


def test_evt_04_a_snapshot_is_where_it_was_taken_and_goes_on_from_there() -> None:
    """With nothing behind it, with events behind it, and around answers that are under way."""

    async def main() -> None:
        async with memory_cell() as (cell, store):
            await furnish(cell)
            await cell.play(2, ACCOUNTS)
            first = take(cell.process)
            head = cell.process.head
            await name(cell, first, head)
        live = cell.digests()
        again = await restarted(store, first)
        assert again.process.started_from == first.sequence
        assert again.digests() == live
        assert again.process.position == cell.process.position
        # The next append is the next one, and later events fold onto all of the earlier fields.
        before = store.last_sequence
        await again.play(2, ACCOUNTS)
        assert again.process.state("table").tables["t1"].number == 4
        assert store.last_sequence > before
        await again.stop()
        later = await restarted(store, first)
        assert later.process.started_from == first.sequence
        assert later.digests() == again.digests()
        assert fold(store.cell, store.entries()).digests() == later.digests()
        assert later.alarms == []
        await later.stop()

    run_virtual(main())


@pytest.mark.parametrize("damage", ["schema", "bytes", "cut", "unnamed"])
def test_evt_04_a_snapshot_that_does_not_fit_is_passed_over_with_an_alarm(damage: str) -> None:
    async def main() -> None:
        async with memory_cell() as (cell, store):
            await furnish(cell)
            await cell.play(2, ACCOUNTS)
            good = take(cell.process)
            head = cell.process.head
            if damage != "unnamed":
                await name(cell, good, head)
            await cell.play(1, ACCOUNTS)
        raw = dict(good.raw)
        if damage == "schema":
            now = b'["wallet",%d,' % WALLET.schema
            assert now in raw["wallet"]
            raw["wallet"] = raw["wallet"].replace(now, b'["wallet",0,', 1)
        elif damage == "bytes":
            raw["wallet"] = raw["wallet"].replace(b"500", b"999", 1)
        elif damage == "cut":
            raw["wallet"] = raw["wallet"][:-20]
        again = await restarted(store, SnapshotSet(good.sequence, raw))
        assert again.process.started_from == 0
        assert again.digests() == cell.digests()
        assert {kind for kind, _ in again.alarms} <= {"snapshot_unusable", "snapshot_unknown"}
        assert again.alarms
        await again.play(1, ACCOUNTS)
        await again.stop()

    run_virtual(main())


def test_evt_04_amounts_have_one_shape_and_unknown_types_stop_recovery() -> None:
    """Money was never written any other way than whole minor units; whatever a build does not know
    stops it, with the position."""

    async def main() -> None:
        async with memory_cell() as (cell, store):
            await furnish(cell)
        for minor in (1_000,) * 5:
            deposit = wallet.Deposit(account_id="ann", currency_code="EUR", amount_minor=minor)
            assert deposit.DESCRIPTOR.fields_by_name["amount_minor"].type == 3  # int64
        entry = entry_pb2.Entry(writer="later-release", counter=1)
        entry.events.add(type="sabot.wallet.v9.Deposit", body=b"", time_us=virtual_clock())
        bad = store.store("sabot.main.wallet.in", entry.SerializeToString(), None)
        again = SmallCell(MemoryLog(store), virtual_clock, writer="again")
        with pytest.raises(LogBroken, match=r"sabot\.wallet\.v9\.Deposit") as stopped:
            await again.start()
        assert stopped.value.sequence == bad
        assert store.last_sequence == bad

    run_virtual(main())


# ---- EVT-06 ------------------------------------------------------------------------------------

TABLES = ("t1", "t2", "t3", "t4", "t5")
POISONED = "t3"
ROUNDS = 12
POISONED_ROUND = 7


class Poison:
    """A settlement that raises on one event, and counts how often it was given it."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error
        self.given = 0
        self.core: Core[Any] = dataclasses.replace(SETTLEMENT, decide=self.decide)

    def decide(self, state: Any, event: Event) -> Answers:
        body = event.body
        if isinstance(body, table.ResultAccepted) and (
            body.round_id == f"{POISONED}-{POISONED_ROUND}"
        ):
            self.given += 1
            raise self.error("a poisonous event")
        return SETTLEMENT.decide(state, event)


def with_core(core: Core[Any]) -> list[Core[Any]]:
    """Every core, settlement by this one."""
    return [core if one.service == core.service else one for one in CORES]


async def play_tables(cell: SmallCell) -> None:
    """Rounds in turn at every table, the same ones whatever happens; a stuck table stays out."""
    stakes = {"ann": ("banker", 300), "ben": ("player", 200)}
    for _ in range(ROUNDS):
        for table_id in TABLES:
            one = cell.process.state("table").tables[table_id]
            if one.running is not None:
                continue
            round_id = await cell.open_round(table_id)
            for account, bet in stakes.items():
                await cell.bet(round_id, account, bet)
            close = table.CloseBetting(
                table_id=table_id, round_id=round_id, source=table.SOURCE_OPERATOR
            )
            await cell.order(close)
            await cell.until(partial(over_or_stuck, cell, one), "the round is over or stuck")


def over_or_stuck(cell: SmallCell, one: Table) -> bool:
    """Whether no round runs at a table, or something waits for a retry."""
    return one.running is None or bool(cell.process.replica("settlement").state.failed)


def stuck(cell: SmallCell) -> Position:
    """The one event whose decision failed."""
    (position,) = cell.process.replica("settlement").state.failed
    return position


def test_evt_06_a_poison_event_is_tried_once_parked_and_decided_after_a_fix() -> None:
    async def main() -> None:
        poison = Poison(ValueError)
        async with memory_cell(seed=5, cores=with_core(poison.core)) as (cell, store):
            # Three more replicas of everything stand by: each is given the event as well.
            replicas = []
            for number in range(3):
                standby = SmallCell(
                    MemoryLog(store),
                    virtual_clock,
                    writer=f"standby-{number}",
                    cores=with_core(poison.core),
                )
                await standby.start()
                replicas.append(standby)
            await furnish(cell, TABLES)
            await play_tables(cell)
            for standby in replicas:
                await standby.process.reached(cell.process.position, wait_s=10.0)
                await standby.stop()
        # Once for each replica, never again and again.
        assert poison.given == 1 + len(replicas)
        position = stuck(cell)
        failed = [facts for kind, facts in cell.alarms if kind == "input_failed"]
        assert [(one["cause"], one["error"]) for one in failed] == [(str(position), "ValueError")]
        tables = cell.process.state("table").tables
        for table_id in TABLES:
            expected = POISONED_ROUND if table_id == POISONED else ROUNDS
            assert tables[table_id].number == expected
        # The money of the stuck round stays where it was: reserved, neither lost nor paid.
        held = cell.process.state("wallet").rounds[f"{POISONED}-{POISONED_ROUND}"]
        assert {owner: list(bets) for owner, bets in held.stakes.items()} == {
            ("acme", "ann"): [f"{POISONED}-{POISONED_ROUND}.1"],
            ("acme", "ben"): [f"{POISONED}-{POISONED_ROUND}.2"],
        }
        # A restart of the same build does not try it again.
        again = SmallCell(
            MemoryLog(store), virtual_clock, writer="again", cores=with_core(poison.core)
        )
        await again.start()
        await again.stop()
        assert poison.given == 1 + len(replicas)
        await after_the_fix(store, position)

    run_virtual(main())


async def after_the_fix(store: MemoryStore, position: Position) -> None:
    """A build that is right folds the log as it is; an operator's word decides the event."""
    mended = SmallCell(MemoryLog(store), virtual_clock, writer="mended")
    await mended.start()
    assert stuck(mended) == position
    retry = log.RetryInput(
        position=entry_pb2.Position(
            segment=position.segment, sequence=position.sequence, index=position.index
        ),
        reason="mended",
    )
    await mended.over(
        f"{POISONED}-{POISONED_ROUND}",
        lambda: mended.submit("table", retry, frozenset({settlements.RoundSettled}), SUPERVISOR),
    )
    await play_missing(mended)
    await mended.stop()
    clean = await run_clean()
    assert amounts(mended) == amounts(clean)
    assert {one.number for one in mended.process.state("table").tables.values()} == {ROUNDS}
    assert not mended.process.replica("settlement").state.failed


async def play_missing(cell: SmallCell) -> None:
    """The rounds that the stuck table did not play."""
    for _ in range(ROUNDS - POISONED_ROUND):
        round_id = await cell.open_round(POISONED)
        await cell.bet(round_id, "ann", ("banker", 300))
        await cell.bet(round_id, "ben", ("player", 200))
        await cell.close_betting(round_id)


async def run_clean() -> SmallCell:
    """The same without any poison."""
    async with memory_cell(seed=5) as (cell, _):
        await furnish(cell, TABLES)
        await play_tables(cell)
    return cell


def amounts(cell: SmallCell) -> tuple[Any, Any]:
    """What every account and ledger holds."""
    state = cell.process.state("wallet")
    accounts = {
        owner: (account.available_minor, account.reserved_minor)
        for owner, account in state.accounts.items()
    }
    return accounts, state.ledgers


def test_evt_06_what_is_no_bug_of_the_decision_stops_the_process_and_loses_nothing() -> None:
    """Memory that ran out says nothing of the event: it is not parked, and not passed over."""

    async def main() -> None:
        poison = Poison(MemoryError)
        cell = SmallCell(
            MemoryLog(store := MemoryStore("main", virtual_clock)),
            virtual_clock,
            seed=5,
            cores=with_core(poison.core),
        )
        await cell.start()
        await furnish(cell, TABLES)
        stopped = cell.process.stopped
        assert stopped is not None
        round_id = ""
        while not stopped.done():
            round_id = await cell.open_round(POISONED)
            await cell.bet(round_id, "ann", ("banker", 300))
            close = table.CloseBetting(
                table_id=POISONED, round_id=round_id, source=table.SOURCE_OPERATOR
            )
            await cell.order(close)
            await cell.until(
                lambda: (
                    stopped.done() or cell.process.state("table").tables[POISONED].running is None
                ),
                "the round is over or the process stops",
            )
        assert isinstance(stopped.result(), MemoryError)
        await cell.process.stop()
        assert round_id == f"{POISONED}-{POISONED_ROUND}"
        assert poison.given == 1
        mended = SmallCell(MemoryLog(store), virtual_clock, writer="mended")
        await mended.start()
        await mended.until(
            lambda: mended.process.state("table").tables[POISONED].running is None,
            "the round is over",
        )
        await mended.stop()
        found = await verify(MemoryLog(store))
        assert found.right
        assert found.rounds == POISONED_ROUND

    run_virtual(main())
