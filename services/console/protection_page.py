"""Limits and what protects accounts, as a partner's support and operators see them: windows with
what is used and left, every limit with whose it is, exclusions; and supervisors' orders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from sabot.limits.v1 import events_pb2 as limit_events
from sabot.limits.v1 import limits_service_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.rules.v1 import rule_set_pb2
from services.cli.uuid7 import uuid7
from services.console.calls import NotDone
from services.console.lobby import all_tables
from services.console.shown import moment
from services.console.switches_page import ACCOUNT, GAMES, PARTNER, place_of, reason_of
from services.console.web import Refusal, Visit, change, page
from services.games.currencies import EXPONENTS
from services.kernel import telemetry
from services.kernel.telemetry_names import CONSOLE_ORDER
from services.kernel.tokens import Role

HOUR_S, DAY_S = 3_600, 86_400
WINDOWS = (DAY_S, 7 * DAY_S, 30 * DAY_S)
"""What a form offers; hours between them are set by `SetLimits`."""
KINDS = tuple(
    name
    for name in protection.LimitKind.keys()  # noqa: SIM118 - an enum of the protos is no mapping
    if not name.endswith("_UNSPECIFIED")
)
SCOPES = ("SCOPE_TABLE", "SCOPE_PARTNER", "SCOPE_JURISDICTION", "SCOPE_ACCOUNT")
WINDOWED = frozenset({"LIMIT_KIND_STAKE", "LIMIT_KIND_LOSS", "LIMIT_KIND_DEPOSIT"})
TIMED, PLAIN = "LIMIT_KIND_SESSION", "LIMIT_KIND_AGE"
EXCLUSIONS = ("EXCLUSION_KIND_EXCLUSION", "EXCLUSION_KIND_COOL_OFF")
MOST_DAYS = 36_500
_AMOUNT = re.compile(r"\d{1,12}(\.\d{1,4})?")
_CURRENCY = re.compile(r"[A-Z]{3}")
_BET = re.compile(r"[a-z0-9_]{0,64}")


# ---- values as pages show them -----------------------------------------------------------------


def span(seconds: int) -> tuple[str, int]:
    """A time in the largest unit that it is whole in: `days`, `hours` or `minutes`."""
    for name, unit in (("days", DAY_S), ("hours", HOUR_S)):
        if seconds and seconds % unit == 0:
            return name, seconds // unit
    return "minutes", -(-seconds // 60)


def is_time(kind: int) -> bool:
    """Whether a kind of limit is one of time."""
    return kind == protection.LIMIT_KIND_SESSION


def _shared() -> dict[str, Any]:
    return {
        "new_id": uuid7,
        "span": span,
        "is_time": is_time,
        "kinds": KINDS,
        "windows": WINDOWS,
        "games": GAMES,
        "exclusions": EXCLUSIONS,
    }


# ---- pages -------------------------------------------------------------------------------------


async def show(visit: Visit) -> Response:
    """An account's."""
    partner, account = visit.path("partner"), visit.path("account")
    missing = Refusal(404, "refused.account", account=account[:64], partner=partner[:32])
    if not PARTNER.fullmatch(partner) or not ACCOUNT.fullmatch(account):
        raise missing
    calls = visit.calls
    request = limits.GetProtectionRequest(account_id=account, partner_id=partner)
    try:
        told: limits.GetProtectionResponse = await calls.ask(calls.limits.GetProtection, request)
    except NotDone as error:
        if error.reason in {"ACCOUNT_NOT_FOUND", "ACCOUNT_UNKNOWN", "INVALID_REQUEST"}:
            raise missing from None
        raise
    return visit.page(
        "protection.html",
        partner=partner,
        account=account,
        told=told,
        currency=told.currency_code,
        position=f"{told.position.segment}/{told.position.sequence}",
        **_shared(),
    )


async def index(visit: Visit) -> Response:
    """What table, partner, jurisdiction and account limit beside a table's rules."""
    calls = visit.calls
    tables = await all_tables(calls)
    ids = [one.spec.table_id for one in tables]
    table_id = visit.query("table") or next(iter(ids), "")
    partner, account = visit.query("partner"), visit.query("account")
    if table_id and table_id not in ids:
        raise Refusal(404, "refused.table", table=table_id[:40])
    if (partner and not PARTNER.fullmatch(partner)) or (
        account and not (partner and ACCOUNT.fullmatch(account))
    ):
        raise Refusal(404, "refused.account", account=account[:64], partner=partner[:32])
    told = limits.GetLimitsResponse()
    if table_id:
        request = limits.GetLimitsRequest(table_id=table_id, partner_id=partner, account_id=account)
        told = await calls.ask(calls.limits.GetLimits, request)
    currencies = {one.spec.table_id: one.spec.currency_code for one in tables}
    return visit.page(
        "limits.html",
        tables=ids,
        table_id=table_id,
        partner=partner,
        account=account,
        scoped=list(told.scoped),
        currency=currencies.get(table_id, ""),
        scopes=SCOPES,
        position=f"{told.position.segment}/{told.position.sequence}",
        **_shared(),
    )


# ---- orders ------------------------------------------------------------------------------------


def minor_of(text: str, currency: str) -> int:
    """An amount as typed, such as `250` or `12.50`, in minor units. Raises Refusal."""
    whole, _, rest = text.partition(".")
    digits = EXPONENTS.get(currency, 2)
    if _AMOUNT.fullmatch(text) is None or len(rest) > digits:
        raise Refusal(400, "refused.amount", digits=digits)
    unit: int = 10**digits
    return int(whole) * unit + int(rest.ljust(digits, "0") or "0")


def setting_of(form: Mapping[str, str]) -> tuple[protection.LimitSetting, str]:
    """The limit that a form sets, or lifts where it names no maximum; and its currency, where it
    has one. Raises Refusal."""
    kind, currency = form.get("kind", ""), form.get("currency", "")
    if kind not in KINDS:
        raise Refusal(400, "refused.limit")
    made = protection.LimitSetting(kind=protection.LimitKind.Value(kind))
    window, maximum = form.get("window", "0"), form.get("maximum", "")
    if kind in WINDOWED or kind == TIMED:
        if not window.isascii() or not window.isdecimal() or len(window) > 7:
            raise Refusal(400, "refused.limit")
        made.window_s = int(window)
        if kind in WINDOWED and not made.window_s:
            raise Refusal(400, "refused.window")
    if kind == "LIMIT_KIND_BET":
        if form.get("game"):
            if form["game"] not in GAMES:
                raise Refusal(400, "refused.limit")
            made.game = rule_set_pb2.Game.Value(form["game"])
        if _BET.fullmatch(form.get("bet", "")) is None:
            raise Refusal(400, "refused.limit")
        made.bet = form.get("bet", "")
    if kind == PLAIN:
        if form.get("lift") != "yes":
            made.maximum = 0
        return made, ""
    if form.get("lift") != "yes":
        if kind == TIMED:
            if not maximum.isascii() or not maximum.isdecimal() or len(maximum) > 6:
                raise Refusal(400, "refused.minutes")
            made.maximum = int(maximum) * 60
        else:
            made.maximum = minor_of(maximum, currency)
    if kind == TIMED:
        return made, ""
    if _CURRENCY.fullmatch(currency) is None:
        raise Refusal(400, "refused.limit")
    return made, currency


async def set_limit(visit: Visit) -> Response:
    """One limit of a scope is set or lifted."""
    form = visit.form
    scope = form.get("scope", "")
    if scope not in SCOPES:
        raise Refusal(400, "refused.limit")
    setting, currency = setting_of(form)
    request = limits.SetLimitsRequest(
        request_id=form.get("request_id", ""),
        scope=limit_events.Scope.Value(scope),
        scope_id=form.get("scope_id", ""),
        partner_id=form.get("partner", "") if scope == "SCOPE_ACCOUNT" else "",
        currency_code=currency,
        limits=[setting],
        reason=reason_of(form),
    )
    calls = visit.calls
    answer = await calls.ask(calls.limits.SetLimits, request)
    looser = answer.looser_from.ToMicroseconds() if answer.HasField("looser_from") else 0
    return _done(visit, "set-limit", answer, looser_us=looser)


async def exclude(visit: Visit) -> Response:
    """An account is kept away."""
    form = visit.form
    days = form.get("days", "")
    if form.get("kind") not in EXCLUSIONS:
        raise Refusal(400, "refused.limit")
    if days and (not days.isascii() or not days.isdecimal() or int(days[:9]) > MOST_DAYS):
        raise Refusal(400, "refused.number", name=visit.words("protection.days"), most=MOST_DAYS)
    request = limits.ExcludeRequest(
        request_id=form.get("request_id", ""),
        account_id=visit.path("account"),
        partner_id=visit.path("partner"),
        kind=protection.ExclusionKind.Value(form["kind"]),
        term_s=int(days or "0") * DAY_S,
        reason=reason_of(form),
    )
    calls = visit.calls
    return _done(visit, "exclude", await calls.ask(calls.limits.Exclude, request))


async def lift(visit: Visit) -> Response:
    """An exclusion without a term ends, a day later."""
    request = limits.LiftExclusionRequest(
        request_id=visit.form.get("request_id", ""),
        account_id=visit.path("account"),
        partner_id=visit.path("partner"),
        reason=reason_of(visit.form),
    )
    calls = visit.calls
    return _done(visit, "lift", await calls.ask(calls.limits.LiftExclusion, request))


def _done(visit: Visit, order: str, answer: Any, looser_us: int = 0) -> Response:
    telemetry.logger().info(CONSOLE_ORDER, operator=visit.who.name, order=order)
    outcome = visit.words("limits.looser", moment=moment(looser_us)) if looser_us else ""
    return visit.page("part_done.html", order=order, position=place_of(answer), outcome=outcome)


_OF_ACCOUNT = "/accounts/{partner}/{account}/protection"
ROUTES = [
    Route("/limits", page(index)),
    Route("/limits/set", change(set_limit, Role.SUPERVISOR), methods=["POST"]),
    Route(_OF_ACCOUNT, page(show)),
    Route(_OF_ACCOUNT + "/exclude", change(exclude, Role.SUPERVISOR), methods=["POST"]),
    Route(_OF_ACCOUNT + "/lift", change(lift, Role.SUPERVISOR), methods=["POST"]),
]
