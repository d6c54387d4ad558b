"""Whether this process is at the head of the log, and its clock right. Pure.

The log is asked how it stands several times a second. A process is fresh while it has folded all
that an answer of the last half second knew of: so a process that was cut off, or paused, refuses
inputs instead of judging them by a state of the past. A quiet log is heard too."""

from __future__ import annotations

from collections import deque

FRESH_S = 0.5
"""How old the answer may be up to whose last entry the log is folded."""
CLOCK_US = 1_000_000
"""How far this clock may be from the log server's."""


class Freshness:
    """Keeps the answers that are not folded yet. Times `now` are monotonic seconds."""

    def __init__(self) -> None:
        self._told: deque[tuple[int, float]] = deque()
        self._fresh_at: float | None = None
        self._clock_off_us = 0

    def told(self, last_sequence: int, server_time_us: int, now: float, clock_us: int) -> None:
        """The log answered how it stands."""
        self._told.append((last_sequence, now))
        self._clock_off_us = clock_us - server_time_us

    def read(self, sequence: int) -> None:
        """Everything up to `sequence` is folded."""
        while self._told and self._told[0][0] <= sequence:
            self._fresh_at = self._told.popleft()[1]

    def age_s(self, now: float) -> float:
        """How old the answer is up to whose last entry all is folded, seconds; -1: none is."""
        return -1.0 if self._fresh_at is None else now - self._fresh_at

    @property
    def clock_off_s(self) -> float:
        """How far this clock is ahead of the log server's, seconds, as of the last answer."""
        return self._clock_off_us / 1e6

    def problem(self, now: float) -> str:
        """Why inputs may not be taken; empty where they may."""
        if self._fresh_at is None:
            return "the log's head is not known yet"
        if now - self._fresh_at > FRESH_S:
            return f"not at the head of the log for {now - self._fresh_at:.1f} s"
        if abs(self._clock_off_us) > CLOCK_US:
            return f"the clock is {self._clock_off_us / 1e6:.1f} s off the log server's"
        return ""

    def fresh(self, now: float) -> bool:
        """Whether inputs may be taken."""
        return not self.problem(now)
