"""Which entries of a log an incident is: a round, or a table's doings within a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from sabot.table.v1 import events_pb2 as tables
from services.cli.log_source import StoreLog
from services.cli.moments import Moment
from services.cli.playthrough import RoundUnknown
from services.events import event_types
from services.kernel.embedded import stream_folder
from services.kernel.entry import EventTypes, NotUnderstood, decode_entry
from services.kernel.event import Event
from services.kernel.log import Log, LogMessage, LogUnavailable
from services.kernel.store_scan import StoreMissing, before_bytes


class NothingToKeep(Exception):
    """The log has nothing of what a capsule was asked for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a capsule shall hold: a round, or a table's doings within a time."""

    round_id: str = ""
    table_id: str = ""
    since: Moment | None = None
    until: Moment | None = None
    partner: str = ""
    """Only what this partner may see; empty: everything."""


@dataclass(frozen=True, slots=True)
class Span:
    """Entries, both ends included."""

    first: int
    last: int


def parted(events: Sequence[Event], span: Span) -> tuple[list[Event], list[Event]]:
    """What stands before an incident, and the incident."""
    before = [event for event in events if event.position.sequence < span.first]
    within = [event for event in events if span.first <= event.position.sequence <= span.last]
    return before, within


async def locate(log: Log, wanted: Wanted, last: int, data: Path | None = None) -> Span:
    """The entries of an incident: from what opened its first round, or its first event. `data`: the
    folder of the log. Raises RoundUnknown, NothingToKeep."""
    needle = (wanted.round_id or wanted.table_id).encode()
    look = _RoundEnds(wanted.round_id) if wanted.round_id else _TableTime(wanted)
    after = _behind(log, needle, data)
    if after is None:
        return look.span(last)
    messages = log.read(after)
    try:
        async for batch in messages:
            for message in batch:
                if message.sequence > last:
                    break
                if needle in message.payload:
                    look.take(message)
                if look.done or message.sequence == last:
                    return look.span(last)
            await asyncio.sleep(0)
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    raise LogUnavailable("the log ended before its end")


def _behind(log: Log, needle: bytes, data: Path | None) -> int | None:
    """Behind which entry the first one stands that holds some bytes; None: none does.

    Where a server has the store open, its files only say where to begin: what is not in them yet is
    looked for from the beginning, and every entry comes from the server."""
    if isinstance(log, StoreLog):
        return log.before(needle)
    if data is None:
        return 0
    try:
        return before_bytes(stream_folder(data, log.cell), needle) or 0
    except (OSError, StoreMissing):
        return 0


_ENDS = frozenset(str(one.DESCRIPTOR.full_name) for one in (tables.RoundOpened, tables.RoundClosed))


class _RoundEnds:
    """Looks for a round's first and last entry."""

    def __init__(self, round_id: str) -> None:
        self._round_id = round_id
        self._first = self._last = 0

    @property
    def done(self) -> bool:
        return self._last > 0

    def take(self, message: LogMessage) -> None:
        if not message.subject.endswith(".table.out"):
            return
        for proto in _protos(message):
            if proto.type not in _ENDS:
                continue
            body = _body(proto)
            if getattr(body, "round_id", "") != self._round_id:
                continue
            if isinstance(body, tables.RoundOpened):
                self._first = proto.cause.sequence
            else:
                self._last = message.sequence

    def span(self, last: int) -> Span:
        if not self._first:
            raise RoundUnknown(f"there is no round {self._round_id} in this log")
        return Span(self._first, self._last or last)


class _TableTime:
    """Looks for a table's first and last entry within a time. Edge times are near enough: a
    capsule may begin a little early."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._first = self._last = 0
        self._time_us = 0
        self.done = False

    def take(self, message: LogMessage) -> None:
        wanted = self._wanted
        for proto in _protos(message):
            self._time_us = max(self._time_us, proto.time_us)
            if wanted.since is not None and self._time_us < wanted.since.time_us:
                continue
            if wanted.until is not None and self._time_us > wanted.until.time_us:
                self.done = bool(self._first)
                return
            body = _body(proto)
            if wanted.table_id == str(getattr(body, "table_id", "")):
                self._first = self._first or message.sequence
                self._last = message.sequence

    def span(self, last: int) -> Span:
        del last
        if not self._first:
            raise NothingToKeep(f"nothing happened at table {self._wanted.table_id} in that time")
        return Span(self._first, self._last)


def _protos(message: LogMessage) -> Sequence[Any]:
    try:
        return decode_entry(message.payload).events
    except NotUnderstood:
        return ()


def _body(proto: Any) -> Message | None:
    """None where nobody can read it: whoever reads the entries says so, unless an operator has
    accepted it."""
    try:
        return _types().decode(proto.type, proto.body)
    except NotUnderstood:
        return None


@cache
def _types() -> EventTypes:
    return event_types()
