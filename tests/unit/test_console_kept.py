"""What the console keeps over its starts, and how it looks for something, on a log of all games."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sabot.log.v1 import entry_pb2
from sabot.table.v1 import events_pb2 as tables
from services.cli.find import KINDS, Sought, find
from services.console import archive as archive_of
from services.console import kept_file, seeking
from services.console.archive import APART, Archive, near
from services.console.history import FINE_MARKS, MARK_EVERY, History, Kept, Mark, thin
from services.events import event_types
from services.kernel.event import Event
from services.kernel.log import AppendRefused, Log, LogInfo, LogMessage, LogUnavailable
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import ReaderState
from services.kernel.snapshot import StateCodec
from tests.histories.history import load
from tests.unit.test_console_replay import RECORDED

WITHIN_S = 30.0
ENOUGH = 100
BATCH = 256
CODEC = StateCodec()
KINDS_ASKED = [one for one in KINDS if one != "trace"]


class Recorded:
    """A recorded log, as a live one: who has read it waits for more. It remembers behind which
    entries it was read."""

    def __init__(self) -> None:
        recorded = load(RECORDED)
        self.cell = recorded.cell
        self.messages = recorded.messages
        self.read_after: list[int] = []
        self.ended = asyncio.Event()
        """Somebody read it to its end."""
        self.away = asyncio.Event()
        """Who reads it is cut off."""

    async def append(
        self, subject: str, payload: bytes, *, expected: int | None, wait_s: float
    ) -> int:
        del subject, payload, expected, wait_s
        raise AppendRefused("it is over")

    async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        self.read_after.append(after)
        for first in range(after, len(self.messages), BATCH):
            yield self.messages[first : first + BATCH]
        self.ended.set()
        await self.away.wait()
        raise LogUnavailable("it went away")

    async def info(self, *, wait_s: float) -> LogInfo:
        del wait_s
        return LogInfo(1, len(self.messages), 0, 0, -1)

    async def close(self) -> None:
        return


@asynccontextmanager
async def followed(data: Path) -> AsyncIterator[tuple[Archive, Recorded]]:
    """A console's archive that has read the whole log."""
    log = Recorded()

    @asynccontextmanager
    async def connect() -> AsyncIterator[Log]:
        yield log

    archive = Archive(log.cell, data, connect)
    following = asyncio.ensure_future(archive.follow())
    try:
        async with asyncio.timeout(WITHIN_S):
            await log.ended.wait()
        assert archive.history.sequence == len(log.messages)
        yield archive, log
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await archive.close()


async def first_bets(archive: Archive) -> Event:
    """A request for bets in a round that is over."""
    for note in archive.history.rounds.values():
        for one in (await archive.playthrough(note.round_id)).shown:
            if isinstance(one.event.body, tables.BetsPlaced):
                return one.event
    raise AssertionError("nobody bets in this log")


def whole(history: History) -> bytes:
    return CODEC.dumps(Kept, history.kept)


def test_the_next_start_reads_nothing_of_what_was_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with followed(tmp_path) as (first, log):
            assert log.read_after[0] == 0
            told, last = whole(first.history), first.history.sequence
        file = tmp_path / "console" / "history"
        assert file.stat().st_mode & 0o077 == 0, "balances stand in it"
        async with followed(tmp_path) as (second, log):
            assert whole(second.history) == told
            assert min(log.read_after) >= last - 1
            note = next(one for one in second.history.rounds.values() if one.last)
            assert (await second.playthrough(note.round_id)).shown

    asyncio.run(main())


@pytest.mark.parametrize("harm", ["a bit", "its end", "another release", "another log", "longer"])
def test_what_is_damaged_or_of_another_log_is_begun_anew(
    tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with followed(tmp_path) as (first, _):
            told, last = whole(first.history), first.history.last
        file = tmp_path / "console" / "history"
        raw = file.read_bytes()
        assert last is not None
        if harm == "a bit":
            file.write_bytes(raw[:500] + bytes([raw[500] ^ 1]) + raw[501:])
        elif harm == "its end":
            file.write_bytes(raw[:-1])
        elif harm == "another release":
            monkeypatch.setattr(kept_file, "SCHEMA", kept_file.SCHEMA + 1)
        else:
            found = kept_file.load(file, first.cell)
            assert found is not None
            if harm == "longer":
                found[0].reader.sequence += 10
            else:
                last = last._replace(payload=last.payload[1:])
            kept_file.save(file, first.cell, found[0], last)
        async with followed(tmp_path) as (second, log):
            assert 0 in log.read_after
            assert whole(second.history) == told

    asyncio.run(main())


@pytest.mark.parametrize("harm", ["shorter", "another", "the same"])
def test_a_log_that_was_replaced_while_it_was_away_is_begun_anew(
    tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else rounds that are lost were shown, and orders taken without knowing who acts."""
    monkeypatch.setattr(archive_of, "AGAIN_S", 0.0)
    monkeypatch.setattr(archive_of, "LOOK_EVERY_S", WITHIN_S)

    async def main() -> None:
        async with followed(tmp_path) as (archive, log):
            archive.reached = True
            await first_bets(archive)
            before = archive.history
            if harm == "shorter":
                log.messages = log.messages[: len(log.messages) // 4]
            elif harm == "another":
                assert before.last is not None
                before.last = before.last._replace(payload=before.last.payload + b"x")
            log.read_after.clear()
            log.ended.clear()
            away, log.away = log.away, asyncio.Event()
            away.set()
            async with asyncio.timeout(WITHIN_S):
                await log.ended.wait()
            anew = harm != "the same"
            assert (archive.history is not before) == anew
            assert archive.reached != anew
            assert bool(archive._read) != anew
            assert log.read_after[-1] == (0 if anew else before.sequence)
            if harm == "shorter":
                assert archive.history.sequence == len(log.messages)
                assert len(archive.history.rounds) < len(before.rounds)

    asyncio.run(main())


def test_what_stands_far_apart_is_not_read_in_one() -> None:
    assert near([]) == []
    assert near([5]) == [(5, 5)]
    assert near([3, 9, 9 + APART, 9 + 2 * APART + 1]) == [
        (3, 9 + APART),
        (9 + 2 * APART + 1, 9 + 2 * APART + 1),
    ]


def test_marks_stay_spread_over_the_whole_log() -> None:
    marks: deque[Mark] = deque()
    for number in range(2_000):
        marks.append(Mark(ReaderState(number * MARK_EVERY, b""), {}, {}))
        while len(marks) > 100:
            thin(marks)
    at = [mark.sequence for mark in marks]
    assert (at[0], at[-1]) == (0, 1_999 * MARK_EVERY)
    gaps = [after - before for before, after in pairwise(at)]
    assert set(gaps[-FINE_MARKS + 1 :]) == {MARK_EVERY}
    assert max(gaps) <= 4 * at[-1] / len(at), "no part of the log is far from a mark"


def test_a_search_finds_what_a_search_of_the_whole_log_finds(tmp_path: Path) -> None:
    """The newest of it, and of each id what it is."""

    async def main() -> None:
        async with followed(tmp_path) as (archive, _):
            placed = await first_bets(archive)
            body = placed.body
            assert isinstance(body, tables.BetsPlaced)
            asked = {
                body.bets[0].bet_id: "bet",
                body.account_id: "account",
                body.request_id: "request",
            }
            if placed.traceparent:
                asked[placed.traceparent.split("-")[1]] = "trace"
            for text, kind in asked.items():
                expected = await find(Recorded(), Sought({kind: text}))
                kinds = [one for one in KINDS if one in {kind, "table"}]
                found = await archive.find(text, kinds, ENOUGH)
                assert (found.kind, found.events) == (kind, expected[-ENOUGH:]), text
                assert found.whole == (len(expected) <= ENOUGH), text
            nobody = await archive.find("nobody-knows", KINDS, ENOUGH)
            assert (nobody.kind, nobody.events) == ("", [])

    asyncio.run(main())


async def test_a_search_goes_on_over_what_nobody_can_read(tmp_path: Path) -> None:
    store = MemoryStore("main", lambda: 0)
    body = tables.PlaceBets(account_id="ann", table_id="t1").SerializeToString()
    for counter, end in enumerate((b"", b"\xff", b""), 1):
        event = entry_pb2.Event(type="sabot.table.v1.PlaceBets", body=body + end, time_us=1)
        entry = entry_pb2.Entry(writer="w", counter=counter, events=[event])
        store.store("sabot.main.table.in", entry.SerializeToString(), None)
    history: Any = SimpleNamespace(
        sequence=3,
        sequence_at=lambda _time_us: 0,
        time_before=lambda _sequence: (0, 0),
        kept=SimpleNamespace(reader=SimpleNamespace(behaviour=1)),
    )
    seeking_it = seeking.Seeking(MemoryLog(store), event_types(), history, tmp_path, ENOUGH)
    found = await seeking_it.find("ann", ["account"])
    assert [event.position.sequence for event in found.events] == [1, 3]


def test_what_is_only_a_part_of_ids_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in nearly every entry, and nobody's."""

    async def look(*_: object) -> None:
        raise AssertionError("it was looked for")

    async def main() -> None:
        async with followed(tmp_path) as (archive, _):
            body = (await first_bets(archive)).body
            assert isinstance(body, tables.BetsPlaced)
            monkeypatch.setattr(seeking.Seeking, "_look", look)
            found = await archive.find(body.account_id[:-1], KINDS_ASKED, ENOUGH)
            assert (found.kind, found.events) == ("", [])

    asyncio.run(main())


def test_of_an_id_that_is_everywhere_the_newest_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with followed(tmp_path) as (archive, log):
            body = (await first_bets(archive)).body
            assert isinstance(body, tables.BetsPlaced)
            everything = await archive.find(body.account_id, KINDS_ASKED, 100_000)
            assert everything.whole
            monkeypatch.setattr(seeking, "MOST_PLACES", 4)
            monkeypatch.setattr(seeking, "READ_AT_ONCE", 50)
            log.read_after.clear()
            found = await archive.find(body.account_id, KINDS_ASKED, 100_000)
            assert (found.kind, found.whole) == ("account", False)
            assert found.events == everything.events[-len(found.events) :]
            assert 0 < len(found.events) < len(everything.events)
            assert min(log.read_after) > 0

    asyncio.run(main())


def test_of_an_id_that_says_when_it_was_made_nothing_older_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeking, "CLOCKS_APART_US", 0)

    async def main() -> None:
        async with followed(tmp_path) as (archive, log):
            sequence, made_us = archive.history.kept.times[-1]
            stamp = f"{made_us // 1000 + 1:012x}"
            log.read_after.clear()
            await archive.find(f"{stamp[:8]}-{stamp[8:]}-7000-8000-000000000000", KINDS, ENOUGH)
            # First only the end; then, since its clock may have been wrong, everything.
            assert log.read_after == [sequence, 0]

    asyncio.run(main())
