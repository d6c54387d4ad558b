"""A log that fills up is an alarm while there is time."""

from __future__ import annotations

from services.kernel.log import LogInfo
from services.kernel.room import Room


def info(used: int, most: int) -> LogInfo:
    return LogInfo(1, 1, 0, used, most)


def test_nats_05_four_fifths_full_is_an_alarm_once() -> None:
    room = Room()
    assert [room.told(info(used, 1000)) for used in (0, 799, 800, 900, 1000)] == [
        False, False, True, False, False,
    ]  # fmt: skip


def test_nats_05_more_room_ends_the_alarm_and_the_next_time_is_told_again() -> None:
    room = Room()
    assert room.told(info(900, 1000))
    assert not room.told(info(900, 2000))
    assert room.told(info(1600, 2000))


def test_a_log_without_a_limit_never_fills() -> None:
    assert not Room().told(info(10**15, -1))
