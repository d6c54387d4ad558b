"""What the wallet's shell asks of its projection: what became of requests about accounts.

`services.wallet.projection` does it. Balances come from the core's own state, not from here.
"""

from __future__ import annotations

from typing import Protocol

from sabot.partner.v1.partner_service_pb2 import RequestOutcome
from services.kernel.event import Position


class WalletQueries(Protocol):
    """Reads of the projection, each as it stands when it is asked."""

    @property
    def position(self) -> Position:
        """Everything up to here is in the projection."""
        ...

    async def reached(self, position: Position, wait_s: float) -> bool:
        """Wait until everything up to `position` is in; whether it was, within `wait_s` seconds."""
        ...

    async def outcome_at(self, position: Position) -> RequestOutcome | None:
        """What became of the input at this position: `pending` while nothing has; None where no
        request about an account stands there."""
        ...
