"""A process of `sabot bench` that appends to the log flat out; see `bench_log`. Told by stdin, in
JSON: where and what, and then when to go."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

from services.cli.bench_child import say
from services.kernel import event_loop
from services.kernel.entry import MAX_EVENTS
from services.kernel.jetstream import JetStreamLog

EVENT_BYTES = 300
WARM_S = 0.5
"""Appended, but not counted: the others start too."""
WAIT_S = 10.0
"""For an acknowledgement."""


async def _write() -> None:
    told = json.loads(await asyncio.to_thread(sys.stdin.readline))
    log = await JetStreamLog.connect(
        [told["url"]],
        told["cell"],
        name=told["subject"],
        consumer_prefix=told["consumer_prefix"],
        user=told["user"],
        password=told["password"],
        inbox_prefix=told["inbox_prefix"],
    )
    payload = os.urandom(EVENT_BYTES * MAX_EVENTS)
    fenced = told["subject"].endswith(".out")
    say(ready=True)
    await asyncio.to_thread(sys.stdin.readline)
    start = time.perf_counter() + WARM_S
    end = start + told["seconds"]
    last = events = 0
    while (now := time.perf_counter()) < end:
        last = await log.append(
            told["subject"], payload, expected=last if fenced else None, wait_s=WAIT_S
        )
        if now >= start:
            events += MAX_EVENTS
    say(events=events, seconds=time.perf_counter() - start)
    await log.close()


if __name__ == "__main__":
    event_loop.run(_write())
