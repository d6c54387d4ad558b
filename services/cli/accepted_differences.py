"""Differences that an operator accepted on purpose: the log says so of each, and proofs count them
apart (see `acceptance`)."""

from __future__ import annotations

from collections.abc import Iterable

from sabot.log.v1 import events_pb2
from services.kernel.entry import position_of
from services.kernel.event import Event, Position

Answer = tuple[Position, bytes]
"""A recorded answer: its position, and the chain hash at its entry."""


def accepted_in(events: Iterable[Event]) -> list[Answer]:
    """The answers that these events let stand although they do not follow."""
    return [
        (position_of(event.body.difference), event.body.head)
        for event in events
        if isinstance(event.body, events_pb2.AcceptLog) and event.body.HasField("difference")
    ]


def accepted_apart(count: int) -> str:
    """What a verdict says of them behind the number of differences; nothing where there is none."""
    return f", {count} accepted" if count else ""
