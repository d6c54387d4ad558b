"""Who is calling: bearer tokens, of which only the SHA-256 is kept.

The token file is a JSON object, readable by its owner only:

    {"<sha256 of a token, hex>": {"partner": "north"},
     "<sha256 of a token, hex>": {"operator": "anna", "roles": ["dealer", "supervisor"]},
     "<sha256 of a token, hex>": {"operator": "wheel-7", "roles": ["device"], "tables": ["t1"]}}

A device's token lies where the device stands, and is worth what it may say. `tables` are those
that an operator may tell of or give orders at; where a token names none, all of them. `devices` are
those that a token with the role device speaks for; where it names none, the device of its own id
alone.

It is read again when it changes, so a token is revoked without a restart; a changed file that is
not valid leaves the former tokens in force and is logged.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from services.kernel import telemetry
from services.kernel.private_file import exposed
from services.kernel.telemetry_names import TOKENS_NOT_RELOADED, TOKENS_RELOADED

LOOK_EVERY_S = 1.0
"""How often the file's time of change is looked at: a revoked token works this much longer."""
MAX_FILE_BYTES = 4 * 1024 * 1024
"""About 30,000 tokens: far more than there are partners, and read within a tenth of a second."""
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Role(Enum):
    """What an operator may do."""

    DEALER = "dealer"
    SUPERVISOR = "supervisor"
    AUDITOR = "auditor"
    VIEWER = "viewer"
    """Sees what every operator may see, and does nothing."""
    DEVICE = "device"
    """No person: a scanner, a sensor, a camera. It tells what it sees, and may see what all may."""
    CONSOLE = "console"
    """No person: a console itself. It tells of wrong passwords and pages read, and sees nothing."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A partner, or an operator with roles."""

    partner: str = ""
    """The partner's id; empty for an operator."""
    operator: str = ""
    """The operator's id; empty for a partner."""
    roles: frozenset[Role] = frozenset()
    devices: frozenset[str] = frozenset()
    """The devices that it speaks for; none: with the role device, the one of its own id."""
    tables: frozenset[str] = frozenset()
    """The tables that it may tell of and give orders at; none: every table."""
    actor: str = field(init=False)
    """As in an event's header: `partner:<id>` or `operator:<id>`."""

    def __post_init__(self) -> None:
        actor = f"partner:{self.partner}" if self.partner else f"operator:{self.operator}"
        object.__setattr__(self, "actor", actor)

    @property
    def speaks_for(self) -> frozenset[str]:
        """The devices that it may name."""
        if Role.DEVICE not in self.roles:
            return frozenset()
        return self.devices or frozenset({self.operator})

    def reaches(self, table_id: str) -> bool:
        """Whether it may tell of a table, or give orders there."""
        return not self.tables or table_id in self.tables


class BadTokenFile(Exception):
    """The token file cannot be used; the message says why, in one line."""


class _Pairs(list[tuple[str, object]]):
    """A JSON object as it stands, so that a key that stands there twice is seen."""


def digest_of(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(path: Path) -> dict[bytes, Caller]:
    """The callers by the SHA-256 of their tokens. Raises BadTokenFile."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if exposed(found):
                mode = stat.S_IMODE(found.st_mode)
                raise BadTokenFile(f"{path}: others may read it (mode {mode:04o}); chmod 600 it")
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadTokenFile(f"{path}: {error.strerror or error}") from error
    if len(content) > MAX_FILE_BYTES:
        raise BadTokenFile(f"{path}: more than {MAX_FILE_BYTES} bytes")
    try:
        pairs = json.loads(content, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise BadTokenFile(f"{path}: no JSON: {error}") from error
    if not isinstance(pairs, _Pairs):
        raise BadTokenFile(f"{path}: must be one JSON object")
    callers: dict[bytes, Caller] = {}
    for digest, who in pairs:
        if not _SHA256.fullmatch(digest):
            raise BadTokenFile(f"{path}: {digest[:80]!r} is no SHA-256 in lower-case hex")
        if bytes.fromhex(digest) in callers:
            raise BadTokenFile(f"{path}: {digest} stands there twice")
        callers[bytes.fromhex(digest)] = _caller(f"{path}: {digest[:12]}…", who)
    return callers


def _caller(where: str, who: object) -> Caller:
    if not isinstance(who, _Pairs):
        raise BadTokenFile(f"{where}: must be an object")
    facts = dict(who)
    if len(facts) != len(who):
        raise BadTokenFile(f"{where}: a key stands there twice")
    kind = "partner" if "partner" in facts else "operator"
    name = facts.get(kind)
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise BadTokenFile(f"{where}: needs `partner` or `operator`, an id of a-z, 0-9 and -")
    if kind == "partner":
        if set(facts) != {"partner"}:
            raise BadTokenFile(f"{where}: a partner has nothing but `partner`")
        return Caller(partner=name)
    if not {"operator", "roles"} <= set(facts) or not isinstance(facts["roles"], list):
        raise BadTokenFile(f"{where}: an operator has `operator` and a list `roles`")
    strange = sorted(set(facts) - {"operator", "roles", *_BOUNDS})
    if strange:
        raise BadTokenFile(f"{where}: {strange[0]!r} is nothing that an operator has")
    known = {role.value: role for role in Role}
    for role in facts["roles"]:
        if not isinstance(role, str) or role not in known:
            raise BadTokenFile(f"{where}: {role!r} is no role; there are {', '.join(known)}")
    if not facts["roles"]:
        raise BadTokenFile(f"{where}: an operator needs a role")
    roles = frozenset(known[role] for role in facts["roles"])
    devices, tables = (_bound(where, bound, facts) for bound in _BOUNDS)
    if devices and Role.DEVICE not in roles:
        raise BadTokenFile(f"{where}: `devices` is for the role device")
    return Caller(operator=name, roles=roles, devices=devices, tables=tables)


_BOUNDS = ("devices", "tables")
"""What may narrow an operator's token."""


def _bound(where: str, name: str, facts: Mapping[str, object]) -> frozenset[str]:
    """The ids that a token is bound to; none where it does not say."""
    if name not in facts:
        return frozenset()
    ids = facts[name]
    if not isinstance(ids, list) or not ids:
        raise BadTokenFile(f"{where}: `{name}` is a list of one id or more; leave it out for all")
    for one in ids:
        if not isinstance(one, str) or not _ID.fullmatch(one):
            raise BadTokenFile(f"{where}: {one!r} in `{name}` is no id of a-z, 0-9 and -")
    return frozenset(str(one) for one in ids)


class Tokens:
    """The tokens in force."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises BadTokenFile."""
        self._path = path
        self._seen = self._stamp()
        self._callers: Mapping[bytes, Caller] = read_tokens(path)
        self._look_at = time.monotonic() + LOOK_EVERY_S
        self._log = telemetry.logger()

    def caller(self, token: str) -> Caller | None:
        """Whose token it is, or None.

        The digest is what is looked up, so how long it takes says nothing about any other token.
        """
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY_S
            self._reload()
        return self._callers.get(hashlib.sha256(token.encode()).digest())

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _reload(self) -> None:
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._callers = read_tokens(self._path)
        except BadTokenFile as error:
            self._log.error(TOKENS_NOT_RELOADED, problem=str(error))
        else:
            self._log.info(TOKENS_RELOADED, tokens=len(self._callers))


def write_tokens(path: Path, callers: Mapping[str, Caller]) -> None:
    """Write a token file for clear tokens and whose they are."""
    facts = {digest_of(token): entry_of(caller) for token, caller in callers.items()}
    _write_private(path, json.dumps(facts, indent=2) + "\n")


def made_caller(facts: Mapping[str, object]) -> Caller:
    """A caller as the token file would say it. Raises BadTokenFile."""
    return _caller("the token", _Pairs(facts.items()))


def add_token(path: Path, token: str, caller: Caller) -> None:
    """Add a token to a token file, or make one. Raises BadTokenFile."""
    kept = read_tokens(path) if path.exists() else {}
    facts = {digest.hex(): entry_of(one) for digest, one in kept.items()}
    facts[digest_of(token)] = entry_of(caller)
    _write_private(path, json.dumps(facts, indent=2) + "\n")


def entry_of(caller: Caller) -> dict[str, object]:
    """What the token file says of a caller."""
    if caller.partner:
        return {"partner": caller.partner}
    entry: dict[str, object] = {
        "operator": caller.operator,
        "roles": sorted(role.value for role in caller.roles),
    }
    for name, ids in (("devices", caller.devices), ("tables", caller.tables)):
        if ids:
            entry[name] = sorted(ids)
    return entry


DEMO_CALLERS = (
    Caller(partner="north"),
    Caller(partner="south"),
    Caller(partner="west"),
    Caller(operator="dana", roles=frozenset({Role.DEALER})),
    Caller(operator="sam", roles=frozenset({Role.DEALER, Role.SUPERVISOR})),
    # A second supervisor: whoever proposes a correction cannot approve it.
    Caller(operator="rosa", roles=frozenset({Role.SUPERVISOR})),
    Caller(operator="ada", roles=frozenset({Role.AUDITOR})),
    Caller(operator="vera", roles=frozenset({Role.VIEWER})),
    Caller(operator="console", roles=frozenset({Role.CONSOLE})),
    Caller(operator="wheel-7", roles=frozenset({Role.DEVICE}), tables=frozenset({"floor-wheel"})),
    Caller(
        operator="scanner-1",
        roles=frozenset({Role.DEVICE}),
        tables=frozenset({"floor-shoe", "floor-blackjack"}),
    ),
)
"""Who takes part in the demonstration."""


def create_demo_tokens(path: Path, clear_path: Path) -> bool:
    """Make tokens for the demonstration's callers where no token file stands yet; whether it did.

    `clear_path` gets the clear tokens by actor (`{"partner:north": "…"}`), for the demo's client.
    Files of an earlier demonstration get the callers that it did not have, if they are still as it
    left them: nobody comes into a file that an operator has made or changed.
    """
    if path.exists():
        _add_new_demo_callers(path, clear_path)
        return False
    clear = {caller: new_token() for caller in DEMO_CALLERS}
    told = {caller.actor: token for caller, token in clear.items()}
    _write_private(clear_path, json.dumps(told, indent=2) + "\n")
    write_tokens(path, {token: caller for caller, token in clear.items()})
    return True


def new_token() -> str:
    """A token that nobody can guess: 256 bits of the operating system's generator."""
    return base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


def _add_new_demo_callers(path: Path, clear_path: Path) -> None:
    """See `create_demo_tokens`."""
    try:
        clear = json.loads(clear_path.read_text())
        callers = read_tokens(path)
    except (OSError, ValueError, BadTokenFile):
        return
    if not isinstance(clear, dict) or not all(isinstance(one, str) for one in clear.values()):
        return
    known = {bytes.fromhex(digest_of(token)): actor for actor, token in clear.items()}
    made = {digest: caller.actor for digest, caller in callers.items()}
    demo = {caller.actor: caller for caller in DEMO_CALLERS}
    if made != known or not all(_is_as_made(one, demo) for one in callers.values()):
        return
    if set(callers.values()) == set(DEMO_CALLERS):
        return
    clear |= {actor: new_token() for actor in demo if actor not in clear}
    _write_private(clear_path, json.dumps(clear, indent=2) + "\n")
    write_tokens(path, {token: demo[actor] for actor, token in clear.items()})


def _is_as_made(caller: Caller, demo: Mapping[str, Caller]) -> bool:
    """Whether a demonstration made this caller: this one, or one whose devices were not bound to
    tables yet."""
    now = demo.get(caller.actor)
    if now is None or caller.roles != now.roles:
        return False
    unbound = not caller.devices and not caller.tables
    return unbound or (caller.devices, caller.tables) == (now.devices, now.tables)


def _write_private(path: Path, content: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
