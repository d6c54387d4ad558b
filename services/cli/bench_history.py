"""What audit's tools do with a long log: four parts of `sabot bench`.

`redecide_events_per_s`: `sabot prove` over the log's first entries, by one worker process and by
two: events of the cell a second, each decided again by every core whose it is. Starting the workers
is in it.

`verify_export_vs_hash`: how many times longer it takes to check an export than to hash the same
bytes once (SHA-256, read a MiB at a time).

`capsule_seconds`: the capsule of a settled round in the middle of the log, from a stopped fleet's
folder: the second of two, so that neither imports nor a cold disk are in it.

`replay_rss_mib`: the most memory that a process has that decides the whole log again, as
`sabot replay --verify` does; and beside it, for people, the most up to a tenth of the log.

The log is made by `bench_filled` and appended to a server of its own.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from services.cli.bench_child import arguments, child, say
from services.cli.bench_load import BenchFailed
from services.kernel import event_loop

MAX_REPLAY_S = 1_800.0
"""For one reading of the whole log."""
APPEND_S = 30.0
HASHED_AT_ONCE = 1 << 20
WORKERS = (1, 2)
_KIB_A_MIB = 1024


@dataclass(slots=True)
class History:
    """What was measured."""

    events: int = 0
    redecide_per_s: dict[int, float] = field(default_factory=dict[int, float])
    """By worker processes."""
    verify_vs_hash: float = 0.0
    capsule_seconds: float = 0.0
    capsule_entries: int = 0
    replay_rss_mib: float = 0.0
    replay_rss_tenth_mib: float = 0.0
    replay_events_per_s: float = 0.0


async def history(
    place: Path, events: int, redecided: int, parts: frozenset[str], progress: Callable[[str], None]
) -> History:
    """Measure on a log of so many events; `redecided`: of so many the deciding again by workers.
    `parts`: which figures. Raises BenchFailed."""
    data = place / "history"
    found = History()
    round_id, until, found.events = await _fill(data, events, redecided, progress)
    if "capsule_seconds" in parts:
        progress("a capsule")
        await _capsule(place, data, round_id, found)
    if "verify_export_vs_hash" in parts:
        progress("an export")
        found.verify_vs_hash = await _verify_vs_hash(place / "history.export", data)
    if "redecide_events_per_s" in parts:
        for workers in WORKERS:
            progress(f"deciding again by {workers}")
            found.redecide_per_s[workers] = await _redecide(data, workers, until)
    if "replay_rss_mib" in parts:
        progress("replay")
        module = "services.cli.bench_history"
        async with child(place, "replay", module, str(data)) as one:
            told = await one.line(MAX_REPLAY_S)
        found.replay_rss_mib, found.replay_rss_tenth_mib = told["rss_mib"], told["tenth_mib"]
        found.replay_events_per_s = told["per_s"]
    return found


async def _fill(
    data: Path, events: int, redecided: int, progress: Callable[[str], None]
) -> tuple[str, tuple[int, int], int]:
    """Make the log; a round in its middle, and what is decided again by workers: up to which entry,
    and how many events that is; how many events it has."""
    from services.cli.bench_filled import FilledLog
    from services.cli.fleet import CELL, connect, embedded_log

    round_id, until = "", (0, 0)
    async with embedded_log(data) as server:
        filled = FilledLog(CELL, data)
        log = await connect(server)
        try:
            while filled.events < events or not filled.rounds:
                made = filled.round() if filled.events else filled.begin()
                sequence = 0
                for one in made:
                    message = one.message
                    sequence = await log.append(
                        message.subject, message.payload, expected=one.expected, wait_s=APPEND_S
                    )
                    if sequence != message.sequence:
                        raise BenchFailed(f"entry {message.sequence} is stored at {sequence}")
                if not round_id and filled.rounds and filled.events >= events // 2:
                    round_id = filled.rounds[-1]
                if not until[0] and filled.events >= redecided:
                    until = (sequence, filled.events)
                progress(f"a log of {filled.events} events")
        finally:
            await log.close()
            filled.close()
    return round_id, until, filled.events


async def _capsule(place: Path, data: Path, round_id: str, found: History) -> None:
    from services.cli.capsule import make_capsule
    from services.cli.incident_span import Wanted
    from services.cli.log_source import open_source

    for name in ("first", "second"):
        began = time.perf_counter()
        async with open_source(data) as log:
            made = await make_capsule(log, Wanted(round_id), place / f"{name}.capsule", data)
        found.capsule_seconds = round(time.perf_counter() - began, 3)
        found.capsule_entries = made.entries
        if not made.sealed:
            raise BenchFailed(f"the capsule of {round_id} stands under no seal")


async def _verify_vs_hash(path: Path, data: Path) -> float:
    from services.cli.export import export_log
    from services.cli.log_source import open_source
    from services.cli.verify_export import verify

    async with open_source(data) as log:
        await export_log(log, path, lambda _: None)
    hashed_s = _timed(lambda: _hash(path))

    def check() -> None:
        with path.open("rb") as file:
            found = verify(file)
        if not found.right or not found.seals:
            raise BenchFailed(f"the export is wrong: {found.faults[:1]}")

    return round(_timed(check) / hashed_s, 2)


def _hash(path: Path) -> None:
    digest = sha256()
    with path.open("rb") as file:
        while part := file.read(HASHED_AT_ONCE):
            digest.update(part)


def _timed(work: Callable[[], None]) -> float:
    """Seconds of this process on a processor: what else the machine does is not in a ratio."""
    began = time.process_time()
    work()
    return time.process_time() - began


async def _redecide(data: Path, workers: int, until: tuple[int, int]) -> float:
    from services.cli.log_source import open_source
    from services.cli.prove import prove

    last, events = until
    async with open_source(data) as log:
        began = time.perf_counter()
        found = await prove(
            data, log, workers, data / "bench.checkpoint", {}, lambda *_: None, last=last
        )
        took = time.perf_counter() - began
    if not found.right or found.last != last:
        raise BenchFailed(f"the filled log is not right: {found.line()}")
    return round(events / took, 1)


# ---- in the child ------------------------------------------------------------------------------


async def _replay(data: Path) -> None:
    from services.cli.log_source import open_source
    from services.cli.replay import verify

    tenth: list[float] = []

    def progress(entries: int, of: int, _events: int) -> None:
        if not tenth and entries >= of / 10:
            tenth.append(_rss_mib())

    async with open_source(data) as log:
        began = time.perf_counter()
        found = await verify(log, progress)
        took = time.perf_counter() - began
    if not found.right:
        raise BenchFailed(found.line())
    say(
        per_s=round(found.events / took, 1),
        rss_mib=_rss_mib(),
        tenth_mib=tenth[0] if tenth else _rss_mib(),
    )


def _rss_mib() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_A_MIB, 1)


if __name__ == "__main__":
    (told_data,) = arguments(("DATA",))
    event_loop.run(_replay(Path(told_data)))
