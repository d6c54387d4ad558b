"""The wallet's projection: accounts, the journal, and what became of requests about accounts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from google.protobuf.message import Message
from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    MetaData,
    SmallInteger,
    Table,
    Text,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from sabot.limits.v1 import events_pb2 as limits
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import wallet_service_pb2 as wallet_service
from services.kernel.databases import KeyInteger, position_key
from services.kernel.event import Event
from services.kernel.projection_store import positions_table
from services.kernel.request_rows import RequestKinds, RequestRows, request_tables
from services.kernel.row_changes import Changes, Key, Row
from services.wallet.domain.postings import MOVES, Kind, Posting, postings

REQUEST_KINDS = RequestKinds(
    scopes={
        wallets.OpenAccount: "",
        wallets.CloseAccount: "",
        wallets.BlockAccount: "",
        wallets.UnblockAccount: "",
        wallets.Deposit: "",
        wallets.Withdraw: "",
    },
    onward={wallets.DepositRequested: "limits", limits.DepositApproved: "wallet"},
    refusals=frozenset((wallets.AccountRequestDeclined,)),
)

METADATA = MetaData()
positions_table(METADATA)
REQUESTS = request_tables(METADATA)

ACCOUNTS = Table(
    "accounts",
    METADATA,
    Column("partner", Text, primary_key=True),
    Column("account_id", Text, primary_key=True),
    Column("currency_code", Text, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("available_minor", BigInteger, nullable=False),
    Column("reserved_minor", BigInteger, nullable=False),
    Column("changed", KeyInteger, nullable=False),
)
"""One row an account; `state` as wallet.v1.AccountState."""

JOURNAL = Table(
    "journal",
    METADATA,
    Column("position", KeyInteger, primary_key=True, autoincrement=False),
    Column("leg", SmallInteger, primary_key=True, autoincrement=False),
    Column("time_us", BigInteger, nullable=False),
    Column("partner", Text, nullable=False),
    # Of the entry, on its house and commission legs too.
    Column("account_id", Text, nullable=False),
    Column("ledger_account", Text, nullable=False),
    Column("currency_code", Text, nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("round_id", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    # Separated by spaces; empty where the event names none.
    Column("bet_ids", Text, nullable=False),
    Column("cause", KeyInteger),
    Index("journal_by_account", "partner", "account_id", "position", "leg"),
    Index("journal_by_round", "round_id", "position", "leg"),
)
"""One row a posting. The rows of a position are one entry and sum to zero."""

_STANDINGS: dict[type[Message], wallet_service.AccountState.ValueType] = {
    wallets.AccountClosed: wallet_service.ACCOUNT_STATE_CLOSED,
    wallets.AccountBlocked: wallet_service.ACCOUNT_STATE_BLOCKED,
    wallets.AccountUnblocked: wallet_service.ACCOUNT_STATE_OPEN,
}


class WalletProjection:
    """Folds the cell's log into accounts, journal and requests."""

    name = "wallet"
    metadata = METADATA
    migrations = "services.wallet.migrations"

    def __init__(self) -> None:
        self._requests = RequestRows(REQUESTS, REQUEST_KINDS)

    async def load(self, connection: AsyncConnection) -> None:
        """Take the pending requests from their table."""
        await self._requests.load(connection)

    def apply(self, events: Sequence[Event], changes: Changes) -> None:
        """Fold events into row changes."""
        requests = self._requests
        for event in events:
            if event.is_input:
                requests.asked(event, changes)
                continue
            link = requests.answered(event, changes)
            body_type = type(event.body)
            partner = link.partner if link is not None else event.partner
            if body_type in MOVES:
                self._moved(event, partner, changes)
            elif isinstance(event.body, wallets.AccountOpened):
                self._opened(event, event.body, partner, changes)
            elif isinstance(
                event.body,
                wallets.AccountClosed | wallets.AccountBlocked | wallets.AccountUnblocked,
            ):
                values = {
                    "state": _STANDINGS[body_type],
                    "changed": position_key(event.position),
                }
                changes[ACCOUNTS].update((partner, event.body.account_id), values)

    def _opened(
        self, event: Event, body: wallets.AccountOpened, partner: str, changes: Changes
    ) -> None:
        changes[ACCOUNTS].save(
            (partner, body.account_id),
            {
                "partner": partner,
                "account_id": body.account_id,
                "currency_code": body.currency_code,
                "state": wallet_service.ACCOUNT_STATE_OPEN,
                "available_minor": 0,
                "reserved_minor": 0,
                "changed": position_key(event.position),
            },
        )

    def _moved(self, event: Event, partner: str, changes: Changes) -> None:
        """Write a journal entry, and move what accounts have by exactly its postings."""
        legs = postings(event.body, partner)
        if not legs:
            return
        key = position_key(event.position)
        whose, what = _entry(event)
        journal, accounts = changes[JOURNAL], changes[ACCOUNTS]
        for leg, posting in enumerate(legs):
            kind, owner, account_id, currency_code, minor = posting
            ledger_account = _ledger_account(kind, owner, account_id, currency_code)
            journal.append(
                (key, leg, event.time_us, owner, whose, ledger_account, currency_code, minor, *what)
            )
            amounts = _amounts(posting)
            if amounts is not None:
                accounts.add((owner, account_id), amounts, {"changed": key})


@lru_cache(maxsize=65_536)
def _ledger_account(kind: Kind, partner: str, account_id: str, currency_code: str) -> str:
    return Posting(kind, partner, account_id, currency_code, 0).ledger_account


def _amounts(posting: Posting) -> Row | None:
    """What a posting adds to an account; None where it is on a partner's ledger."""
    if posting.kind is Kind.CASH:
        return {"available_minor": posting.minor, "reserved_minor": 0}
    if posting.kind is Kind.RESERVED:
        return {"available_minor": 0, "reserved_minor": posting.minor}
    return None


def _entry(event: Event) -> tuple[str, Key]:
    """What all legs of a journal entry say alike: the account, and the last columns."""
    body: Any = event.body  # one of MOVES
    return body.account_id, (
        body.DESCRIPTOR.full_name,
        getattr(body, "table_id", ""),
        getattr(body, "round_id", ""),
        getattr(body, "request_id", ""),
        " ".join([bet.bet_id for bet in getattr(body, "bets", ())]),
        position_key(event.cause) if event.cause is not None else None,
    )
