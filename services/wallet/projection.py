"""The wallet's projection: accounts, the journal, and what became of requests about accounts."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message
from sqlalchemy import Column, SmallInteger, Table, Text
from sqlalchemy.ext.asyncio import AsyncConnection

from sabot.limits.v1 import events_pb2 as limits
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1 import wallet_service_pb2 as wallet_service
from services.kernel.databases import KeyInteger, position_key
from services.kernel.event import Event
from services.kernel.projection_store import positions_table
from services.kernel.request_rows import RequestKinds, RequestRows, request_tables
from services.kernel.row_changes import Changes
from services.wallet.journal_rows import METADATA, JournalRows
from services.wallet.movement_rows import fold_movement

REQUEST_KINDS = RequestKinds(
    scopes={
        wallets.OpenAccount: "",
        wallets.CloseAccount: "",
        wallets.BlockAccount: "",
        wallets.UnblockAccount: "",
        wallets.Deposit: "",
        wallets.Withdraw: "",
        corrections.SettleReceivable: "",
        corrections.SetShortfallPolicy: "",
        seamless.SetPartnerProfile: "",
        seamless.ResolveMovement: "",
    },
    onward={
        wallets.DepositRequested: "limits",
        limits.DepositApproved: "wallet",
        limits.DepositRefused: "wallet",
    },
    refusals=frozenset((wallets.AccountRequestDeclined, seamless.SeamlessOrderRejected)),
)

positions_table(METADATA)
REQUESTS = request_tables(METADATA)

ACCOUNTS = Table(
    "accounts",
    METADATA,
    Column("partner", Text, primary_key=True),
    Column("account_id", Text, primary_key=True),
    Column("currency_code", Text, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("opened", KeyInteger, nullable=False),
    # When `state` changed last.
    Column("changed", KeyInteger, nullable=False),
)
"""One row an account; `state` as wallet.v1.AccountState. What it has stands in the ledger."""

_STANDINGS: dict[type[Message], wallet_service.AccountState.ValueType] = {
    wallets.AccountClosed: wallet_service.ACCOUNT_STATE_CLOSED,
    wallets.AccountBlocked: wallet_service.ACCOUNT_STATE_BLOCKED,
    wallets.AccountUnblocked: wallet_service.ACCOUNT_STATE_OPEN,
}


class WalletProjection:
    """Folds the cell's log into accounts, journal, partners' movements and requests."""

    name = "wallet"
    metadata = METADATA
    migrations = "services.wallet.migrations"

    def __init__(self) -> None:
        self._requests = RequestRows(REQUESTS, REQUEST_KINDS)
        self._journal = JournalRows()

    async def load(self, connection: AsyncConnection) -> None:
        """Take the pending requests, and what the journal remembers, from their tables."""
        await self._requests.load(connection)
        await self._journal.load(connection)

    def apply(self, events: Sequence[Event], changes: Changes) -> None:
        """Fold events into row changes."""
        requests, journal = self._requests, self._journal
        for event in events:
            if event.is_input:
                requests.asked(event, changes)
                continue
            requests.answered(event, changes)
            journal.apply(event, changes)
            fold_movement(event, changes)
            body = event.body
            if isinstance(body, wallets.AccountOpened):
                _opened(event, body, changes)
            elif isinstance(
                body, wallets.AccountClosed | wallets.AccountBlocked | wallets.AccountUnblocked
            ):
                values = {
                    "state": _STANDINGS[type(body)],
                    "changed": position_key(event.position),
                }
                changes[ACCOUNTS].update((event.partner, body.account_id), values)
        journal.flush(changes)


def _opened(event: Event, body: wallets.AccountOpened, changes: Changes) -> None:
    key = position_key(event.position)
    changes[ACCOUNTS].save(
        (event.partner, body.account_id),
        {
            "partner": event.partner,
            "account_id": body.account_id,
            "currency_code": body.currency_code,
            "state": wallet_service.ACCOUNT_STATE_OPEN,
            "opened": key,
            "changed": key,
        },
    )
