"""Projections: what is projected live, from nothing and after a restart is the same."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from sabot.wallet.v1.ledger_service_pb2 import LEDGER_KIND_CASH, LEDGER_KIND_EXTERNAL
from services.kernel import projection_store, projections, row_writer
from services.kernel.databases import position_key, position_of_key
from services.kernel.event import Event, InvariantViolated, Position
from services.kernel.projection_store import Projection
from services.kernel.row_changes import Changes
from services.table.projection import TableProjection
from services.wallet.journal_rows import LEDGERS
from services.wallet.projection import WalletProjection
from tests.unit.projecting import (
    ALL,
    ON_BOTH,
    WAIT_S,
    feed_all,
    folded,
    nothing,
    opened,
    rows_of,
    url_of,
)
from tests.unit.projection_log import HandMadeLog, busy_log

pytestmark = ON_BOTH

# ---- positions ---------------------------------------------------------------------------------

POSITIONS = st.builds(
    Position, st.integers(0, 8000), st.integers(0, (1 << 40) - 1), st.integers(0, 800)
)


@given(POSITIONS, POSITIONS)
def test_position_keys_sort_as_positions_do(one: Position, other: Position) -> None:
    assert (position_key(one) < position_key(other)) == (one < other)
    assert position_of_key(position_key(one)) == one
    assert position_key(one) < 1 << 63


def test_a_position_that_fits_no_key_is_a_bug() -> None:
    with pytest.raises(InvariantViolated):
        position_key(Position(1, 1 << 40, 0))


def test_the_end_of_an_entry_is_behind_its_events() -> None:
    end = position_key(Position(1, 7, 0xFFFFFFFF))
    assert position_key(Position(1, 7, 799)) < end < position_key(Position(1, 8, 0))


# ---- live, rebuilt, restarted ------------------------------------------------------------------


@pytest.mark.parametrize("make", ALL)
async def test_rebuilt_equals_live(make: type[Projection], tmp_path: Path) -> None:
    """Invariant 6. Live: in uneven batches, with restarts, an overlap and a gap at each."""
    log = busy_log(rounds=8, bets=30, entry_events=9)
    rng = random.Random(7)
    known = HandMadeLog()
    live = await opened(make(), url_of(tmp_path), known.read)
    for number, entry in enumerate(log.entries):
        known.entries.append(entry)
        live.feed(*entry)
        if rng.random() < 0.1:
            await live.reached(Position(1, entry[0], 0), WAIT_S)
        if rng.random() < 0.02:
            await live.close()
            live = await opened(make(), url_of(tmp_path), known.read)
            for again in log.entries[max(0, number - 5) : number + 1]:
                live.feed(*again)
    assert await live.reached(Position(1, len(log.entries), 0), WAIT_S)
    rows = await rows_of(live)
    assert rows == await folded(make, log, tmp_path)
    assert await live.rebuild(wait_s=WAIT_S)
    assert await rows_of(live) == rows
    assert live.position.sequence == len(log.entries)
    await live.close()


async def test_a_projection_goes_on_from_its_committed_position(tmp_path: Path) -> None:
    log = busy_log(rounds=2, bets=10)
    first = await opened(TableProjection(), url_of(tmp_path), log.read)
    assert await first.caught_up(WAIT_S)
    await first.close()
    asked: list[int] = []

    def read(after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        asked.append(after)
        return log.read(after)

    second = await opened(TableProjection(), url_of(tmp_path), read)
    assert second.position.sequence == len(log.entries)
    assert second.head == log.entries[-1][1]
    assert await second.caught_up(WAIT_S)
    # From the last entry that is in, to see that the log still holds it.
    assert asked == [len(log.entries) - 1]
    assert second.events == 0
    await second.close()


async def test_entries_without_events_move_the_position(tmp_path: Path) -> None:
    log = HandMadeLog()
    projector = await opened(TableProjection(), url_of(tmp_path), log.read)
    log.add_empty()
    projector.feed(*log.entries[0])
    assert await projector.reached(Position(1, 1, 700), WAIT_S)
    assert not await projector.reached(Position(1, 2, 0), 0.01)
    assert not await projector.reached(Position(2, 1, 0), 0.01)
    await projector.close()


async def test_an_entry_fed_twice_is_applied_once(tmp_path: Path) -> None:
    log = busy_log(rounds=3, bets=10, entry_events=3)
    projector = await opened(WalletProjection(), url_of(tmp_path), nothing)
    for entry in log.entries:
        projector.feed(*entry)
        projector.feed(*entry)
        if entry[0] % 20 == 0:
            assert await projector.reached(Position(1, entry[0], 0), WAIT_S)
            projector.feed(*log.entries[entry[0] - 3])
    await feed_all(projector, log)
    assert await rows_of(projector) == await folded(WalletProjection, log, tmp_path)
    await projector.close()


async def test_rows_of_one_batch_are_written_once(tmp_path: Path) -> None:
    log = HandMadeLog()
    for number in range(1, 4):
        round_id = log.open_round(number)
        log.play(round_id, [("p", log.bet(round_id, "p", "a")[1])])
    changes = Changes()
    TableProjection().apply(log.events, changes)
    # 3 rounds, 3 bets, 3 requests; the links of pending requests came and went.
    assert changes.rows() == 9
    wallet = Changes()
    banking = HandMadeLog()
    banking.open_account("p", "a", 100)
    for _ in range(50):
        banking.deposit("p", "a", 100)
    WalletProjection().apply(banking.events, wallet)
    balances = {row["kind"]: row["balance_minor"] for row in wallet[LEDGERS].inserted.values()}
    assert balances == {LEDGER_KIND_CASH: 51 * 100, LEDGER_KIND_EXTERNAL: -51 * 100}
    assert len(wallet[LEDGERS].updated) == 0


async def test_what_is_added_to_a_row_of_an_earlier_batch_adds_up(tmp_path: Path) -> None:
    log = HandMadeLog()
    log.open_account("p", "a", 100)
    projector = await opened(WalletProjection(), url_of(tmp_path), nothing)
    await feed_all(projector, log)
    before = len(log.entries)
    for _ in range(50):
        log.deposit("p", "a", 100)
    await feed_all(projector, log, before)
    async with projector.connect() as connection:
        rows = (await connection.execute(select(LEDGERS).order_by(LEDGERS.c.kind))).all()
    assert [row.balance_minor for row in rows] == [5_100, -5_100]
    await projector.close()


# ---- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ALL)
async def test_lists_and_executemany_write_the_same_rows(
    make: type[Projection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite is written by lists, other databases by SQLAlchemy's `executemany`."""
    log = busy_log(rounds=4, bets=30, entry_events=9)
    monkeypatch.setattr(projections, "BATCH_EVENTS", 50)
    by_lists = await folded(make, log, tmp_path)

    async def write_many(connection: AsyncConnection, changes: Changes) -> None:
        for table, one in changes.tables.items():
            await row_writer._write_many(connection, table, one)

    monkeypatch.setattr(projection_store, "write", write_many)
    (tmp_path / "many").mkdir()
    assert await folded(make, log, tmp_path / "many") == by_lists
