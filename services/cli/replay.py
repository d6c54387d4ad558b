"""`sabot replay --verify`: fold the inputs, decide everything again, compare byte for byte."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.cores import CORES
from services.cli.recalled import Recalled
from services.events import event_types
from services.kernel.event import Position
from services.kernel.log import Log
from services.kernel.reader import LogBroken, LogReader, ReadEntry
from services.kernel.recovery import AnyReplica, entries_until, rebuild
from services.kernel.replica import BehaviourUnknown, Diverged, Replica
from services.wallet.domain.state import sums

MAX_DIFFERENCES = 20
"""Of one service: after so many it is not decided again any further, since each takes a reading of
the log up to there."""


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
        return not (self.differences or any(self.sums.values()) or self.untrue)

    def line(self) -> str:
        """The one line that sums it up."""
        off = {currency: total for currency, total in self.sums.items() if total}
        books = "accounts sum to 0" if not off else f"accounts do not sum to 0: {off}"
        untrue = f", {len(self.untrue)} recalled facts are untrue" if self.untrue else ""
        return (
            f"verified: {self.rounds} rounds, {self.bets} bets, {self.answers} answers re-decided, "
            f"{len(self.differences)} differences, {books}{untrue}"
        )


async def verify(
    log: Log,
    progress: Callable[[int, int, int], None] | None = None,
    accepted: Mapping[int, bytes] | None = None,
) -> Verified:
    """Decide a whole log again. `progress(entries, of_entries, events)` is told how far it is, now
    and then. `accepted`: see LogReader.

    Raises LogBroken, LogUnavailable."""
    began = time.perf_counter()
    types = event_types()
    last = (await log.info(wait_s=5.0)).last_sequence

    def new_reader() -> LogReader:
        return LogReader(log.cell, types, accepted=accepted)

    reader = new_reader()
    replicas: dict[str, AnyReplica] = {
        core.service: Replica(core, writer="replay") for core in CORES
    }
    books: AnyReplica = replicas["wallet"]
    found, recalled = Verified(), Recalled()
    async for entries in entries_until(log, reader, last):
        for entry in entries:
            _count(found, entry)
            recalled.hear(entry.events)
            for service, replica in list(replicas.items()):
                diverged = _decide_again(replica, entry)
                if diverged is None:
                    continue
                found.differences.append(diverged)
                found.answers += replica.answers_compared + 1
                again = await _recorded(replica, log, entry.sequence, new_reader)
                if again is None or _count_of(found, service) >= MAX_DIFFERENCES:
                    found.lost[service] = diverged.position
                    del replicas[service]
                else:
                    replicas[service] = again
            books = replicas.get("wallet", books)
        if progress is not None:
            progress(reader.state.sequence, last, found.events)
        await asyncio.sleep(0)
    found.answers += sum(one.answers_compared for one in replicas.values())
    found.sums = sums(books.state.core)
    found.untrue = await recalled.untrue(log)
    found.accepted = len(reader.accepted_entries)
    found.heads_unchecked = reader.heads_unchecked
    found.last_sequence, found.head = reader.state.sequence, reader.state.head
    found.seconds = time.perf_counter() - began
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


def _count_of(found: Verified, service: str) -> int:
    return sum(one.service == service for one in found.differences)


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
