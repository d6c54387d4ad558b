"""The tables that every projection begins with, for first revisions. As released they stay: what
changes is a revision of its own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""A log position as one integer."""


def create_positions() -> None:
    """How far the projection is."""
    op.create_table(
        "projection_positions",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("segment", sa.Integer(), nullable=False),
        sa.Column("sequence", KEY, nullable=False),
        sa.Column("head", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def create_requests() -> None:
    """Requests, and what became of them."""
    op.create_table(
        "request_links",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("request", KEY, nullable=False),
        sa.Column("service", sa.String(length=64), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("retry_of", KEY, nullable=True),
        sa.Column("failed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_table(
        "requests",
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("partner", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("input_type", sa.Text(), nullable=False),
        sa.Column("outcome_type", sa.Text(), nullable=True),
        sa.Column("outcome_body", sa.LargeBinary(), nullable=True),
        sa.Column("outcome_position", KEY, nullable=True),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_index("requests_by_id", "requests", ["actor", "scope", "request_id"])
