"""Where in a long log `sabot find` must look. An id stands in few places, and its bytes are found
in the store's files at a gigabyte a second: only the blocks that hold them are read, with those
that hold answers to what was found, or what it answers.

The files only say where to look. Every entry comes from the log, chained to a snapshot that the log
names, and whatever is not surely left out is read. Who finds nothing so reads the whole log: that
there is nothing is said of that alone, and so is what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from services.cli.find import Search, Sought
from services.cli.log_source import StoreLog
from services.cli.skim import SkimReader, skim
from services.cli.starts import is_named
from services.events import event_types
from services.kernel.embedded import stream_folder
from services.kernel.event import Event
from services.kernel.log import Log
from services.kernel.snapshot import SnapshotFolder, SnapshotUnusable, reader_of
from services.kernel.store_scan import (
    StoreMissing,
    before_last_block,
    ranges_holding,
    ranges_of_bytes,
)

Ranges = list[tuple[int, int]]
"""Entries: behind which one, up to which one; in order, none twice."""
Progress = Callable[[int, int, int], None]

SHARE = 2
"""Of a log of which more than one in so many entries must be read, all are: whoever begins
elsewhere reads from a snapshot on."""
MOST_RANGES = 8
MOST_PASSES = 4
"""Answers to answers stand in the next block, or in this one; who has not seen all by then
reads the whole log."""
POSITIONS = re.compile(rb"\x08\x01\x10([\x80-\xff]*[\x00-\x7f])")
"""The beginning of a `sabot.log.v1.Position` as this fleet's processes write it: its segment, 1,
and its sequence. Answers, and orders to retry, have one of what they are about."""


async def find_near(
    log: Log,
    data: Path,
    sought: Sought,
    accepted: Mapping[int, bytes] | None,
    progress: Progress | None,
) -> list[Event]:
    """What a search of the whole log would find; nothing where that must be asked. `data`: the
    folder of the log, whose files are on this machine. Raises LogBroken, LogUnavailable."""
    last = (await log.info(wait_s=5.0)).last_sequence
    try:
        folder = stream_folder(data, log.cell)
        # A server may not have written its newest entries to the files yet.
        is_raw = isinstance(log, StoreLog)
        newest = [] if is_raw else [(before_last_block(folder), last)]
        ranges = _first(folder, sought, last)
        for _ in range(MOST_PASSES):
            ranges = _joined([*ranges, *newest])
            if len(ranges) > MOST_RANGES or SHARE * _size(ranges) > last:
                return []
            search = await _searched(log, data, sought, accepted, ranges, last, progress)
            more = _further(folder, search, ranges, last)
            if not more:
                return search.found()
            ranges += more
    except (OSError, StoreMissing):
        return []
    return []


def _first(folder: Path, sought: Sought, last: int) -> Ranges:
    """Where the rarest of the ids stands: what concerns all ids names that one, or answers what
    does."""
    found: list[Ranges] = []
    for kind, value in sought.ids.items():
        needle = value.encode()
        if kind != "trace":
            # A whole field, which has its length before it. A trace is a part of one.
            needle = _varint(len(needle)) + needle
        found.append(_cut(ranges_of_bytes(folder, needle), last))
    return min(found, key=_size, default=[(0, last)])


def _further(folder: Path, search: Search, ranges: Ranges, last: int) -> Ranges:
    """What else must be read: blocks that may answer what was found, or hold what it answers."""
    about = {_varint(sequence) for sequence in search.sequences}

    def answers(raw: bytes) -> bool:
        return not about.isdisjoint(POSITIONS.findall(raw))

    behind = min(search.sequences, default=last)
    blocks = _cut(ranges_holding(folder, answers, behind), last) if about else []
    return _without([*blocks, *((one - 1, one) for one in search.missed)], ranges)


async def _searched(
    log: Log,
    data: Path,
    sought: Sought,
    accepted: Mapping[int, bytes] | None,
    ranges: Ranges,
    last: int,
    progress: Progress | None,
) -> Search:
    types = event_types()
    search = Search(sought, types)
    reader = SkimReader(log.cell, types, accepted=accepted)
    for behind, until in ranges:
        reader = await _nearest(log, data, reader, behind, last, accepted)
        async for entries in skim(log, reader, until, progress):
            for entry in entries:
                if entry.read.sequence > behind:
                    search.take(entry)
    return search


async def _nearest(
    log: Log,
    data: Path,
    reader: SkimReader,
    behind: int,
    last: int,
    accepted: Mapping[int, bytes] | None,
) -> SkimReader:
    """What reads on to an entry with the fewest others: the reader as it stands, or a new one that
    begins at a snapshot."""
    for one in SnapshotFolder(data / "snapshots").older(behind + 1):
        if one.sequence <= reader.state.sequence:
            break
        try:
            # Of whatever release its states are: how far a log was read is the same in all.
            state = reader_of(next(iter(one.raw.values())))
        except SnapshotUnusable:
            continue
        if await is_named(log, one, one.raw.keys(), last, accepted):
            return SkimReader(log.cell, event_types(), state, accepted)
    return reader


# ---- ranges ------------------------------------------------------------------------------------


def _cut(ranges: Collection[tuple[int, int]], last: int) -> Ranges:
    return [(behind, min(until, last)) for behind, until in ranges if behind < last]


def _joined(ranges: Collection[tuple[int, int]]) -> Ranges:
    found: Ranges = []
    for behind, until in sorted(ranges):
        if found and behind <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], until))
        else:
            found.append((behind, until))
    return found


def _without(ranges: Collection[tuple[int, int]], read: Ranges) -> Ranges:
    """Those that do not lie within one that was read."""
    return [
        (behind, until)
        for behind, until in ranges
        if not any(first <= behind and until <= end for first, end in read)
    ]


def _size(ranges: Ranges) -> int:
    return sum(until - behind for behind, until in ranges)


def _varint(number: int) -> bytes:
    """As protobuf writes it."""
    raw = bytearray()
    while number > 0x7F:
        raw.append(0x80 | number & 0x7F)
        number >>= 7
    return bytes([*raw, number])
