"""The last changes of a table, which all its watchers read at their own pace."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from sabot.partner.v1 import partner_service_pb2 as partners
from services.kernel.event import Position

RING_CHANGES = 256
"""Changes kept of a table: a dozen rounds, so some minutes. Who is away longer starts again."""


@dataclass(slots=True)
class Ring:
    """See the module."""

    since: Position
    """Everything after this is in `changes`."""
    changes: deque[tuple[Position, partners.WatchTableResponse]] = field(default_factory=deque)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def push(self, position: Position, change: partners.WatchTableResponse) -> None:
        """Something changed."""
        self.changes.append((position, change))
        if len(self.changes) > RING_CHANGES:
            self.since, _ = self.changes.popleft()
        self.stir()

    def restart(self, position: Position) -> None:
        """Something changed that cannot be told alone."""
        self.changes.clear()
        self.since = position
        self.stir()

    def stir(self) -> None:
        """Wake all who wait."""
        self.wake.set()
        self.wake = asyncio.Event()
