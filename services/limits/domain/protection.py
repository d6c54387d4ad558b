"""What protects an account: who may not play, and how much in a window (rule LIM-7).

What is staked counts from its approval, until it is declined or goes back: then it is as if it had
never been staked. A loss counts when the round is paid, and until then all that is on counts as if
it were lost. A correction of a paid round counts when it is posted. Deposits count from their
approval.

A session begins with the first bet after `IDLE_US` without one, and lasts as long as no pause
between two bets is as long. Bets that limits have approved are meant, a double or insurance too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from services.limits.domain.scopes import (
    AGE,
    DEPOSIT,
    LOSS,
    SESSION,
    STAKE,
    Scoped,
    Setting,
    Strictest,
    What,
    whose,
    windows,
)
from services.limits.domain.windows import DAY_US, SECOND_US, Series

IDLE_US = 30 * 60 * SECOND_US
"""A pause between bets that ends a session."""
MAX_COOL_OFF_US = 42 * DAY_US
"""The longest break; whoever wants a longer one excludes itself."""
MAX_FORMER = 4
"""Jurisdictions left within 24 hours whose limits still hold: more is no correction of a slip."""

AGE_REQUIRED = What(AGE, "")


@dataclass(slots=True)
class Away:
    """What keeps an account away."""

    until_us: int
    """0: until it is lifted."""

    def holds(self, now_us: int) -> bool:
        """Whether it does still."""
        return not self.until_us or now_us < self.until_us


@dataclass(slots=True)
class History:
    """What an account did in the last 30 days, and what it has on."""

    staked: Series = field(default_factory=Series)
    lost: Series = field(default_factory=Series)
    """Stakes less payouts of what was paid."""
    paid_in: Series = field(default_factory=Series)
    played: Series = field(default_factory=Series)
    """Microseconds between two bets of one session, each added at the second one."""
    at_stake_minor: int = 0
    """Approved stakes that are neither off nor paid."""
    session_us: int = 0
    """When its session began; 0: it never bet."""
    last_bet_us: int = 0


@dataclass(slots=True)
class AccountRecord:
    """An account as limits know it."""

    currency_code: str
    jurisdiction: str = ""
    age: int = limits.AGE_STATEMENT_UNSPECIFIED
    closed: bool = False
    former: list[tuple[str, int]] | None = None
    """Jurisdictions it has left, each with the time until which its limits hold."""
    exclusion: Away | None = None
    cool_off: Away | None = None
    history: History | None = None

    def jurisdictions(self, now_us: int) -> list[str]:
        """Those whose limits hold, its own first."""
        found = [self.jurisdiction] if self.jurisdiction else []
        for code, until_us in self.former or ():
            if now_us < until_us and code not in found:
                found.append(code)
        return found


# ---- what happened. Parts of evolve. -----------------------------------------------------------


def _history(record: AccountRecord) -> History:
    history = record.history
    if history is None:
        history = record.history = History()
    return history


def note_stake(record: AccountRecord, now_us: int, minor: int) -> None:
    """Stakes are approved."""
    history = _history(record)
    history.staked.add(now_us, minor)
    history.at_stake_minor += minor
    pause_us = now_us - history.last_bet_us
    if not history.session_us or pause_us >= IDLE_US:
        history.session_us = now_us
    elif pause_us:
        history.played.add(now_us, pause_us)
    history.last_bet_us = now_us


def note_off(record: AccountRecord, at_us: int, minor: int) -> None:
    """A stake that was approved at a time is off."""
    history = _history(record)
    history.staked.take_back(at_us, minor)
    history.at_stake_minor -= minor


def note_paid(record: AccountRecord, now_us: int, stake_minor: int, payout_minor: int) -> None:
    """An account's bets of a round are paid."""
    history = _history(record)
    history.at_stake_minor -= stake_minor
    if stake_minor != payout_minor:
        history.lost.add(now_us, stake_minor - payout_minor)


def note_corrected(record: AccountRecord, now_us: int, delta_minor: int) -> None:
    """A round that was paid is corrected: what the account gives back is lost now, what it gets is
    lost no more from now on."""
    if delta_minor:
        _history(record).lost.add(now_us, -delta_minor)


def note_deposit(record: AccountRecord, now_us: int, minor: int) -> None:
    """A deposit is approved."""
    _history(record).paid_in.add(now_us, minor)


def note_no_deposit(record: AccountRecord, at_us: int, minor: int) -> None:
    """A deposit that was approved at a time is declined."""
    _history(record).paid_in.take_back(at_us, minor)


# ---- used --------------------------------------------------------------------------------------


def used(history: History, kind: int, window_s: int, now_us: int) -> int:
    """Of a window: minor units, or microseconds at play. `window_s` 0: the session."""
    window_us = window_s * SECOND_US
    if kind == STAKE:
        return history.staked.within(now_us, window_us)
    if kind == LOSS:
        return history.lost.within(now_us, window_us) + history.at_stake_minor
    if kind == DEPOSIT:
        return history.paid_in.within(now_us, window_us)
    if not window_s:
        return now_us - history.session_us if in_session(history, now_us) else 0
    running_us = now_us - history.last_bet_us if in_session(history, now_us) else 0
    return history.played.within(now_us, window_us) + min(running_us, window_us)


def frees_us(history: History, kind: int, window_s: int, now_us: int) -> int:
    """When something leaves a window next, or the session is over if there is no further bet; 0:
    nothing does."""
    if kind == SESSION and not window_s:
        return history.last_bet_us + IDLE_US if in_session(history, now_us) else 0
    match kind:
        case protection.LIMIT_KIND_STAKE:
            series = history.staked
        case protection.LIMIT_KIND_LOSS:
            series = history.lost
        case protection.LIMIT_KIND_DEPOSIT:
            series = history.paid_in
        case _:
            series = history.played
    return series.frees_us(now_us, window_s * SECOND_US)


def in_session(history: History, now_us: int) -> bool:
    """Whether a bet now would belong to the session of the last one."""
    return bool(history.session_us) and now_us - history.last_bet_us < IDLE_US


NOTHING_YET = History()
"""Of an account that never did anything. Never changed."""


# ---- judging -----------------------------------------------------------------------------------


def kept_away(
    record: AccountRecord, scoped: Sequence[Scoped], now_us: int
) -> list[limits.Violation]:
    """Who may neither bet nor pay in: excluded, cooling off, not of age."""
    found: list[limits.Violation] = []
    for limit, away in (
        (limits.LIMIT_EXCLUDED, record.exclusion),
        (limits.LIMIT_COOLING_OFF, record.cool_off),
    ):
        if away is not None and away.holds(now_us):
            found.append(
                limits.Violation(limit=limit, scope=limits.SCOPE_ACCOUNT, until_us=away.until_us)
            )
    if record.age == limits.AGE_STATEMENT_UNDER_AGE:
        found.append(limits.Violation(limit=limits.LIMIT_UNDER_AGE, scope=limits.SCOPE_ACCOUNT))
    elif record.age == limits.AGE_STATEMENT_UNSPECIFIED:
        for scope, settings in scoped:
            required: Setting | None = settings.get(AGE_REQUIRED)
            if required is not None and required.at(now_us) is not None:
                found.append(whose(limits.Violation(limit=limits.LIMIT_AGE_NOT_STATED), scope))
                break
    return found


def over_windows(
    record: AccountRecord, scoped: Sequence[Scoped], extra_minor: int, now_us: int
) -> list[limits.Violation]:
    """What a further stake would break: stakes, losses, time at play; each window by itself."""
    history = record.history or NOTHING_YET
    found: list[limits.Violation] = []
    limited = windows(scoped, (STAKE, LOSS, SESSION), record.currency_code, now_us)
    for kind, window_s, held in limited:
        if kind == SESSION:
            found += _over_time(history, window_s, held, now_us)
        else:
            limit = limits.LIMIT_STAKE_WINDOW if kind == STAKE else limits.LIMIT_LOSS_WINDOW
            found += _over(history, kind, limit, window_s, held, extra_minor, now_us)
    return found


def _over_time(
    history: History, window_s: int, held: Strictest, now_us: int
) -> list[limits.Violation]:
    seconds = used(history, SESSION, window_s, now_us) // SECOND_US
    if seconds < held.maximum:
        return []
    told = limits.Violation(
        limit=limits.LIMIT_SESSION_TIME,
        allowed_count=held.maximum,
        would_be_count=seconds,
        window_s=window_s,
        until_us=frees_us(history, SESSION, window_s, now_us),
    )
    return [whose(told, held.scope)]


def over_deposits(
    record: AccountRecord, scoped: Sequence[Scoped], amount_minor: int, now_us: int
) -> list[limits.Violation]:
    """What a deposit would break."""
    history = record.history or NOTHING_YET
    found: list[limits.Violation] = []
    limit = limits.LIMIT_DEPOSIT_WINDOW
    for _, window_s, held in windows(scoped, (DEPOSIT,), record.currency_code, now_us):
        found += _over(history, DEPOSIT, limit, window_s, held, amount_minor, now_us)
    return found


def _over(
    history: History,
    kind: int,
    limit: limits.Limit.ValueType,
    window_s: int,
    held: Strictest,
    extra_minor: int,
    now_us: int,
) -> list[limits.Violation]:
    before = used(history, kind, window_s, now_us)
    if before + extra_minor <= held.maximum:
        return []
    told = limits.Violation(
        limit=limit,
        allowed_minor=held.maximum,
        would_be_minor=before + extra_minor,
        window_s=window_s,
        room_minor=max(held.maximum - before, 0),
        until_us=frees_us(history, kind, window_s, now_us),
    )
    return [whose(told, held.scope)]
