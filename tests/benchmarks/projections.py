"""How fast projections fold a log: `python -m tests.benchmarks.projections [rounds] [bets]`.

One process, one projection after the other, SQLAlchemy and SQLite included; processor time, since
the wall clock also measures what else the machine does.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from services.kernel.projection_store import Projection
from services.kernel.projections import Projector
from services.settlement.projection import SettlementProjection
from services.table.projection import TableProjection
from services.wallet.projection import WalletProjection
from tests.unit.projection_log import HandMadeLog, busy_log

WAIT_S = 600.0


async def measure(projection: Projection, log: HandMadeLog, folder: Path) -> float:
    """Events per second of processor time."""
    projector = Projector(projection, f"sqlite+aiosqlite:///{folder}/{projection.name}", log.read)
    begun_s = time.process_time()
    await projector.start(wait_s=WAIT_S)
    if not await projector.caught_up(WAIT_S):
        raise SystemExit(f"{projection.name} did not catch up: {projector.error}")
    spent_s = time.process_time() - begun_s
    await projector.close()
    return len(log.events) / spent_s


async def main(rounds: int, bets: int) -> None:
    """Print one line a projection."""
    log = busy_log(rounds=rounds, bets=bets)
    print(f"{len(log.events):,} events in {len(log.entries):,} entries")
    with tempfile.TemporaryDirectory() as folder:
        for projection in (TableProjection(), WalletProjection(), SettlementProjection()):
            rate = await measure(projection, log, Path(folder))
            print(f"{projection.name:<12}{rate:>12,.0f} events/s")


if __name__ == "__main__":
    sizes = [int(one) for one in sys.argv[1:]] or [20, 1_000]
    asyncio.run(main(*sizes))
