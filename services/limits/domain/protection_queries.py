"""What protects an account, and the limits that scopes have set: for whoever asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import limits_service_pb2 as service
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from services.limits.domain.accounts import scoped_of
from services.limits.domain.protection import NOTHING_YET, AccountRecord, frees_us, used
from services.limits.domain.scopes import (
    BET,
    DEPOSIT,
    LOSS,
    SESSION,
    STAKE,
    Scoped,
    ScopeId,
    Setting,
    What,
)
from services.limits.domain.state import LimitsState
from services.limits.domain.windows import DAY_US, SECOND_US

WINDOWS_S = tuple(days * DAY_US // SECOND_US for days in (1, 7, 30))
"""Told of every account, limited or not."""


def protection_of(
    state: LimitsState, partner: str, account_id: str, now_us: int
) -> service.GetProtectionResponse | None:
    """All that protects an account at a log time. Without a position. None: no such account."""
    record = state.accounts.get((partner, account_id))
    if record is None:
        return None
    scoped = scoped_of(state, (partner, account_id), record, "", now_us)
    history = record.history or NOTHING_YET
    told = service.GetProtectionResponse(
        currency_code=record.currency_code,
        jurisdiction=record.jurisdiction,
        former_jurisdictions=[
            code for code in record.jurisdictions(now_us) if code != record.jurisdiction
        ],
        age=limits.AgeStatement.ValueType(record.age),
        windows=list(_windows(record, scoped, now_us)),
        limits=[
            scoped_limit(scope, what, setting, now_us)
            for scope, what, setting in _settings(scoped, now_us)
        ],
        at_stake_minor=history.at_stake_minor,
    )
    for kind, away in (
        (protection.EXCLUSION_KIND_EXCLUSION, record.exclusion),
        (protection.EXCLUSION_KIND_COOL_OFF, record.cool_off),
    ):
        if away is not None and away.holds(now_us) and not told.exclusion:
            told.exclusion = kind
            if away.until_us:
                told.excluded_until.CopyFrom(timestamp(away.until_us))
    return told


def limits_beside(
    state: LimitsState, table_id: str, partner: str, account_id: str, now_us: int
) -> list[service.ScopedLimit] | None:
    """What table, partner and account have set, as far as it concerns a table and its game. None:
    the account is not known."""
    record = state.accounts.get((partner, account_id)) if account_id else AccountRecord("")
    if record is None:
        return None
    table = state.tables[table_id]
    return [
        scoped_limit(scope, what, setting, now_us)
        for scope, what, setting in _settings(
            scoped_of(state, (partner, account_id), record, table_id, now_us), now_us
        )
        if what.currency_code in ("", table.currency_code)
        and what.game in (0, table.rule_set.game)
        and (what.kind != BET or not what.bet or what.bet in table.limits)
    ]


def scoped_limit(scope: ScopeId, what: What, setting: Setting, now_us: int) -> service.ScopedLimit:
    """A limit as it is told."""
    held = setting.at(now_us)
    told = service.ScopedLimit(
        scope=limits.Scope.ValueType(scope.scope),
        scope_id=scope.name,
        kind=protection.LimitKind.ValueType(what.kind),
        game=rule_sets.Game.ValueType(what.game),
        bet=what.bet,
        window_s=what.window_s,
        currency_code=what.currency_code,
    )
    if held is not None:
        told.maximum = held
    if setting.later_us > now_us:
        told.loosens = True
        told.later_from.CopyFrom(timestamp(setting.later_us))
        if setting.later is not None:
            told.later_maximum = setting.later
    return told


def timestamp(time_us: int) -> Timestamp:
    """A log time as it goes out."""
    return Timestamp(seconds=time_us // SECOND_US, nanos=time_us % SECOND_US * 1000)


def _settings(scoped: Sequence[Scoped], now_us: int) -> Iterator[tuple[ScopeId, What, Setting]]:
    """Every setting that holds or will, by scope and by what it is about."""
    for scope, settings in scoped:
        for what, setting in sorted(settings.items(), key=lambda one: one[0]):
            if setting.at(now_us) is not None:
                yield scope, what, setting


def _windows(
    record: AccountRecord, scoped: Sequence[Scoped], now_us: int
) -> Iterator[service.WindowUse]:
    history = record.history or NOTHING_YET
    for kind in (DEPOSIT, STAKE, LOSS, SESSION):
        currency = "" if kind == SESSION else record.currency_code
        told = {*WINDOWS_S, *([0] if kind == SESSION else [])}
        by_window: dict[int, tuple[int, ScopeId, What, Setting]] = {}
        for scope, what, setting in _settings(scoped, now_us):
            if what.kind != kind or what.currency_code != currency:
                continue
            told.add(what.window_s)
            held = setting.at(now_us)
            strictest = by_window.get(what.window_s)
            if held is not None and (strictest is None or held < strictest[0]):
                by_window[what.window_s] = (held, scope, what, setting)
        unit = SECOND_US if kind == SESSION else 1
        for window_s in sorted(told):
            amount = used(history, kind, window_s, now_us) // unit
            use = service.WindowUse(
                kind=protection.LimitKind.ValueType(kind), window_s=window_s, used=amount
            )
            frees = frees_us(history, kind, window_s, now_us)
            if frees:
                use.frees_at.CopyFrom(timestamp(frees))
            if window_s in by_window:
                held, scope, what, setting = by_window[window_s]
                use.limit.CopyFrom(scoped_limit(scope, what, setting, now_us))
                use.left = max(held - amount, 0)
            yield use
