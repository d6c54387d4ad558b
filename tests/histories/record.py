"""Record the history of this release: `python -m tests.histories.record 0002-what-is-new`.

Two tables, six accounts, about 200 rounds with everything that may happen in one: bets refused,
repeated, declined, withdrawn; rounds suspended and voided; shoes that end.
"""

from __future__ import annotations

import random
import sys

from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.fleet import CELL
from services.kernel.build import BUILD
from services.kernel.memory_log import MemoryStore
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import (
    ACCOUNTED,
    PARTNER,
    SUPERVISOR,
    SmallCell,
    memory_cell,
    spec,
)
from tests.histories.history import HERE, History, fold, save

ROUNDS = 200
TABLES = ("t1", "t2")
ACCOUNTS = ("ann", "ben", "cid", "dee", "eve", "fay")


async def play_round(cell: SmallCell, chance: random.Random, table_id: str) -> None:
    """One round with whatever chance brings."""
    round_id = await cell.open_round(table_id)
    for account in chance.sample(ACCOUNTS, chance.randint(0, 3)):
        await bet(cell, chance, round_id, account)
    fate = chance.random()
    if fate < 0.1:
        await cell.order(
            table.SuspendRound(
                table_id=table_id, round_id=round_id, reason=table.ROUND_REASON_EQUIPMENT
            ),
            SUPERVISOR,
        )
        await bet(cell, chance, round_id, "ann")
    if fate < 0.05:
        void = table.VoidRound(
            table_id=table_id, round_id=round_id, reason=table.ROUND_REASON_DISPUTE
        )
        await cell.over(round_id, lambda: cell.order(void, SUPERVISOR))
        return
    if fate < 0.1:
        await cell.order(
            table.ResumeRound(
                table_id=table_id, round_id=round_id, reason=table.ROUND_REASON_CLEARED
            ),
            SUPERVISOR,
        )
    await cell.close_betting(round_id)
    if fate > 0.95:
        await bet(cell, chance, round_id, "ben")
        account = chance.choice(ACCOUNTS)
        taken = wallet.Withdraw(
            account_id=account, currency_code="EUR", amount_minor=chance.randint(1, 3000)
        )
        await cell.submit("wallet", taken, ACCOUNTED, f"partner:{PARTNER}")


async def bet(cell: SmallCell, chance: random.Random, round_id: str, account: str) -> None:
    """One request: mostly right, sometimes not, sometimes twice, sometimes taken back."""
    request_id = cell.request_id()
    side = chance.choice(("player", "banker", "tie"))
    stake = 100 * chance.choice((1, 1, 5, 20, 150, 2_000))
    bets = [(side, stake)]
    if chance.random() < 0.1:
        bets.append((chance.choice(("player", "banker")), 100))
    await cell.bet(round_id, account, *bets, request_id=request_id)
    odd = chance.random()
    if odd < 0.03:
        await cell.bet(round_id, account, *bets, request_id=request_id)
    elif odd < 0.05:
        await cell.bet(round_id, account, (side, stake + 100), request_id=request_id)
    elif odd < 0.1:
        await cell.withdraw(round_id, account)


async def play(cell: SmallCell, rounds: int, seed: int) -> None:
    """The whole history."""
    chance = random.Random(seed)
    for table_id in TABLES:
        await cell.open_table(spec(table_id))
    for account in ACCOUNTS:
        await cell.open_account(account, 200_000)
    for number in range(rounds):
        await play_round(cell, chance, TABLES[number % len(TABLES)])


def recorded(rounds: int, seed: int) -> tuple[MemoryStore, dict[str, tuple[int, str]]]:
    """The log of a run, and the live states' digests at its end."""

    async def main() -> tuple[MemoryStore, dict[str, tuple[int, str]]]:
        async with memory_cell(seed) as (cell, store):
            await play(cell, rounds, seed)
            await cell.process.drain(5.0)
            live = cell.digests()
        return store, live

    return run_virtual(main())


def main(name: str) -> None:
    store, live = recorded(ROUNDS, seed=1)
    folded = fold(CELL, store.entries())
    if folded.digests() != live:
        raise RuntimeError("the log does not fold to the live states")
    path = HERE / f"{name}.jsonl.gz"
    head = folded.reader.state.head.hex()
    save(path, History(CELL, BUILD, ROUNDS, head, live, store.entries()))
    print(f"{path.name}: {store.last_sequence} entries, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
