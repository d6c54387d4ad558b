"""Accounts, the journal and requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""A log position as one integer."""


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
    op.create_table(
        "projection_positions",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("segment", sa.Integer(), nullable=False),
        sa.Column("sequence", KEY, nullable=False),
        sa.Column("head", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "request_links",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("request", KEY, nullable=False),
        sa.Column("service", sa.String(length=64), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("retry_of", KEY, nullable=True),
        sa.Column("failed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_table(
        "requests",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("input_type", sa.Text(), nullable=False),
        sa.Column("outcome_type", sa.Text(), nullable=True),
        sa.Column("outcome_body", sa.LargeBinary(), nullable=True),
        sa.Column("outcome_position", KEY, nullable=True),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_index("requests_by_id", "requests", ["actor", "scope", "request_id"])
