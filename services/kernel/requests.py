"""Request ids that were used, so that a repeat finds its first outcome: pure, part of a core's
state.

An id is a UUIDv7: its first 48 bits are the time at which the caller made it, in milliseconds. It
is kept until that time lies `KEEP_US` back in log time; from then on the id itself shows that it is
too old, so nothing needs to be remembered for ever and nothing old can slip in as new."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from enum import Enum

from services.kernel.event import Position

KEEP_US = 24 * 3600 * 1_000_000
"""How long an id is kept, by its own time: longer than any caller retries."""
AHEAD_US = 60 * 1_000_000
"""How far an id's time may be ahead of log time: clocks differ, but not by more."""


class Standing(Enum):
    """How a request id stands."""

    NEW = 1
    REPEATED = 2
    REUSED = 3
    EXPIRED = 4
    AHEAD = 5


@dataclass(slots=True)
class Used:
    """The first use of an id."""

    request_hash: bytes
    position: Position


@dataclass(slots=True)
class RequestIds:
    """The ids used within the last 24 hours, by scope (a partner or an operator)."""

    used: dict[tuple[str, str], Used] = field(default_factory=dict[tuple[str, str], Used])
    ages: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    """A heap of (the id's own time in microseconds, scope, id)."""

    def standing(
        self, scope: str, request_id: str, request_hash: bytes, time_us: int
    ) -> tuple[Standing, Position | None]:
        """How an id stands at this log time, and where it was first used, if it was."""
        first = self.used.get((scope, request_id))
        made_us = uuid7_time_us(request_id)
        if made_us + KEEP_US < time_us:
            return Standing.EXPIRED, None
        if first is not None:
            if first.request_hash == request_hash:
                return Standing.REPEATED, first.position
            return Standing.REUSED, first.position
        if made_us > time_us + AHEAD_US:
            return Standing.AHEAD, None
        return Standing.NEW, None

    def use(
        self, scope: str, request_id: str, request_hash: bytes, position: Position, time_us: int
    ) -> None:
        """Remember the first use of an id, and forget those that have expired."""
        while self.ages and self.ages[0][0] + KEEP_US < time_us:
            _, old_scope, old_id = heapq.heappop(self.ages)
            self.used.pop((old_scope, old_id), None)
        if (scope, request_id) not in self.used:
            self.used[scope, request_id] = Used(request_hash, position)
            heapq.heappush(self.ages, (uuid7_time_us(request_id), scope, request_id))


def uuid7_time_us(request_id: str) -> int:
    """The time in a UUIDv7, microseconds since 1970 UTC; 0, long expired, where it is none."""
    try:
        return int(request_id[:8] + request_id[9:13], 16) * 1000
    except ValueError:
        return 0
