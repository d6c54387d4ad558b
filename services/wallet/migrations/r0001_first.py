"""Accounts, the journal and requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from services.kernel.first_tables import KEY, create_positions, create_requests

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "accounts",
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("currency_code", sa.Text(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("available_minor", sa.BigInteger(), nullable=False),
        sa.Column("reserved_minor", sa.BigInteger(), nullable=False),
        sa.Column("changed", KEY, nullable=False),
        sa.PrimaryKeyConstraint("partner", "account_id"),
    )
    op.create_table(
        "journal",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("leg", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("ledger_account", sa.Text(), nullable=False),
        sa.Column("currency_code", sa.Text(), nullable=False),
        sa.Column("amount_minor", sa.BigInteger(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("bet_ids", sa.Text(), nullable=False),
        sa.Column("cause", KEY, nullable=True),
        sa.PrimaryKeyConstraint("position", "leg"),
    )
    op.create_index("journal_by_account", "journal", ["partner", "account_id", "position", "leg"])
    op.create_index("journal_by_round", "journal", ["round_id", "position", "leg"])
    create_positions()
    create_requests()
