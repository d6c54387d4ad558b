"""Who tried at a server of the log what they may not: the server refuses and writes it down, and
nobody else hears of it. This reads what it writes and raises an alarm.

A service of ours never tries such a thing. So it is a stolen password, a wrong build, or somebody
in the cluster's network who tries names.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO

from services.kernel.telemetry_names import AlarmKind

LOOK_EVERY_S = 0.25
"""How soon an attempt is told of; a server writes a few lines a minute otherwise."""
TOLD_MOST = 20
"""Different attempts at one look that are told apart; beyond that somebody tries them all, and what
matters is how many there are."""
ATTEMPT = re.compile(
    r"\[ERR\] (?P<address>\S+) - \w+:\d+ - (?:.*?user:(?P<user>[^\"]*)\" - )?.*?"
    r"(?P<what>Publish|Subscription) Violation - (?:Subject|Reply) \"?(?P<subject>[^\",]+)"
)
STRANGER = re.compile(
    r"\[ERR\] (?P<address>\S+) - \w+:\d+ - .*?authentication error(?: - User \"(?P<user>[^\"]*)\")?"
)
WHAT = {"Publish": "publish", "Subscription": "subscribe"}


class Alarm(Protocol):
    """How an alarm is raised."""

    def __call__(self, kind: AlarmKind, facts: Mapping[str, Any], /) -> None: ...


@dataclass(frozen=True, slots=True)
class Attempt:
    """Something that a server refused."""

    what: str
    """`publish`, `subscribe` or `connect`."""
    user: str
    """As whom; empty where no name was given."""
    subject: str
    """Empty for `connect`."""
    host: str
    """From where, without the port, which is another each time."""

    def facts(self, times: int) -> dict[str, Any]:
        """For the alarm."""
        told = {"what": self.what, "user": self.user, "subject": self.subject, "from": self.host}
        return {name: value for name, value in told.items() if value} | {"times": times}


def attempt_of(line: str) -> Attempt | None:
    """What a line of a server's log says was refused, if it says so."""
    found = ATTEMPT.search(line)
    if found is not None:
        host = found["address"].rpartition(":")[0]
        return Attempt(WHAT[found["what"]], found["user"] or "", found["subject"], host)
    found = STRANGER.search(line)
    if found is not None:
        return Attempt("connect", found["user"] or "", "", found["address"].rpartition(":")[0])
    return None


@dataclass
class LogWatch:
    """Follows the log file of one server, also past its being put aside for a new one."""

    path: Path
    alarm: Alarm
    passed_on: TextIO
    """Where every line goes as it is: the server itself writes into the file alone."""
    _file: BinaryIO | None = None
    _rest: bytes = b""

    def close(self) -> None:
        """Hold the file no more."""
        if self._file is not None:
            self._file.close()
            self._file = None

    async def run(self) -> None:
        """For ever. A file that is not there yet is waited for."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        """Read what is new, and tell of it."""
        attempts: Counter[Attempt] = Counter()
        for line in self._new_lines():
            print(line, file=self.passed_on, flush=True)
            attempt = attempt_of(line)
            if attempt is not None:
                attempts[attempt] += 1
        for attempt, times in list(attempts.items())[:TOLD_MOST]:
            self.alarm("log_misused", attempt.facts(times))
        others = sum(list(attempts.values())[TOLD_MOST:])
        if others:
            self.alarm("log_misused", {"what": "others", "times": others})

    def _new_lines(self) -> list[str]:
        """Whole lines that were not read yet: the rest of a file that was put aside, then those of
        the one that took its name."""
        lines = self._read()
        if self._is_another():
            lines += self._read()  # what came between
            self.close()
            self._file, self._rest = self.path.open("rb"), b""
            lines += self._read()
        return lines

    def _is_another(self) -> bool:
        try:
            named = self.path.stat().st_ino
        except FileNotFoundError:
            return False
        return self._file is None or os.fstat(self._file.fileno()).st_ino != named

    def _read(self) -> list[str]:
        if self._file is None:
            return []
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [line.decode(errors="replace") for line in lines]
