"""Significant events that audit's core finds: large wins and stakes, by thresholds that an operator
sets; and what edges saw and told. What is significant and stands in the log anyway, such as voids,
is only named (`services/audit/significance.py`).

Amounts are looked at when a round is settled. A day is a day of log time, UTC. Of an account only
the running day is kept, and only where a threshold of a day is in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from google.protobuf.message import Message

from sabot.audit.v1 import significant_events_pb2 as significant
from sabot.log.v1 import events_pb2 as logs
from sabot.settlement.v1 import events_pb2 as settlement
from services.kernel.event import Event

DAY_US = 86_400_000_000
MAX_THRESHOLDS = 10_000
"""Of tables and currencies together: more than a cell has tables. Later ones are ignored."""


@dataclass(slots=True)
class Day:
    """What an account staked and won in the running day, minor units."""

    stake_minor: int = 0
    win_minor: int = 0
    told: list[int] = field(default_factory=list[int])
    """Kinds that were told of it already."""


@dataclass(slots=True)
class Significance:
    """Thresholds, and the running day."""

    thresholds: dict[tuple[str, str], significant.Thresholds] = field(
        default_factory=dict[tuple[str, str], significant.Thresholds]
    )
    """By table ("": every other one) and currency."""
    day: int = 0
    """Days since 1970, of log time."""
    days: dict[tuple[str, str, str], Day] = field(default_factory=dict[tuple[str, str, str], Day])
    """By partner, account and currency."""


def set_thresholds(state: Significance, body: significant.ThresholdsSet) -> None:
    """Part of evolve."""
    one = body.thresholds
    state.thresholds[one.table_id, one.currency_code] = one


def may_set(state: Significance, body: significant.SetThresholds) -> bool:
    """Whether there is room for them."""
    key = (body.thresholds.table_id, body.thresholds.currency_code)
    return key in state.thresholds or len(state.thresholds) < MAX_THRESHOLDS


def thresholds_at(
    state: Significance, table_id: str, currency_code: str
) -> significant.Thresholds | None:
    """Those in force at a table."""
    own = state.thresholds.get((table_id, currency_code))
    return own if own is not None else state.thresholds.get(("", currency_code))


def add_settled(state: Significance, event: Event, body: settlement.BetsSettled) -> None:
    """Count a settlement to its day. Part of evolve."""
    day = event.time_us // DAY_US
    if day > state.day:
        state.day = day
        state.days.clear()
    limits = thresholds_at(state, body.table_id, body.currency_code)
    if limits is None or not (limits.day_stake_minor or limits.day_win_minor):
        return
    key = (body.partner_id, body.account_id, body.currency_code)
    one = state.days.setdefault(key, Day())
    stake, win = _sums(body)
    one.stake_minor += stake
    one.win_minor += win


def note_told(state: Significance, body: significant.LargeAmountsFound) -> None:
    """What is told once a day was told. Part of evolve."""
    one = state.days.get((body.partner_id, body.account_id, body.currency_code))
    if one is not None:
        one.told.extend(each.kind for each in body.amounts if each.kind in _ONCE_A_DAY)


def large_amounts(state: Significance, body: settlement.BetsSettled) -> Message | None:
    """What is large in a settlement that was counted; None: nothing."""
    limits = thresholds_at(state, body.table_id, body.currency_code)
    if limits is None:
        return None
    amounts = list(_reached(state, limits, body))
    if not amounts:
        return None
    return significant.LargeAmountsFound(
        partner_id=body.partner_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        currency_code=body.currency_code,
        amounts=amounts,
    )


_ONCE_A_DAY = frozenset({significant.LARGE_KIND_DAY_STAKE, significant.LARGE_KIND_DAY_WIN})


def _sums(body: settlement.BetsSettled) -> tuple[int, int]:
    return (
        sum(one.stake_minor for one in body.bets),
        sum(one.profit_minor for one in body.bets),
    )


def _reached(
    state: Significance, limits: significant.Thresholds, body: settlement.BetsSettled
) -> Iterator[significant.LargeAmount]:
    stake, win = _sums(body)
    found: list[tuple[significant.LargeKind.ValueType, str, int, int]] = []
    for bet in body.bets:
        found += [
            (significant.LARGE_KIND_BET_WIN, bet.bet_id, bet.profit_minor, limits.bet_win_minor),
            (significant.LARGE_KIND_BET_STAKE, bet.bet_id, bet.stake_minor, limits.bet_stake_minor),
        ]
    found += [
        (significant.LARGE_KIND_ROUND_WIN, "", win, limits.round_win_minor),
        (significant.LARGE_KIND_ROUND_STAKE, "", stake, limits.round_stake_minor),
    ]
    day = state.days.get((body.partner_id, body.account_id, body.currency_code))
    if day is not None:
        found += [
            (kind, "", minor, threshold)
            for kind, minor, threshold in (
                (significant.LARGE_KIND_DAY_STAKE, day.stake_minor, limits.day_stake_minor),
                (significant.LARGE_KIND_DAY_WIN, day.win_minor, limits.day_win_minor),
            )
            if kind not in day.told
        ]
    for kind, bet_id, minor, threshold in found:
        if 0 < threshold <= minor:
            yield significant.LargeAmount(
                kind=kind, bet_id=bet_id, minor=minor, threshold_minor=threshold
            )


def noted(body: significant.NoteEvents) -> Message:
    """The answer to what an edge told."""
    if body.kind == significant.NOTED_KIND_READ:
        return significant.ReadsNoted(noted=body)
    return significant.EventsNoted(noted=body)


_CALLS = {
    logs.CALL_KIND_TOKEN_UNKNOWN: significant.NOTED_KIND_FAILED_SIGN_IN,
    logs.CALL_KIND_READ: significant.NOTED_KIND_READ,
}


def noted_calls(body: logs.NoteCalls) -> Message:
    """The answer to what another service's process noticed of its calls."""
    return noted(note_of_calls(body))


def note_of_calls(body: logs.NoteCalls) -> significant.NoteEvents:
    """What was noticed of calls, as audit's own edges tell it."""
    return significant.NoteEvents(
        kind=_CALLS[body.kind],
        subject=body.subject,
        method=body.method,
        count=body.count,
        first_us=body.first_us,
        last_us=body.last_us,
    )
