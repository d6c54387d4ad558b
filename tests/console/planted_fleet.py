"""A fleet with a console whose build of settlement pays a number 36 to 1, played by the lines that
come in, each answered by one. `play`: a round that a number wins; its id. `mend`: the right build
is put back.

    python -m tests.console.planted_fleet DATA
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from services.cli import console_child
from services.cli.demo_games import floor_tables
from services.cli.fleet import CELL, fleet
from services.kernel import event_loop, telemetry
from services.settlement import parts as settlement_parts
from tests.fleet.clients import Operator, Servers
from tests.fleet.patched_settlement import PatchedBuild, one_more
from tests.fleet.test_corrections import Corrected
from tests.fleet.test_floor import WHEEL, by_hand

BETS = {"ann": ("straight", "17"), "bob": ("straight", "20"), "cem": ("black", "")}
STAKE = 1_000


def say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


async def main(data: Path) -> None:
    build = PatchedBuild(one_more("straight"))
    settlement_parts.CORE = build.core  # type: ignore[attr-defined]  # what a release would have
    async with fleet(data, port=0) as running:
        hall = Corrected(running)
        wheel = next(table for table in floor_tables() if table.table_id == WHEEL)
        await hall.boss.open_table(by_hand(wheel))
        # Supervisors who have dealt in a round may not correct it.
        hall.boss = Operator(Servers(running.address), running.tokens["operator:dana"])
        for account in BETS:
            await hall.north.open_account(account, 100_000)
        pages = console_child.console(data, running.address, running.tokens, 0, CELL)
        async with pages as console:
            say(console=console.address, fleet=running.address)
            while line := await asyncio.to_thread(sys.stdin.readline):
                if line.strip() == "play":
                    say(round=await play(hall))
                else:
                    build.runs = False
                    say(mended=True)


async def play(hall: Corrected) -> str:
    round_id: str = await hall.boss.open_round(WHEEL)
    for account, (bet, position) in BETS.items():
        await hall.stake(round_id, account, (bet, position, STAKE))
    await hall.result(round_id, 17)
    return round_id


if __name__ == "__main__":
    telemetry.configure_logging(service="planted", level="WARNING")
    event_loop.run(main(Path(sys.argv[1])))
