"""What the console tells audit of itself: wrong passwords, and pages with accounts' data that it
reads from the log, where no call shows who reads.

It calls with a token of its own that opens nothing else. Alike things are one with a count, and
what audit does not take is kept until it does."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import significant_events_pb2 as significant
from services.console.calls import Calls, Fleet, NotDone
from services.kernel import telemetry
from services.kernel.telemetry_names import CONSOLE_NOT_TOLD

EVERY_S = 2.0
MOST = 64
"""Different things that wait: there are fewer people and pages. All beyond are one, of nobody."""
MOST_COUNTED = 1_000_000
SIGN_IN = "sign-in"
_OPERATOR = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


class BadTokenOfConsole(Exception):
    """The file of the console's own token cannot be used; the message says why."""


def read_token(path: Path | None) -> str:
    """The console's own token; empty: it has none. Raises BadTokenOfConsole."""
    if path is None:
        return ""
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise BadTokenOfConsole(f"{path}: {error.strerror or error}") from error
    if not token:
        raise BadTokenOfConsole(f"{path} is empty")
    return token


class Telling:
    """See the module."""

    def __init__(self, fleet: Fleet, token: str) -> None:
        """`token`: empty, and nothing is told."""
        self.trouble = ""
        """Why audit does not take it now; empty: it does, or nothing had to be told."""
        self._fleet, self._token = fleet, token
        self._waiting: dict[tuple[significant.NotedKind.ValueType, str, str], int] = {}

    @property
    def tells(self) -> bool:
        """Whether it has a token to tell with."""
        return bool(self._token)

    def failed(self, name: str) -> None:
        """A wrong password. `name`: of a person that the console knows; empty: nobody's. What was
        typed for a name may be a password, and is not told."""
        self._add(significant.NOTED_KIND_FAILED_SIGN_IN, name, SIGN_IN)

    def read(self, name: str, page: str) -> None:
        """A person sees what belongs to accounts. `page`: its kind, such as `rounds`."""
        self._add(significant.NOTED_KIND_READ, name, page)

    def _add(self, kind: significant.NotedKind.ValueType, name: str, page: str) -> None:
        if not self.tells:
            return
        key = (kind, name if _OPERATOR.fullmatch(name) else "", page)
        if key not in self._waiting and len(self._waiting) >= MOST:
            key = (kind, "", page)
        self._waiting[key] = min(self._waiting.get(key, 0) + 1, MOST_COUNTED)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.flush()

    async def flush(self) -> None:
        """Tell what waits; the rest waits on where audit does not answer."""
        if not self.tells:
            return
        # Made here and not before: connections are of the event loop that runs when they are made.
        calls = Calls(self._fleet, self._token, "en")
        for key, count in list(self._waiting.items()):
            kind, name, page = key
            request = audits.NoteSeenRequest(kind=kind, operator_id=name, page=page, count=count)
            try:
                await calls.ask(calls.audit.NoteSeen, request)
            except NotDone as error:
                if str(error) != self.trouble:
                    self.trouble = str(error)
                    telemetry.logger().error(CONSOLE_NOT_TOLD, problem=self.trouble)
                return
            self.trouble = ""
            left = self._waiting[key] - count
            if left:
                self._waiting[key] = left
            else:
                del self._waiting[key]
