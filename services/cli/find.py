"""`sabot find`: every event of a log that concerns something, in order.

An event concerns a round, a table, an account, a bet or a request where it names it, and also where
it names none of that kind and answers an event that does: an input that was ignored, a payout for
a bet. What an event answers is brought along where it names none of that kind: a bet's id is given
by the answer to its request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sabot.log.v1 import events_pb2
from services.cli.describe import describe
from services.cli.moments import Moment, written
from services.cli.partner_view import may_see
from services.cli.readable import readable_message
from services.cli.skim import Skimmed, SkimmedEntry, SkimReader, bodies_in, skim
from services.events import event_types
from services.kernel.entry import EventTypes, position_of
from services.kernel.event import Event, Position
from services.kernel.log import Log

REMEMBERED_EVENTS = 50_000
"""Events kept in case one that concerns it answers them; answers come within a few hundred."""
KINDS = ("round", "table", "account", "bet", "request", "trace")


class NothingFound(Exception):
    """Nothing in the log concerns it."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What is asked for; all of it must hold."""

    ids: Mapping[str, str]
    """By kind (see KINDS), the id."""
    partner: str = ""
    """Only what this partner may see: its own events, and those that are nobody's."""
    since: Moment | None = None
    until: Moment | None = None

    def __str__(self) -> str:
        told = [f"{kind} {value}" for kind, value in self.ids.items()]
        told += [f"partner {self.partner}"] if self.partner else []
        told += [f"from {self.since}"] if self.since else []
        told += [f"to {self.until}"] if self.until else []
        return ", ".join(told)


async def find(
    log: Log,
    sought: Sought,
    accepted: Mapping[int, bytes] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
    data: Path | None = None,
) -> list[Event]:
    """Search a log. `data`: its folder, where its files are on this machine: of a long log only
    what may concern it is read then. Raises NothingFound, LogBroken, LogUnavailable."""
    if data is not None and sought.ids:
        from services.cli.find_near import find_near

        near = await find_near(log, data, sought, accepted, progress)
        if near:
            return near
    types = event_types()
    last = (await log.info(wait_s=5.0)).last_sequence
    reader = SkimReader(log.cell, types, accepted=accepted)
    search = Search(sought, types)
    async for entries in skim(log, reader, last, progress):
        for entry in entries:
            search.take(entry)
        if sought.until is not None and reader.state.time_us > sought.until.time_us:
            break
    found = search.found()
    if not found:
        raise NothingFound(f"nothing in this log concerns {sought}")
    return found


class Search:
    """Sees every entry once, in order."""

    def __init__(self, sought: Sought, types: EventTypes) -> None:
        self._sought = sought
        self._types = types
        self._kinds = [_Kind(kind, value, types) for kind, value in sought.ids.items()]
        self._found: dict[Position, Event] = {}
        self.missed: set[int] = set()
        """Entries that hold what something answers, and that it was not shown."""
        self._recent: dict[int, SkimmedEntry] = {}
        self._order: deque[int] = deque()
        self._held = 0

    def take(self, entry: SkimmedEntry) -> None:
        """The next entry."""
        if all(kind.may_concern(entry) for kind in self._kinds):
            for one in entry.events():
                self._look_at(one)
        self._remember(entry)

    @property
    def sequences(self) -> set[int]:
        """The entries of which something was noted, for those that answer it."""
        return {sequence for kind in self._kinds for sequence in kind.sequences}

    def found(self) -> list[Event]:
        """What concerns it, in order."""
        return [self._found[position] for position in sorted(self._found)]

    def _look_at(self, one: Skimmed) -> None:
        if not all(kind.may_be(one) for kind in self._kinds):
            return
        event = one.event(self._types)
        # Each kind takes note of what is its own, whatever the others say.
        told = [kind.concerns(event) for kind in self._kinds]
        if not all(told):
            return
        self._show(event)
        cause = event.cause
        while cause is not None and self._kinds:
            caused = self._event_at(cause)
            if caused is None or any(kind.named(caused) for kind in self._kinds):
                return
            self._show(caused)
            # A round began and went on by its causes; of the rest the next one is enough.
            cause = caused.cause if "round" in self._sought.ids else None

    def _show(self, event: Event) -> None:
        sought = self._sought
        if sought.since is not None and event.time_us < sought.since.time_us:
            return
        if sought.until is not None and event.time_us > sought.until.time_us:
            return
        if sought.partner and not may_see(sought.partner, event, self._types):
            return
        self._found[event.position] = event

    def _event_at(self, position: Position) -> Event | None:
        entry = self._recent.get(position.sequence)
        if entry is None:
            self.missed.add(position.sequence)
            return None
        return next(
            (one.event(self._types) for one in entry.events() if one.position == position), None
        )

    def _remember(self, entry: SkimmedEntry) -> None:
        self._recent[entry.read.sequence] = entry
        self._order.append(entry.read.sequence)
        self._held += len(entry.read.protos)
        while self._held > REMEMBERED_EVENTS:
            self._held -= len(self._recent.pop(self._order.popleft()).read.protos)


class _Kind:
    """What concerns one id."""

    def __init__(self, kind: str, value: str, types: EventTypes) -> None:
        self._kind = kind
        self._value = value
        self._types = types
        self._bytes = value.encode()
        self._matched: set[Position] = set()
        self.sequences: set[int] = set()

    def may_concern(self, entry: SkimmedEntry) -> bool:
        """Whether an entry is worth a look: the id's bytes are in it, or it answers."""
        if self._bytes in entry.payload:
            return True
        protos = entry.read.protos
        if entry.read.is_input:
            return bool(self._matched) and any(_retries(proto.type) for proto in protos)
        return any(proto.cause.sequence in self.sequences for proto in protos)

    def may_be(self, one: Skimmed) -> bool:
        """The same of an event."""
        if self._kind == "trace":
            note = one.proto.note
            return any(self._value in where for where in (note.traceparent, *note.links))
        if self._bytes in one.proto.body or _retries(one.proto.type):
            return True
        return one.cause in self._matched

    def concerns(self, event: Event) -> bool:
        """Whether an event concerns it; noted for those that answer it."""
        named = self.named(event)
        body = event.body
        if isinstance(body, events_pb2.RetryInput):
            told = position_of(body.position) in self._matched
        elif self._kind == "trace":
            told = True
        else:
            told = self._value in named if named else event.cause in self._matched
        if told:
            self._matched.add(event.position)
            self.sequences.add(event.position.sequence)
        return told

    def named(self, event: Event) -> frozenset[str]:
        """The ids of this kind that an event names."""
        if self._kind == "trace":
            return frozenset([event.traceparent]) if event.traceparent else frozenset()
        return frozenset(
            value
            for body in bodies_in(event.body, self._types)
            for value in _named(self._kind, body)
            if value
        )


def _retries(name: str) -> bool:
    return name == events_pb2.RetryInput.DESCRIPTOR.full_name


def _named(kind: str, body: Any) -> Iterator[str]:
    fields = body.DESCRIPTOR.fields_by_name
    if kind == "bet":
        yield from getattr(body, "bet_ids", ())
        for name in ("bets", "extra"):
            holds = fields[name].message_type if name in fields else None
            if holds is not None and "bet_id" in holds.fields_by_name:
                value = getattr(body, name)
                yield from (bet.bet_id for bet in (value if name == "bets" else [value]))
        return
    if f"{kind}_id" in fields:
        yield getattr(body, f"{kind}_id")
    if kind == "table" and "spec" in fields:
        yield body.spec.table_id


# ---- partners ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Columns:
    """Rows of text, each column as wide as its widest cell."""

    rows: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def lines(self) -> Iterator[str]:
        """The rows, aligned."""
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        for row in self.rows:
            cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)]
            yield "  ".join(cells).rstrip()


def event_lines(events: list[Event]) -> Iterator[str]:
    """For people: a line an event."""
    rows = Columns([("position", "cause", "log time", "subject", "event", "actor", "details")])
    for event in events:
        whose = event.actor
        if event.partner and event.partner != event.actor.removeprefix("partner:"):
            whose = f"{whose} for {event.partner}"
        rows.rows.append(
            (
                str(event.position),
                str(event.cause) if event.cause else "-",
                written(event.time_us),
                f"{event.service}.{'in' if event.is_input else 'out'}",
                type(event.body).__name__,
                whose,
                describe(event.body),
            )
        )
    return rows.lines()


def event_json(event: Event) -> dict[str, Any]:
    """For programs."""
    return {
        "position": str(event.position),
        "cause": str(event.cause) if event.cause else None,
        "time": written(event.time_us),
        "time_us": event.time_us,
        "service": event.service,
        "subject": f"{event.service}.{'in' if event.is_input else 'out'}",
        "event": type(event.body).__name__,
        "type": str(event.body.DESCRIPTOR.full_name),
        "actor": event.actor,
        "partner": event.partner,
        "trace": event.traceparent,
        "body": readable_message(event.body),
    }
