"""What the shoe's shell asks of its projection: consumables, and what became of what was told.

`services.shoe.projection` does it. Nothing here is on the path of a write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sabot.shoe.v1.floor_service_pb2 import Consumable, ConsumableMovement, FloorOutcome
from services.kernel.event import Position


class FloorQueries(Protocol):
    """Reads of the projection, each as it stands when it is asked."""

    @property
    def position(self) -> Position:
        """Everything up to here is in the projection."""
        ...

    async def reached(self, position: Position, wait_s: float) -> bool:
        """Wait until everything up to `position` is in; whether it was, within `wait_s` seconds."""
        ...

    async def consumables(
        self, kind: int, table_id: str, limit: int, after: str, *, destroyed: bool
    ) -> Sequence[Consumable]:
        """Consumables by id, only those after the id `after`: of one kind (0: of all), in use at
        one table (empty: wherever they are), destroyed ones only where asked for."""
        ...

    async def movements(
        self, consumable_id: str, limit: int, after: Position | None
    ) -> Sequence[ConsumableMovement] | None:
        """What was done to a consumable, oldest first, only what stands after a position. None:
        there is no such consumable."""
        ...

    async def request(self, actor: str, request_id: str) -> tuple[Position, FloorOutcome] | None:
        """Where a request stands in the log and what became of it; None where there is none."""
        ...

    async def outcome_at(self, position: Position) -> FloorOutcome | None:
        """What became of the input at this position: `pending` while nothing has; None where no
        request stands there."""
        ...
