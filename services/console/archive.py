"""The log, as the console reads it: with credentials that can append nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from services.cli.log_source import NoLog
from services.console.history import History
from services.events import event_types
from services.kernel import telemetry
from services.kernel.accepted import read_accepted
from services.kernel.log import Log, LogUnavailable
from services.kernel.reader import LogBroken
from services.kernel.telemetry_names import CONSOLE_FOLLOWS

AGAIN_S = 1.0
"""Before the log is looked for again when it could not be read."""

Connect = Callable[[], AbstractAsyncContextManager[Log]]


class Archive:
    """See the module."""

    def __init__(self, cell: str, data: Path, connect: Connect) -> None:
        """`data`: the folder with the fleet's snapshots, where there is one."""
        self.cell = cell
        self.data = data
        self.types = event_types()
        self.history = History(cell, self.types, self.accepted())
        self.trouble = ""
        """Why the log cannot be followed now; empty: it can."""
        self._connect = connect
        self._stack = AsyncExitStack()
        self._log: Log | None = None
        self._opening = asyncio.Lock()

    def accepted(self) -> Mapping[int, bytes]:
        """Entries that an operator lets pass (see LogReader)."""
        return read_accepted(self.data).entries

    async def log(self) -> Log:
        """The log. Raises NoLog, LogUnavailable."""
        async with self._opening:
            if self._log is None:
                try:
                    self._log = await self._stack.enter_async_context(self._connect())
                except OSError as error:
                    raise LogUnavailable(str(error)) from error
            return self._log

    async def last_sequence(self) -> int:
        """The log's last entry. Raises NoLog, LogUnavailable."""
        return (await (await self.log()).info(wait_s=3.0)).last_sequence

    async def follow(self) -> None:
        """Follow the log until cancelled. A log that is broken is said to be so, and left."""
        logger = telemetry.logger()
        while True:
            try:
                log = await self.log()
                self.trouble = ""
                await self.history.follow(log)
            except (LogUnavailable, NoLog) as error:
                self.trouble = str(error)
                await self._let_go()
                await asyncio.sleep(AGAIN_S)
            except LogBroken as error:
                self.trouble = str(error)
                logger.error(  # noqa: TRY400 - it says where and why
                    CONSOLE_FOLLOWS, problem=str(error)
                )
                return

    async def _let_go(self) -> None:
        async with self._opening:
            self._log = None
            stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def close(self) -> None:
        """Let go of the log."""
        await self._let_go()
