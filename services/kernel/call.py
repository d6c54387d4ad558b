"""What a servicer sees of a call, and how its methods say who may make it.

A servicer's method is `async def place_bets(self, request, call) -> Response`, or an async
generator for a stream, marked `@rpc(…)`; `services.kernel.grpc_server` finds it by the name of the
proto's method. It raises `Refused` for what it refuses.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from google.protobuf.message import Message

from sabot.log.v1.entry_pb2 import Position as PositionMessage
from services.kernel.errors import PAGE_TOKEN_INVALID, PERMISSION_DENIED, Reason, Refused
from services.kernel.event import Position
from services.kernel.tokens import Caller, Role

_Method = TypeVar("_Method", bound=Callable[..., Any])
_Item = TypeVar("_Item")

MAX_WAIT_S = 30.0
"""The longest that a call waits for its outcome, whatever its deadline."""
ANSWER_S = 0.02
"""Kept back from the deadline, so that "outcome unknown" still reaches the caller."""
MAX_DIGITS = 19
"""Of a number in a token: longer ones are nobody's position, and take long to read."""
MAX_SEGMENT = (1 << 13) - 1
MAX_SEQUENCE = (1 << 40) - 1
"""The greatest place that a log can have, as projections keep it."""
PAGE_BYTES = 1024 * 1024
"""A page ends at this size, whatever its count: clients take 4 MiB by default."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call a method, and whether a deadline is required."""

    partners: bool
    roles: frozenset[Role]
    deadline: bool
    busy: bool = False
    """Whether so many calls of it come that the server takes several at once."""


def rpc(
    *,
    partners: bool = False,
    roles: Iterable[Role] = (),
    deadline: bool = False,
    busy: bool = False,
) -> Callable[[_Method], _Method]:
    """Mark a servicer's method: open to partners, to operators with one of `roles`, or to both."""
    access = Access(partners, frozenset(roles), deadline, busy)

    def mark(method: _Method) -> _Method:
        method.__sabot_access__ = access  # type: ignore[attr-defined] # functions take attributes
        return method

    return mark


EVERY_ROLE = frozenset(Role) - {Role.DEVICE, Role.CONSOLE}
"""For methods that any person among the operators may call. A device's token lies where the device
stands: it opens only what names its role. So does a console's, which stands for nobody."""
EVERY_ROLE_AND_DEVICES = frozenset(Role) - {Role.CONSOLE}
"""For what everyone may see of a table."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call as its method sees it."""

    caller: Caller
    method: str = ""
    """Full name, such as `sabot.partner.v1.PartnerService/PlaceBets`."""
    language: str = "en"
    """Of the texts that the caller reads first: `en` or `fr`."""
    deadline: float | None = None
    """By `time.monotonic()`; None where the caller set none."""
    traceparent: str = ""
    """The call's place in a sampled trace; empty where it is not traced."""
    authorization: str = field(default="", repr=False)
    """As received, to be passed on to the service behind."""

    def wait_s(self, at_most: float = MAX_WAIT_S) -> float:
        """How long to wait for something, so that the caller still hears of it: seconds."""
        if self.deadline is None:
            return at_most
        return max(0.0, min(at_most, self.deadline - time.monotonic() - ANSWER_S))

    def partner(self) -> str:
        """The calling partner; PERMISSION_DENIED for operators."""
        if not self.caller.partner:
            raise Refused(PERMISSION_DENIED, {"method": self.method, "allowed": "partners"})
        return self.caller.partner

    def sees(self, partner: str) -> bool:
        """Whether the caller may see what belongs to `partner`: its own; operators see all."""
        return not self.caller.partner or self.caller.partner == partner


def position_message(position: Position) -> PositionMessage:
    """A position as it goes out."""
    return PositionMessage(
        segment=position.segment, sequence=position.sequence, index=position.index
    )


def position_of(message: PositionMessage) -> Position:
    """A position as it came in."""
    return Position(message.segment, message.sequence, message.index)


def request_hash(message: Message, beside: str = "") -> bytes:
    """SHA-256 of a canonical request: what it asks for, and the input as it would be logged without
    its own hash.

    `beside`: what is asked but stands in the event's header, such as an account's partner.
    """
    kind = str(message.DESCRIPTOR.full_name).encode() + b"\0"
    content = message.SerializeToString(deterministic=True)
    return hashlib.sha256(kind + content + beside.encode()).digest()


# Tokens that callers hand back: opaque to them, checked here, nothing secret in them.


def seal_token(scope: Sequence[str], *parts: str) -> str:
    """A token of `parts`, good for one `scope` only, such as a query's method and filters."""
    body = "\0".join(parts).encode()
    return base64.urlsafe_b64encode(_scope_digest(scope, body) + body).decode().rstrip("=")


def open_token(
    token: str, scope: Sequence[str], parts: int, reason: Reason = PAGE_TOKEN_INVALID
) -> list[str]:
    """The parts of a token of this scope. Raises Refused for `reason` where it is none."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        digest, body = raw[:8], raw[8:]
        found = body.decode().split("\0")
    except (binascii.Error, ValueError) as error:
        raise Refused(reason) from error
    if digest != _scope_digest(scope, body) or len(found) != parts:
        raise Refused(reason)
    return found


def _scope_digest(scope: Sequence[str], body: bytes) -> bytes:
    packed = b"".join(struct.pack(">I", len(part)) + part.encode() for part in scope)
    return hashlib.sha256(packed + body).digest()[:8]


def position_text(position: Position) -> str:
    """A position within a token."""
    return str(position)


def position_from_text(text: str, reason: Reason) -> Position:
    """A position from a token. Raises Refused for `reason` where it is none."""
    parts = text.split("/")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise Refused(reason)
    segment, sequence, index = (int(part) if len(part) <= MAX_DIGITS else -1 for part in parts)
    if not 0 <= segment <= MAX_SEGMENT or not 0 <= sequence <= MAX_SEQUENCE or index < 0:
        raise Refused(reason)
    return Position(segment, sequence, index)


def fill_page(items: Sequence[_Item], limit: int, size: Callable[[_Item], int]) -> int:
    """How many of `items` a page of `limit` holds: as many as fit in `PAGE_BYTES`, at least one."""
    used = 0
    for count, item in enumerate(items[:limit]):
        used += size(item)
        if used > PAGE_BYTES and count:
            return count
    return min(limit, len(items))
