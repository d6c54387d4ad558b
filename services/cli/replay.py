"""`sabot replay --verify`: fold the inputs, decide everything again, compare byte for byte."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.accepted_differences import Answer, accepted_apart, accepted_in
from services.cli.cores import CORES
from services.cli.differences import differences_in
from services.cli.recalled import Recalled
from services.events import event_types
from services.kernel.event import Position
from services.kernel.log import Log
from services.kernel.reader import LogBroken, LogReader, ReadEntry
from services.kernel.recovery import AnyReplica, entries_until, rebuild
from services.kernel.replica import BehaviourUnknown, Diverged, Replica
from services.wallet.domain.state import sums

MAX_DIFFERENCES = 20
"""Entries of one service: after so many it is not decided again any further, since each takes a
reading of the log up to there."""


@dataclass(slots=True)
class Verified:
    """What a whole log says."""

    rounds: int = 0
    """Rounds that are over: paid or returned."""
    bets: int = 0
    """Bets that were on."""
    answers: int = 0
    """Recorded answers that were decided again."""
    differences: list[Diverged] = field(default_factory=list[Diverged])
    let_stand: list[Diverged] = field(default_factory=list[Diverged])
    """Differences that an operator accepted, as the log says."""
    lost: dict[str, Position] = field(default_factory=dict[str, Position])
    """By service, where it differs so that nothing after that can be decided again."""
    sums: dict[str, int] = field(default_factory=dict[str, int])
    """By currency, what all accounts come to."""
    events: int = 0
    accepted: int = 0
    """Entries that an operator let pass although they cannot be understood."""
    heads_unchecked: int = 0
    """Answers whose cause lies too far back to hold their head against it."""
    untrue: list[str] = field(default_factory=list[str])
    """What corrections rest on and is not what the log says."""
    last_sequence: int = 0
    head: bytes = b""
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether every answer follows, the books balance, and corrections rest on facts."""
        return not (self.differences or self.lost or any(self.sums.values()) or self.untrue)

    def line(self) -> str:
        """The one line that sums it up."""
        off = {currency: total for currency, total in self.sums.items() if total}
        books = "accounts sum to 0" if not off else f"accounts do not sum to 0: {off}"
        untrue = f", {len(self.untrue)} recalled facts are untrue" if self.untrue else ""
        return (
            f"verified: {self.rounds} rounds, {self.bets} bets, {self.answers} answers re-decided, "
            f"{len(self.differences)} differences{accepted_apart(len(self.let_stand))}, "
            f"{books}{untrue}"
        )


class KeptReplay(Protocol):
    """Where it is kept how far a replay is (see `replay_checkpoint`)."""

    async def begin(self, log: Log, last: int, replaying: Replaying) -> None:
        """Go on from what is kept, if anything is. Raises CheckpointUnusable, LogUnavailable."""

    def keep_now_and_then(self, replaying: Replaying) -> None:
        """Keep it where that was long ago."""

    def keep(self, replaying: Replaying) -> None:
        """Keep it. Raises OSError."""

    def remove(self) -> None:
        """All is done."""


async def verify(
    log: Log,
    progress: Callable[[int, int, int], None] | None = None,
    accepted: Mapping[int, bytes] | None = None,
    kept: KeptReplay | None = None,
) -> Verified:
    """Decide a whole log again. `progress(entries, of_entries, events)` is told how far it is, now
    and then. `accepted`: see LogReader. `kept`: where it is kept how far it is: once a minute, and
    when it is interrupted; there it goes on, and at its end it is removed.

    Raises LogBroken, LogUnavailable, CheckpointUnusable."""
    last = (await log.info(wait_s=5.0)).last_sequence
    replaying = Replaying(log, accepted)
    if kept is not None:
        await kept.begin(log, last, replaying)
    try:
        async for entries in entries_until(log, replaying.reader, last):
            await replaying.take(entries)
            if kept is not None:
                kept.keep_now_and_then(replaying)
            if progress is not None:
                progress(replaying.reader.state.sequence, last, replaying.found.events)
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        if kept is not None and replaying.between_batches:
            kept.keep(replaying)
        raise
    found = await replaying.ended()
    if kept is not None:
        kept.remove()
    return found


class Replaying:
    """A log that is being decided again."""

    def __init__(self, log: Log, accepted: Mapping[int, bytes] | None) -> None:
        self._log = log
        self._accepted = accepted
        self.began = time.perf_counter()
        self.reader = self._new_reader()
        self.replicas: dict[str, AnyReplica] = {
            core.service: Replica(core, writer="replay") for core in CORES
        }
        self.books: AnyReplica = self.replicas["wallet"]
        """The wallet's as it was last; where it is lost, as it was then."""
        self.found = Verified()
        self.recalled = Recalled()
        self.differing: list[tuple[Diverged, bytes]] = []
        """Differences so far, each with the chain hash at its entry."""
        self.let_stand: set[Answer] = set()
        self.between_batches = True
        """Whether all states have read the same entries."""

    def _new_reader(self) -> LogReader:
        return LogReader(self._log.cell, event_types(), accepted=self._accepted)

    async def take(self, entries: Sequence[ReadEntry]) -> None:
        """Decide the next entries."""
        self.between_batches = False
        for entry in entries:
            _count(self.found, entry)
            self.recalled.hear(entry.events)
            self.let_stand.update(accepted_in(entry.events))
            for service, replica in list(self.replicas.items()):
                diverged = _decide_again(replica, entry)
                if diverged is not None:
                    await self._follow_record(service, replica, diverged, entry)
            self.books = self.replicas.get("wallet", self.books)
        self.between_batches = True

    async def _follow_record(
        self, service: str, replica: AnyReplica, diverged: Diverged, entry: ReadEntry
    ) -> None:
        self.differing += [(one, entry.head) for one in differences_in(diverged)]
        self.found.answers += replica.answers_compared + len(diverged.told)
        again = await _recorded(replica, self._log, entry.sequence, self._new_reader)
        readings = {one.position.sequence for one, _ in self.differing if one.service == service}
        if again is None or len(readings) >= MAX_DIFFERENCES:
            self.found.lost[service] = diverged.position
            del self.replicas[service]
        else:
            self.replicas[service] = again

    async def ended(self) -> Verified:
        """What it came to. Raises LogUnavailable."""
        found, reader = self.found, self.reader
        for one, head in self.differing:
            stands = (one.position, head) in self.let_stand
            (found.let_stand if stands else found.differences).append(one)
        found.answers += sum(one.answers_compared for one in self.replicas.values())
        found.sums = sums(self.books.state.core)
        found.untrue = await self.recalled.untrue(self._log)
        found.accepted = len(reader.accepted_entries)
        found.heads_unchecked = reader.heads_unchecked
        found.last_sequence, found.head = reader.state.sequence, reader.state.head
        found.seconds += time.perf_counter() - self.began
        return found


def _decide_again(replica: AnyReplica, entry: ReadEntry) -> Diverged | None:
    """Let a replica read an entry; the difference, if there is one. Raises LogBroken where what is
    recorded cannot even be folded."""
    try:
        replica.read(entry, 0.0)
    except Diverged as diverged:
        return diverged
    except (LogBroken, BehaviourUnknown):
        raise
    except Exception as error:
        raise LogBroken(
            entry.sequence,
            f"{replica.core.service} cannot fold it: {type(error).__name__}: {error}",
        ) from error
    return None


async def _recorded(
    replica: AnyReplica, log: Log, last: int, new_reader: Callable[[], LogReader]
) -> AnyReplica | None:
    """The same replica with what is recorded instead of what was decided, so that the rest of the
    log is judged by what was said. None where the record cannot be followed: it answers what the
    service does not even see."""
    try:
        again = await rebuild(
            replica.core,
            log=log,
            new_reader=new_reader,
            last=last,
            writer="replay",
            build="",
            now=lambda: 0.0,
            pause=lambda: asyncio.sleep(0),
        )
    except (Diverged, LogBroken):
        return None
    again.answers_compared = 0
    return again


def _count(found: Verified, entry: ReadEntry) -> None:
    found.events += len(entry.events)
    for event in entry.events:
        if isinstance(event.body, table.RoundClosed):
            found.rounds += 1
        elif isinstance(event.body, wallet.StakeReserved):
            found.bets += len(event.body.bets)
