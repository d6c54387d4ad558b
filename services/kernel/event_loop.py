"""The event loop of a process: uvloop, and a garbage collector that stays out of the way."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
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
