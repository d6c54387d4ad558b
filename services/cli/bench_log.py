"""The log alone, and what comes out of it again: two parts of `sabot bench`.

`log_only_per_s`: a nats-server as the fleet runs it (`sync_interval: "always"`), and four processes
that append flat out, each to the subject of one step of a bet's path (`table.in`, `table.out`,
`limits.out`, `wallet.out`): entries of 800 events of 300 bytes, one append at a time, `.out` with
its fence. Nobody encodes, reads or decides. A bet is four events, so the figure is the events a
second of the slowest of the four.

`recovery_events_per_s`: the fleet's log after the bets were placed, all events of the cell, served
by a nats-server; one process with the wallet's core and nothing else folds it from entry 1 without
a snapshot, as `python -m services.wallet` does before it serves (its projection apart). The server
is started and the store checked before the clock starts. Passes are repeated until enough time is
measured.
"""

from __future__ import annotations

import gc
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from services.cli.bench_child import arguments, child, say
from services.cli.bench_load import BenchFailed
from services.cli.fleet import CELL, connect, embedded_log
from services.events import event_types
from services.kernel import event_loop
from services.kernel.entry import decode_entry
from services.kernel.event import Core
from services.kernel.host import clock_us
from services.kernel.log import Log
from services.kernel.process import Process

STEPS = ("table.in", "table.out", "limits.out", "wallet.out")
"""The appends of a bet."""
WRITER = "services.cli.bench_writer"
MAX_PASS_S = 300.0
"""For one pass of recovery."""


async def log_only(folder: Path, seconds: float) -> float:
    """Bets a second that the log alone takes. Raises BenchFailed."""
    data = folder / "log-only"
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(embedded_log(data))
        user = server.users["fleet"]
        writers = [
            await stack.enter_async_context(child(folder, f"log-{step}", WRITER)) for step in STEPS
        ]
        for step, writer in zip(STEPS, writers, strict=True):
            await writer.tell(
                {
                    "url": server.client_url,
                    "cell": CELL,
                    "user": user.user,
                    "password": user.password,
                    "inbox_prefix": user.inbox_prefix,
                    "consumer_prefix": user.consumer_prefix,
                    "subject": f"sabot.{CELL}.{step}",
                    "seconds": seconds,
                }
            )
        for writer in writers:
            await writer.line(60.0)  # connected
        for writer in writers:
            await writer.tell({"go": True})
        told = [await writer.line(seconds + 60.0) for writer in writers]
    return min(float(one["events"] / one["seconds"]) for one in told)


async def recovery(folder: Path, data: Path, seconds: float) -> dict[str, Any]:
    """`{"events", "per_s", "passes"}` of a stopped fleet's folder. Raises BenchFailed."""
    async with child(folder, "recovery", "services.cli.bench_log", str(data), str(seconds)) as one:
        return await one.line(MAX_PASS_S + seconds)


async def count_events(log: Log) -> int:
    """All events of the cell, up to now."""
    last = (await log.info(wait_s=5.0)).last_sequence
    events = 0
    messages = log.read(0)
    try:
        async for batch in messages:
            for message in batch:
                if message.sequence > last:
                    return events
                events += len(decode_entry(message.payload).events)
                if message.sequence == last:
                    return events
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    return events


async def _recover(data: Path, seconds: float) -> None:
    from services.wallet.domain.core import CORE
    from services.wallet.domain.state import sums

    async with embedded_log(data) as server:
        log = await connect(server)
        try:
            events = await count_events(log)
            spent = 0.0
            passes = 0
            while spent < seconds:
                async with _recovered(CORE, log) as (process, took):
                    spent += took
                    passes += 1
                    if any(sums(process.state("wallet")).values()):
                        raise BenchFailed("the recovered accounts do not sum to 0")
                gc.collect()
        finally:
            await log.close()
    say(events=events, per_s=events * passes / spent, passes=passes)


@asynccontextmanager
async def _recovered(core: Core[Any], log: Log) -> AsyncIterator[tuple[Process, float]]:
    """A service's process at the head of the log, and how many seconds it took to get there."""
    alarms: list[str] = []
    process = Process(
        log=log,
        types=event_types(),
        cores=[core],
        writer=f"bench-{time.monotonic_ns()}",
        build="bench",
        clock=clock_us,
        alarm=lambda kind, _: alarms.append(kind),
    )
    began = time.perf_counter()
    await process.start()
    took = time.perf_counter() - began
    try:
        if alarms:
            raise BenchFailed(f"recovery raised alarms: {alarms}")
        yield process, took
    finally:
        await process.stop()


if __name__ == "__main__":
    told_data, told_seconds = arguments(("DATA", "SECONDS"))
    event_loop.run(_recover(Path(told_data), float(told_seconds)))
