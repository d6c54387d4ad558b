"""What tables, partners, jurisdictions and accounts limit beside the rules of a table (rule LIM-6).

Each limit holds for every account by itself. Of those that say something of the same, the strictest
holds. A tighter limit holds from its log position on, a looser one 24 hours later (rule LIM-7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from services.limits.domain.windows import DAY_US

LOOSER_AFTER_US = DAY_US
"""Between a wish for a looser limit and the limit (rule LIM-7)."""
NO_LIMIT = (1 << 63) - 1
"""Above every amount."""

BET = protection.LIMIT_KIND_BET
ROUND = protection.LIMIT_KIND_ROUND
STAKE = protection.LIMIT_KIND_STAKE
LOSS = protection.LIMIT_KIND_LOSS
DEPOSIT = protection.LIMIT_KIND_DEPOSIT
SESSION = protection.LIMIT_KIND_SESSION
AGE = protection.LIMIT_KIND_AGE
WITHOUT_CURRENCY = (SESSION, AGE)


class What(NamedTuple):
    """What a limit is about."""

    kind: int
    """A `LimitKind`."""
    currency_code: str
    """Empty for times and age."""
    game: int = 0
    """0: every game."""
    bet: str = ""
    """Empty: every bet."""
    window_s: int = 0


class Setting(NamedTuple):
    """A limit, and what it will be."""

    maximum: int | None
    """Minor units, or seconds; None: no limit."""
    later: int | None = None
    later_us: int = 0
    """From when on `later` holds; 0: nothing waits."""

    def at(self, now_us: int) -> int | None:
        """What holds at a time."""
        return self.later if self.later_us and now_us >= self.later_us else self.maximum


Settings = dict[What, Setting]


class ScopeId(NamedTuple):
    """Whose limits."""

    scope: int
    """A `Scope`."""
    partner: str
    """Of an account; else empty."""
    name: str
    """The table, partner, jurisdiction or account."""


class Strictest(NamedTuple):
    """A limit that holds, and whose it is."""

    maximum: int
    scope: ScopeId


class Scoped(NamedTuple):
    """The settings of a scope that concerns an account at a table, in order of scopes."""

    scope: ScopeId
    settings: Mapping[What, Setting]


def is_looser(wanted: int | None, held: int | None) -> bool:
    """Whether a maximum is looser than another one."""
    return (NO_LIMIT if wanted is None else wanted) > (NO_LIMIT if held is None else held)


def changed(setting: Setting | None, wanted: int | None, now_us: int) -> Setting | None:
    """A limit after a wish; None: there is none any more. What waits already and is looser still is
    no reason to wait longer."""
    held = None if setting is None else setting.at(now_us)
    if not is_looser(wanted, held):
        return None if wanted is None else Setting(wanted)
    from_us = now_us + LOOSER_AFTER_US
    if setting is not None and setting.later_us > now_us and not is_looser(wanted, setting.later):
        from_us = setting.later_us
    return Setting(held, wanted, from_us)


def asked(order: protection.SetLimits | protection.LimitsSet) -> Iterator[tuple[What, int | None]]:
    """What an order sets, with the maximum."""
    for one in order.limits:
        currency = "" if one.kind in WITHOUT_CURRENCY else order.currency_code
        what = What(one.kind, currency, one.game, one.bet, one.window_s)
        yield what, one.maximum if one.HasField("maximum") else None


def strictest(scoped: Sequence[Scoped], what: Sequence[What], now_us: int) -> Strictest | None:
    """The least maximum of all scopes, and whose it is; of equal ones the widest scope's."""
    found: Strictest | None = None
    for scope, settings in scoped:
        for one in what:
            setting = settings.get(one)
            maximum = None if setting is None else setting.at(now_us)
            if maximum is not None and (found is None or maximum < found.maximum):
                found = Strictest(maximum, scope)
    return found


def of_bet(game: int, bet: str, currency_code: str) -> tuple[What, ...]:
    """The limits that say something of a kind of bet."""
    return (
        What(BET, currency_code, game, bet),
        What(BET, currency_code, game),
        What(BET, currency_code, 0, bet),
        What(BET, currency_code),
    )


def windows(
    scoped: Sequence[Scoped], kinds: Sequence[int], currency_code: str, now_us: int
) -> list[tuple[int, int, Strictest]]:
    """By (kind, window in seconds), ascending: the strictest limit of these kinds."""
    found: dict[tuple[int, int], Strictest] = {}
    for scope, settings in scoped:
        for (kind, currency, _, _, window_s), setting in settings.items():
            if kind not in kinds or currency not in ("", currency_code):
                continue
            maximum = setting.at(now_us)
            if maximum is None:
                continue
            held = found.get((kind, window_s))
            if held is None or maximum < held.maximum:
                found[kind, window_s] = Strictest(maximum, scope)
    return [(kind, window_s, held) for (kind, window_s), held in sorted(found.items())]


def whose(violation: limits.Violation, scope: ScopeId) -> limits.Violation:
    """The violation, with the scope whose limit is broken."""
    violation.scope = limits.Scope.ValueType(scope.scope)
    if scope.scope in (limits.SCOPE_PARTNER, limits.SCOPE_JURISDICTION):
        violation.scope_id = scope.name  # A table or account is named by the request.
    return violation
