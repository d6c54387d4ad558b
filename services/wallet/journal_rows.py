"""The journal as rows: entries, their postings with running balances, and the ledger's accounts.

Every posting keeps what its account has afterwards, so that a balance at any position of the log is
one look into an index, however long the journal is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.databases import KeyInteger, position_key
from services.kernel.event import Event
from services.kernel.row_changes import Changes
from services.wallet.domain.journal import Entry, JournalFold, SettledKey, Settlement
from services.wallet.domain.postings import Kind

METADATA = MetaData()

ENTRIES = Table(
    "journal_entries",
    METADATA,
    Column("position", KeyInteger, primary_key=True, autoincrement=False),
    # Log time, microseconds since 1970 UTC; it never falls.
    Column("time_us", BigInteger, nullable=False),
    # As wallet.v1.EntryKind.
    Column("kind", SmallInteger, nullable=False),
    Column("partner", Text, nullable=False),
    Column("account_id", Text, nullable=False),
    Column("currency_code", Text, nullable=False),
    # What it moves; see services.wallet.domain.journal.Entry.
    Column("amount_minor", BigInteger, nullable=False),
    # What the account may stake or withdraw more afterwards.
    Column("cash_minor", BigInteger, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("round_id", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("bets", Integer, nullable=False),
    # Separated by spaces.
    Column("bet_ids", Text, nullable=False),
    Column("rule_set_hash", LargeBinary, nullable=False),
    Column("cause", KeyInteger, nullable=False),
    Column("event_type", Text, nullable=False),
    Index("entries_by_account", "partner", "account_id", "position"),
    Index("entries_by_round", "round_id", "position"),
    Index("entries_by_time", "time_us"),
)
"""One row a journal entry; its id is its position."""

POSTINGS = Table(
    "postings",
    METADATA,
    Column("position", KeyInteger, primary_key=True, autoincrement=False),
    Column("leg", SmallInteger, primary_key=True, autoincrement=False),
    Column("ledger", Integer, nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    # Of the ledger's account, after this posting.
    Column("balance_minor", BigInteger, nullable=False),
    Index("postings_by_ledger", "ledger", "position", "leg"),
    sqlite_with_rowid=False,  # The key is the table: one tree less to write.
)
"""One row a leg. Those of a position sum to zero."""

LEDGERS = Table(
    "ledgers",
    METADATA,
    # Counted in the order of their first postings.
    Column("ledger", Integer, primary_key=True, autoincrement=False),
    # As wallet.v1.LedgerKind.
    Column("kind", SmallInteger, nullable=False),
    Column("partner", Text, nullable=False),
    # Empty where it is a partner's.
    Column("account_id", Text, nullable=False),
    Column("currency_code", Text, nullable=False),
    # Where its first posting stands.
    Column("opened", KeyInteger, nullable=False),
    Column("balance_minor", BigInteger, nullable=False),
    Index("ledgers_by_owner", "partner", "account_id", "kind", "currency_code", unique=True),
)
"""One row an account of the ledger, as it stands."""

RULES_IN_FORCE = Table(
    "rules_in_force",
    METADATA,
    # `table` or `round`.
    Column("what", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("rule_set_hash", LargeBinary, nullable=False),
)
"""By which rules a table plays, and each running round."""

UNPAID = Table(
    "unpaid_settlements",
    METADATA,
    Column("round_id", Text, primary_key=True),
    Column("partner", Text, primary_key=True),
    Column("account_id", Text, primary_key=True),
    Column("bet_ids", Text, nullable=False),
    Column("rule_set_hash", LargeBinary, nullable=False),
)
"""What payouts that are still to come will be for."""

ORDERS = Table(
    "unconfirmed_orders",
    METADATA,
    Column("transaction_id", Text, primary_key=True),
    Column("bet_ids", Text, nullable=False),
    Column("rule_set_hash", LargeBinary, nullable=False),
)
"""What partners' confirmations that are still to come will be for."""

LEDGER_KINDS: Mapping[Kind, int] = {
    Kind.CASH: ledgers.LEDGER_KIND_CASH,
    Kind.RESERVED: ledgers.LEDGER_KIND_RESERVED,
    Kind.HOUSE: ledgers.LEDGER_KIND_HOUSE,
    Kind.COMMISSION: ledgers.LEDGER_KIND_COMMISSION,
    Kind.EXTERNAL: ledgers.LEDGER_KIND_EXTERNAL,
    Kind.RECEIVABLE: ledgers.LEDGER_KIND_RECEIVABLE,
    Kind.CORRECTIONS: ledgers.LEDGER_KIND_CORRECTIONS,
    Kind.DUE: ledgers.LEDGER_KIND_DUE,
    Kind.WRITTEN_OFF: ledgers.LEDGER_KIND_WRITTEN_OFF,
}
KINDS_BACK: Mapping[int, Kind] = {number: kind for kind, number in LEDGER_KINDS.items()}

ROWS_AT_ONCE = 500
"""Rows that are taken before the event loop gets its turn: about a millisecond."""
_LedgerKey = tuple[Kind, str, str, str]
"""(kind, partner, account, currency), as a posting has them."""


class JournalRows(JournalFold):
    """Folds a log into the tables above. It keeps in memory every account of the ledger with its
    balance, some 300 bytes each, as the wallet's core does."""

    def __init__(self) -> None:
        super().__init__()
        self._ledgers: dict[_LedgerKey, list[int]] = {}
        """By account of the ledger: its number, and its balance."""
        self._moved: dict[int, list[int]] = {}
        """By number: the accounts that moved, as above."""
        self._changes = Changes()

    async def load(self, connection: AsyncConnection) -> None:
        """Forget what is in memory and take it from the tables."""
        self._moved = {}
        self._ledgers = {}
        # A part at a time: a replica that takes over has a million of them, and takes bets.
        accounts = await connection.stream(select(LEDGERS))
        async for rows in accounts.partitions(ROWS_AT_ONCE):
            for row in rows:
                name = (KINDS_BACK[row.kind], row.partner, row.account_id, row.currency_code)
                self._ledgers[name] = [row.ledger, row.balance_minor]
            await asyncio.sleep(0)
        self.tables, self.rounds = {}, {}
        for row in await connection.execute(select(RULES_IN_FORCE)):
            hashes = self.tables if row.what == "table" else self.rounds
            hashes[row.id] = bytes(row.rule_set_hash)
        self.settled = {
            (row.round_id, row.partner, row.account_id): Settlement(
                tuple(row.bet_ids.split()), bytes(row.rule_set_hash)
            )
            for row in await connection.execute(select(UNPAID))
        }
        self.orders = {
            row.transaction_id: Settlement(tuple(row.bet_ids.split()), bytes(row.rule_set_hash))
            for row in await connection.execute(select(ORDERS))
        }

    def apply(self, event: Event, changes: Changes) -> None:
        """Fold one event into row changes; balances are written by `flush`."""
        self._changes = changes
        entry = self.see(event)
        if entry is not None:
            self._post(entry, changes)

    def flush(self, changes: Changes) -> None:
        """Write the balances that moved since it was called last: a house moves with every payout,
        and its row is written once."""
        ledgers = changes[LEDGERS]
        for ledger, found in self._moved.items():
            ledgers.update((ledger,), {"balance_minor": found[1]})
        self._moved.clear()

    def _post(self, entry: Entry, changes: Changes) -> None:
        key = position_key(entry.position)
        cash_minor = 0
        postings = changes[POSTINGS]
        for leg, posting in enumerate(entry.legs):
            kind, partner, account_id, currency_code, minor = posting
            if kind is Kind.CASH:
                cash_minor += minor
            name = (kind, partner, account_id, currency_code)
            found = self._ledgers.get(name)
            if found is None:
                found = self._ledgers[name] = [len(self._ledgers) + 1, minor]
                changes[LEDGERS].insert(
                    (found[0],),
                    {
                        "ledger": found[0],
                        "kind": LEDGER_KINDS[kind],
                        "partner": partner,
                        "account_id": account_id,
                        "currency_code": currency_code,
                        "opened": key,
                        "balance_minor": minor,
                    },
                )
            else:
                found[1] += minor
            self._moved[found[0]] = found
            postings.append((key, leg, found[0], minor, found[1]))
        changes[ENTRIES].append(
            (
                key,
                entry.time_us,
                int(entry.kind),
                entry.partner,
                entry.account_id,
                entry.currency_code,
                entry.amount_minor,
                cash_minor,
                entry.table_id,
                entry.round_id,
                entry.request_id,
                len(entry.bet_ids),
                " ".join(entry.bet_ids),
                entry.rule_set_hash,
                position_key(entry.cause),
                entry.event_type,
            )
        )

    # ---- what the fold remembers ---------------------------------------------------------------

    def govern(self, body: tables.TableOpened) -> None:
        """See JournalFold."""
        super().govern(body)
        self._keep("table", body.spec.table_id, self.tables[body.spec.table_id])

    def opened(self, body: tables.RoundOpened) -> None:
        """See JournalFold."""
        super().opened(body)
        self._keep("round", body.round_id, self.rounds[body.round_id])

    def closed(self, body: tables.RoundClosed) -> None:
        """See JournalFold."""
        super().closed(body)
        self._changes[RULES_IN_FORCE].delete(("round", body.round_id))

    def settle(self, body: settlements.BetsSettled) -> None:
        """See JournalFold."""
        key = (body.round_id, body.partner_id, body.account_id)
        # Most are paid within the same batch: a row that is inserted and deleted is never written.
        known = key in self.settled
        super().settle(body)
        settlement = self.settled[key]
        row = {
            "round_id": body.round_id,
            "partner": body.partner_id,
            "account_id": body.account_id,
            "bet_ids": " ".join(settlement.bet_ids),
            "rule_set_hash": settlement.rule_set_hash,
        }
        if known:
            self._changes[UNPAID].save(key, row)
        else:
            self._changes[UNPAID].insert(key, row)

    def paid(self, key: SettledKey) -> Settlement | None:
        """See JournalFold."""
        self._changes[UNPAID].delete(key)
        return super().paid(key)

    def order(self, body: seamless.CreditOrdered | seamless.RollbackOrdered) -> None:
        """See JournalFold."""
        super().order(body)
        bet_ids, rule_set_hash = self.orders[body.transaction_id]
        self._changes[ORDERS].save(
            (body.transaction_id,),
            {
                "transaction_id": body.transaction_id,
                "bet_ids": " ".join(bet_ids),
                "rule_set_hash": rule_set_hash,
            },
        )

    def done(self, transaction_id: str) -> Settlement | None:
        """See JournalFold."""
        self._changes[ORDERS].delete((transaction_id,))
        return super().done(transaction_id)

    def _keep(self, what: str, of: str, rule_set_hash: bytes) -> None:
        row = {"what": what, "id": of, "rule_set_hash": rule_set_hash}
        self._changes[RULES_IN_FORCE].save((what, of), row)
