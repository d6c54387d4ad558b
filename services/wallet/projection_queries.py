"""What the wallet's projection answers: `services.wallet.queries`, by SQL."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message
from sqlalchemy import RowMapping

from sabot.limits.v1.events_pb2 import DepositApproved, DepositRefused
from sabot.log.v1.events_pb2 import InputFailed
from sabot.partner.v1.partner_service_pb2 import RequestOutcome
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.databases import position_of_key
from services.kernel.event import Position
from services.kernel.projection_reads import ProjectionReads
from services.kernel.request_rows import oneof_fields
from services.wallet.projection import REQUESTS

_OUTCOMES = oneof_fields(RequestOutcome, "outcome")
_FAILED = str(InputFailed.DESCRIPTOR.full_name)
_FAILING: dict[str, type[Message]] = {
    str(body.DESCRIPTOR.full_name): body
    for body in (
        wallets.OpenAccount,
        wallets.CloseAccount,
        wallets.BlockAccount,
        wallets.UnblockAccount,
        wallets.Deposit,
        wallets.Withdraw,
        wallets.DepositRequested,
        DepositApproved,
        DepositRefused,
    )
}


class SqlWalletQueries(ProjectionReads):
    """Reads of the projection. Every method may raise ProjectionUnavailable."""

    async def request(self, scope: str, request_id: str) -> tuple[Position, RequestOutcome] | None:
        """Where a request about an account stands and what became of it. `scope`: who asked, as in
        the event's `actor`."""
        rows = await self._rows(REQUESTS.by_id(scope, "", request_id))
        return (position_of_key(rows[0]["position"]), _outcome(rows[0])) if rows else None

    async def outcome_at(self, position: Position) -> RequestOutcome | None:
        """What became of the input at this position: `pending` while nothing has; None where no
        request about an account stands there."""
        rows = await self._rows(REQUESTS.by_position(position))
        return _outcome(rows[0]) if rows else None


def _outcome(row: RowMapping) -> RequestOutcome:
    name = row["outcome_type"]
    if name is None:
        return RequestOutcome(pending=True)
    if name == _FAILED:
        failed = InputFailed.FromString(row["outcome_body"])
        failing = _FAILING.get(failed.input_type)
        if failing is None:
            return RequestOutcome()  # An operator's order: nothing is set.
        body: Any = failing.FromString(failed.input_body)
        return RequestOutcome(
            account_declined=wallets.AccountRequestDeclined(
                request_id=row["request_id"],
                account_id=body.account_id,
                decline=wallets.DECLINE_FAILED,
            )
        )
    outcome = RequestOutcome()
    field = _OUTCOMES.get(name)
    if field is not None:
        message = getattr(outcome, field)
        message.MergeFromString(row["outcome_body"])
        message.SetInParent()
    return outcome
