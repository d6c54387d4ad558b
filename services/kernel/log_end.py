"""What a process knows of the log's end, for which it asks several times a second: whether it
stands there, whether the log was cut, and how much room there is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.kernel.freshness import Freshness
from services.kernel.log import Log, LogUnavailable
from services.kernel.outcomes import Alarm
from services.kernel.reader import LogBroken
from services.kernel.room import Room

ASK_EVERY_S = 0.2
"""How often the log's end is asked for."""
CUT_AFTER_ANSWERS = 10
"""So many answers in a row that know less than was read: the log was cut, the server is not new."""


class LogEnd:
    """See the module. `clock`: this process's, microseconds since 1970 UTC."""

    def __init__(self, log: Log, *, alarm: Alarm, clock: Callable[[], int]) -> None:
        self._log = log
        self._alarm = alarm
        self._clock = clock
        self._freshness = Freshness()
        self.room = Room()

    async def first(self, noted: int) -> int:
        """The last entry at a start. A new leader may answer before it has caught up; a log that
        was cut stays short of what was noted. Raises LogUnavailable."""
        for _ in range(CUT_AFTER_ANSWERS):
            last = (await self._log.info(wait_s=5.0)).last_sequence
            if last >= noted:
                break
            await asyncio.sleep(ASK_EVERY_S)
        return last

    async def watch(self, folded: Callable[[], int]) -> None:
        """Ask until cancelled. `folded`: the last entry that was. Raises LogBroken where the log
        ends before it."""
        shorter = 0
        while True:
            read_before = folded()
            asked_at = self._now()
            try:
                info = await self._log.info(wait_s=1.0)
            except LogUnavailable:
                pass
            else:
                if self.room.told(info):
                    room = {"bytes_used": info.bytes_used, "bytes_max": info.bytes_max}
                    self._alarm("log_nearly_full", room)
                # A new leader may answer before it has caught up; a log that was cut stays short.
                shorter = shorter + 1 if info.last_sequence < read_before else 0
                if shorter >= CUT_AFTER_ANSWERS:
                    raise LogBroken(
                        info.last_sequence + 1,
                        f"missing: entry {read_before} was read, the log ends at "
                        f"{info.last_sequence}",
                    )
                # Its age counts from the asking: what was stored since then it may not know.
                self._freshness.told(
                    info.last_sequence, info.server_time_us, asked_at, self._clock()
                )
                self.read(folded())
            await asyncio.sleep(ASK_EVERY_S)

    def read(self, sequence: int) -> None:
        """Everything up to `sequence` is folded."""
        self._freshness.read(sequence)

    def problem(self) -> str:
        """Why inputs may not be taken; empty where they may."""
        return self._freshness.problem(self._now())

    @property
    def heard_s(self) -> float:
        """How old the log's last word on its end is up to which all is read, seconds; -1: none."""
        return self._freshness.age_s(self._now())

    @property
    def clock_off_s(self) -> float:
        """How far this machine's clock is ahead of the log server's, seconds."""
        return self._freshness.clock_off_s

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
