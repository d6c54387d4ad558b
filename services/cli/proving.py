"""A whole history decided again in pieces: from one snapshot to the next, and by services.

A piece begins with the states that a snapshot has, and at its end its own states must be those of
the next snapshot: so all pieces together are the whole history, whatever the order in which they
were done. A service decides by the log alone, so its history is a piece by itself too.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sabot.log.v1 import entry_pb2
from sabot.table.v1 import events_pb2 as tables
from services.cli.accepted_differences import Answer, accepted_apart, accepted_in
from services.cli.cores import BY_SERVICE, CORES
from services.cli.differences import difference_line, differences_in
from services.cli.starts import is_named
from services.events import event_types
from services.kernel.event import Core
from services.kernel.log import Log
from services.kernel.reader import LogBroken, LogReader, ReadEntry
from services.kernel.recovery import AnyReplica, entries_until
from services.kernel.replica import Diverged, Pending, Replica, ReplicaState
from services.kernel.snapshot import (
    Snapshot,
    SnapshotFolder,
    SnapshotSet,
    SnapshotUnusable,
    StateCodec,
    decode_snapshot,
    encode_snapshot,
    reader_of,
)
from services.wallet.domain.state import sums

MAX_DIFFERENCES = 20
"""Entries of one service in one piece: after so many it is not decided again any further,
since each takes a reading of the piece up to there."""
PIECES_A_PROCESS = 8
"""At most: so that none waits for long at the end, and few states are in memory."""


@dataclass(slots=True)
class Piece:
    """Some services' history between two places."""

    number: int
    services: tuple[str, ...]
    last: int
    """The entry with which it ends."""
    start: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """By service, the snapshot that it begins with; empty: it begins with the log."""
    expected: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """By service, the snapshot that it must come to; empty: it ends with the log."""

    @property
    def after(self) -> int:
        """The entry behind which it begins."""
        return reader_of(next(iter(self.start.values()))).sequence if self.start else 0


class Difference(NamedTuple):
    """Something that does not follow."""

    position: str
    """Of the recorded answer; empty: it is a state."""
    head: str
    """The chain hash at its entry, hexadecimal."""
    line: str
    """For people."""


@dataclass(slots=True)
class Proven:
    """What a piece came to, or how far it is."""

    number: int
    sequence: int
    head: bytes
    rounds: int = 0
    answers: int = 0
    events: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])
    let_stand: list[Answer] = field(default_factory=list[Answer])
    """Answers that an operator let stand, as its entries say: of other pieces too."""
    lost: list[str] = field(default_factory=list[str])
    """Services that could not be followed to the end."""
    sums: dict[str, int] = field(default_factory=dict[str, int])
    """By currency, what all accounts come to at the log's end."""
    states: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """By service, where it stopped; empty where it is done."""


# ---- pieces ------------------------------------------------------------------------------------


async def pieces_of(
    log: Log,
    last: int,
    folder: Path,
    processes: int,
    accepted: Mapping[int, bytes] | None = None,
) -> list[Piece]:
    """A history in pieces: at snapshots that the log names, some for each process, and by services
    where there are fewer snapshots than processes."""
    places: list[SnapshotSet] = []
    for one in SnapshotFolder(folder).at(spread(folder, last, processes * PIECES_A_PROCESS)):
        try:
            for core in CORES:
                one.decode(core)
        except SnapshotUnusable:
            continue
        if await is_named(log, one, BY_SERVICE.keys(), last, accepted):
            places.append(one)
    groups = min(len(CORES), max(1, -(-processes // (len(places) + 1))))
    names = [core.service for core in CORES]
    pieces: list[Piece] = []
    for place in range(len(places) + 1):
        start = places[place - 1] if place else None
        end = places[place] if place < len(places) else None
        for group in range(groups):
            services = tuple(names[group::groups])
            pieces.append(
                Piece(
                    len(pieces),
                    services,
                    end.sequence if end else last,
                    {name: start.raw[name] for name in services} if start else {},
                    {name: end.raw[name] for name in services} if end else {},
                )
            )
    return pieces


def spread(folder: Path, last: int, most: int) -> list[int]:
    """Where the snapshots before an entry stand, in order; of many, some that lie evenly."""
    there = [one for one in reversed(SnapshotFolder(folder).sequences()) if one < last]
    if len(there) <= most:
        return there
    return [there[number * len(there) // most] for number in range(most)]


async def prove_piece(
    log: Log,
    piece: Piece,
    accepted: Mapping[int, bytes] | None = None,
    report: Callable[[int, int], None] = lambda _sequence, _events: None,
    stop: Callable[[], bool] = lambda: False,
) -> Proven:
    """Decide a piece again. `report(sequence, events)` is told how far it is; `stop`: whether to
    leave it there. Raises LogBroken, LogUnavailable."""
    proving = _Proving(log, piece, accepted)
    async for entries in entries_until(log, proving.reader, piece.last):
        for entry in entries:
            await proving.take(entry)
        report(proving.reader.state.sequence, proving.found.events)
        await asyncio.sleep(0)
        if stop() and proving.reader.state.sequence < piece.last:
            return proving.stopped()
    return proving.ended()


class _Proving:
    """One piece under way."""

    def __init__(self, log: Log, piece: Piece, accepted: Mapping[int, bytes] | None) -> None:
        self._log = log
        self._piece = piece
        self._accepted = accepted
        self.reader = self._begin_reading()
        self._replicas = {name: self._begin(BY_SERVICE[name]) for name in piece.services}
        self._count_of: dict[str, int] = {}
        state = self.reader.state
        self.found = Proven(piece.number, state.sequence, state.head)

    def _begin_reading(self) -> LogReader:
        state = None
        if self._piece.start:
            state = reader_of(next(iter(self._piece.start.values())))
        return LogReader(self._log.cell, event_types(), state, self._accepted)

    def _begin(self, core: Core[Any]) -> AnyReplica:
        raw = self._piece.start.get(core.service)
        taken = decode_snapshot(StateCodec(), core, raw).replica if raw else None
        return Replica(core, writer="prove", state=taken)

    async def take(self, entry: ReadEntry) -> None:
        """Decide the next entry."""
        found = self.found
        found.events += len(entry.events)
        found.let_stand += accepted_in(entry.events)
        if "table" in self._piece.services:
            found.rounds += sum(isinstance(one.body, tables.RoundClosed) for one in entry.events)
        for name, replica in list(self._replicas.items()):
            try:
                replica.read(entry, 0.0)
            except Diverged as diverged:
                found.differences += [
                    Difference(str(one.position), entry.head.hex(), difference_line(one))
                    for one in differences_in(diverged)
                ]
                found.answers += replica.answers_compared + len(diverged.told)
                await self._follow_record(name, entry.sequence)
            except LogBroken:
                raise
            except Exception as error:
                raise LogBroken(
                    entry.sequence, f"{name} cannot fold it: {type(error).__name__}: {error}"
                ) from error

    async def _follow_record(self, name: str, until: int) -> None:
        """Go on with what is recorded instead of what was decided."""
        del self._replicas[name]
        count = self._count_of[name] = self._count_of.get(name, 0) + 1
        if count >= MAX_DIFFERENCES:
            self.found.lost.append(name)
            return
        try:
            self._replicas[name] = await self._recorded(BY_SERVICE[name], until)
        except (Diverged, LogBroken):
            self.found.lost.append(name)

    async def _recorded(self, core: Core[Any], until: int) -> AnyReplica:
        after = self._piece.after
        recorded: deque[entry_pb2.Event] = deque()
        async for entries in entries_until(self._log, self._begin_reading(), until):
            for entry in entries:
                if entry.service == core.service and not entry.is_input:
                    recorded.extend(one for one in entry.protos if one.cause.sequence > after)
        replica = self._begin(core)
        async for entries in entries_until(self._log, self._begin_reading(), until):
            for entry in entries:
                replica.read(entry, 0.0, recorded or None)
        replica.answers_compared = 0
        return replica

    def _count(self) -> Proven:
        found = self.found
        found.sequence, found.head = self.reader.state.sequence, self.reader.state.head
        found.answers += sum(one.answers_compared for one in self._replicas.values())
        return found

    def stopped(self) -> Proven:
        """How far it is, with the states to go on from."""
        found = self._count()
        codec = StateCodec()
        for name, replica in self._replicas.items():
            core = replica.core
            here = Snapshot(name, core.schema, self.reader.state, replica.state)
            found.states[name] = encode_snapshot(codec, core, here)
        return found

    def ended(self) -> Proven:
        """What it came to, held against the snapshot at its end."""
        found = self._count()
        codec = StateCodec()
        for name, replica in self._replicas.items():
            raw = self._piece.expected.get(name)
            if raw is not None:
                here = Snapshot(name, replica.core.schema, self.reader.state, replica.state)
                if not _same(codec, replica.core, here, raw):
                    told = (
                        f"difference at entry {self._piece.last}: the state of {name} is not the "
                        f"one that the snapshot there has"
                    )
                    found.differences.append(Difference("", "", told))
            elif name == "wallet":
                found.sums = sums(replica.state.core)
        return found


def _same(codec: StateCodec, core: Core[Any], here: Snapshot, raw: bytes) -> bool:
    """Whether states are the same: all but who wrote down what waits to be recorded, and when."""
    there = decode_snapshot(codec, core, raw)
    if here.reader != there.reader:
        return False
    ours, theirs = (
        encode_snapshot(
            codec,
            core,
            Snapshot(one.service, one.schema, here.reader, _compared(one.replica)),
        )
        for one in (here, there)
    )
    return ours == theirs


def _compared(state: ReplicaState[Any]) -> ReplicaState[Any]:
    pending: deque[Pending] = deque()
    for one in state.pending:
        proto = entry_pb2.Event()
        proto.CopyFrom(one.proto)
        proto.ClearField("note")
        pending.append(Pending(proto, one.cause_head))
    return dataclasses.replace(state, pending=pending)


# ---- all of them -------------------------------------------------------------------------------


@dataclass(slots=True)
class History:
    """What all pieces came to."""

    rounds: int = 0
    answers: int = 0
    differences: list[str] = field(default_factory=list[str])
    let_stand: list[str] = field(default_factory=list[str])
    """Differences that an operator accepted, as the log says."""
    lost: list[str] = field(default_factory=list[str])
    sums: dict[str, int] = field(default_factory=dict[str, int])
    last: int = 0
    head: bytes = b""
    pieces: int = 0

    @property
    def right(self) -> bool:
        """Whether every answer follows and the books balance."""
        return not (self.differences or self.lost or any(self.sums.values()))

    def line(self) -> str:
        """The line that sums it up."""
        off = {currency: total for currency, total in self.sums.items() if total}
        books = f", accounts do not sum to 0: {off}" if off else ""
        return (
            f"{self.rounds} rounds, {self.answers} answers, {len(self.differences)} differences"
            f"{accepted_apart(len(self.let_stand))}{books}, head {self.last}:{self.head.hex()}"
        )

    def json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "right": self.right,
            "rounds": self.rounds,
            "answers": self.answers,
            "differences": self.differences,
            "accepted_differences": self.let_stand,
            "lost": self.lost,
            "sums": self.sums,
            "last_sequence": self.last,
            "head": self.head.hex(),
            "pieces": self.pieces,
            "line": self.line(),
        }


def history_of(proven: Sequence[Proven]) -> History:
    """All pieces together."""
    end = max(proven, key=lambda one: one.sequence)
    found = History(last=end.sequence, head=end.head, pieces=len(proven))
    let_stand = {(str(at), head.hex()) for one in proven for at, head in one.let_stand}
    for one in sorted(proven, key=lambda one: one.number):
        found.rounds += one.rounds
        found.answers += one.answers
        for position, head, line in one.differences:
            stands = (position, head) in let_stand
            (found.let_stand if stands else found.differences).append(line)
        found.lost += one.lost
        found.sums.update(one.sums)
    return found


def publish_outcome(path: Path, found: History, build: str, made_at_us: int) -> None:
    """Add what a proof came to, right or not, to a file of such lines, which only grows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {"made_at_us": made_at_us, "build": build, **found.json()}
    with path.open("a") as file:
        file.write(json.dumps(told, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
