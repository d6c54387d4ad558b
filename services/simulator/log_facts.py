"""The facts of a closed round, read from a log in memory: what settlement's projection keeps in a
real fleet."""

from __future__ import annotations

from collections.abc import Sequence

from sabot.log.v1 import entry_pb2
from sabot.table.v1 import events_pb2 as table
from services.kernel.event import Position
from services.kernel.log import LogMessage
from services.kernel.reader import SEGMENT
from services.settlement.domain.facts import BY_NAME
from services.settlement.queries import Fact

_OPENED = str(table.TableOpened.DESCRIPTOR.full_name)
_ROUND_OPENED = str(table.RoundOpened.DESCRIPTOR.full_name)
_SETTLED = "sabot.settlement.v1.RoundSettled"


def facts_in(messages: Sequence[LogMessage], round_id: str) -> list[Fact]:
    """All facts of a round that was settled, in the log's order; none where it was not."""
    rules: dict[tuple[str, int], Fact] = {}
    found: list[Fact] = []
    for message in messages:
        if message.subject not in _subjects(message.subject):
            continue
        for index, event in enumerate(entry_pb2.Entry.FromString(message.payload).events):
            kind = BY_NAME.get(event.type)
            if kind is None:
                continue
            fact = Fact(Position(SEGMENT, message.sequence, index), event.type, event.body)
            if event.type == _OPENED:
                opened = table.TableOpened.FromString(event.body)
                rules[opened.spec.table_id, opened.revision] = fact
            elif getattr(kind.FromString(event.body), "round_id", "") == round_id:
                found.append(fact)
    if not any(fact.type == _SETTLED for fact in found):
        return []
    first = table.RoundOpened.FromString(
        next(fact.body for fact in found if fact.type == _ROUND_OPENED)
    )
    governing = rules.get((first.table_id, first.revision))
    return sorted([*found, governing] if governing else found)


def _subjects(subject: str) -> tuple[str, ...]:
    """The subject, if facts stand on it."""
    return (subject,) if subject.endswith((".table.out", ".settlement.out")) else ()
