"""Bets of a seamless partner's accounts: confirmed when its wallet has taken their stakes.

A fleet of its own beside a wallet that echoes: each bet is the fleet's usual path, two more entries
of the log and a signed call that is answered at once.
"""

from __future__ import annotations

from pathlib import Path

from services.cli.bench_child import child
from services.cli.bench_fleet import START_S, bench_fleet
from services.cli.bench_load import WARM_S, Figure, Target, check_placed

IN_FLIGHT = 128
"""Calls at once: the most of the other figures."""


async def seamless_per_s(place: Path, seconds: float) -> float:
    """Bets confirmed a second. Raises BenchFailed."""
    async with child(place, "partner", "services.cli.bench_partner") as partner:
        address = (await partner.line(START_S))["address"]
        async with bench_fleet(place, place / "seamless", seamless=address) as fleet:
            target = Target("place_bets", fleet.address, fleet.desk.partner)
            try:
                warm_s = min(WARM_S, seconds)
                one = await target.run(await fleet.desk.open_round(), IN_FLIGHT, seconds, warm_s)
                check_placed(target.name, one)
                await fleet.desk.settle()
            finally:
                await target.close()
    figure = Figure()
    figure.add(one)
    return figure.per_s
