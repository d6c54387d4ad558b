"""Where each bet lies, what announced it, and the pay line that won."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns; bets so far lay where their kind has its one place."""
    for name in ("position", "announced", "line"):
        op.add_column("bets", sa.Column(name, sa.Text, nullable=False, server_default=""))
