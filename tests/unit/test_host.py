"""What a host does around its process."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

from services.kernel import host


async def test_a_log_that_was_weak_for_a_moment_is_looked_at_again_soon() -> None:
    answers = iter([["no server of the log tells how it is configured"], []])
    strong_again = asyncio.Event()
    process: Any = SimpleNamespace(weak=["no server of the log tells how it is configured"])

    async def preflight() -> list[str]:
        found = next(answers)
        if not found:
            strong_again.set()
        return found

    keeping = asyncio.create_task(
        host._keep_preflight(process, preflight, lambda _kind, _facts: None)
    )
    try:
        async with asyncio.timeout(host.PREFLIGHT_EVERY_S):
            await strong_again.wait()
            await asyncio.sleep(0)
        assert process.weak == []
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
