"""How much room the log has left: it refuses what does not fit, which shall surprise nobody."""

from __future__ import annotations

from services.kernel.log import LogInfo

ALARM_AT = 0.8
"""So much of the log's room is used: an operator has time left to give it more."""


class Room:
    """Says once when the log fills up; again after it had been given more room."""

    def __init__(self) -> None:
        self._short = False
        self.info: LogInfo | None = None
        """What they said last."""

    def told(self, info: LogInfo) -> bool:
        """Take note of what the log's servers say; whether that is an alarm."""
        self.info = info
        short = 0 < info.bytes_max * ALARM_AT <= info.bytes_used
        alarm = short and not self._short
        self._short = short
        return alarm
