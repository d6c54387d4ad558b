"""Record a log in whose midst behaviour 2 comes into force:
`python -m tests.histories.record_steps NAME`. Rounds of hundreds of bets before, of dozens behind:
settled, settled again, voided, and closed on the floor with every bet too late, each in several
steps of its behaviour; and one of hundreds in the middle of whose settlement it is activated.
"""

from __future__ import annotations

import sys
from typing import Any

from sabot.log.v1 import events_pb2 as log
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as table
from services.cli.fleet import CELL
from services.cli.replay import verify
from services.kernel.build import BUILD
from services.kernel.event import Event
from services.kernel.memory_log import MemoryLog
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import SUPERVISOR, SmallCell
from tests.histories.history import HERE, History, fold, save
from tests.unit.test_corrections_cell import Correcting
from tests.unit.test_floor_cell import opened as open_floor
from tests.unit.test_what_if import demo_spec

BETS = 14
"""Of an account, on as many numbers."""
MANY, FEW = 30, 5
"""Accounts of a round, before and behind it: their bets are more than a step holds there."""
WHEEL, FLOOR = "wheel", "t1"
VOIDED = corrections.CorrectedOutcome(voided=True)


async def play(one: Correcting) -> None:
    """The whole history."""
    cell = one.cell
    await cell.open_table(demo_spec("roulette", WHEEL))
    await open_floor(cell)
    for number in range(2 * MANY):
        await cell.open_account(f"a{number:02}", 1_000_000)
    await play_rounds(one, MANY)
    round_id = await full_round(cell, WHEEL, 2 * MANY)
    activated = False

    def activate(events: list[Event]) -> None:
        nonlocal activated
        if not activated and any(isinstance(event.body, table.ResultAccepted) for event in events):
            activated = True
            cell.process.tell("table", log.ActivateBehaviour(behaviour=2), SUPERVISOR)

    cell.process.follow(activate)
    await cell.close_betting(round_id)
    await play_rounds(one, FEW)


async def play_rounds(one: Correcting, accounts: int) -> None:
    """A round that is paid and settled again, one that is voided, and one on the floor whose bets
    are all later than the call."""
    cell = one.cell
    paid = await full_round(cell, WHEEL, accounts)
    await cell.close_betting(paid)
    await one.correct(paid, VOIDED)
    voided = await full_round(cell, WHEEL, accounts)
    await cell.over(voided, lambda: void(cell, voided))
    late = await full_round(cell, FLOOR, accounts)
    opened_us = cell.process.state("table").tables[FLOOR].running.at_floor.opened_us
    close = table.CloseBetting(
        table_id=FLOOR,
        round_id=late,
        source=table.SOURCE_OPERATOR,
        device_time_us=opened_us,
        told_when_voided=True,
    )
    await cell.order(close, SUPERVISOR)
    await cell.over(late, lambda: void(cell, late))


async def full_round(cell: SmallCell, table_id: str, accounts: int) -> str:
    """A round with bets of so many accounts."""
    round_id = await cell.open_round(table_id)
    for number in range(accounts):
        account = f"a{number:02}"
        if table_id == FLOOR:
            await cell.bet(round_id, account, *[("tie", 100)] * BETS)
        else:
            await cell.bet_at(round_id, account, *(("straight", n, 100) for n in range(BETS)))
    return round_id


async def void(cell: SmallCell, round_id: str) -> Any:
    """Let a round not count."""
    return await cell.order(
        table.VoidRound(
            table_id=round_id.rpartition("-")[0],
            round_id=round_id,
            reason=table.ROUND_REASON_DISPUTE,
        ),
        SUPERVISOR,
    )


def main(name: str) -> None:
    """Play, and save what folds to the live states."""
    one = Correcting()

    async def run() -> tuple[dict[str, tuple[int, str]], int]:
        async with one.running():
            await play(one)
            await one.cell.process.drain(5.0)
            live = one.cell.digests()
        found = await verify(MemoryLog(one.store))
        if not found.right:
            raise RuntimeError(found.line())
        return live, found.rounds

    live, rounds = run_virtual(run())
    folded = fold(CELL, one.store.entries())
    if folded.digests() != live:
        raise RuntimeError("the log does not fold to the live states")
    path = HERE / f"{name}.jsonl.gz"
    head = folded.reader.state.head.hex()
    save(path, History(CELL, BUILD, rounds, head, live, one.store.entries()))
    print(f"{path.name}: {one.store.last_sequence} entries, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
