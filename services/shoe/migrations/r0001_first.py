"""Consumables, what was done to them, and requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from services.kernel.first_tables import KEY, create_positions, create_requests

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "consumables",
        sa.Column("consumable_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("decks", sa.SmallInteger(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("shoe_id", sa.Text(), nullable=False),
        sa.Column("remark", sa.Text(), nullable=False),
        sa.Column("changed", KEY, nullable=False),
        sa.PrimaryKeyConstraint("consumable_id"),
    )
    op.create_index("consumables_by_table", "consumables", ["table_id", "consumable_id"])
    op.create_table(
        "movements",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("consumable_id", sa.Text(), nullable=False),
        sa.Column("movement", sa.SmallInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("shoe_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_index("movements_by_consumable", "movements", ["consumable_id", "position"])
    create_positions()
    create_requests()
