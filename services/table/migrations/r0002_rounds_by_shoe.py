"""The rounds of a shoe, for its roads."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the index."""
    op.create_index("rounds_by_shoe", "rounds", ["shoe_id", "opened"])
