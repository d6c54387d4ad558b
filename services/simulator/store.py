"""The log's server of a simulation: a `MemoryStore` that is watched, lost and restored."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from services.kernel.log import LogMessage
from services.kernel.memory_log import MemoryStore


class Backup(NamedTuple):
    """A whole store, as an operator has it beside the damaged one."""

    entries: list[LogMessage | None]
    last_of_subject: dict[str, int]
    bytes_used: int


class WatchedStore(MemoryStore):
    """Tells its watchers of every entry at the very instant at which it is stored, before anybody
    can read it: so a watcher may let something happen in any gap between two entries."""

    def __init__(self, cell: str, server_time_us: Callable[[], int]) -> None:
        super().__init__(cell, server_time_us)
        self._watchers: list[Callable[[LogMessage], None]] = []
        self._untold: deque[LogMessage] = deque()
        self._telling = False
        self.forked = False
        """Whether the tail was lost and not restored: what is stored now is no part of the log."""

    def watch(self, watcher: Callable[[LogMessage], None]) -> None:
        """Call `watcher` with every entry. It may store further ones itself."""
        self._watchers.append(watcher)

    def store(self, subject: str, payload: bytes, expected: int | None) -> int:
        """See `MemoryStore.store`."""
        sequence = super().store(subject, payload, expected)
        if not self.forked:
            self._untold.append(self._entries[sequence - 1] or LogMessage(0, "", {}, b""))
            if not self._telling:
                self._tell()
        return sequence

    def _tell(self) -> None:
        self._telling = True
        try:
            while self._untold:
                message = self._untold.popleft()
                for watcher in self._watchers:
                    watcher(message)
        finally:
            self._telling = False

    def backup(self) -> Backup:
        """Everything as it stands."""
        return Backup(list(self._entries), dict(self._last_of_subject), self.bytes_used)

    def restore(self, backup: Backup) -> None:
        """Put a backup in the place of what is there."""
        self._entries = list(backup.entries)
        self._last_of_subject = dict(backup.last_of_subject)
        self.bytes_used = backup.bytes_used
        self._wake()

    def mend(self, entry: LogMessage) -> None:
        """Fill a hole again."""
        self._entries[entry.sequence - 1] = entry
        self._wake()
