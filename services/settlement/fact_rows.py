"""The facts of closed rounds, kept by their places in the log so that a correction finds them
(`services/settlement/domain/facts.py` says which). `BetsSettled` stands among the settlements."""

from __future__ import annotations

from google.protobuf.message import Message
from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, Table, Text

from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1.events_pb2 import RoundSettled
from sabot.table.v1 import correction_events_pb2 as table_corrections
from sabot.table.v1.events_pb2 import ResultAccepted, RoundOpened, TableOpened
from services.kernel.databases import KeyInteger, position_key
from services.kernel.event import Event
from services.kernel.row_changes import Changes

ROUND_FACTS: frozenset[type[Message]] = frozenset(
    {
        RoundOpened,
        ResultAccepted,
        RoundSettled,
        table_corrections.ResultCorrected,
        corrections.BetsCorrected,
        corrections.RoundCorrected,
    }
)


def fact_tables(metadata: MetaData) -> tuple[Table, Table]:
    """The facts of rounds, and the rules that tables were opened with."""
    facts = Table(
        "round_facts",
        metadata,
        Column("position", KeyInteger, primary_key=True, autoincrement=False),
        Column("round_id", Text, nullable=False),
        # Of its message, in full.
        Column("type", Text, nullable=False),
        # Whose it is; empty where it is the whole round's.
        Column("partner", Text, nullable=False),
        Column("account_id", Text, nullable=False),
        Column("body", LargeBinary, nullable=False),
        Index("facts_by_round", "round_id", "position"),
    )
    rules = Table(
        "table_rules",
        metadata,
        Column("position", KeyInteger, primary_key=True, autoincrement=False),
        Column("table_id", Text, nullable=False),
        Column("revision", Integer, nullable=False),
        Column("body", LargeBinary, nullable=False),
        Index("rules_by_table", "table_id", "revision"),
    )
    return facts, rules


def keep_fact(event: Event, facts: Table, rules: Table, changes: Changes) -> None:
    """A row for a fact; nothing for anything else."""
    body = event.body
    if type(body) in ROUND_FACTS:
        key = position_key(event.position)
        changes[facts].insert(
            (key,),
            {
                "position": key,
                "round_id": getattr(body, "round_id", ""),
                "type": str(body.DESCRIPTOR.full_name),
                "partner": getattr(body, "partner_id", ""),
                "account_id": getattr(body, "account_id", ""),
                "body": body.SerializeToString(deterministic=True),
            },
        )
    elif isinstance(body, TableOpened):
        key = position_key(event.position)
        changes[rules].insert(
            (key,),
            {
                "position": key,
                "table_id": body.spec.table_id,
                "revision": body.revision,
                "body": body.SerializeToString(deterministic=True),
            },
        )
