"""What the wallet's projection answers: `services.wallet.queries` and statements, by SQL."""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf.message import Message
from sqlalchemy import RowMapping, func, select, tuple_

from sabot.limits.v1.events_pb2 import DepositApproved
from sabot.log.v1.events_pb2 import InputFailed
from sabot.partner.v1.partner_service_pb2 import RequestOutcome
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.databases import position_key, position_of_key
from services.kernel.event import Position
from services.kernel.projection_reads import ProjectionReads
from services.kernel.request_rows import oneof_fields
from services.wallet.projection import ACCOUNTS, JOURNAL, REQUESTS

MAX_PAGE = 1_000
"""Rows of a page at most: some hundred KiB."""

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
    )
}


class AccountRow(NamedTuple):
    """An account as it stood at its last change."""

    currency_code: str
    state: int
    """wallet.v1.AccountState."""
    available_minor: int
    reserved_minor: int
    changed: Position


class JournalRow(NamedTuple):
    """One posting."""

    position: Position
    leg: int
    """Its place in the journal entry, from 0."""
    time_us: int
    """Log time, microseconds since 1970 UTC."""
    partner: str
    account_id: str
    """The account that the whole entry concerns."""
    ledger_account: str
    """Where this posting goes, such as `cash:acme:a-17:EUR`."""
    currency_code: str
    amount_minor: int
    """Signed minor units."""
    event_type: str
    table_id: str
    round_id: str
    request_id: str
    bet_ids: tuple[str, ...]
    cause: Position | None


class JournalKey(NamedTuple):
    """Where a page of the journal ends."""

    position: Position
    leg: int


class SqlWalletQueries(ProjectionReads):
    """Reads of the projection. Every method may raise ProjectionUnavailable."""

    async def account(self, partner: str, account_id: str) -> AccountRow | None:
        """An account of a partner, or None."""
        row = ACCOUNTS.c
        found = await self._rows(
            select(ACCOUNTS).where(row.partner == partner, row.account_id == account_id)
        )
        if not found:
            return None
        one = found[0]
        return AccountRow(
            one["currency_code"],
            one["state"],
            one["available_minor"],
            one["reserved_minor"],
            position_of_key(one["changed"]),
        )

    async def journal(
        self,
        partner: str | None,
        account_id: str | None,
        round_id: str | None,
        limit: int,
        before: JournalKey | None,
    ) -> list[JournalRow]:
        """Postings, newest first: of one partner (None: of all), of the entries of one account and
        of one round where named; only those older than `before` where given."""
        row = JOURNAL.c
        query = select(JOURNAL).order_by(row.position.desc(), row.leg.desc())
        if partner is not None:
            query = query.where(row.partner == partner)
        if account_id is not None:
            query = query.where(row.account_id == account_id)
        if round_id is not None:
            query = query.where(row.round_id == round_id)
        if before is not None:
            last = tuple_(position_key(before.position), before.leg)
            query = query.where(tuple_(row.position, row.leg) < last)
        return [_journal_row(one) for one in await self._rows(query.limit(min(limit, MAX_PAGE)))]

    async def sums(self) -> dict[str, int]:
        """The trial balance: by currency, what all postings come to. Anything but 0 is a fault."""
        total = func.sum(JOURNAL.c.amount_minor).label("total")
        found = await self._rows(
            select(JOURNAL.c.currency_code, total).group_by(JOURNAL.c.currency_code)
        )
        return {one["currency_code"]: int(one["total"]) for one in found}

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


def _journal_row(row: RowMapping) -> JournalRow:
    cause = row["cause"]
    return JournalRow(
        position_of_key(row["position"]),
        row["leg"],
        row["time_us"],
        row["partner"],
        row["account_id"],
        row["ledger_account"],
        row["currency_code"],
        row["amount_minor"],
        row["event_type"],
        row["table_id"],
        row["round_id"],
        row["request_id"],
        tuple(row["bet_ids"].split()),
        position_of_key(cause) if cause is not None else None,
    )


def _outcome(row: RowMapping) -> RequestOutcome:
    name = row["outcome_type"]
    if name is None:
        return RequestOutcome(pending=True)
    if name == _FAILED:
        failed = InputFailed.FromString(row["outcome_body"])
        body: Any = _FAILING[failed.input_type].FromString(failed.input_body)
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
