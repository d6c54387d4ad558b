"""Sums over rolling windows, in bounded memory (rule LIM-7).

A window of W counts what happened later than W ago. What is kept are sums of pieces of time: hours
of the last day, six hours of the last week, days of the last 30 days. A piece leaves a window only
as a whole, so a sum never says less than it is, and a limit held by it is never passed; it may
count what left the window up to one piece earlier.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US
DAY_US = 24 * HOUR_US
LONGEST_US = 30 * DAY_US
"""The longest window. What is older is forgotten."""

AGES: tuple[tuple[int, int], ...] = ((7 * DAY_US, DAY_US), (DAY_US, 6 * HOUR_US))
"""What is older than the first is kept in pieces of the second; the rest in hours."""


@dataclass(slots=True)
class Piece:
    """What was added within a piece of time, from `start_us` to before `end_us`."""

    start_us: int
    end_us: int
    total: int
    worst: int
    """The greatest sum of all that came from some moment in it on; at least 0. It is what a window
    counts that begins within: nobody knows any more what came before that moment."""


@dataclass(slots=True)
class Series:
    """Amounts over time: at most 85 pieces."""

    pieces: list[Piece] = field(default_factory=list[Piece])
    """Oldest first; never an empty hour."""

    def add(self, now_us: int, amount: int) -> None:
        """Add an amount, now. Time never goes back."""
        pieces = self.pieces
        last = pieces[-1] if pieces else None
        if last is None or last.end_us <= now_us:
            self._settle(now_us)
            start_us = now_us - now_us % HOUR_US
            last = Piece(start_us, start_us + HOUR_US, 0, 0)
            pieces.append(last)
        last.total += amount
        last.worst = max(last.worst + amount, 0)

    def take_back(self, at_us: int, amount: int) -> None:
        """What was added at a time is undone, as if it had never been. For series of positive
        amounts only."""
        for piece in reversed(self.pieces):
            if piece.start_us <= at_us < piece.end_us:
                piece.total -= amount
                piece.worst = max(piece.worst - amount, 0)
                return
            if piece.end_us <= at_us:
                return

    def within(self, now_us: int, window_us: int) -> int:
        """The sum of all that was added later than `window_us` ago; never less than it is."""
        since_us = now_us - window_us
        total = 0
        for piece in reversed(self.pieces):
            if piece.start_us > since_us:
                total += piece.total
            elif piece.end_us > since_us:
                total += piece.worst
            else:
                break
        return total

    def frees_us(self, now_us: int, window_us: int) -> int:
        """When the oldest piece that counts leaves the window; 0: nothing counts."""
        for piece in self.pieces:
            if piece.end_us + window_us > now_us and (piece.total or piece.worst):
                return piece.end_us + window_us
        return 0

    def _settle(self, now_us: int) -> None:
        """Forget what no window looks at, and put together what is old: never pieces that a shorter
        window still tells apart."""
        kept: list[Piece] = []
        for piece in self.pieces:
            if piece.end_us + LONGEST_US <= now_us:
                continue
            before = kept[-1] if kept else None
            if before is not None and _is_one(before, piece, now_us):
                before.worst = max(piece.worst, piece.total + before.worst)
                before.total += piece.total
                before.end_us = piece.end_us
            else:
                kept.append(piece)
        self.pieces[:] = kept


def _is_one(before: Piece, piece: Piece, now_us: int) -> bool:
    for age_us, length_us in AGES:
        if piece.end_us + age_us <= now_us:
            return before.start_us // length_us == piece.start_us // length_us
    return False
