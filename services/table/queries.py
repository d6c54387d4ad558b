"""What the table's shell asks of its projection: rounds, bets and what became of requests.

`services.table.projection` does it. Nothing here is on the path of a write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sabot.partner.v1.partner_service_pb2 import PlacedBet, RequestOutcome, Round
from services.kernel.event import Position


class TableQueries(Protocol):
    """Reads of the projection, each as it stands when it is asked."""

    @property
    def position(self) -> Position:
        """Everything up to here is in the projection."""
        ...

    async def reached(self, position: Position, wait_s: float) -> bool:
        """Wait until everything up to `position` is in; whether it was, within `wait_s` seconds."""
        ...

    async def round(self, round_id: str) -> Round | None:
        """A round as everyone may see it, or None."""
        ...

    async def rounds_of_shoe(self, shoe_id: str) -> Sequence[Round]:
        """Every round that was dealt from a shoe, or is being, in order; none: no such shoe."""
        ...

    async def bets(
        self,
        partner: str | None,
        account: str | None,
        round_id: str | None,
        limit: int,
        before_key: str | None,
    ) -> Sequence[tuple[str, PlacedBet]]:
        """Bets with the key that each is paged by, newest first: of one partner (None: of all), of
        one account and of one round where named; only those older than `before_key` where given."""
        ...

    async def bets_after(
        self, partner: str, position: Position, limit: int
    ) -> tuple[Sequence[PlacedBet], Position]:
        """A partner's bets whose present standing was logged after `position`, by that position.

        About `limit` of them, yet never only some of those that one event changed. Also: up to
        where this tells all: the last bet's position where more remain, else how far the projection
        is.
        """
        ...

    async def request(
        self, scope: str, round_id: str, request_id: str
    ) -> tuple[Position, RequestOutcome] | None:
        """Where a request stands in the log and what became of it; None where there is none.

        `scope`: who asked, as in the event's `actor` (`partner:<id>` or `operator:<id>`).
        `round_id`: of bets and withdrawals of bets; empty for every other request, the wallet's
        ones included.
        """
        ...

    async def outcome_at(self, position: Position) -> RequestOutcome | None:
        """What became of the input at this position: `pending` while nothing has; None where no
        request of a partner or operator stands there."""
        ...
