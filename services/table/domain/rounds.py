"""How rounds open and are voided."""

from __future__ import annotations

from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from services.table.domain.state import Round, Table


def round_opened(
    table_id: str, one: Table, spec: spec_pb2.TableSpec, revision: int
) -> table.RoundOpened:
    """The next round of a table whose shoe is ready, under these rules."""
    number = one.number + 1
    return table.RoundOpened(
        table_id=table_id,
        round_id=f"{table_id}-{number}",
        number=number,
        shoe_id=one.shoe_id,
        round_in_shoe=one.shoe_rounds + 1 if one.shoe_id else 0,
        closes_after_ms=spec.pacing.betting_window_ms,
        revision=revision,
    )


def voided(table_id: str, running: Round, reason: table.RoundReason.ValueType) -> table.RoundVoided:
    """The running round does not count."""
    return table.RoundVoided(table_id=table_id, round_id=running.round_id, reason=reason)
