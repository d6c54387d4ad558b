"""The facts of closed rounds, for corrections.

Those of earlier rounds are not among what was kept: the projection begins anew from the log.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from services.kernel.first_tables import KEY

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables, and go back to the beginning of the log."""
    for table in ("settlements", "settled_rounds", "projection_positions"):
        op.execute(sa.delete(sa.table(table)))
    op.create_table(
        "round_facts",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_index("facts_by_round", "round_facts", ["round_id", "position"])
    op.create_table(
        "table_rules",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_index("rules_by_table", "table_rules", ["table_id", "revision"])
