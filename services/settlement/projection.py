"""Settlement's projection: what every account was paid in every round, and what is needed to settle
a round again."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.ext.asyncio import AsyncConnection

from sabot.settlement.v1.events_pb2 import BetsSettled, RoundSettled
from services.kernel.databases import KeyInteger, position_key
from services.kernel.event import Event
from services.kernel.projection_store import positions_table
from services.kernel.row_changes import Changes
from services.settlement.fact_rows import fact_tables, keep_fact

METADATA = MetaData()
positions_table(METADATA)

SETTLEMENTS = Table(
    "settlements",
    METADATA,
    Column("position", KeyInteger, primary_key=True, autoincrement=False),
    Column("round_id", Text, nullable=False),
    Column("partner", Text, nullable=False),
    Column("account_id", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("settlements_by_account", "round_id", "partner", "account_id", "position"),
)
"""One row for each `BetsSettled`, whole."""

SETTLED_ROUNDS = Table(
    "settled_rounds",
    METADATA,
    Column("round_id", Text, primary_key=True),
    Column("table_id", Text, nullable=False),
    Column("accounts", Integer, nullable=False),
    Column("bets", Integer, nullable=False),
    Column("rule_set_hash", LargeBinary, nullable=False),
    Column("settled", KeyInteger, nullable=False),
)
"""One row for each `RoundSettled`."""

FACTS, RULES = fact_tables(METADATA)
"""One row for each fact of a round but `BetsSettled`; one for each `TableOpened`."""


class SettlementProjection:
    """Folds the cell's log into settlements. It keeps nothing in memory."""

    name = "settlement"
    metadata = METADATA
    migrations = "services.settlement.migrations"

    async def load(self, connection: AsyncConnection) -> None:
        """There is nothing to take."""

    def apply(self, events: Sequence[Event], changes: Changes) -> None:
        """Fold events into row changes."""
        for event in events:
            body = event.body
            keep_fact(event, FACTS, RULES, changes)
            if isinstance(body, BetsSettled):
                key = position_key(event.position)
                changes[SETTLEMENTS].insert(
                    (key,),
                    {
                        "position": key,
                        "round_id": body.round_id,
                        "partner": body.partner_id,
                        "account_id": body.account_id,
                        "body": body.SerializeToString(deterministic=True),
                    },
                )
            elif isinstance(body, RoundSettled):
                changes[SETTLED_ROUNDS].save(
                    (body.round_id,),
                    {
                        "round_id": body.round_id,
                        "table_id": body.table_id,
                        "accounts": body.accounts,
                        "bets": body.bets,
                        "rule_set_hash": body.rule_set_hash,
                        "settled": position_key(event.position),
                    },
                )
