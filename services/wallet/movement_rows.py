"""What partners' own wallets were called for, as rows: the other half of what two sides compare.

A debit counts once its stakes are reserved, or what a correction took is settled; a credit once the
partner has confirmed it. A debit that is rolled back counts for nothing, and neither does its
rollback: whether it was ever carried out changes nothing, and the two sides may well know different
things about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message
from sqlalchemy import BigInteger, Column, Index, SmallInteger, Table, Text

from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.databases import KeyInteger, position_key
from services.kernel.event import Event
from services.kernel.row_changes import Changes
from services.wallet.domain.digests import TransactionKind
from services.wallet.journal_rows import METADATA

ORDERED, DONE, UNDONE = 0, 1, 2
"""States: not known to be carried out; carried out; a debit that was rolled back."""

MOVEMENTS = Table(
    "partner_movements",
    METADATA,
    Column("transaction_id", Text, primary_key=True),
    Column("partner", Text, nullable=False),
    Column("account_id", Text, nullable=False),
    Column("currency_code", Text, nullable=False),
    # What the account has more afterwards.
    Column("amount_minor", BigInteger, nullable=False),
    # As reconciliation.v1.TransactionKind.
    Column("kind", SmallInteger, nullable=False),
    # Log time at the order's cause, as the call tells it: by it the movement belongs to a period.
    Column("time_us", BigInteger, nullable=False),
    Column("ordered", KeyInteger, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Index("movements_by_time", "partner", "currency_code", "time_us"),
)
"""One row a debit or credit of a partner's wallet."""


def fold_movement(event: Event, changes: Changes) -> None:
    """Fold one answer into row changes."""
    fold = _FOLDS.get(type(event.body))
    if fold is not None:
        fold(event, event.body, changes)


def _debit(event: Event, body: seamless.DebitOrdered, changes: Changes) -> None:
    _ordered(event, body, TransactionKind.DEBIT, -body.amount_minor, changes)


def _credit(event: Event, body: seamless.CreditOrdered, changes: Changes) -> None:
    _ordered(event, body, TransactionKind.CREDIT, body.amount_minor, changes)


def _ordered(
    event: Event,
    body: seamless.DebitOrdered | seamless.CreditOrdered,
    kind: TransactionKind,
    amount_minor: int,
    changes: Changes,
) -> None:
    changes[MOVEMENTS].save(
        (body.transaction_id,),
        {
            "transaction_id": body.transaction_id,
            "partner": body.partner_id,
            "account_id": body.account_id,
            "currency_code": body.currency_code,
            "amount_minor": amount_minor,
            "kind": int(kind),
            "time_us": event.caused_us or event.time_us,
            "ordered": position_key(event.position),
            "state": ORDERED,
        },
    )


def _reserved(event: Event, body: wallets.StakeReserved, changes: Changes) -> None:
    del event
    for transaction_id in body.transaction_ids:
        changes[MOVEMENTS].update((transaction_id,), {"state": DONE})


def _rolled_back(event: Event, body: seamless.RollbackOrdered, changes: Changes) -> None:
    del event
    changes[MOVEMENTS].update((body.debit_transaction_id,), {"state": UNDONE})


def _confirmed(event: Event, body: seamless.MovementConfirmed, changes: Changes) -> None:
    del event  # A rollback has no row of its own.
    changes[MOVEMENTS].update((body.transaction_id,), {"state": DONE})


def _collected(event: Event, body: corrections.ReceivableSettled, changes: Changes) -> None:
    del event
    if body.transaction_id:
        changes[MOVEMENTS].update((body.transaction_id,), {"state": DONE})


_FOLDS: Mapping[type[Message], Callable[[Event, Any, Changes], None]] = {
    wallets.StakeReserved: _reserved,
    seamless.DebitOrdered: _debit,
    seamless.CreditOrdered: _credit,
    seamless.RollbackOrdered: _rolled_back,
    seamless.MovementConfirmed: _confirmed,
    corrections.ReceivableSettled: _collected,
}
