"""A suspension that lasts too long (rule INC-2): escalated once, it never ends by itself."""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import spec_pb2
from services.kernel.event import Event, Position
from services.table.domain.state import Round, TableState, running_round

USUAL_SUSPEND_MAX_MS = 600_000
"""Ten minutes, where the table's pacing says nothing."""


def due_us(spec: spec_pb2.TableSpec, running: Round) -> int | None:
    """When its suspension is to be escalated, in log time; None: it is not suspended, or it was."""
    if not running.suspended or running.suspended_us is None or running.escalated:
        return None
    most_ms = spec.pacing.suspend_max_ms or USUAL_SUSPEND_MAX_MS
    return running.suspended_us + most_ms * 1000


def decide_escalation(
    state: TableState, event: Event, body: orders.EscalateSuspension
) -> list[Message]:
    """The alarm, if this suspension still lasts and nobody was told yet."""
    running = running_round(state, body.table_id, body.round_id)
    if running is None:
        return [log.InputIgnored(reason=log.IGNORED_REASON_UNKNOWN)]
    asked_by = Position(body.asked_by.segment, body.asked_by.sequence, body.asked_by.index)
    if not running.suspended or running.suspended_us is None or asked_by != running.suspended_by:
        return [log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW)]
    if running.escalated:
        return [log.InputIgnored(reason=log.IGNORED_REASON_ALREADY_DONE)]
    return [
        orders.SuspensionEscalated(
            table_id=body.table_id,
            round_id=body.round_id,
            suspended_ms=max(event.time_us - running.suspended_us, 0) // 1000,
        )
    ]
