"""Entries as bytes: encoding, decoding, and the chain of hashes over them. Pure.

    H(0) = SHA-256("sabot.log.v1" 0x00 cell)
    H(n) = SHA-256(H(n-1), sequence, subject, headers, payload)

each part with its length before it, headers sorted by name. So a head H(n) stands for every bit of
the log up to n."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from sabot.log.v1 import entry_pb2, events_pb2
from services.kernel.event import Position

MAX_EVENTS = 800
"""Events in an entry: beyond this a bigger batch no longer lowers the cost of an event."""
MAX_ENTRY_BYTES = 240 * 1024
"""Payload of an entry: what the log takes (256 KiB) less room for headers."""

KERNEL_INPUT_SUBJECTS: dict[type[Message], str] = {
    events_pb2.ActivateBehaviour: "table",
    events_pb2.RetryInput: "table",
    events_pb2.RecordSnapshot: "audit",
    events_pb2.AcceptLog: "audit",
    events_pb2.AskAttestation: "audit",
}
"""Inputs that the kernel itself takes, and the one service whose `.in` they may stand on: who may
append there may give these orders to the whole cell."""
TELLING_INPUTS: tuple[type[Message], ...] = (events_pb2.NoteCalls, events_pb2.Attest)
"""Kernel inputs that give no order: they may stand on any service's `.in`, and a core that folds
them decides about them, wherever they stand."""
KERNEL_INPUTS: tuple[type[Message], ...] = (*KERNEL_INPUT_SUBJECTS, *TELLING_INPUTS)
KERNEL_ANSWERS: tuple[type[Message], ...] = (
    events_pb2.InputNoted,
    events_pb2.InputIgnored,
    events_pb2.InputFailed,
    events_pb2.RequestRepeated,
)

_NUMBERS = struct.Struct(">QIII")


class NotUnderstood(Exception):
    """Bytes of an entry that this build cannot read: damage, or a release that does not know
    them."""


def first_head(cell: str) -> bytes:
    """H(0) of a cell."""
    return hashlib.sha256(b"sabot.log.v1\x00" + cell.encode()).digest()


def canonical_headers(headers: Mapping[str, str]) -> bytes:
    """Headers as bytes that do not depend on their order."""
    return "".join(f"{name}:{headers[name]}\n" for name in sorted(headers)).encode()


def next_head(
    head: bytes, sequence: int, subject: str, headers: Mapping[str, str], payload: bytes
) -> bytes:
    """H(n) from H(n-1) and entry n."""
    header_bytes = canonical_headers(headers) if headers else b""
    subject_bytes = subject.encode()
    digest = hashlib.sha256(head)
    digest.update(_NUMBERS.pack(sequence, len(subject_bytes), len(header_bytes), len(payload)))
    digest.update(subject_bytes)
    digest.update(header_bytes)
    digest.update(payload)
    return digest.digest()


def position_proto(position: Position) -> entry_pb2.Position:
    """A position as a message."""
    return entry_pb2.Position(
        segment=position.segment, sequence=position.sequence, index=position.index
    )


def position_of(proto: entry_pb2.Position) -> Position:
    """A position from a message."""
    return Position(proto.segment, proto.sequence, proto.index)


class EventTypes:
    """The event types that a log may hold, by full name."""

    def __init__(self, types: Iterable[type[Message]]) -> None:
        self._types: dict[str, tuple[type[Message], _EnumCheck | None]] = {}
        for body_type in (*KERNEL_INPUTS, *KERNEL_ANSWERS, *types):
            descriptor: Any = body_type.DESCRIPTOR
            self._types[descriptor.full_name] = (body_type, _enum_check(descriptor, {}))

    def __contains__(self, name: str) -> bool:
        return name in self._types

    def of(self, name: str) -> type[Message]:
        """The class of a type. Raises NotUnderstood."""
        known = self._types.get(name)
        if known is None:
            raise NotUnderstood(f"event type {name!r} is not known to this build")
        return known[0]

    def decode(self, name: str, body: bytes) -> Message:
        """A body from its bytes. Raises NotUnderstood: unknown type, damage, unknown enum value."""
        known = self._types.get(name)
        if known is None:
            raise NotUnderstood(f"event type {name!r} is not known to this build")
        body_type, check = known
        try:
            message = body_type.FromString(body)
        except DecodeError as error:
            raise NotUnderstood(f"{name}: the body cannot be decoded") from error
        if check is not None:
            check(message)
        return message


def encode_body(message: Message) -> bytes:
    """A body as its bytes: the same message always gives the same bytes."""
    return message.SerializeToString(deterministic=True)


def decode_entry(payload: bytes) -> entry_pb2.Entry:
    """An entry from its payload. Raises NotUnderstood."""
    try:
        entry = entry_pb2.Entry.FromString(payload)
    except DecodeError as error:
        raise NotUnderstood("the entry cannot be decoded") from error
    if not 0 < len(entry.events) <= MAX_EVENTS:
        raise NotUnderstood(f"the entry has {len(entry.events)} events")
    return entry


_EnumCheck = Callable[[Any], None]


def _enum_check(descriptor: Descriptor, seen: dict[str, _EnumCheck | None]) -> _EnumCheck | None:
    """A function that refuses enum values this build has no name for, or None where a message has
    no enum in it. proto3 itself lets unknown values through, and a `match` would then fall
    through."""
    if descriptor.full_name in seen:
        return seen[descriptor.full_name]
    seen[descriptor.full_name] = None
    checks: list[_EnumCheck] = []
    for field in descriptor.fields:
        if field.type == FieldDescriptor.TYPE_ENUM:
            checks.append(_enum_field_check(field))
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            message_type = field.message_type
            inner = _enum_check(message_type, seen) if message_type else None
            if inner is not None:
                checks.append(_message_field_check(field, inner))
    if not checks:
        return None

    def check(message: Any) -> None:
        for one in checks:
            one(message)

    seen[descriptor.full_name] = check
    return check


def _enum_field_check(field: FieldDescriptor) -> _EnumCheck:
    name = field.name
    enum_type = field.enum_type
    values = enum_type.values if enum_type else ()
    known = frozenset(value.number for value in values)

    def check_one(message: Any) -> None:
        value = getattr(message, name)
        if value not in known:
            raise NotUnderstood(f"{field.full_name} has the unknown value {value}")

    def check_many(message: Any) -> None:
        for value in getattr(message, name):
            if value not in known:
                raise NotUnderstood(f"{field.full_name} has the unknown value {value}")

    return check_many if field.is_repeated else check_one


def _message_field_check(field: FieldDescriptor, inner: _EnumCheck) -> _EnumCheck:
    name = field.name

    def check_one(message: Any) -> None:
        if message.HasField(name):
            inner(getattr(message, name))

    def check_many(message: Any) -> None:
        for item in getattr(message, name):
            inner(item)

    return check_many if field.is_repeated else check_one
