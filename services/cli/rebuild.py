"""`sabot projections rebuild`: fold the log into emptied tables."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from services.events import event_types
from services.kernel.event import Position
from services.kernel.log import Log
from services.kernel.offered_snapshots import events_of
from services.kernel.projection_places import projection_url
from services.kernel.projection_store import Projection
from services.kernel.projections import END_OF_ENTRY, SEGMENT, Projector
from services.kernel.settings import ServiceSettings
from services.settlement.projection import SettlementProjection
from services.shoe.projection import ShoeProjection
from services.table.projection import TableProjection
from services.wallet.projection import WalletProjection

PROJECTIONS: dict[str, Callable[[], Projection]] = {
    "table": TableProjection,
    "wallet": WalletProjection,
    "settlement": SettlementProjection,
    "shoe": ShoeProjection,
}
"""By service."""
LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A projection that stands for the whole log again."""

    name: str
    position: Position
    head: bytes
    events: int
    seconds: float

    def line(self) -> str:
        rate = self.events / self.seconds if self.seconds else 0.0
        return (
            f"projection {self.name}: {self.events:,} events up to entry "
            f"{self.position.sequence:,} in {self.seconds:.1f} s, {rate:,.0f} events/s"
        )

    def json(self) -> dict[str, Any]:
        return {
            "projection": self.name,
            "sequence": self.position.sequence,
            "head": self.head.hex(),
            "events": self.events,
            "seconds": round(self.seconds, 3),
        }


async def rebuild_projection(
    settings: ServiceSettings,
    name: str,
    log: Log,
    accepted: Mapping[int, bytes],
    progress: Callable[[int, int, int], None],
) -> Rebuilt:
    """Rebuild one up to the end that the log has now. Raises LogUnavailable, LogBroken."""
    began = time.perf_counter()
    last = (await log.info(wait_s=5.0)).last_sequence
    projector = Projector(
        PROJECTIONS[name](),
        projection_url(settings, name),
        events_of(log, event_types(), accepted),
    )
    try:
        await projector.start(rebuild=True)
        wanted = Position(SEGMENT, last, END_OF_ENTRY)
        while not await projector.reached(wanted, LOOK_EVERY_S):
            if projector.error is not None:
                raise projector.error
            progress(projector.position.sequence, last, projector.events)
            await asyncio.sleep(0)
        return Rebuilt(
            name,
            projector.position,
            projector.head,
            projector.events,
            time.perf_counter() - began,
        )
    finally:
        await projector.close()
