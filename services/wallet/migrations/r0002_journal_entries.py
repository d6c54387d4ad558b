"""Journal entries that name bets and rules, postings with running balances, the ledger's accounts.

What the first journal held cannot be completed: the projection begins anew from the log.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from services.kernel.first_tables import KEY

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables anew, and go back to the beginning of the log."""
    op.drop_table("journal")
    op.drop_table("accounts")
    for table in ("request_links", "requests", "projection_positions"):
        op.execute(sa.delete(sa.table(table)))
    op.create_table(
        "accounts",
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("currency_code", sa.Text(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("opened", KEY, nullable=False),
        sa.Column("changed", KEY, nullable=False),
        sa.PrimaryKeyConstraint("partner", "account_id"),
    )
    _create_entries()
    op.create_table(
        "postings",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("leg", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("ledger", sa.Integer(), nullable=False),
        sa.Column("amount_minor", sa.BigInteger(), nullable=False),
        sa.Column("balance_minor", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("position", "leg"),
        sqlite_with_rowid=False,
    )
    op.create_index("postings_by_ledger", "postings", ["ledger", "position", "leg"])
    op.create_table(
        "ledgers",
        sa.Column("ledger", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("currency_code", sa.Text(), nullable=False),
        sa.Column("opened", KEY, nullable=False),
        sa.Column("balance_minor", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("ledger"),
    )
    owner = ["partner", "account_id", "kind", "currency_code"]
    op.create_index("ledgers_by_owner", "ledgers", owner, unique=True)
    op.create_table(
        "rules_in_force",
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("rule_set_hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("what", "id"),
    )
    op.create_table(
        "unpaid_settlements",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("bet_ids", sa.Text(), nullable=False),
        sa.Column("rule_set_hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("round_id", "partner", "account_id"),
    )
    op.create_table(
        "unconfirmed_orders",
        sa.Column("transaction_id", sa.Text(), nullable=False),
        sa.Column("bet_ids", sa.Text(), nullable=False),
        sa.Column("rule_set_hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("transaction_id"),
    )
    op.create_table(
        "partner_movements",
        sa.Column("transaction_id", sa.Text(), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("currency_code", sa.Text(), nullable=False),
        sa.Column("amount_minor", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("ordered", KEY, nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("transaction_id"),
    )
    moved = ["partner", "currency_code", "time_us"]
    op.create_index("movements_by_time", "partner_movements", moved)


def _create_entries() -> None:
    op.create_table(
        "journal_entries",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("currency_code", sa.Text(), nullable=False),
        sa.Column("amount_minor", sa.BigInteger(), nullable=False),
        sa.Column("cash_minor", sa.BigInteger(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("bets", sa.Integer(), nullable=False),
        sa.Column("bet_ids", sa.Text(), nullable=False),
        sa.Column("rule_set_hash", sa.LargeBinary(), nullable=False),
        sa.Column("cause", KEY, nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_index("entries_by_account", "journal_entries", ["partner", "account_id", "position"])
    op.create_index("entries_by_round", "journal_entries", ["round_id", "position"])
    op.create_index("entries_by_time", "journal_entries", ["time_us"])
