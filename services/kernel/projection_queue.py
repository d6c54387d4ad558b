"""Entries that wait to be projected, in the order of the log."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from services.kernel.event import Event
from services.kernel.projection_store import Mark


class Entry(NamedTuple):
    """An entry of the log as a projection sees it."""

    sequence: int
    head: bytes
    """The log's chain hash there."""
    events: list[Event]


class OtherEntry(Exception):
    """An entry has another chain hash than what is committed of it."""

    def __init__(self, sequence: int, head: bytes) -> None:
        super().__init__(sequence)
        self.sequence = sequence
        self.head = head


class EntryQueue:
    """See the module. Beyond `most_events` events it lets go of all: they can be read again."""

    def __init__(self, most_events: int) -> None:
        self._most_events = most_events
        self._entries: deque[Entry] = deque()
        self.events = 0
        """Events that wait, and one more for each entry."""
        self.last = 0
        """The last entry that was put in, whatever became of it."""
        self.overflows = 0
        """How often it let go of all."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def put(self, entry: Entry) -> None:
        """Add the next entry."""
        self.last = entry.sequence
        if self.events > self._most_events:
            self.clear()
            self.overflows += 1
        self._entries.append(entry)
        self.events += len(entry.events) + 1

    def put_back(self, entries: list[Entry]) -> None:
        """Return entries that were taken and not committed."""
        self._entries.extendleft(reversed(entries))
        self.events += sum(len(entry.events) + 1 for entry in entries)

    def clear(self) -> None:
        """Let go of all."""
        self._entries.clear()
        self.events = 0

    def meets(self, sequence: int) -> bool:
        """Whether it goes on right after an entry, or before."""
        return bool(self._entries) and self._entries[0].sequence <= sequence + 1

    def pass_over(self, mark: Mark) -> None:
        """Let go of what is committed already. Raises OtherEntry."""
        while self._entries and self._entries[0].sequence <= mark.sequence:
            entry = self._entries.popleft()
            self.events -= len(entry.events) + 1
            if entry.sequence == mark.sequence and entry.head != mark.head:
                raise OtherEntry(entry.sequence, entry.head)

    def take(self, mark: Mark, most_events: int) -> list[Entry]:
        """What follows `mark` without a gap: entries until there are so many events. Raises
        OtherEntry."""
        self.pass_over(mark)
        taken: list[Entry] = []
        count = 0
        expected = mark.sequence + 1
        while self._entries and count < most_events and self._entries[0].sequence == expected:
            entry = self._entries.popleft()
            self.events -= len(entry.events) + 1
            taken.append(entry)
            count += len(entry.events)
            expected += 1
        return taken
