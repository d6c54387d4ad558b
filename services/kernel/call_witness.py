"""The shell of a process without audit: what its server noticed of its calls (see `notices.py`) it
tells on its own service's subject, as only audit may append to audit's. What it gathered and had
not told when the process was killed is lost: ten seconds of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2
from services.kernel.event import Position
from services.kernel.notices import Notice, NoticeKind, Notices

_KINDS = {
    NoticeKind.REFUSED: events_pb2.CALL_KIND_TOKEN_UNKNOWN,
    NoticeKind.READ: events_pb2.CALL_KIND_READ,
}


class CallWitness:
    """See the module; a `services.kernel.shells.Shell`."""

    wakes: frozenset[type[Message]] = frozenset()
    since = 2

    def __init__(self, service: str, notices: Notices) -> None:
        self.service = service
        self.problems: dict[str, str] = {}
        self._notices = notices

    def poll(
        self, state: Any, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message]:
        """What was noticed, to append now."""
        del state, leading, answered  # What this process sees, no other one tells.
        return [note_calls(one) for one in self._notices.take(now_us)]


def note_calls(one: Notice) -> events_pb2.NoteCalls:
    """The input that tells of a notice."""
    return events_pb2.NoteCalls(
        kind=_KINDS[one.kind],
        subject=one.subject,
        method=one.method,
        count=one.count,
        first_us=one.first_us,
        last_us=one.last_us,
    )
