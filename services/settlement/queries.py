"""What settlement's shell asks of its projection. `services.settlement.projection` does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sabot.settlement.v1.correction_events_pb2 import BetsCorrected
from sabot.settlement.v1.events_pb2 import BetsSettled
from services.kernel.event import Position


class Fact(NamedTuple):
    """A fact of a closed round, as the log has it."""

    position: Position
    type: str
    body: bytes


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

    async def corrections(
        self, round_id: str, accounts: Sequence[tuple[str, str]]
    ) -> Sequence[BetsCorrected]:
        """How the settlement of these accounts, each (partner, account), was corrected in a round,
        in the log's order."""
        ...

    async def facts(self, round_id: str) -> Sequence[Fact]:
        """All facts of a round that was settled, in the log's order; empty where it was not."""
        ...
