"""Orders to limits: limits of a scope, exclusions, and what a partner says of an account.

Order of refusals: the request id (expired or ahead of time, repeated, reused); the table or account
that there is not, the account that is closed; then
  SetLimits: CURRENCY_MISMATCH, BAD_LIMIT, LOOSENS (from a partner), TOO_MANY_LIMITS;
  Exclude: BAD_LIMIT (a term that cannot be), EXCLUDED_LONGER;
  LiftExclusion: NOT_EXCLUDED, TERM_RUNS;
  DescribeAccount: BAD_LIMIT (it says nothing), JURISDICTION_CHANGES.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from services.games import baccarat_bets, blackjack_bets, roulette, sicbo, two_cards
from services.kernel.event import Event
from services.kernel.requests import Standing
from services.limits.domain.protection import MAX_COOL_OFF_US, MAX_FORMER, AccountRecord, Away
from services.limits.domain.scopes import (
    AGE,
    BET,
    LOOSER_AFTER_US,
    ROUND,
    SESSION,
    ScopeId,
    Setting,
    What,
    asked,
    changed,
    is_looser,
)
from services.limits.domain.state import LimitsState
from services.limits.domain.windows import LONGEST_US, SECOND_US

MAX_LIMITS = 64
"""Limits of a scope: every bet of the largest game with a few windows. All are looked through for
each bet of an account that has some."""
MAX_SCOPES = 1_100_000
"""Scopes with limits: every account of a large partner, and then some."""
MAX_MINOR = 10**15
"""Above what any account may hold."""
HOUR_S = 3600
KEPT_BEYOND = 64
"""Outcomes whose request ids have expired are cleared away once there are so many."""

Order = (
    protection.SetLimits
    | protection.Exclude
    | protection.LiftExclusion
    | protection.DescribeAccount
)
Done = (
    protection.LimitsSet
    | protection.AccountExcluded
    | protection.ExclusionLifted
    | protection.AccountDescribed
)

KNOWN_BETS: Mapping[int, frozenset[str]] = {
    rule_sets.GAME_BACCARAT: frozenset(baccarat_bets.PAYS),
    rule_sets.GAME_BLACKJACK: frozenset(blackjack_bets.PAYS).difference(
        blackjack_bets.FURTHER_STAKES
    ),
    rule_sets.GAME_ROULETTE: frozenset(roulette.PAYS),
    rule_sets.GAME_SICBO: frozenset(sicbo.PAYS),
    rule_sets.GAME_DRAGON_TIGER: frozenset(two_cards.DRAGON_TIGER_PAYS),
    rule_sets.GAME_FOOTBALL_STUDIO: frozenset(two_cards.FOOTBALL_STUDIO_PAYS),
}
"""By game: the bets that may be limited. A double, a split and insurance follow their main bet."""
ID_REFUSALS = frozenset(
    {
        protection.ORDER_REFUSAL_REQUEST_ID_REUSED,
        protection.ORDER_REFUSAL_REQUEST_EXPIRED,
        protection.ORDER_REFUSAL_REQUEST_ID_AHEAD,
    }
)
"""Refusals that speak of the request id alone: what it was used for before is not touched."""

Refusal = tuple[protection.OrderRefusal.ValueType, str]
"""Why, with what is wrong where that alone does not say."""


# ---- what changes. Parts of evolve. ------------------------------------------------------------


def use_request_id(state: LimitsState, event: Event, body: Order) -> None:
    """Remember an order's id, if this is its first use."""
    if _standing(state, event, body)[0] is Standing.NEW:
        ids = state.requests
        ids.use(event.actor, body.request_id, body.request_hash, event.position, event.time_us)


def order_answered(
    state: LimitsState, event: Event, body: Done | protection.LimitsOrderRefused
) -> None:
    """An order is answered: what it changes, and what a repeat of it is told."""
    _keep_outcome(state, event, body)
    match body:
        case protection.LimitsSet():
            _set_limits(state, event, body)
        case protection.AccountExcluded():
            _keep_away(state, event, body)
        case protection.ExclusionLifted():
            state.accounts[event.partner, body.account_id].exclusion = Away(body.until_us)
        case protection.AccountDescribed():
            _describe(state, event, body)
        case protection.LimitsOrderRefused():
            pass
        case _:
            assert_never(body)


def _keep_outcome(
    state: LimitsState, event: Event, body: Done | protection.LimitsOrderRefused
) -> None:
    """Remember what was answered to an id, for as long as the id is kept."""
    if isinstance(body, protection.LimitsOrderRefused) and body.refusal in ID_REFUSALS:
        return
    outcomes, used = state.outcomes, state.requests.used
    outcomes.setdefault((event.actor, body.request_id), body)
    if len(outcomes) > len(used) + KEPT_BEYOND:
        state.outcomes = {key: kept for key, kept in outcomes.items() if key in used}


def _set_limits(state: LimitsState, event: Event, body: protection.LimitsSet) -> None:
    """The settings of a scope change."""
    scope = scope_of(body.scope, event.partner, body.scope_id)
    settings = state.scopes.setdefault(scope, {})
    for what, maximum in asked(body):
        setting = changed(settings.get(what), maximum, event.time_us)
        if setting is None:
            settings.pop(what, None)
        else:
            settings[what] = setting
    if not settings:
        del state.scopes[scope]


def _keep_away(state: LimitsState, event: Event, body: protection.AccountExcluded) -> None:
    """An account is excluded, or cools off."""
    record = state.accounts[event.partner, body.account_id]
    if body.kind == protection.EXCLUSION_KIND_COOL_OFF:
        record.cool_off = Away(body.until_us)
    else:
        record.exclusion = Away(body.until_us)


def _describe(state: LimitsState, event: Event, body: protection.AccountDescribed) -> None:
    """What a partner says of an account."""
    record = state.accounts[event.partner, body.account_id]
    now_us = event.time_us
    if body.former_until_us:
        former = [one for one in record.former or () if now_us < one[1]]
        record.former = [*former, (record.jurisdiction, body.former_until_us)]
    record.jurisdiction = body.jurisdiction
    record.age = body.age


def scope_of(scope: int, partner: str, name: str) -> ScopeId:
    """Whose limits are meant."""
    return ScopeId(scope, partner if scope == limits.SCOPE_ACCOUNT else "", name)


# ---- what is answered --------------------------------------------------------------------------


def answer_order(state: LimitsState, event: Event, body: Order) -> Message:
    """Answer one order."""
    account_id = _account_of(body)
    found = _by_id(state, event, body)
    if isinstance(found, log.RequestRepeated):
        return found
    answer = found or _answered(state, event, body)
    if isinstance(answer, tuple):
        refusal, detail = answer
        return protection.LimitsOrderRefused(
            request_id=body.request_id, account_id=account_id, refusal=refusal, detail=detail
        )
    return answer


def _account_of(body: Order) -> str:
    if not isinstance(body, protection.SetLimits):
        return body.account_id
    return body.scope_id if body.scope == limits.SCOPE_ACCOUNT else ""


def _standing(
    state: LimitsState, event: Event, body: Order
) -> tuple[Standing, entry_pb2.Position | None]:
    standing, first = state.requests.standing(
        event.actor, body.request_id, body.request_hash, event.time_us
    )
    if first is None:
        return standing, None
    if first == event.position:
        return Standing.NEW, None  # This very order, folded a moment ago.
    return standing, entry_pb2.Position(
        segment=first.segment, sequence=first.sequence, index=first.index
    )


def _by_id(state: LimitsState, event: Event, body: Order) -> Refusal | log.RequestRepeated | None:
    standing, first = _standing(state, event, body)
    match standing:
        case Standing.NEW:
            return None
        case Standing.EXPIRED | Standing.AHEAD if event.retried:
            return None  # Its age was judged when it came; a fix may take longer than a day.
        case Standing.EXPIRED:
            return protection.ORDER_REFUSAL_REQUEST_EXPIRED, ""
        case Standing.AHEAD:
            return protection.ORDER_REFUSAL_REQUEST_ID_AHEAD, ""
        case Standing.REPEATED:
            return log.RequestRepeated(request_id=body.request_id, first=first)
        case Standing.REUSED:
            return protection.ORDER_REFUSAL_REQUEST_ID_REUSED, ""
        case _:
            assert_never(standing)


def _answered(state: LimitsState, event: Event, body: Order) -> Done | Refusal:
    account_id = _account_of(body)
    record = state.accounts.get((event.partner, account_id)) if account_id else None
    if account_id and record is None:
        return protection.ORDER_REFUSAL_UNKNOWN_ACCOUNT, ""
    if record is not None and record.closed:
        return protection.ORDER_REFUSAL_ACCOUNT_CLOSED, ""
    if isinstance(body, protection.SetLimits):
        return _limits_set(state, event, body, record)
    if record is None:
        return protection.ORDER_REFUSAL_UNKNOWN_ACCOUNT, ""
    match body:
        case protection.Exclude():
            return _excluded(event, body, record)
        case protection.LiftExclusion():
            return _lifted(event, body, record)
        case protection.DescribeAccount():
            return _described(event, body, record)
        case _:
            assert_never(body)


def _limits_set(
    state: LimitsState, event: Event, body: protection.SetLimits, record: AccountRecord | None
) -> protection.LimitsSet | Refusal:
    currency_code = body.currency_code
    if body.scope == limits.SCOPE_TABLE:
        table = state.tables.get(body.scope_id)
        if table is None:
            return protection.ORDER_REFUSAL_UNKNOWN_TABLE, ""
        if currency_code != table.currency_code:
            return protection.ORDER_REFUSAL_CURRENCY_MISMATCH, ""
    if record is not None and currency_code not in ("", record.currency_code):
        return protection.ORDER_REFUSAL_CURRENCY_MISMATCH, ""
    fault = _fault(body)
    if fault:
        return protection.ORDER_REFUSAL_BAD_LIMIT, fault
    now_us = event.time_us
    scope = scope_of(body.scope, event.partner, body.scope_id)
    settings = state.scopes.get(scope, {})
    wanted = {what: changed(settings.get(what), most, now_us) for what, most in asked(body)}
    by_partner = event.actor.startswith("partner:")
    if by_partner and any(
        is_looser(most, _held(settings.get(what), now_us)) for what, most in asked(body)
    ):
        return protection.ORDER_REFUSAL_LOOSENS, ""
    after = {**settings, **wanted}
    if sum(setting is not None for setting in after.values()) > MAX_LIMITS:
        return protection.ORDER_REFUSAL_TOO_MANY_LIMITS, ""
    if not settings and len(state.scopes) >= MAX_SCOPES:
        return protection.ORDER_REFUSAL_TOO_MANY_LIMITS, ""
    return protection.LimitsSet(
        request_id=body.request_id,
        scope=body.scope,
        scope_id=body.scope_id,
        currency_code=currency_code,
        limits=body.limits,
        looser_from_us=max(
            (setting.later_us for setting in wanted.values() if setting is not None), default=0
        ),
    )


def _held(setting: Setting | None, now_us: int) -> int | None:
    return None if setting is None else setting.at(now_us)


def _fault(body: protection.SetLimits) -> str:
    """What is wrong with limits; empty: nothing."""
    seen: set[What] = set()
    for (what, maximum), one in zip(asked(body), body.limits, strict=True):
        fault = _fault_of(body, one, maximum)
        if fault:
            return fault
        if what in seen:
            return "a limit is named twice"
        seen.add(what)
    return ""


def _fault_of(body: protection.SetLimits, one: protection.LimitSetting, maximum: int | None) -> str:
    kind, window_s = one.kind, one.window_s
    is_window = kind not in (BET, ROUND, AGE)
    if kind not in protection.LimitKind.values() or not kind:
        return "the kind of a limit is not known"
    if body.scope == limits.SCOPE_TABLE and kind not in (BET, ROUND):
        return "a table limits bets and rounds"
    if kind not in (SESSION, AGE) and not body.currency_code:
        return "an amount needs its currency"
    if kind != BET and (one.game or one.bet):
        return "a game and a bet are named for limits of bets only"
    if kind == BET and not _is_known(one.game, one.bet):
        return "there is no such bet that may be limited"
    if not is_window and window_s:
        return "a limit of bets, rounds or age has no window"
    if is_window and not (window_s or kind == SESSION):
        return "the limit needs a window"
    if window_s % HOUR_S or window_s * SECOND_US > LONGEST_US:
        return "a window is whole hours, up to 30 days"
    if maximum is None:
        return ""
    if kind == AGE and maximum:
        return "the maximum is 0 where a statement of age is required"
    longest = LONGEST_US // SECOND_US if kind == SESSION else MAX_MINOR
    return "" if 0 <= maximum <= longest else f"a maximum is 0 to {longest}"


def _is_known(game: int, bet: str) -> bool:
    if game and game not in KNOWN_BETS:
        return False
    games = (game,) if game else tuple(KNOWN_BETS)
    return not bet or any(bet in KNOWN_BETS[one] for one in games)


def _excluded(
    event: Event, body: protection.Exclude, record: AccountRecord
) -> protection.AccountExcluded | Refusal:
    now_us, term_us = event.time_us, body.term_s * SECOND_US
    cools_off = body.kind == protection.EXCLUSION_KIND_COOL_OFF
    if cools_off and not 0 < term_us <= MAX_COOL_OFF_US:
        return protection.ORDER_REFUSAL_BAD_LIMIT, "a break lasts from a second to 42 days"
    until_us = now_us + term_us if term_us else 0
    away = record.cool_off if cools_off else record.exclusion
    if away is not None and away.holds(now_us) and not _ends_before(away.until_us, until_us):
        return protection.ORDER_REFUSAL_EXCLUDED_LONGER, ""
    return protection.AccountExcluded(
        request_id=body.request_id,
        account_id=body.account_id,
        kind=body.kind,
        until_us=until_us,
    )


def _ends_before(one_us: int, other_us: int) -> bool:
    """Of two ends, 0 is never."""
    return bool(one_us) and (not other_us or one_us < other_us)


def _lifted(
    event: Event, body: protection.LiftExclusion, record: AccountRecord
) -> protection.ExclusionLifted | Refusal:
    away = record.exclusion
    if away is None or not away.holds(event.time_us):
        return protection.ORDER_REFUSAL_NOT_EXCLUDED, ""
    if away.until_us:
        return protection.ORDER_REFUSAL_TERM_RUNS, ""
    return protection.ExclusionLifted(
        request_id=body.request_id,
        account_id=body.account_id,
        until_us=event.time_us + LOOSER_AFTER_US,
    )


def _described(
    event: Event, body: protection.DescribeAccount, record: AccountRecord
) -> protection.AccountDescribed | Refusal:
    if not body.jurisdiction and not body.age:
        return protection.ORDER_REFUSAL_BAD_LIMIT, "neither a jurisdiction nor an age is told"
    now_us = event.time_us
    jurisdiction = body.jurisdiction or record.jurisdiction
    leaves = bool(record.jurisdiction) and jurisdiction != record.jurisdiction
    former = [one for one in record.former or () if now_us < one[1]]
    if leaves and len(former) >= MAX_FORMER:
        return protection.ORDER_REFUSAL_JURISDICTION_CHANGES, ""
    return protection.AccountDescribed(
        request_id=body.request_id,
        account_id=body.account_id,
        jurisdiction=jurisdiction,
        age=body.age or limits.AgeStatement.ValueType(record.age),
        former_until_us=now_us + LOOSER_AFTER_US if leaves else 0,
    )
