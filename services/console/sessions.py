"""Sessions of people who signed in. They live in this process and end with it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from services.console.people import SignedIn
from services.kernel.tokens import Role

COOKIE_BYTES = 32
MOST_SESSIONS = 500
"""More than a cell has operators; whoever signs in beyond it ends the session unused longest."""
LIFE_S = 12 * 3600.0
"""A shift: then the password is asked for again, however busy the session is."""
MOST_STREAMS = 8
"""Live pages of one session at a time: browsers keep about as many connections open."""


@dataclass(slots=True)
class Session:
    """Somebody at a browser."""

    name: str
    roles: frozenset[Role]
    token: str = field(repr=False)
    """The bearer token; empty while the session is locked."""
    csrf: str = field(repr=False)
    """What every change must send along."""
    began_at: float
    seen_at: float
    streams: int = 0
    """Live pages open now."""

    @property
    def locked(self) -> bool:
        """Whether the password must be given again."""
        return not self.token

    def may(self, *roles: Role) -> bool:
        """Whether the person has one of these roles."""
        return bool(self.roles.intersection(roles))


class Sessions:
    """All sessions, by the digest of their cookie."""

    def __init__(self, idle_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._idle_s = idle_s
        self._now = now
        self._sessions: dict[bytes, Session] = {}

    def begin(self, who: SignedIn) -> tuple[str, Session]:
        """A new session and its cookie."""
        while len(self._sessions) >= MOST_SESSIONS:
            oldest = min(self._sessions, key=lambda key: self._sessions[key].seen_at)
            del self._sessions[oldest]
        cookie, now = _drawn(), self._now()
        session = Session(who.name, who.roles, who.token, _drawn(), now, now)
        self._sessions[_digest(cookie)] = session
        return cookie, session

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie, locked where its time is over; None: there is none, or it has
        lasted too long."""
        key = _digest(cookie)
        session = self._sessions.get(key)
        if session is None:
            return None
        now = self._now()
        if now - session.began_at > LIFE_S:
            del self._sessions[key]
            return None
        if now - session.seen_at > self._idle_s:
            session.token = ""
        return session

    def touch(self, session: Session) -> None:
        """The person did something."""
        if not session.locked:
            session.seen_at = self._now()

    def unlock(self, session: Session, who: SignedIn) -> None:
        """The password was given again."""
        session.token, session.roles = who.token, who.roles
        session.seen_at = self._now()

    def lock(self, session: Session) -> None:
        """The password is asked for from here on."""
        session.token = ""

    def is_live(self, session: Session) -> bool:
        """Whether a live page of the session may go on."""
        now = self._now()
        if now - session.seen_at > self._idle_s or now - session.began_at > LIFE_S:
            session.token = ""
        return not session.locked

    def end(self, cookie: str) -> None:
        """Signed out."""
        session = self._sessions.pop(_digest(cookie), None)
        if session is not None:
            session.token = ""


def same(told: str, known: str) -> bool:
    """Whether two secrets are equal, in a time that says nothing."""
    return hmac.compare_digest(told.encode(), known.encode())


def _drawn() -> str:
    return base64.urlsafe_b64encode(os.urandom(COOKIE_BYTES)).decode().rstrip("=")


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
