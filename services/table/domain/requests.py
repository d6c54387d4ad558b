"""Where a partner's request belongs: its table, its round, and whether it is new."""

from __future__ import annotations

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.table.v1 import events_pb2 as table
from services.kernel.event import Event
from services.table.domain.events import PartnerRequest
from services.table.domain.state import Round, Table, TableState, round_number


def place_of(
    state: TableState, event: Event, body: PartnerRequest
) -> tuple[Table, Round] | table.Refusal.ValueType | log.RequestRepeated:
    """The table and the round that a new request is about; else why there is nothing to decide."""
    if event.retried:
        return table.REFUSAL_FAILED
    one = state.tables.get(body.table_id)
    if one is None:
        return table.REFUSAL_UNKNOWN_TABLE
    running = one.running
    round_id = body.round_id
    if running is None or running.round_id != round_id:
        if 1 <= round_number(body.table_id, round_id) <= one.number:
            return table.REFUSAL_REQUEST_EXPIRED
        return table.REFUSAL_UNKNOWN_ROUND
    first = running.requests.get((event.partner, body.request_id))
    if first is None:
        return table.REFUSAL_TOO_MANY_REQUESTS
    request_hash, position = first
    if position == event.position:
        return one, running
    if request_hash != body.request_hash:
        return table.REFUSAL_REQUEST_ID_REUSED
    return log.RequestRepeated(
        request_id=body.request_id,
        first=entry_pb2.Position(
            segment=position.segment, sequence=position.sequence, index=position.index
        ),
    )
