"""Projections: rows and position are committed together, whoever is killed or comes second."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from services.kernel import projection_store, projections, row_writer
from services.kernel.event import Position
from services.kernel.row_changes import Changes
from services.table.projection import TableProjection
from services.wallet.projection import WalletProjection
from tests.unit.projecting import (
    WAIT_S,
    feed_all,
    folded,
    nothing,
    opened,
    rows_of,
    until,
    url_of,
)
from tests.unit.projection_log import busy_log

# ---- atomic ------------------------------------------------------------------------------------


async def test_rows_and_position_are_committed_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = busy_log(rounds=2, bets=20)
    write, cuts = row_writer.write, [0]

    async def cut(connection: AsyncConnection, changes: Changes) -> None:
        await write(connection, changes)
        if cuts[0] < 2:
            cuts[0] += 1
            raise OperationalError("the connection broke", {}, Exception())

    monkeypatch.setattr(projection_store, "write", cut)
    monkeypatch.setattr(projections, "RETRY_FIRST_S", 0.01)
    projector = await opened(TableProjection(), url_of(tmp_path), nothing)
    for entry in log.entries:
        projector.feed(*entry)
    await until(lambda: cuts[0])
    seen = await rows_of(projector)
    assert seen["bets"] == []
    assert projector.position.sequence == 0
    await feed_all(projector, log)
    assert cuts == [2]
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
from tests.unit.projection_log import busy_log
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
    stored = sqlite3.connect(tmp_path / "projection.db")
    (sequence,) = stored.execute("SELECT sequence FROM projection_positions").fetchone()
    (legs,) = stored.execute("SELECT count(*) FROM postings").fetchone()
    stored.close()
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
