"""Two small cores over real event types, to test the kernel without a game.

`table` answers OpenTable with TableOpened, and CloseTable in steps: so many TableClosed as the
state counts opened tables, two a step. `limits` answers TableOpened with BookClosed. A table named
`boom` makes `limits` fail while `Toys.broken`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2, events_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from services.events import event_types
from services.kernel.entry import encode_body
from services.kernel.event import Answers, Core, Event, InvariantViolated, Unfinished
from services.kernel.log import LogMessage
from services.kernel.reader import LogReader, ReadEntry
from services.kernel.replica import Replica

CELL = "toy"


@dataclass(slots=True)
class TableState:
    opened: list[str] = field(default_factory=list)
    closed: int = 0


@dataclass(slots=True)
class LimitsState:
    seen: list[str] = field(default_factory=list)
    booked: list[str] = field(default_factory=list)


def evolve_table(state: TableState, event: Event) -> None:
    match event.body:
        case table.TableOpened():
            state.opened.append(event.body.spec.table_id)
        case table.TableClosed():
            state.closed += 1
        case _:
            pass


def decide_table(state: TableState, event: Event) -> Answers:
    match event.body:
        case table.OpenTable():
            return [table.TableOpened(spec=event.body.spec, revision=event.behaviour)]
        case table.CloseTable() | table.TableClosed():
            left = state.opened[state.closed : state.closed + 2]
            answers = [table.TableClosed(table_id=name) for name in left]
            more = state.closed + len(left) < len(state.opened)
            return Unfinished(answers) if more else answers
        case _:
            return []


class Toys:
    """Whether the planted bug is there."""

    broken = True


def evolve_limits(state: LimitsState, event: Event) -> None:
    match event.body:
        case table.TableOpened():
            state.seen.append(event.body.spec.table_id)
        case limits.BookClosed():
            state.booked.append(event.body.table_id)
        case _:
            pass


def decide_limits(state: LimitsState, event: Event) -> Answers:
    match event.body:
        case table.TableOpened():
            name = event.body.spec.table_id
            if name == "boom" and Toys.broken:
                raise InvariantViolated(name)
            return [limits.BookClosed(table_id=name)]
        case _:
            return []


TABLE: Core[TableState] = Core(
    "table", 1, 2, TableState, TableState, evolve_table, decide_table,
    frozenset({table.OpenTable, table.CloseTable}),
    frozenset({table.TableOpened, table.TableClosed}),
)  # fmt: skip
LIMITS: Core[LimitsState] = Core(
    "limits", 1, 2, LimitsState, LimitsState, evolve_limits, decide_limits,
    frozenset({table.TableOpened}),
    frozenset({limits.BookClosed}),
)  # fmt: skip


def open_table(name: str) -> table.OpenTable:
    return table.OpenTable(request_id=name, spec=spec_pb2.TableSpec(table_id=name))


def input_entry(
    writer: str, counter: int, *bodies: Message, time_us: int = 1_000, partner: str = ""
) -> bytes:
    """The payload of an entry of inputs."""
    entry = entry_pb2.Entry(writer=writer, counter=counter)
    for body in bodies:
        entry.events.add(
            type=body.DESCRIPTOR.full_name,
            body=encode_body(body),
            partner=partner,
            actor=f"partner:{partner}" if partner else "operator:test",
            time_us=time_us,
        )
    return entry.SerializeToString(deterministic=True)


@dataclass(slots=True)
class ToyLog:
    """A list of messages and one reader of it."""

    messages: list[LogMessage] = field(default_factory=list)
    reader: LogReader = field(default_factory=lambda: LogReader(CELL, event_types()))

    def append(self, subject: str, payload: bytes) -> ReadEntry:
        """Store an entry and read it."""
        message = LogMessage(len(self.messages) + 1, f"sabot.{CELL}.{subject}", {}, payload)
        self.messages.append(message)
        return self.reader.read(*message)

    def answer(self, replica: Replica[Any]) -> ReadEntry | None:
        """Let a replica append what waits; the entry, read but not given to any replica."""
        append = replica.next_append()
        if append is None:
            return None
        entry = self.append(f"{replica.core.service}.out", append.payload)
        replica.stored(append, entry.sequence)
        return entry


def activate(behaviour: int) -> events_pb2.ActivateBehaviour:
    return events_pb2.ActivateBehaviour(behaviour=behaviour)
