"""Which requests' traces what a core answers belongs to.

An answer goes on in the trace of its cause. What ends a bet is not caused by it: a round is settled
when its result counts, for all who bet. So a replica remembers under which trace a matter was
spoken of, such as an account's bets of a round, and the answer that names the same matter again
goes on there. Only notes beside the events are made of this; nothing here is compared, and a
restart forgets it: such a bet's trace ends early.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from google.protobuf.message import Message

from services.kernel.event import Event, Matter

MAX_MATTERS = 10_000
"""Matters whose traces are remembered. Few bets are traced; the oldest go first."""
MAX_LINKS = 8
"""Traces of one matter: an account that asks more often in a round is linked no further."""
TRACE_END = 36
"""Of a traceparent: version, trace id and a dash end here, the span's id begins."""


class Traces:
    """See the module. All arguments are of the core."""

    def __init__(
        self,
        service: str,
        begins: Mapping[type[Message], Matter],
        ends: Mapping[type[Message], Matter],
    ) -> None:
        self._service = service
        self._begins = begins
        self._ends = ends
        self._known: OrderedDict[tuple[str, ...], list[str]] = OrderedDict()

    def heard(self, body: Message, partner: str, traceparent: str) -> None:
        """Remember under which trace a matter is spoken of; an empty one is none."""
        matter = self._begins.get(type(body))
        if matter is None or not traceparent:
            return
        about = matter(body, partner)
        known = self._known.setdefault(about, [])
        if len(known) < MAX_LINKS and not _among(traceparent, known):
            known.append(traceparent)
        if len(self._known) > MAX_MATTERS:
            self._known.popitem(last=False)

    def of_answer(self, body: Message, partner: str, cause: Event) -> tuple[str, list[str]]:
        """The trace that an answer goes on in, and those that it is linked to."""
        inherited = cause.traceparent
        if cause.service == self._service and not cause.is_input and type(cause.body) in self._ends:
            inherited = ""  # a step that goes on behind an account's answer is not that account's
        matter = self._ends.get(type(body)) if self._known else None
        known = self._known.get(matter(body, partner), []) if matter is not None else []
        if not known:
            return inherited, []
        if not inherited:
            return known[0], known[1:]
        if _among(inherited, known):
            return inherited, [one for one in known if not _among(inherited, [one])]
        return known[0], [*known[1:], inherited]


def _among(traceparent: str, known: Iterable[str]) -> bool:
    """Whether one of them names the same trace."""
    return any(one[:TRACE_END] == traceparent[:TRACE_END] for one in known)
