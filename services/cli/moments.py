"""Places in a log as people write them: positions, and log times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from services.kernel.event import Position
from services.kernel.reader import END_OF_ENTRY, SEGMENT

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Moment:
    """A log time: behind every event that is no later."""

    time_us: int
    """Microseconds since 1970-01-01 UTC."""

    def __str__(self) -> str:
        return written(self.time_us)


At = Position | Moment


MOST_DIGITS = 19
"""Of any number in a log; of many more Python makes no number at all."""


def is_number(text: str) -> bool:
    """Whether a text is a number such as a log has, from 0."""
    return text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS


def parse_at(text: str) -> At:
    """A position or a time. Raises ValueError."""
    return parse_time(text) if "-" in text.lstrip("-") or ":" in text else parse_position(text)


def parse_position(text: str) -> Position:
    """`1/123/4`, `1/123` or `123`: without an index, all of the entry. Raises ValueError."""
    wrong = ValueError(f"{text!r} is no position; write 1/123/0, or 123 for a whole entry")
    parts = text.split("/")
    if not all(map(is_number, parts)):
        raise wrong
    numbers = [int(part) for part in parts]
    if len(numbers) == 1:
        numbers.insert(0, SEGMENT)
    if len(numbers) == 2:
        numbers.append(END_OF_ENTRY)
    if len(numbers) != 3 or numbers[0] != SEGMENT:
        raise wrong
    return Position(*numbers)


def parse_time(text: str) -> Moment:
    """ISO 8601 with a zone, such as `2026-05-01T20:15:00.5Z`. Raises ValueError."""
    wrong = ValueError(f"{text!r} is no time with a zone; write 2026-05-01T20:15:00Z or …+02:00")
    try:
        when = datetime.fromisoformat(text)
        if when.tzinfo is None:
            raise wrong
        utc = when.astimezone(UTC)
    except (ValueError, OverflowError):  # Near both ends of the calendar there is no such UTC.
        raise wrong from None
    return Moment((utc - EPOCH) // timedelta(microseconds=1))


def written(time_us: int) -> str:
    """A log time, UTC; `parse_time` reads it."""
    try:
        when = EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return f"{time_us} us"  # Nobody's clock: a damaged or forged one.
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def place(position: Position) -> str:
    """A position in words that `parse_position` takes."""
    if position.index == END_OF_ENTRY:
        return f"{position.segment}/{position.sequence}"
    return str(position)
