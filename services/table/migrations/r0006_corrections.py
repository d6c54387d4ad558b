"""Corrections of paid rounds; nothing was corrected so far."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from services.kernel.first_tables import KEY

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the tables, and add the column."""
    op.add_column("bets", sa.Column("correction", sa.LargeBinary(), nullable=True))
    op.create_table(
        "corrections",
        sa.Column("correction_id", sa.Text(), nullable=False),
        sa.Column("proposed", KEY, nullable=False),
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("fault", sa.SmallInteger(), nullable=False),
        sa.Column("proposed_by", sa.Text(), nullable=False),
        sa.Column("approved_by", sa.Text(), nullable=False),
        sa.Column("propose_time_us", sa.BigInteger(), nullable=False),
        sa.Column("accounts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("correction_id"),
    )
    op.create_index("corrections_by_proposal", "corrections", ["proposed"])
    op.create_index("corrections_by_round", "corrections", ["round_id", "proposed"])
    op.create_table(
        "corrected_rounds",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("round_id"),
    )
