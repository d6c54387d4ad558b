"""The tasks of a process: the first that ends by an error ends the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """Tasks by name. `failed`: told the error of the first that ended by itself."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Begin a task that is to run until it is cancelled."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(self._done)

    async def cancel(self, name: str) -> None:
        """End one, and wait until it has ended."""
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def cancel_all(self) -> None:
        """Have all end, without waiting."""
        for task in self._tasks.values():
            task.cancel()

    async def end(self) -> None:
        """End all, and wait until they have ended."""
        self.cancel_all()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    def _done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._failed(task.exception() or RuntimeError(f"task {task.get_name()} ended"))
