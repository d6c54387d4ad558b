"""Looks for an id in the log: its bytes first, then what the few entries say that hold it or that
come after those. Newest first, until there is enough to show.

Nothing is checked here, so that reading may begin anywhere: what stands in the log audit and the
pages of rounds check. Log times are those of the log."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from services.cli.find import Search, Sought
from services.cli.skim import SkimmedEntry
from services.console.history import History
from services.kernel.embedded import stream_folder
from services.kernel.entry import EventTypes, NotUnderstood, decode_entry
from services.kernel.event import Event
from services.kernel.log import Log, LogMessage, LogUnavailable
from services.kernel.reader import LogBroken, ReadEntry
from services.kernel.store_scan import StoreMissing, ranges_of_bytes

BEHIND = 600
"""Entries behind one that holds the id, among which answers to it stand: they come within a few
hundred (see services/cli/find.py)."""
BEFORE = 200
"""Entries before it, in which what it answers stands."""
AT_ONCE = 4_000
"""Entries looked through before it is seen whether there is enough."""
MOST_PLACES = 5_000
"""Entries with the id that are looked at, the newest: an account has more in a year."""
READ_AT_ONCE = 50_000
"""Entries read for the id before it is seen whether there are so many."""
UUID7_VERSION = "7"
CLOCKS_APART_US = 3_600_000_000
"""What is made at a time is in the log no more than this before: clocks of partners differ."""


@dataclass(slots=True)
class Found:
    """What a search came to."""

    kind: str = ""
    """Of what the id is; empty: it is nobody's."""
    events: list[Event] = field(default_factory=list[Event])
    whole: bool = True
    """Whether that is all: else there are earlier ones."""


class Seeking:
    """See the module. `data`: the folder of the log's store, where it is on this machine."""

    def __init__(
        self, log: Log, types: EventTypes, history: History, data: Path, enough: int
    ) -> None:
        self._log = log
        self._types = types
        self._history = history
        self._data = data
        self._enough = enough

    async def find(self, text: str, kinds: Sequence[str], after: int = 0) -> Found:
        """The newest events of the first kind that there are some of. `after`: an entry behind
        which all of them stand. Raises LogUnavailable."""
        last = (await self._log.info(wait_s=3.0)).last_sequence
        made = self._history.sequence_at(_made_us(text) - CLOCKS_APART_US)
        needle = text.encode()
        if "trace" not in kinds:
            # An id is a whole field, which has its length before it: else one letter were in every
            # entry. A trace is a part of one.
            needle = bytes([len(needle)]) + needle
        places = await self._places(needle, max(after, made), last)
        if not places and made > after:
            places = await self._places(needle, after, last)  # Its clock was wrong.
        is_cut = len(places) > MOST_PLACES
        found: dict[str, dict[object, Event]] = {kind: {} for kind in kinds}
        rest = places[-MOST_PLACES:]
        while rest:
            end = min(last, rest[-1] + BEHIND)
            at = bisect_left(rest, rest[-1] - AT_ONCE)
            await self._look(text, kinds, max(0, rest[at] - BEFORE - 1), end, found)
            del rest[at:]
            if any(len(events) >= self._enough for events in found.values()):
                break
        for kind in kinds:
            events = sorted(found[kind].values(), key=lambda one: one.position)
            if events:
                whole = not rest and not is_cut and len(events) <= self._enough
                return Found(kind, events[-self._enough :], whole)
        return Found()

    async def _places(self, needle: bytes, after: int, last: int) -> list[int]:
        """Every entry behind one that holds some bytes, by sequence; of more than MOST_PLACES the
        newest."""
        try:
            ranges = await asyncio.to_thread(
                ranges_of_bytes, stream_folder(self._data, self._log.cell), needle, after
            )
        except (OSError, StoreMissing):
            ranges = [(after, last)]
        else:
            # The newest entries may not be in the files yet.
            ranges.append((max(after, self._history.sequence - BEHIND), last))
        found: set[int] = set()
        for begin, end in reversed(ranges):
            until = min(end, last)
            while begin < until and len(found) <= MOST_PLACES:
                from_ = max(begin, until - READ_AT_ONCE)
                async for batch in _read(self._log, from_, until):
                    found |= {one.sequence for one in batch if needle in one.payload}
                until = from_
        return sorted(found)

    async def _look(
        self,
        text: str,
        kinds: Sequence[str],
        after: int,
        until: int,
        found: dict[str, dict[object, Event]],
    ) -> None:
        searches = {kind: Search(Sought({kind: text}), self._types) for kind in kinds}
        begin, time_us = self._history.time_before(after)
        glance = _Glance(time_us, self._history.kept.reader.behaviour)
        async for batch in _read(self._log, begin, until):
            for entry in glance.entries(batch):
                for search in searches.values():
                    # Whoever reads the log says what nobody can read, unless that was accepted.
                    with suppress(LogBroken):
                        search.take(entry)
        for kind, search in searches.items():
            found[kind] |= {event.position: event for event in search.found()}


class _Glance:
    """Entries as a reader would give them, without the chain."""

    def __init__(self, time_us: int, behaviour: int) -> None:
        self._time_us = time_us
        self._behaviour = behaviour
        self._written: set[tuple[str, str, int]] = set()

    def entries(self, batch: Collection[LogMessage]) -> Iterator[SkimmedEntry]:
        for message in batch:
            try:
                entry = decode_entry(message.payload)
            except NotUnderstood:
                continue
            service, way = message.subject.split(".")[2:4]
            is_input = way == "in"
            protos = list(entry.events)
            if is_input:
                key = (service, entry.writer, entry.counter)
                if key in self._written:
                    continue  # A copy of an entry that came already.
                self._written.add(key)
            times: list[int] = []
            for proto in protos:
                if is_input:
                    self._time_us = max(self._time_us, proto.time_us)
                times.append(self._time_us)
            read = ReadEntry(
                message.sequence, service, is_input, entry.writer, entry.counter, b"", [], protos
            )
            yield SkimmedEntry(read, message.payload, tuple(times), self._behaviour)


async def _read(log: Log, after: int, until: int) -> AsyncIterator[Sequence[LogMessage]]:
    """The entries behind one, up to another."""
    if after >= until:
        return
    messages = log.read(after)
    try:
        async for batch in messages:
            yield [one for one in batch if one.sequence <= until]
            if batch[-1].sequence >= until:
                return
            await asyncio.sleep(0)
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    raise LogUnavailable("the log ended before its end")


def _made_us(text: str) -> int:
    """When an id was made, microseconds since 1970, where it says so (UUIDv7); else long ago."""
    parts = text.split("-")
    if [len(part) for part in parts] != [8, 4, 4, 4, 12] or not parts[2].startswith(UUID7_VERSION):
        return 0
    try:
        return int(parts[0] + parts[1], 16) * 1000
    except ValueError:
        return 0
