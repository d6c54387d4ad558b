"""Values as people read them, the same in every language (rule MON-3); times are log times, UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.cli.readable import enum_name
from services.games.currencies import EXPONENTS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SUITS = {"S": "♠", "H": "♥", "D": "♦", "C": "♣"}
_RED = frozenset("HD")


class Card(NamedTuple):
    """A card to be drawn."""

    text: str
    """Such as `10♦`; empty face down."""
    red: bool
    rank: str
    """Key of its name: `A`, `2` … `T`, `J`."""
    suit: str
    """Key of its name: `S`, `H`, `D`, `C`."""


def card(code: str) -> Card:
    """A card of the protos, such as `TD`; empty: face down."""
    if not code:
        return Card("", False, "", "")
    rank, suit = code[0], code[1]
    return Card(("10" if rank == "T" else rank) + _SUITS[suit], suit in _RED, rank, suit)


def money(minor: int, currency_code: str = "EUR") -> str:
    """Minor units as `1,234.00`."""
    digits = EXPONENTS.get(currency_code, 2)
    sign = "-" if minor < 0 else ""
    whole, rest = divmod(abs(minor), 10**digits)
    return f"{sign}{whole:,}" + (f".{rest:0{digits}}" if digits else "")


def count(number: int) -> str:
    """A number with its thousands apart."""
    return f"{number:,}"


def clock(time_us: int) -> str:
    """The time of day, to the millisecond."""
    return _when(time_us).strftime("%H:%M:%S.%f")[:-3]


def moment(time_us: int) -> str:
    """Date and time of day."""
    return _when(time_us).strftime("%Y-%m-%d %H:%M:%S")


def microseconds(time: Timestamp) -> int:
    """Since 1970-01-01 UTC."""
    return time.ToMicroseconds()


def _when(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)


def enum(message: Message, name: str) -> str:
    """The proto's name of an enum field's value."""
    field: Any = message.DESCRIPTOR.fields_by_name[name]  # typed two ways by its stubs
    return enum_name(field, getattr(message, name))
