"""Whole rounds as text, compared exactly with what lies beside this file.

A change of a text is a change of what the fleet does or says: look at it, and if it is meant, write
them anew with `python -m tests.playthroughs.test_playthroughs`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sabot.table.v1 import events_pb2 as table
from services.cli.playthrough import Playthrough, RoundUnknown, playthrough
from services.kernel.memory_log import MemoryLog
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import SUPERVISOR, SmallCell, memory_cell, spec

HERE = Path(__file__).parent
ROUNDS = {
    "settled": "t1-1",
    "refused-repeated-withdrawn": "t1-2",
    "suspended-and-voided": "t1-3",
    "by-the-clock": "clock-1",
}
"""By file: the round that it tells of."""


async def settled(cell: SmallCell) -> None:
    """Two accounts bet, and the cards decide."""
    round_id = await cell.open_round()
    await cell.bet(round_id, "ann", ("banker", 1_000))
    await cell.bet(round_id, "ben", ("player", 500), ("tie", 100))
    await cell.close_betting(round_id)


async def refused_repeated_withdrawn(cell: SmallCell) -> None:
    """Opposite sides, too much, a repeat, a reused id, no money, a withdrawal, a late bet."""
    round_id = await cell.open_round()
    await cell.bet(round_id, "ann", ("player", 500), ("banker", 500))
    await cell.bet(round_id, "ann", ("tie", 200_000))
    await cell.bet(round_id, "ann", ("player", 500), request_id="bet-1")
    await cell.bet(round_id, "ann", ("player", 500), request_id="bet-1")
    await cell.bet(round_id, "ann", ("player", 700), request_id="bet-1")
    await cell.bet(round_id, "cid", ("player", 50_000))
    await cell.bet(round_id, "ben", ("banker", 300))
    await cell.withdraw(round_id, "ben")
    close = table.CloseBetting(table_id="t1", round_id=round_id, source=table.SOURCE_OPERATOR)
    await cell.over(
        round_id,
        lambda: asyncio.gather(
            cell.order(close), cell.bet(round_id, "ben", ("tie", 100), request_id="late")
        ),
    )


async def suspended_and_voided(cell: SmallCell) -> None:
    """A device fails, the round goes on, a dispute ends it: every stake goes back."""
    round_id = await cell.open_round()
    named: dict[str, Any] = {"table_id": "t1", "round_id": round_id}
    await cell.bet(round_id, "ann", ("banker", 1_000), ("tie", 100))
    await cell.order(table.SuspendRound(**named, reason=table.ROUND_REASON_EQUIPMENT), SUPERVISOR)
    await cell.bet(round_id, "ben", ("player", 100))
    await cell.order(table.ResumeRound(**named, reason=table.ROUND_REASON_CLEARED), SUPERVISOR)
    await cell.bet(round_id, "ben", ("player", 200))
    void = table.VoidRound(**named, reason=table.ROUND_REASON_DISPUTE, remark="a card was seen")
    await cell.over(round_id, lambda: cell.order(void, SUPERVISOR))


async def by_the_clock(cell: SmallCell) -> None:
    """A table whose timers open and close."""
    round_id = "clock-1"
    state = cell.process.state("table")

    async def bets() -> None:
        await cell.open_table(spec("clock", window_ms=2_000, pause_ms=60_000))
        await cell.until(lambda: state.tables["clock"].running is not None, "the round opens")
        await cell.bet(round_id, "ann", ("banker", 600))

    await cell.over(round_id, bets)


def play() -> dict[str, Playthrough]:
    """All rounds, one after the other, on one log."""

    async def main() -> dict[str, Playthrough]:
        async with memory_cell(seed=3) as (cell, store):
            await cell.open_table()
            for account, minor in (("ann", 100_000), ("ben", 50_000), ("cid", 10_000)):
                await cell.open_account(account, minor)
            await settled(cell)
            await refused_repeated_withdrawn(cell)
            await suspended_and_voided(cell)
            await by_the_clock(cell)
        log = MemoryLog(store)
        return {name: await playthrough(log, round_id) for name, round_id in ROUNDS.items()}

    return run_virtual(main())


@pytest.fixture(scope="module")
def played() -> dict[str, Playthrough]:
    return play()


@pytest.mark.parametrize("name", ROUNDS)
def test_a_round_is_told_as_it_was_written(played: dict[str, Playthrough], name: str) -> None:
    assert played[name].text() == (HERE / f"{name}.txt").read_text()


def test_the_balances_follow_one_another(played: dict[str, Playthrough]) -> None:
    """Each leg begins where the last one ended, over all the rounds, and each entry sums to 0."""
    last: dict[str, int] = {}
    for name in ROUNDS:
        for one in played[name].json():
            moved = 0
            for leg in one["balances"]:
                account = leg["ledger_account"]
                assert last.get(account, leg["before_minor"]) == leg["before_minor"]
                last[account] = leg["after_minor"]
                moved += leg["after_minor"] - leg["before_minor"]
            assert moved == 0
    assert not any(minor for account, minor in last.items() if account.startswith("reserved"))


def test_every_event_has_its_cause_in_the_round(played: dict[str, Playthrough]) -> None:
    for told in played.values():
        events = told.json()
        positions = {one["position"] for one in events}
        assert all(one["cause"] in positions for one in events if one["cause"] is not None)
        named = {one["body"].get("round_id", told.round_id) for one in events}
        assert named == {told.round_id}
        assert [one["event"] for one in events][-1] == "RoundClosed"


def test_a_round_that_never_was_is_not_told() -> None:
    async def main() -> None:
        async with memory_cell() as (_, store):
            pass
        with pytest.raises(RoundUnknown, match="t9-1"):
            await playthrough(MemoryLog(store), "t9-1")

    run_virtual(main())


if __name__ == "__main__":
    for file, one in play().items():
        (HERE / f"{file}.txt").write_text(one.text())
