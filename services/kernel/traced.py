"""Spans of what a process wrote to the log."""

from __future__ import annotations

from services.kernel.reader import ReadEntry
from services.kernel.telemetry import Tracing
from services.kernel.telemetry_names import (
    ATTRIBUTE_EVENT,
    ATTRIBUTE_POSITION,
    ATTRIBUTE_SERVICE,
    SPAN_ANSWER,
    SPAN_INPUT,
)


def trace_entry(tracing: Tracing, entry: ReadEntry) -> None:
    """One span for each event of a traced request: from when it was taken or decided until it was
    read back, durable. For entries that this process wrote; replays trace nothing."""
    for event, proto in zip(entry.events, entry.protos, strict=False):
        if not event.traceparent:
            continue
        if entry.is_input:
            span = tracing.start(SPAN_INPUT, event.traceparent, start_us=proto.time_us)
        else:
            span = tracing.start(
                SPAN_ANSWER,
                event.traceparent,
                start_us=proto.note.wall_time_us,
                links=proto.note.links,
            )
        if span is not None:
            span.set_attribute(ATTRIBUTE_SERVICE, entry.service)
            span.set_attribute(ATTRIBUTE_EVENT, proto.type)
            span.set_attribute(ATTRIBUTE_POSITION, str(event.position))
            span.end()
