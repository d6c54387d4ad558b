"""Where the ace stands in games that say so: the roads of their shoes depend on it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add a table and a column; no round so far was of such a game."""
    op.create_table(
        "table_aces",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("ace", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("table_id"),
    )
    op.add_column("rounds", sa.Column("ace", sa.SmallInteger(), nullable=False, server_default="0"))
