"""Settlements and settled rounds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from services.kernel.first_tables import KEY, create_positions

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    create_positions()
    op.create_table(
        "settled_rounds",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("accounts", sa.Integer(), nullable=False),
        sa.Column("bets", sa.Integer(), nullable=False),
        sa.Column("rule_set_hash", sa.LargeBinary(), nullable=False),
        sa.Column("settled", KEY, nullable=False),
        sa.PrimaryKeyConstraint("round_id"),
    )
    op.create_table(
        "settlements",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_index(
        "settlements_by_account", "settlements", ["round_id", "partner", "account_id", "position"]
    )
