"""The seats of a round of blackjack, and whose turn it is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column; rounds so far had no seats."""
    op.add_column("rounds", sa.Column("seats", sa.LargeBinary, nullable=True))
