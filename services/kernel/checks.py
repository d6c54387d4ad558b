"""Checks of a request before a servicer sees it: readable, within its proto's rules, enums known,
times that can be.

The rules stand in the protos (buf.validate). Enums and times are checked here for all messages
alike: a proto3 enum lets any number through, which would then count as whatever the code makes of
it; a Timestamp lets any seconds and nanoseconds through, of which most are no time at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp
from protovalidate import Validator, Violation

from services.kernel.errors import INVALID_REQUEST, MALFORMED_REQUEST, FieldViolation, Refused

_validator = Validator()
"""One for all: it keeps what it compiled."""

_AnyDescriptor = Any  # the stubs know two classes of descriptors that do not fit each other
_ValueCheck = Callable[[Message, str, list[FieldViolation]], None]
_FIRST_S, _LAST_S, _MOST_NANOS = -62_135_596_800, 253_402_300_799, 999_999_999
"""What a Timestamp may hold: the years 1 to 9999, and parts of a second that count upwards."""


def checker(message_type: type[Message]) -> Callable[[bytes], Message]:
    """A function that reads and checks the bytes of one kind of request; it raises Refused."""
    read = message_type.FromString
    name = message_type.DESCRIPTOR.name
    violations_of = _validator.collect_violations
    check_values = _value_check(message_type.DESCRIPTOR, {})

    def check(raw: bytes) -> Message:
        try:
            request = read(raw)
        except DecodeError as error:
            raise Refused(MALFORMED_REQUEST, {"message": name}) from error
        found = [_field_violation(each) for each in violations_of(request)]
        if check_values is not None:
            check_values(request, "", found)
        if found:
            raise Refused(INVALID_REQUEST, fields=found)
        return request

    violations_of(message_type())  # compiles the rules, which takes milliseconds: now, not later
    return check


def _field_violation(violation: Violation) -> FieldViolation:
    told = violation.proto
    return FieldViolation(_path(told.field), told.rule_id or "", told.message or "is not valid")


def _path(field: object) -> str:
    path = ""
    for element in getattr(field, "elements", ()):
        path += ("." if path else "") + element.field_name
        subscript = element.subscript
        if subscript is not None:
            path += f"[{subscript.value}]"
    return path


def _value_check(
    descriptor: _AnyDescriptor, made: dict[str, _ValueCheck | None]
) -> _ValueCheck | None:
    """A check of every enum and time in a message and below; None where there is none. `made`: by
    message, None while it is being made (no request of ours contains itself)."""
    if descriptor.full_name == Timestamp.DESCRIPTOR.full_name:
        return _check_time
    if descriptor.full_name in made:
        return made[descriptor.full_name]
    made[descriptor.full_name] = None
    enums: list[tuple[FieldDescriptor, EnumDescriptor]] = []
    below: list[tuple[FieldDescriptor, _ValueCheck]] = []
    for field in descriptor.fields:
        if field.enum_type is not None:
            enums.append((field, field.enum_type))
        elif field.message_type is not None:
            check = _value_check(field.message_type, made)
            if check is not None:
                below.append((field, check))
    if not enums and not below:
        return None

    def check_message(message: Message, path: str, found: list[FieldViolation]) -> None:
        for field, enum in enums:
            value = getattr(message, field.name)
            for number in value if field.is_repeated else (value,):
                if number not in enum.values_by_number:
                    told = f"{number} is no {enum.name}"
                    found.append(FieldViolation(path + field.name, "enum.unknown", told))
        for field, check in below:
            if field.is_repeated:
                for index, each in enumerate(getattr(message, field.name)):
                    check(each, f"{path}{field.name}[{index}].", found)
            elif message.HasField(field.name):
                check(getattr(message, field.name), f"{path}{field.name}.", found)

    made[descriptor.full_name] = check_message
    return check_message


def _check_time(message: Message, path: str, found: list[FieldViolation]) -> None:
    """Of a Timestamp, at `path` with a dot behind it."""
    time = cast("Timestamp", message)
    if not (_FIRST_S <= time.seconds <= _LAST_S and 0 <= time.nanos <= _MOST_NANOS):
        found.append(FieldViolation(path.removesuffix("."), "timestamp.range", "is no time"))
