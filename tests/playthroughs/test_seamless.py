"""A round with a partner that holds its accounts' money, as text: stakes that are taken, declined
and not answered, a bet that is taken back, and what is paid. Written anew by
`python -m tests.playthroughs.test_seamless`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from services.cli.playthrough import playthrough
from services.kernel.memory_log import MemoryLog
from services.simulator.virtual_time import run_virtual
from services.wallet.domain.seamless_state import Movement
from services.wallet.partner_replies import Verdict
from tests.unit.partner_in_memory import no_answer, seamless_cell

FILE = Path(__file__).parent / "seamless-taken-declined-unanswered.txt"


async def _lose_cids_debits(method: str, movement: Movement) -> Verdict | None:
    return no_answer() if method == "Debit" and movement.account_id == "cid" else None


async def _told() -> str:
    async with seamless_cell("ann", "ben", "cid", end_of_round=True) as (cell, there, store):
        there.before = _lose_cids_debits
        round_id = await cell.open_round()
        placed = await cell.bet(round_id, "ann", ("player", 1_000), ("tie", 200))
        await cell.withdraw(round_id, "ann", placed.bets[1].bet_id)  # type: ignore[attr-defined]  # StakeReserved
        await cell.bet(round_id, "ben", ("banker", 99_900), ("tie", 200))
        await cell.bet(round_id, "ben", ("banker", 500))
        unanswered = asyncio.create_task(cell.bet(round_id, "cid", ("tie", 300)))
        await cell.until(lambda: there.times("Debit") > 3, "cid's debit is called")
        await cell.close_betting(round_id)
        await unanswered
        await cell.until(
            lambda: not cell.process.state("wallet").seamless.movements, "all is confirmed"
        )
    return (await playthrough(MemoryLog(store), round_id, {}, lambda *_: None)).text()


def test_a_seamless_round_reads_as_it_did() -> None:
    assert run_virtual(_told()) == FILE.read_text()


if __name__ == "__main__":
    FILE.write_text(run_virtual(_told()))
