"""`sabot rounds`: every round of a log, and how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sabot.table.v1 import events_pb2 as tables
from services.events import event_types
from services.kernel.event import Event, Position
from services.kernel.log import Log
from services.kernel.reader import LogReader
from services.kernel.recovery import entries_until

STATES = ("betting", "dealing", "paying", "returning", "paid", "returned")
"""In the order in which a round may take them; it ends paid or returned."""


@dataclass(slots=True)
class RoundLine:
    """One round."""

    round_id: str
    table_id: str
    position: Position
    """Of its `RoundOpened`."""
    state: str = "betting"

    def json(self) -> dict[str, str]:
        return {
            "round": self.round_id,
            "table": self.table_id,
            "position": str(self.position),
            "state": self.state,
        }


async def list_rounds(
    log: Log,
    accepted: Mapping[int, bytes] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> list[RoundLine]:
    """All rounds in the order in which they opened. Raises LogBroken, LogUnavailable."""
    last = (await log.info(wait_s=5.0)).last_sequence
    reader = LogReader(log.cell, event_types(), accepted=accepted)
    found: dict[tuple[str, str], RoundLine] = {}
    events = 0
    async for entries in entries_until(log, reader, last):
        for entry in entries:
            events += len(entry.events)
            if entry.service == "table" and not entry.is_input:
                for event in entry.events:
                    _take(found, event)
        if progress is not None:
            progress(reader.state.sequence, last, events)
        await asyncio.sleep(0)
    return list(found.values())


def _take(found: dict[tuple[str, str], RoundLine], event: Event) -> None:
    body: Any = event.body
    match body:
        case tables.RoundOpened():
            key = (body.table_id, body.round_id)
            found[key] = RoundLine(body.round_id, body.table_id, event.position)
            return
        case tables.BettingClosed():
            state = "dealing"
        case tables.ResultAccepted():
            state = "paying"
        case tables.RoundVoided():
            state = "returning"
        case tables.RoundClosed():
            state = "paid" if body.end == tables.ROUND_END_PAID else "returned"
        case _:
            return
    found[body.table_id, body.round_id].state = state


def table_text(rounds: list[RoundLine]) -> str:
    """The rounds as columns."""
    rows = [("round", "table", "position", "state")]
    rows += [(one.round_id, one.table_id, str(one.position), one.state) for one in rounds]
    widths = [max(len(row[place]) for row in rows) for place in range(4)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
