"""Sums over rolling windows, against a model that remembers everything (rule LIM-7)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from services.limits.domain.protection import IDLE_US, AccountRecord, note_stake, used
from services.limits.domain.scopes import SESSION
from services.limits.domain.windows import (
    DAY_US,
    HOUR_US,
    LONGEST_US,
    SECOND_US,
    Series,
)

WINDOWS = (HOUR_US, 5 * HOUR_US, DAY_US, 30 * HOUR_US, 7 * DAY_US, 10 * DAY_US, LONGEST_US)
MOST_PIECES = 90

PAUSES = st.one_of(
    st.integers(0, 3 * HOUR_US),
    st.sampled_from((0, 1, HOUR_US - 1, HOUR_US, DAY_US - 1, DAY_US, DAY_US + 1, 7 * DAY_US)),
    st.integers(0, 3 * DAY_US),
)
HISTORIES = st.lists(st.tuples(PAUSES, st.integers(1, 1_000)), min_size=1, max_size=60)
SIGNED = st.lists(st.tuples(PAUSES, st.integers(-1_000, 1_000)), min_size=1, max_size=60)
START_US = 1_767_225_600_000_000 + 17 * SECOND_US


def exact(amounts: list[tuple[int, int]], now_us: int, window_us: int) -> int:
    """The sum of all that came later than a window ago."""
    return sum(amount for at_us, amount in amounts if at_us > now_us - window_us)


def slack_us(window_us: int) -> int:
    """How much longer than a window something may count."""
    if window_us <= DAY_US:
        return HOUR_US
    return 6 * HOUR_US if window_us <= 7 * DAY_US else DAY_US


def told(history: list[tuple[int, int]]) -> tuple[Series, list[tuple[int, int]], int]:
    series, amounts, now_us = Series(), list[tuple[int, int]](), START_US
    for pause_us, amount in history:
        now_us += pause_us
        series.add(now_us, amount)
        amounts.append((now_us, amount))
    return series, amounts, now_us


@settings(max_examples=120, deadline=None)
@given(HISTORIES, PAUSES)
def test_lim_7_a_window_says_no_less_than_it_is_and_little_more(
    history: list[tuple[int, int]], later_us: int
) -> None:
    series, amounts, now_us = told(history)
    now_us += later_us
    for window_us in WINDOWS:
        within = series.within(now_us, window_us)
        assert within >= exact(amounts, now_us, window_us)
        assert within <= exact(amounts, now_us, window_us + slack_us(window_us))
    assert len(series.pieces) <= MOST_PIECES


@settings(max_examples=120, deadline=None)
@given(SIGNED, PAUSES)
def test_lim_7_a_loss_is_never_told_less_than_it_is(
    history: list[tuple[int, int]], later_us: int
) -> None:
    """A win that leaves a window before the losses behind it makes the loss greater: what a piece
    of time that has left in part may still hold counts at its worst."""
    series, amounts, now_us = told(history)
    now_us += later_us
    for window_us in WINDOWS:
        within = series.within(now_us, window_us)
        assert within >= exact(amounts, now_us, window_us)
        since_us, slack = now_us - window_us, slack_us(window_us)
        about = [
            sum(amount for _, amount in amounts[index:])
            for index in range(len(amounts) + 1)
            if (index == len(amounts) or amounts[index][0] > since_us - slack)
            and (index == 0 or amounts[index - 1][0] <= since_us + slack)
        ]
        assert within <= max(about), (window_us, within, about)


@settings(max_examples=100, deadline=None)
@given(HISTORIES, st.data())
def test_lim_7_what_goes_back_was_never_there(
    history: list[tuple[int, int]], data: st.DataObject
) -> None:
    series, amounts, now_us = told(history)
    gone = data.draw(st.sets(st.sampled_from(range(len(amounts)))))
    for index in sorted(gone):
        series.take_back(*amounts[index])
    left = [one for index, one in enumerate(amounts) if index not in gone]
    for window_us in WINDOWS:
        within = series.within(now_us, window_us)
        assert within >= exact(left, now_us, window_us)
        assert within <= exact(left, now_us, window_us + slack_us(window_us))


@settings(max_examples=100, deadline=None)
@given(HISTORIES, PAUSES)
def test_lim_7_it_is_told_when_something_leaves_a_window(
    history: list[tuple[int, int]], later_us: int
) -> None:
    series, _, now_us = told(history)
    now_us += later_us
    for window_us in WINDOWS:
        frees_us = series.frees_us(now_us, window_us)
        before = series.within(now_us, window_us)
        assert bool(frees_us) == (before > 0)
        if frees_us:
            assert frees_us > now_us
            assert series.within(frees_us - 1, window_us) == before
            assert series.within(frees_us, window_us) < before


def test_lim_7_a_year_of_play_takes_no_more_room_than_a_month() -> None:
    series = Series()
    for hour in range(24 * 365):
        series.add(START_US + hour * HOUR_US, 1)
        assert len(series.pieces) <= MOST_PIECES
    now_us = START_US + (24 * 365 - 1) * HOUR_US
    assert series.within(now_us, DAY_US) == 25  # An hour more than there are in a day.
    assert 24 * 7 < series.within(now_us, 7 * DAY_US) <= 24 * 7 + 6
    assert 24 * 30 < series.within(now_us, LONGEST_US) <= 24 * 31


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2 * IDLE_US), min_size=1, max_size=40), PAUSES)
def test_lim_7_time_at_play_is_what_lies_between_the_bets_of_sessions(
    pauses: list[int], later_us: int
) -> None:
    record = AccountRecord("EUR")
    now_us, bets = START_US, list[int]()
    for pause_us in pauses:
        now_us += pause_us
        note_stake(record, now_us, 1)
        bets.append(now_us)
    now_us += later_us
    history = record.history
    assert history is not None
    spans = [
        (before, after)
        for before, after in zip(bets, [*bets[1:], now_us], strict=True)
        if after - before < IDLE_US
    ]
    for window_us in (DAY_US, 7 * DAY_US):
        since_us = now_us - window_us
        played = sum(max(0, after - max(before, since_us)) for before, after in spans)
        told_us = used(history, SESSION, window_us // SECOND_US, now_us)
        assert told_us >= played
        longest = window_us + slack_us(window_us) + IDLE_US
        assert told_us <= sum(after - before for before, after in spans if after > now_us - longest)
    session = 0
    if now_us - bets[-1] < IDLE_US:
        first = bets[-1]
        for bet_us in reversed(bets):
            if first - bet_us >= IDLE_US:
                break
            first = bet_us
        session = now_us - first
    assert used(history, SESSION, 0, now_us) == session
