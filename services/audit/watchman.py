"""Audit's shell that tells the log what no core can see: calls with tokens that nobody has, reads
of others' data by operators, a clock that was set, and how long the cell stood still before this
process began.

It sees the calls of its own process alone. What it gathered and had not told yet when the process
was killed is lost: ten seconds of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from google.protobuf.message import Message

from sabot.audit.v1 import significant_events_pb2 as significant
from services.audit.domain.core import AuditState
from services.audit.domain.significant import note_of_calls
from services.audit.significance import SignificantIndex
from services.kernel.call_witness import note_calls
from services.kernel.event import Position
from services.kernel.notices import Notices

STOOD_STILL_US = 60_000_000
"""A start after a shorter pause is none to speak of."""
STEP_US = 1_000_000
"""A clock that moved by less against the monotonic one was adjusted, not set."""


class Watchman:
    """See the module; a `services.kernel.shells.Shell`.

    `monotonic_us`: a clock that nobody sets, microseconds."""

    service = "audit"
    wakes: frozenset[type[Message]] = frozenset()
    since = 1

    def __init__(
        self,
        notices: Notices,
        index: SignificantIndex,
        monotonic_us: Callable[[], int] = lambda: time.monotonic_ns() // 1000,
    ) -> None:
        self.problems: dict[str, str] = {}
        self._notices = notices
        self._index = index
        self._monotonic_us = monotonic_us
        self._apart_us: int | None = None
        """Between the two clocks."""

    def poll(
        self, state: AuditState, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message]:
        """What was seen, to append now."""
        del state, leading, answered  # What this process sees, no other one tells.
        told: list[Message] = []
        apart_us = now_us - self._monotonic_us()
        if self._apart_us is None:
            before_us = self._index.started_us
            if before_us and now_us - before_us >= STOOD_STILL_US:
                told.append(_note(significant.NOTED_KIND_UNAVAILABLE, before_us, now_us))
        elif abs(apart_us - self._apart_us) >= STEP_US:
            step_us = apart_us - self._apart_us
            told.append(
                _note(significant.NOTED_KIND_CLOCK_STEPPED, now_us - step_us, now_us, step_us)
            )
        self._apart_us = apart_us
        told += [note_of_calls(note_calls(one)) for one in self._notices.take(now_us)]
        return told


def _note(
    kind: significant.NotedKind.ValueType, first_us: int, last_us: int, step_us: int = 0
) -> significant.NoteEvents:
    return significant.NoteEvents(
        kind=kind, count=1, first_us=first_us, last_us=last_us, step_us=step_us
    )
