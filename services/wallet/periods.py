"""Periods as people name them: whole days by a place's own clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

MAX_DAYS = 367
"""Days of a period at most: a year and a day, so that a year can be asked for in any place."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BadPeriod(ValueError):
    """Days that are none; the message says why."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


class Period(NamedTuple):
    """From a log time on and before another, microseconds since 1970 UTC."""

    from_us: int
    to_us: int


def local_days(first: str, last: str, zone: str) -> Period:
    """From the first moment of one local day to that of the day after another; a day has 23, 24 or
    25 hours, as the place's clock went. Raises BadPeriod."""
    place = _zone(zone)
    begin, end = _date("first_date", first), _date("last_date", last)
    if end < begin:
        raise BadPeriod("last_date", "is before the first")
    if (end - begin).days >= MAX_DAYS:
        raise BadPeriod("last_date", f"makes more than {MAX_DAYS} days")
    return Period(_begins(begin, place), _begins(end + timedelta(days=1), place))


def _begins(day: date, place: ZoneInfo) -> int:
    """The first moment of a local day. Where its midnight comes twice that is the earlier one;
    where it is left out, the moment at which clocks went on."""
    return microseconds(datetime.combine(day, time(0), tzinfo=place))


def microseconds(moment: datetime) -> int:
    """A moment as log times are counted."""
    return (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # unknown; no name; a folder of zones
        raise BadPeriod("time_zone", f"{name} is no time zone") from error


def _date(field: str, text: str) -> date:
    try:
        found = date.fromisoformat(text)
    except ValueError as error:
        raise BadPeriod(field, f"{text} is no date") from error
    if not 1970 <= found.year <= 9000:  # log times begin in 1970
        raise BadPeriod(field, f"{text} is no date of a log")
    return found
