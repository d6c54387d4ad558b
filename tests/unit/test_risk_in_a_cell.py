"""A table with a line for returns, through all cores, the shell and the log."""

from __future__ import annotations

import re

from sabot.limits.v1 import events_pb2 as limits
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.playthrough import playthrough
from services.cli.replay import verify
from services.kernel.memory_log import MemoryLog
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import memory_cell, spec

LINE = 985
"""Per mille: the returns of Player and Banker are over it, that of Tie is not."""


def test_the_log_says_which_bets_were_closed_and_why() -> None:
    async def main() -> None:
        async with memory_cell() as (cell, store):
            of = spec()
            of.max_return_per_mille = LINE
            await cell.open_table(of)
            await cell.open_account("ann", 500_000)
            round_id = await cell.open_round()
            one = cell.process.state("table").tables["t1"]
            await cell.until(lambda: bool(one.running.closed_bets), "bets are closed")
            refused = await cell.bet(round_id, "ann", ("player", 500), ("tie", 100))
            assert isinstance(refused, limits.BetsRefused)
            assert [(each.limit, each.bet) for each in refused.violations] == [
                (limits.LIMIT_BET_CLOSED, "player")
            ]
            taken = await cell.bet(round_id, "ann", ("tie", 100))
            assert isinstance(taken, wallet.StakeReserved)
            await cell.close_betting(round_id)
            # The next round judges anew, at another composition.
            seen = list(one.seen)
            assert len(seen) >= 5
            await cell.open_round()
            await cell.until(lambda: bool(one.running.closed_bets), "bets are closed again")
            assert cell.alarms == []
        told = (await playthrough(MemoryLog(store), round_id, {}, lambda *_: None)).text()
        why = re.compile(
            r"BetsClosed +with 415 cards unseen these return: banker 98\.\d{4} %, "
            r"player 98\.\d{4} %; the line is 985 per mille$",
            re.MULTILINE,
        )
        assert why.search(told)
        assert re.search(r"system:risk +table\.in +CloseBets ", told)
        assert re.search(r"BetsRefused +ann: BET_CLOSED player$", told, re.MULTILINE)
        found = await verify(MemoryLog(store), lambda *_: None, {})
        assert found.right
        assert found.differences == []

    run_virtual(main())
