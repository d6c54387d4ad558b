"""Rounds, bets and requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from services.kernel.first_tables import KEY, create_positions, create_requests

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "bets",
        sa.Column("bet_id", sa.Text(), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("bet", sa.Text(), nullable=False),
        sa.Column("stake_minor", sa.BigInteger(), nullable=False),
        sa.Column("currency_code", sa.Text(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.Column("payout_minor", sa.BigInteger(), nullable=False),
        sa.Column("commission_minor", sa.BigInteger(), nullable=False),
        sa.Column("place_time_us", sa.BigInteger(), nullable=False),
        sa.Column("placed", KEY, nullable=False),
        sa.Column("number", sa.SmallInteger(), nullable=False),
        sa.Column("changed", KEY, nullable=False),
        sa.PrimaryKeyConstraint("bet_id"),
    )
    op.create_index("bets_by_account", "bets", ["partner", "account_id", "placed", "number"])
    op.create_index("bets_by_change", "bets", ["partner", "changed"])
    op.create_index("bets_by_partner", "bets", ["partner", "placed", "number"])
    op.create_index("bets_by_placing", "bets", ["placed", "number"])
    op.create_index("bets_by_round", "bets", ["round_id", "placed", "number"])
    create_positions()
    create_requests()
    op.create_table(
        "rounds",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("shoe_id", sa.Text(), nullable=False),
        sa.Column("round_in_shoe", sa.Integer(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("suspended", sa.Boolean(), nullable=False),
        sa.Column("open_time_us", sa.BigInteger(), nullable=False),
        sa.Column("close_time_us", sa.BigInteger(), nullable=True),
        sa.Column("cards", sa.LargeBinary(), nullable=False),
        sa.Column("result", sa.LargeBinary(), nullable=True),
        sa.Column("void_reason", sa.SmallInteger(), nullable=False),
        sa.Column("opened", KEY, nullable=False),
        sa.Column("changed", KEY, nullable=False),
        sa.PrimaryKeyConstraint("round_id"),
    )
    op.create_index("rounds_by_opening", "rounds", ["opened"])
    op.create_index("rounds_by_state", "rounds", ["state"])
    op.create_index("rounds_by_table", "rounds", ["table_id", "opened"])
