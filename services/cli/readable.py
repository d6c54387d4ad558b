"""States and messages as JSON with names, for people and programs.

Numbers stay numbers, bytes are hexadecimal, enums their names, positions `segment/sequence/index`,
times UTC.
Of a message only the fields that are set appear, as in the log.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.log.v1 import entry_pb2
from services.cli.moments import place, written
from services.kernel.event import Position

Json = Any
"""What `json.dumps` takes."""


def readable(value: Any) -> Json:
    """Any value of a state, or a message."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Enum):  # before int: many are both
        return value.name
    if isinstance(value, int):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Message):
        return readable_message(value)
    if isinstance(value, Position):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: readable(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): readable(item) for key, item in value.items()}
    return [readable(item) for item in value]


def readable_message(message: Message) -> Json:
    """A message: its set fields by name."""
    if isinstance(message, entry_pb2.Position):
        return place(Position(message.segment, message.sequence, message.index))
    if isinstance(message, Timestamp):
        return written(message.ToMicroseconds())
    found: dict[str, Json] = {}
    for field, value in message.ListFields():
        if field.is_repeated:
            found[field.name] = [_field(field, item) for item in value]
        else:
            found[field.name] = _field(field, value)
    return found


def enum_name(field: FieldDescriptor, number: int) -> str:
    """The name of an enum's number, as the proto has it."""
    known = field.enum_type.values_by_number if field.enum_type else {}
    return str(known[number].name) if number in known else str(number)


def _field(field: FieldDescriptor, value: Any) -> Json:
    if field.type == FieldDescriptor.TYPE_ENUM:
        return enum_name(field, value)
    return readable(value)


def _key(key: Any) -> str:
    """A key of a dictionary: what it is made of, joined."""
    if isinstance(key, Position):
        return str(key)
    if isinstance(key, tuple):
        return "/".join(_key(part) for part in key)
    return str(readable(key))
