"""The event loop of a process: uvloop, a garbage collector that stays out of the way, signals."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

COLLECT_AFTER = 50_000
"""Objects made before the youngest are looked at. The default of 700 is met within one entry of a
busy log, and states of many accounts make every look at the oldest a pause."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a process's main coroutine to its end."""
    gc.set_threshold(COLLECT_AFTER, 20, 100)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def at_signals(do: Callable[[], object]) -> None:
    """Do this at SIGINT and SIGTERM. While a process starts that is to give up, then to drain."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, do)


def give_up_at_signals() -> None:
    """End the calling task at SIGINT and SIGTERM: what it has begun is undone on the way out."""
    task = asyncio.current_task()
    if task is not None:
        at_signals(task.cancel)
