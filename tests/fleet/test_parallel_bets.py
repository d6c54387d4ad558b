"""One account, many calls at once, over three front doors: money is spent once, and a request is
one request however often it is sent."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from sabot.partner.v1 import partner_service_pb2 as partner
from services.cli.uuid7 import uuid7
from tests.fleet.clients import Partner, Placed, Servers, table_spec
from tests.fleet.running import Running, on_one_server

STAKE_MINOR = 100
TABLE = "t1"


def doors(running: Running) -> list[Partner]:
    """The same partner at each front door by itself."""
    token = running.fleet.tokens["partner:north"]
    fronts = [child for child in running.fleet.children if child.service == "table"]
    found = [Partner(Servers(f"127.0.0.1:{child.port}"), token) for child in fronts]
    running.servers += [one.servers for one in found]
    return found


async def test_wal_03_of_500_bets_at_once_money_for_100_buys_100_and_50_repeats_are_one(
    tmp_path: Path,
) -> None:
    async with on_one_server(tmp_path, {"table": 3}) as running:
        north = doors(running)
        assert len(north) == 3
        await running.operator().open_table(table_spec(TABLE))
        await north[0].open_account("ann", 100 * STAKE_MINOR)
        await north[0].open_account("ben", 3 * STAKE_MINOR)
        round_id = await running.operator().open_round(TABLE)

        placed = await asyncio.gather(
            *(
                north[number % 3].place("ann", round_id, ("banker", STAKE_MINOR))
                for number in range(500)
            )
        )
        assert Counter(one.refused for one in placed) == {"": 100, "INSUFFICIENT_FUNDS": 400}
        assert await north[1].balance("ann") == (0, 100 * STAKE_MINOR)

        request_id = uuid7()
        repeats: list[Placed] = await asyncio.gather(
            *(
                north[number % 3].place(
                    "ben", round_id, ("player", STAKE_MINOR), request_id=request_id
                )
                for number in range(50)
            )
        )
        assert len({one.bets for one in repeats}) == 1
        (bet,) = repeats[0].bets
        assert bet[1:] == ("player", STAKE_MINOR)
        assert await north[2].balance("ben") == (2 * STAKE_MINOR, STAKE_MINOR)

        await running.operator().close_betting(round_id)
        await north[0].round_in(TABLE, partner.ROUND_STATE_PAID)
        available, reserved = await north[0].balance("ann")
        assert reserved == 0
        # Banker pays 19 to 20; a tie gives the stakes back.
        assert available in {0, 100 * STAKE_MINOR, 100 * (STAKE_MINOR + STAKE_MINOR * 19 // 20)}
        assert (await north[0].balance("ben"))[1] == 0
        await running.proven()
        assert running.alarms() == []
