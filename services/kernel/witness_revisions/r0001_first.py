"""How far each service has read the log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from services.kernel.first_tables import KEY

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "witnesses",
        sa.Column("service", sa.String(length=64), nullable=False),
        sa.Column("sequence", KEY, nullable=False),
        sa.Column("head", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("service"),
    )
