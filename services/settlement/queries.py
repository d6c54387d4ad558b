"""What settlement's shell asks of its projection. `services.settlement.projection` does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sabot.settlement.v1.events_pb2 import BetsSettled
from services.kernel.event import Position


class SettlementQueries(Protocol):
    """Reads of the projection, each as it stands when it is asked."""

    @property
    def position(self) -> Position:
        """Everything up to here is in the projection."""
        ...

    async def reached(self, position: Position, wait_s: float) -> bool:
        """Wait until everything up to `position` is in; whether it was, within `wait_s` seconds."""
        ...

    async def settlement(
        self, round_id: str, partner: str | None, limit: int, after: tuple[str, str] | None
    ) -> Sequence[BetsSettled] | None:
        """How accounts were settled in a round, by (partner, account), of one partner only where
        named, and only those after the pair `after`. None where no such round was settled."""
        ...
