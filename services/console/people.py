"""Who may sign in to the console, and as whom it then calls the fleet.

The file of people is a JSON object, readable by its owner only:

    {"dana": {"roles": ["dealer"], "salt": "…", "check": "…", "nonce": "…", "sealed": "…"}}

scrypt stretches a password to 64 bytes. Of the first 32 only the SHA-256 is kept, as `check`; the
other 32 are the key that the person's bearer token is sealed with (AES-256-GCM, bound to the name).
So the file by itself opens nothing: not the console, and not the fleet.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from services.kernel.nats_process import write_private
from services.kernel.private_file import exposed
from services.kernel.tokens import Role

N, R, P = 1 << 15, 8, 1
"""scrypt's cost: 32 MiB and about a tenth of a second an attempt."""
MAX_MEMORY = 64 * 1024 * 1024
SALT_BYTES, NONCE_BYTES, KEY_BYTES = 16, 12, 32
FREE_TRIES = 5
"""So many wrong passwords cost nothing but the stretching; each further one doubles a pause."""
MAX_PAUSE_S = 300.0
ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Of made passwords: nothing that looks like something else."""
GROUPS, GROUP = 4, 4
"""Four groups of four: 79 bits."""
ROLES = tuple(role for role in Role if role not in {Role.DEVICE, Role.CONSOLE})
"""Of people."""


class BadPeopleFile(Exception):
    """The file of people cannot be used; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may sign in."""

    name: str
    """The operator's id, as the fleet knows it."""
    roles: frozenset[Role]
    salt: bytes
    check: bytes
    nonce: bytes
    sealed: bytes


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A person whose password was right."""

    name: str
    roles: frozenset[Role]
    token: str = field(repr=False)


@dataclass(slots=True)
class _Tries:
    count: int = 0
    again_at: float = 0.0


class TooManyTries(Exception):
    """Too many wrong passwords: the next attempt is looked at after `wait_s` seconds."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"wait {wait_s:.0f} s")
        self.wait_s = wait_s


class People:
    """The people of a file. It is read again at each attempt: whoever is taken out is out."""

    def __init__(self, path: Path, now: Callable[[], float] = time.monotonic) -> None:
        """Read the file. Raises BadPeopleFile."""
        self._path = path
        self._now = now
        self._tries: dict[str, _Tries] = {}
        read_people(path)

    def known(self, name: str) -> str:
        """The name where it is somebody's; else empty."""
        try:
            return name if name in read_people(self._path) else ""
        except BadPeopleFile:
            return ""

    def sign_in(self, name: str, password: str) -> SignedIn | None:
        """Whose password it is; None: nobody's. Blocks while the password is stretched, as long for
        a name that is not known. Raises TooManyTries, BadPeopleFile."""
        people = read_people(self._path)
        person = people.get(name)
        tries = self._tries.setdefault(name if person else "", _Tries())
        wait_s = tries.again_at - self._now()
        if wait_s > 0:
            raise TooManyTries(wait_s)
        found = _opened(person, name, password)
        if found is None:
            tries.count += 1
            if tries.count >= FREE_TRIES:
                pause_s = min(MAX_PAUSE_S, 2.0 ** (tries.count - FREE_TRIES))
                tries.again_at = self._now() + pause_s
        else:
            self._tries.pop(name, None)  # Two of them may be right at once.
        return found


def _opened(person: Person | None, name: str, password: str) -> SignedIn | None:
    salt = person.salt if person else bytes(SALT_BYTES)
    check, key = _stretched(password, salt)
    if person is None or not hmac.compare_digest(check, person.check):
        return None
    try:
        token = AESGCM(key).decrypt(person.nonce, person.sealed, name.encode())
    except InvalidTag:
        return None
    return SignedIn(name, person.roles, token.decode())


def _stretched(password: str, salt: bytes) -> tuple[bytes, bytes]:
    raw = hashlib.scrypt(
        password.encode(), salt=salt, n=N, r=R, p=P, maxmem=MAX_MEMORY, dklen=2 * KEY_BYTES
    )
    return hashlib.sha256(raw[:KEY_BYTES]).digest(), raw[KEY_BYTES:]


def read_people(path: Path) -> dict[str, Person]:
    """The people of a file, by name. Raises BadPeopleFile."""
    try:
        if exposed(path.stat()):
            raise BadPeopleFile(f"{path}: others may read it; chmod 600 it")
        told = json.loads(path.read_text())
        return {str(name): _person(str(name), facts) for name, facts in told.items()}
    except OSError as error:
        raise BadPeopleFile(f"{path}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError):
        # Without the cause: it could quote the file.
        raise BadPeopleFile(f"{path} is no file of people") from None


def _person(name: str, facts: Mapping[str, object]) -> Person:
    known = {role.value: role for role in ROLES}
    roles = facts["roles"]
    if not isinstance(roles, list) or not roles:
        raise TypeError("roles")
    return Person(
        name,
        frozenset(known[role] for role in roles),
        *(bytes.fromhex(str(facts[part])) for part in ("salt", "check", "nonce", "sealed")),
    )


def add_person(path: Path, name: str, roles: frozenset[Role], password: str, token: str) -> None:
    """Put a person into the file, in place of one of that name. Raises BadPeopleFile."""
    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    check, key = _stretched(password, salt)
    told = _facts(read_people(path)) if path.exists() else {}
    told[name] = {
        "roles": sorted(role.value for role in roles),
        "salt": salt.hex(),
        "check": check.hex(),
        "nonce": nonce.hex(),
        "sealed": AESGCM(key).encrypt(nonce, token.encode(), name.encode()).hex(),
    }
    write_private(path, json.dumps(told, indent=2) + "\n")


def _facts(people: Mapping[str, Person]) -> dict[str, dict[str, object]]:
    return {
        one.name: {
            "roles": sorted(role.value for role in one.roles),
            "salt": one.salt.hex(),
            "check": one.check.hex(),
            "nonce": one.nonce.hex(),
            "sealed": one.sealed.hex(),
        }
        for one in people.values()
    }


def new_password() -> str:
    """A password by chance."""
    drawn: list[str] = []
    while len(drawn) < GROUPS * GROUP:
        # Bytes that would favour the first letters are drawn again.
        drawn += (
            ALPHABET[byte % len(ALPHABET)]
            for byte in os.urandom(GROUPS * GROUP)
            if byte < 256 - 256 % len(ALPHABET)
        )
    text = "".join(drawn[: GROUPS * GROUP])
    return "-".join(text[at : at + GROUP] for at in range(0, len(text), GROUP))


def create_demo_people(
    path: Path, clear_path: Path, roles: Mapping[str, frozenset[Role]], tokens: Mapping[str, str]
) -> dict[str, str]:
    """Make the demonstration's people where they are not yet; the passwords, by name.

    `roles`: by name; `tokens`: clear bearer tokens by actor. `clear_path` gets the passwords, as
    tokens.json gets the tokens: a demonstration hides nothing from its owner. A file that an
    operator made is left alone, and nothing is told of it."""
    if path.exists() and not clear_path.exists():
        return {}
    clear: dict[str, str] = json.loads(clear_path.read_text()) if clear_path.exists() else {}
    for name, has in roles.items():
        token = tokens.get(f"operator:{name}")
        if token is not None and name not in clear:
            clear[name] = new_password()
            add_person(path, name, has, clear[name], token)
    write_private(clear_path, json.dumps(clear, indent=2) + "\n")
    return clear
