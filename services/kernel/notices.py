"""What a server notices of its calls and nobody may do unseen: tokens that nobody has, and reads of
what belongs to partners' accounts by operators. It only counts; a shell tells the log of it.

Nobody can flood the log by it: what is alike is one notice with a count, and there are at most so
many different ones in an interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

GATHER_US = 10_000_000
"""What happens within so long is told together."""
MOST = 64
"""Different notices of a kind in an interval; all further ones are one, of nobody in particular."""
MOST_COUNTED = 1_000_000_000


class NoticeKind(Enum):
    """What is noticed."""

    REFUSED = "refused"
    READ = "read"


@dataclass(slots=True)
class Notice:
    """Several of a kind by one caller of one method."""

    kind: NoticeKind
    subject: str
    """Who; empty: nobody knows, or there were too many."""
    method: str
    """Empty: several."""
    first_us: int
    last_us: int
    count: int = 1


class Notices:
    """See the module. `clock`: microseconds since 1970 UTC."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._found: dict[tuple[NoticeKind, str, str], Notice] = {}

    def refused(self, method: str) -> None:
        """Somebody called with a token that nobody has."""
        self._add(NoticeKind.REFUSED, "", method)

    def read(self, actor: str, method: str) -> None:
        """An operator asks for what belongs to a partner's account."""
        self._add(NoticeKind.READ, actor, method)

    def seen(self, kind: NoticeKind, subject: str, method: str, count: int) -> None:
        """Somebody else saw something so often, and may be believed."""
        self._add(kind, subject, method, count)

    def _add(self, kind: NoticeKind, subject: str, method: str, count: int = 1) -> None:
        now_us = self._clock()
        # Who calls without a token tries every method: it is one notice all the same.
        key = (kind, subject, "" if kind is NoticeKind.REFUSED else method)
        if key not in self._found and sum(one[0] is kind for one in self._found) >= MOST:
            key = (kind, "", "")
        one = self._found.get(key)
        if one is None:
            self._found[key] = Notice(kind, key[1], method, now_us, now_us, count)
            return
        if one.method != method:
            one.method = ""
        one.count = min(one.count + count, MOST_COUNTED)
        one.last_us = now_us

    def take(self, now_us: int) -> list[Notice]:
        """What has been gathered for long enough."""
        first_us = min((one.first_us for one in self._found.values()), default=now_us)
        if now_us < first_us + GATHER_US:
            return []
        found = list(self._found.values())
        self._found.clear()
        return found
