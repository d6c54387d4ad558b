"""Projections: rows and position are committed together, whoever is killed or comes second."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from services.kernel import projection_store, projections, row_writer
from services.kernel.databases import open_engine
from services.kernel.event import Position
from services.kernel.projections import ProjectionAhead
from services.kernel.row_changes import Changes
from services.table.projection import TableProjection
from services.wallet.projection import WalletProjection
from tests.unit.projecting import (
    ON_BOTH,
    WAIT_S,
    feed_all,
    folded,
    nothing,
    opened,
    rows_of,
    until,
    url_of,
)
from tests.unit.projection_log import HandMadeLog, busy_log

pytestmark = ON_BOTH

# ---- atomic ------------------------------------------------------------------------------------


async def test_rows_and_position_are_committed_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = busy_log(rounds=2, bets=20)
    write, cuts, breaks = row_writer.write, [0], [True]

    async def cut(connection: AsyncConnection, changes: Changes) -> None:
        await write(connection, changes)
        if breaks[0]:
            cuts[0] += 1
            raise OperationalError("the connection broke", {}, Exception())

    monkeypatch.setattr(projection_store, "write", cut)
    monkeypatch.setattr(projections, "RETRY_FIRST_S", 0.01)
    projector = await opened(TableProjection(), url_of(tmp_path), nothing)
    for entry in log.entries:
        projector.feed(*entry)
    await until(lambda: cuts[0] > 1)
    seen = await rows_of(projector)
    assert seen["bets"] == []
    assert projector.position.sequence == 0
    breaks[0] = False
    await feed_all(projector, log)
    assert await rows_of(projector) == await folded(TableProjection, log, tmp_path)
    await projector.close()


async def test_a_commit_whose_answer_was_lost_is_not_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = busy_log(rounds=2, bets=20)
    projector = await opened(WalletProjection(), url_of(tmp_path), nothing)
    commit, lost = projector._store.commit, [False]

    async def lose(*args: Any) -> None:
        await commit(*args)
        if not lost[0]:
            lost[0] = True
            raise OperationalError("the answer did not come", {}, Exception())

    monkeypatch.setattr(projector._store, "commit", lose)
    monkeypatch.setattr(projections, "RETRY_FIRST_S", 0.01)
    await feed_all(projector, log)
    assert lost[0]
    assert await rows_of(projector) == await folded(WalletProjection, log, tmp_path)
    await projector.close()


KILLED = """
import asyncio, sys
from services.kernel import projection_store, projections, row_writer
from tests.unit.projection_log import HandMadeLog, busy_log
from services.wallet.projection import WalletProjection

projections.BATCH_EVENTS = 40

async def main() -> None:
    log = busy_log(rounds=60, bets=60, entry_events=7)
    url, after = sys.argv[1], int(sys.argv[2])
    projector = projections.Projector(WalletProjection(), url, log.read)
    task = asyncio.ensure_future(projector.start())
    while projector.position.sequence < after:
        await asyncio.sleep(0)
    print(projector.position.sequence, flush=True)
    await task
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [1, 200, 1_000])
async def test_a_killed_process_leaves_rows_that_fit_the_position(
    tmp_path: Path, after: int
) -> None:
    log = busy_log(rounds=60, bets=60, entry_events=7)
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED, url_of(tmp_path), str(after)),
        stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert child.stdout is not None
    assert await child.stdout.readline()
    child.kill()
    await child.wait()
    engine = open_engine(url_of(tmp_path))
    async with engine.connect() as stored:
        sequence = await stored.scalar(text("SELECT sequence FROM projection_positions"))
        legs = await stored.scalar(text("SELECT count(*) FROM postings"))
    await engine.dispose()
    assert sequence >= after
    expected = await folded(WalletProjection, log, tmp_path, sequence)
    assert legs == len(expected["postings"])
    projector = await opened(WalletProjection(), url_of(tmp_path), log.read)
    assert await projector.caught_up(WAIT_S)
    assert await rows_of(projector) == await folded(WalletProjection, log, tmp_path)
    await projector.close()


async def test_two_replicas_may_share_a_database(tmp_path: Path) -> None:
    log = busy_log(rounds=4, bets=40, entry_events=3)
    both = [await opened(WalletProjection(), url_of(tmp_path), log.read) for _ in range(2)]
    rng = random.Random(3)
    for entry in log.entries:
        for projector in rng.sample(both, 2):
            projector.feed(*entry)
        if rng.random() < 0.2:
            await asyncio.sleep(0)
    for projector in both:
        assert await projector.reached(Position(1, len(log.entries), 0), WAIT_S)
        assert projector.error is None
    assert await rows_of(both[0]) == await folded(WalletProjection, log, tmp_path)
    for projector in both:
        await projector.close()


async def test_one_replica_writes_the_other_follows_and_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first had not committed when it ended is in the second's queue: nothing is read from
    the log again."""
    monkeypatch.setattr(projections, "TAKE_OVER_S", 0.1)
    log = busy_log(rounds=6, bets=20, entry_events=3)
    part = len(log.entries) // 3
    first, second = [await opened(WalletProjection(), url_of(tmp_path), nothing) for _ in range(2)]
    for entry in log.entries[:part]:
        first.feed(*entry)
    assert await first.reached(Position(1, part, 0), WAIT_S)
    for entry in log.entries[: 2 * part]:
        second.feed(*entry)
    for entry in log.entries[part : 2 * part]:
        first.feed(*entry)
    for projector in (first, second):
        assert await projector.reached(Position(1, 2 * part, 0), WAIT_S)
    committed = sum(len(events) for _, _, events in log.entries[: 2 * part])
    assert first.events + second.events == committed, "no entry was committed twice"
    await first.close()
    read_before = second.catch_ups
    for entry in log.entries[2 * part :]:
        second.feed(*entry)
    assert await second.reached(Position(1, len(log.entries), 0), WAIT_S)
    assert second.catch_ups == read_before
    assert await rows_of(second) == await folded(WalletProjection, log, tmp_path)
    await second.close()


async def test_a_replica_that_follows_finds_another_log(tmp_path: Path) -> None:
    """Two replicas of one database must read one log."""
    log, other = HandMadeLog(), HandMadeLog(salt=b"other")
    for one in (log, other):
        one.open_account("p", "a", 100)
    first, second = [await opened(WalletProjection(), url_of(tmp_path), nothing) for _ in range(2)]
    await feed_all(first, log)
    for entry in other.entries:
        second.feed(*entry)
    await until(lambda: second.error)
    assert isinstance(second.error, ProjectionAhead)
    for projector in (first, second):
        await projector.close()
