"""How strong the log is, asked again and again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from services.kernel.outcomes import Alarm
from services.kernel.preflight import Preflight
from services.kernel.telemetry_names import AlarmKind

AskServers = Callable[[], Awaitable[Preflight]]
"""Asks every server of the log how strong it is."""


class Strength:
    """How strong the log is, asked again and again; what is new of it is an alarm."""

    def __init__(self, ask: AskServers, alarms: Alarm) -> None:
        self._ask = ask
        self._alarms = alarms
        self._found = Preflight((), ())
        self._told: dict[AlarmKind, list[str]] = {"log_weak": [], "log_strained": []}

    async def look(self) -> list[str]:
        """The problems found now. That nobody can tell is one too."""
        try:
            found = await self._ask()
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody knows how durable the log is
            found = Preflight((f"preflight failed: {type(error).__name__}: {error}",), ())
        # A server is away, or a replica behind, for a moment now and then: what is seen twice is
        # worth an alarm.
        looks: tuple[tuple[AlarmKind, tuple[str, ...], tuple[str, ...]], ...] = (
            ("log_weak", found.problems, self._found.problems),
            ("log_strained", found.warnings, self._found.warnings),
        )
        for kind, now, before in looks:
            standing = [one for one in now if one in before]
            fresh = [one for one in standing if one not in self._told[kind]]
            if fresh:
                self._alarms(kind, {"found": fresh})
            self._told[kind] = standing
        self._found = found
        return list(found.problems)
