"""What a process is made of, as digests in the log: its code, its settings, who may call it, the
rules at its tables. Told at a start, when something is another than before, every day, and when an
operator asks; so that it can be proven afterwards what ran when, and a change that nobody ordered
is seen.

The same code under the same settings gives the same digests on every machine. What only says where
things are, such as addresses and folders, is no part of it, and no secret is.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2
from services.kernel.event import Event, Position
from services.kernel.settings import ServiceSettings

DAY_US = 86_400_000_000
"""Between two attestations of a process in which nothing changes."""
LOOK_US = 10_000_000
"""How often what can change while a process runs is looked at: callers, and rules at tables."""
AGAIN_US = 600_000_000
"""After so long an attestation that was not read back is told again: the log may have been full.
Where it only does not answer, what waits is few enough."""
CODE_EVERY_S = 600.0
"""How often the installed code is read anew: somebody may have put other files there, which a start
would run."""
CODE, CALLERS, RULES, SETTING = "code", "callers", "rules", "setting."
PACKAGES: Mapping[str, Sequence[str]] = {
    "services": [str(Path(__file__).parents[1])],
    "sabot": [str(Path(events_pb2.__file__).parents[2])],
}
"""Where the program lies."""
PLACES = frozenset(
    {
        "call_key_file",
        "data",
        "database_password_file",
        "database_url",
        "health_port",
        "host",
        "limits_address",
        "metrics_port",
        "name",
        "nats_monitor_urls",
        "nats_password_file",
        "nats_url",
        "nats_user",
        "otlp_endpoint",
        "port",
        "seal_key_file",
        "shoe_key_file",
        "tls_certificate",
        "tls_key",
        "token_file",
        "wallet_address",
    }
)
"""Settings that say where something is. All others are attested, each by its name; and `tls` and
`postgresql`, whether there is such a place at all."""


def code_digest() -> bytes:
    """SHA-256 of the program: every file of its two packages by name and content, in order. What
    the interpreter makes of them is left out."""
    found = hashlib.sha256()
    for package, roots in PACKAGES.items():
        for root in roots:
            for path in sorted(Path(root).rglob("*")):
                if path.suffix == ".pyc" or "__pycache__" in path.parts or not path.is_file():
                    continue
                name = f"{package}/{path.relative_to(root).as_posix()}"
                content = hashlib.sha256(path.read_bytes()).digest()
                found.update(name.encode() + b"\0" + content)
    return found.digest()


def setting_digests(settings: ServiceSettings) -> dict[str, bytes]:
    """By `setting.NAME`: those that change what a process does."""
    told = {
        name: getattr(settings, name) for name in type(settings).model_fields if name not in PLACES
    }
    told["tls"] = settings.tls_certificate is not None
    told["postgresql"] = bool(settings.database_url.get_secret_value())
    return {f"{SETTING}{name}": _digest(repr(value)) for name, value in sorted(told.items())}


def file_digest(path: Path | None) -> bytes:
    """SHA-256 of a file; of nothing, where there is none. Raises OSError."""
    try:
        content = path.read_bytes() if path is not None else b""
    except FileNotFoundError:
        content = b""
    return hashlib.sha256(content).digest()


def rules_digest(rules: Iterable[tuple[str, bytes]]) -> bytes:
    """SHA-256 of which rule set is in force at which table."""
    return _digest(repr(sorted(rules)))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


class _Sent(NamedTuple):
    """An attestation that has not been read back yet."""

    body: events_pb2.Attest
    parts: Mapping[str, bytes]
    at_us: int
    asked: frozenset[Position]
    """The orders that it answers."""


class Attestor:
    """See the module; a `services.kernel.shells.Shell`.

    - process, build: whose it is.
    - service: on whose subject it attests.
    - code: digest of the installed code, see `code_digest`.
    - rules: which rule set is in force at which table here; None where no tables are known.
    """

    wakes: frozenset[type[Message]] = frozenset({events_pb2.AskAttestation})
    since = 2

    def __init__(
        self,
        *,
        process: str,
        build: str,
        service: str,
        settings: ServiceSettings,
        code: bytes,
        rules: Callable[[Any], Iterable[tuple[str, bytes]]] | None = None,
    ) -> None:
        self.service = service
        self.problems: dict[str, str] = {}
        self.code = code
        """May be set anew."""
        self._process = process
        self._build = build
        self._token_file = settings.token_file
        self._settings = setting_digests(settings)
        self._rules = rules
        self._told: Mapping[str, bytes] | None = None
        """What stands in the log; None: nothing of this process does."""
        self._told_us = 0
        self._sent: _Sent | None = None
        self._looked_us = 0
        self._asked: set[Position] = set()

    def hear(self, events: Sequence[Event]) -> None:
        """Entries were read: somebody may have asked, or an attestation is told now."""
        for event in events:
            if isinstance(event.body, events_pb2.AskAttestation):
                self._asked.add(event.position)
            elif self._sent is not None and event.body == self._sent.body:
                self._told, self._told_us = self._sent.parts, self._sent.at_us
                self._asked -= self._sent.asked
                self._sent = None

    def poll(
        self, state: Any, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message]:
        """What there is to attest now."""
        del leading, answered  # What this process is made of, no other one tells.
        if self._sent is not None and 0 <= now_us - self._sent.at_us < AGAIN_US:
            return ()
        asked = bool(self._asked)
        if not asked and self._looked_us and 0 <= now_us - self._looked_us < LOOK_US:
            return ()
        self._looked_us = now_us
        try:
            parts = self.parts(state)
        except OSError as error:
            # Who may call is read from this file too, and goes on as it was.
            self.problems[CALLERS] = f"{self._token_file}: {error.strerror}"
            return ()
        self.problems.pop(CALLERS, None)
        if self._told is None:
            reason = events_pb2.ATTEST_REASON_STARTED
        elif parts != self._told:
            reason = events_pb2.ATTEST_REASON_CHANGED
        elif asked:
            reason = events_pb2.ATTEST_REASON_ASKED
        elif now_us - self._told_us >= DAY_US:
            reason = events_pb2.ATTEST_REASON_DAY
        else:
            return ()
        told = [events_pb2.AttestedPart(name=name, digest=parts[name]) for name in sorted(parts)]
        body = events_pb2.Attest(
            process=self._process,
            service=self.service,
            build=self._build,
            reason=reason,
            parts=told,
        )
        self._sent = _Sent(body, parts, now_us, frozenset(self._asked))
        return [body]

    def parts(self, state: Any) -> dict[str, bytes]:
        """Digests by name, as they are now."""
        found = {CODE: self.code, CALLERS: file_digest(self._token_file), **self._settings}
        if self._rules is not None:
            found[RULES] = rules_digest(self._rules(state))
        return found


@functools.cache
def installed_code() -> bytes:
    """The code as it was when this process read it first: what it runs."""
    return code_digest()


class Attesting:
    """The attestor of a process; none where it hosts no service, and so may append nothing.

    `subjects`: the service on whose subject it attests, or none; the rest is as for an Attestor."""

    def __init__(
        self,
        subjects: Sequence[str],
        *,
        process: str,
        build: str,
        settings: ServiceSettings,
        rules: Callable[[Any], Iterable[tuple[str, bytes]]] | None,
    ) -> None:
        self._made = [
            Attestor(
                process=process,
                build=build,
                service=service,
                settings=settings,
                code=b"",
                rules=rules,
            )
            for service in subjects
        ]

    async def shells(self) -> list[Attestor]:
        """With the digest of the code."""
        for one in self._made:
            one.code = await asyncio.to_thread(installed_code)
        return self._made

    def hear(self, events: list[Event]) -> None:
        """Entries were read."""
        for one in self._made:
            one.hear(events)

    async def keep_reading(self) -> None:
        """See whether somebody put other files where the code is, until cancelled."""
        while True:
            await asyncio.sleep(CODE_EVERY_S)
            for one in self._made:
                # Files that go while they are read are being replaced: the next look sees by what.
                with contextlib.suppress(OSError):
                    one.code = await asyncio.to_thread(code_digest)
