"""Broken limits, each with its arithmetic (rule LIM-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import grpc

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from services.kernel import errors
from services.kernel.errors import BrokenRule, Reason, Refused, Retry
from services.refusals.table import BETTING_CLOSED, TABLE_NOT_FOUND
from services.refusals.wallet import (
    ACCOUNT_CLOSED,
    ACCOUNT_NOT_FOUND,
    CURRENCY_MISMATCH,
    DECISION_FAILED,
)

_Code = grpc.StatusCode

BELOW_MINIMUM = Reason(
    "BELOW_MINIMUM",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "total on {place} would be {would_be_minor}, minimum {allowed_minor} (minor units)",
    "le total sur {place} serait de {would_be_minor}, minimum {allowed_minor} (unités mineures)",
)
ABOVE_MAXIMUM = Reason(
    "ABOVE_MAXIMUM",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "total on {place} would be {would_be_minor}, maximum {allowed_minor}{whose}, room for"
    " {room_minor} (minor units)",
    "le total sur {place} serait de {would_be_minor}, maximum {allowed_minor}{whose}, reste"
    " {room_minor} (unités mineures)",
)
STAKE_STEP = Reason(
    "STAKE_STEP",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "total on {place} would be {would_be_minor}, no multiple of {allowed_minor} (minor units)",
    "le total sur {place} serait de {would_be_minor}, qui n'est pas un multiple de {allowed_minor}"
    " (unités mineures)",
)
OPPOSITE_SIDES = Reason(
    "OPPOSITE_SIDES",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "{bet} may not be held together with {against}",
    "{bet} ne peut pas être joué en même temps que {against}",
)
SIDE_BET_CLOSED = Reason(
    "SIDE_BET_CLOSED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "{bet} is offered up to round {allowed_count} of a shoe; this is round {would_be_count}",
    "{bet} n'est proposé que jusqu'à la manche {allowed_count} d'un sabot ; c'est la manche"
    " {would_be_count}",
)
BET_CLOSED = Reason(
    "BET_CLOSED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "{bet} is closed for this round",
    "{bet} est fermé pour cette manche",
)
NO_MAIN_BET = Reason(
    "NO_MAIN_BET",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "{place} needs a bet on {against} that is on at the same seat",
    "{place} exige un pari {against} en cours à la même place",
)
STAKE_DIFFERENCE = Reason(
    "STAKE_DIFFERENCE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "{bet} could exceed {against} by {would_be_minor}, maximum {allowed_minor} (minor units)",
    "{bet} pourrait dépasser {against} de {would_be_minor}, maximum {allowed_minor}"
    " (unités mineures)",
)
COVERAGE = Reason(
    "COVERAGE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "covers {would_be_count} of {of_count} = {would_be_percent} % > {allowed_percent} %,"
    " at most {allowed_count} numbers",
    "couvre {would_be_count} numéros sur {of_count} = {would_be_percent} % > {allowed_percent} %,"
    " au plus {allowed_count}",
)
ACCOUNT_MAXIMUM = Reason(
    "ACCOUNT_MAXIMUM",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "all stakes in the round would be {would_be_minor}, maximum {allowed_minor}{whose}, room for"
    " {room_minor} (minor units)",
    "toutes les mises dans la manche seraient de {would_be_minor}, maximum {allowed_minor}{whose},"
    " reste {room_minor} (unités mineures)",
)
EXPOSURE = Reason(
    "EXPOSURE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "the round takes no such stake: the most that the house may have to pay is reached",
    "la manche ne prend pas une telle mise : le maximum que la maison peut devoir payer est"
    " atteint",
)

STAKE_LIMIT = Reason(
    "STAKE_LIMIT",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "stakes within {window} would be {would_be_minor}, maximum {allowed_minor}{whose}, room for"
    " {room_minor} (minor units)",
    "les mises en {window} seraient de {would_be_minor}, maximum {allowed_minor}{whose}, reste"
    " {room_minor} (unités mineures)",
)
LOSS_LIMIT = Reason(
    "LOSS_LIMIT",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "losses within {window} could be {would_be_minor}, maximum {allowed_minor}{whose}, room for"
    " {room_minor} (minor units)",
    "les pertes en {window} pourraient être de {would_be_minor}, maximum {allowed_minor}{whose},"
    " reste {room_minor} (unités mineures)",
)
DEPOSIT_LIMIT = Reason(
    "DEPOSIT_LIMIT",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "deposits within {window} would be {would_be_minor}, maximum {allowed_minor}{whose}, room for"
    " {room_minor} (minor units)",
    "les dépôts en {window} seraient de {would_be_minor}, maximum {allowed_minor}{whose}, reste"
    " {room_minor} (unités mineures)",
)
SESSION_LIMIT = Reason(
    "SESSION_LIMIT",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "the time at play in {window} is {would_be_count} s, maximum {allowed_count} s{whose}",
    "le temps de jeu en {window} est de {would_be_count} s, maximum {allowed_count} s{whose}",
)
EXCLUDED = Reason(
    "EXCLUDED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "the account is excluded",
    "le compte est exclu",
)
COOLING_OFF = Reason(
    "COOLING_OFF",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "the account takes a break",
    "le compte fait une pause",
)
UNDER_AGE = Reason(
    "UNDER_AGE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "the account's holder is not of age",
    "le titulaire du compte n'a pas l'âge requis",
)
AGE_NOT_STATED = Reason(
    "AGE_NOT_STATED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "the partner has not stated that the account's holder is of age{whose}",
    "le partenaire n'a pas déclaré que le titulaire du compte a l'âge requis{whose}",
)
BAD_LIMIT = Reason(
    "BAD_LIMIT",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "This cannot be asked of limits: {detail}.",
    "Ceci ne peut pas être demandé aux limites : {detail}.",
)
LIMIT_LOOSENS = Reason(
    "LIMIT_LOOSENS",
    _Code.PERMISSION_DENIED,
    Retry.NEVER,
    "A partner may tighten the limits of {account_id}; only an operator may loosen them.",
    "Un partenaire peut resserrer les limites de {account_id} ; seul un opérateur peut les"
    " assouplir.",
)
TOO_MANY_LIMITS = Reason(
    "TOO_MANY_LIMITS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "More limits are set than can be kept there.",
    "Il y a plus de limites qu'il ne peut en être conservé à cet endroit.",
)
EXCLUDED_LONGER = Reason(
    "EXCLUDED_LONGER",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "{account_id} is kept away for as long already, or longer.",
    "{account_id} est déjà tenu à l'écart aussi longtemps, ou plus.",
)
NOT_EXCLUDED = Reason(
    "NOT_EXCLUDED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "{account_id} is not excluded.",
    "{account_id} n'est pas exclu.",
)
EXCLUSION_HAS_TERM = Reason(
    "EXCLUSION_HAS_TERM",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The exclusion of {account_id} has a term and runs to its end.",
    "L'exclusion de {account_id} a un terme et court jusqu'à sa fin.",
)
JURISDICTION_CHANGES = Reason(
    "JURISDICTION_CHANGES",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The jurisdiction of {account_id} has changed too often within 24 hours.",
    "La juridiction de {account_id} a changé trop souvent en 24 heures.",
)

REASONS = (
    BELOW_MINIMUM,
    ABOVE_MAXIMUM,
    STAKE_STEP,
    OPPOSITE_SIDES,
    SIDE_BET_CLOSED,
    BET_CLOSED,
    NO_MAIN_BET,
    STAKE_DIFFERENCE,
    COVERAGE,
    ACCOUNT_MAXIMUM,
    EXPOSURE,
    STAKE_LIMIT,
    LOSS_LIMIT,
    DEPOSIT_LIMIT,
    SESSION_LIMIT,
    EXCLUDED,
    COOLING_OFF,
    UNDER_AGE,
    AGE_NOT_STATED,
    BAD_LIMIT,
    LIMIT_LOOSENS,
    TOO_MANY_LIMITS,
    EXCLUDED_LONGER,
    NOT_EXCLUDED,
    EXCLUSION_HAS_TERM,
    JURISDICTION_CHANGES,
)

LIMITS: Mapping[int, Reason] = {
    limits.LIMIT_BELOW_MINIMUM: BELOW_MINIMUM,
    limits.LIMIT_ABOVE_MAXIMUM: ABOVE_MAXIMUM,
    limits.LIMIT_STAKE_STEP: STAKE_STEP,
    limits.LIMIT_OPPOSITE_SIDES: OPPOSITE_SIDES,
    limits.LIMIT_BOOK_CLOSED: BETTING_CLOSED,
    limits.LIMIT_FAILED: DECISION_FAILED,
    limits.LIMIT_SIDE_BET_CLOSED: SIDE_BET_CLOSED,
    limits.LIMIT_NO_MAIN_BET: NO_MAIN_BET,
    limits.LIMIT_DIFFERENCE: STAKE_DIFFERENCE,
    limits.LIMIT_COVERAGE: COVERAGE,
    limits.LIMIT_ACCOUNT_MAXIMUM: ACCOUNT_MAXIMUM,
    limits.LIMIT_EXPOSURE: EXPOSURE,
    limits.LIMIT_BET_CLOSED: BET_CLOSED,
    limits.LIMIT_STAKE_WINDOW: STAKE_LIMIT,
    limits.LIMIT_LOSS_WINDOW: LOSS_LIMIT,
    limits.LIMIT_DEPOSIT_WINDOW: DEPOSIT_LIMIT,
    limits.LIMIT_SESSION_TIME: SESSION_LIMIT,
    limits.LIMIT_EXCLUDED: EXCLUDED,
    limits.LIMIT_COOLING_OFF: COOLING_OFF,
    limits.LIMIT_UNDER_AGE: UNDER_AGE,
    limits.LIMIT_AGE_NOT_STATED: AGE_NOT_STATED,
}
"""Every `sabot.limits.v1.Limit` but the unspecified one."""
ORDERS: Mapping[int, Reason] = {
    protection.ORDER_REFUSAL_REQUEST_ID_REUSED: errors.REQUEST_ID_REUSED,
    protection.ORDER_REFUSAL_REQUEST_EXPIRED: errors.REQUEST_EXPIRED,
    protection.ORDER_REFUSAL_REQUEST_ID_AHEAD: errors.REQUEST_ID_AHEAD,
    protection.ORDER_REFUSAL_UNKNOWN_ACCOUNT: ACCOUNT_NOT_FOUND,
    protection.ORDER_REFUSAL_UNKNOWN_TABLE: TABLE_NOT_FOUND,
    protection.ORDER_REFUSAL_ACCOUNT_CLOSED: ACCOUNT_CLOSED,
    protection.ORDER_REFUSAL_CURRENCY_MISMATCH: CURRENCY_MISMATCH,
    protection.ORDER_REFUSAL_BAD_LIMIT: BAD_LIMIT,
    protection.ORDER_REFUSAL_LOOSENS: LIMIT_LOOSENS,
    protection.ORDER_REFUSAL_TOO_MANY_LIMITS: TOO_MANY_LIMITS,
    protection.ORDER_REFUSAL_EXCLUDED_LONGER: EXCLUDED_LONGER,
    protection.ORDER_REFUSAL_NOT_EXCLUDED: NOT_EXCLUDED,
    protection.ORDER_REFUSAL_TERM_RUNS: EXCLUSION_HAS_TERM,
    protection.ORDER_REFUSAL_JURISDICTION_CHANGES: JURISDICTION_CHANGES,
}
"""Every `sabot.limits.v1.OrderRefusal` but the unspecified one."""


Asked = Mapping[tuple[str, str], int]
"""What a request would stake, by bet and position, minor units."""
NOTHING_KNOWN: Asked = {}
UNKNOWN = "?"
_SCOPES: Mapping[int, str] = {
    limits.SCOPE_TABLE: "TABLE",
    limits.SCOPE_PARTNER: "PARTNER",
    limits.SCOPE_JURISDICTION: "JURISDICTION",
    limits.SCOPE_ACCOUNT: "ACCOUNT",
}
"""Whose limit it is, as texts of every language say it. What the table's rules say has none."""
_WITH_ROOM = frozenset({limits.LIMIT_ABOVE_MAXIMUM, limits.LIMIT_ACCOUNT_MAXIMUM})


def broken(
    violation: limits.Violation, facts: Mapping[str, str | int], asked: Asked = NOTHING_KNOWN
) -> BrokenRule:
    """One violation as a caller is told of it. What concerns no bet alone has no subject."""
    reason = LIMITS.get(violation.limit, errors.UNEXPECTED_OUTCOME)
    place = f"{violation.bet} {violation.position}".rstrip()
    if violation.limit == limits.LIMIT_EXPOSURE:
        # Its figures tell what others have staked (rule VIS-1).
        return BrokenRule(reason, place, facts)
    return BrokenRule(reason, place, {**facts, **_arithmetic(violation, place, asked)})


def _arithmetic(violation: limits.Violation, place: str, asked: Asked) -> dict[str, str | int]:
    """The numbers of a violation, and what follows from them; blank where a number says nothing."""
    of_count = violation.of_count
    counted = violation.would_be_count > 0 or violation.limit == limits.LIMIT_SESSION_TIME
    scope = _SCOPES.get(violation.scope, "")
    whose = f"{scope} {violation.scope_id}".rstrip()
    return {
        "bet": violation.bet,
        "position": violation.position,
        "place": place,
        "allowed_minor": "" if counted else violation.allowed_minor,
        "would_be_minor": "" if counted else violation.would_be_minor,
        "against": violation.against,
        "allowed_count": violation.allowed_count if counted else "",
        "would_be_count": violation.would_be_count if counted else "",
        "of_count": of_count or "",
        "would_be_percent": _percent(violation.would_be_count, of_count) if of_count else "",
        "allowed_percent": _percent_up(violation.allowed_count, of_count) if of_count else "",
        "scope": scope,
        "scope_id": violation.scope_id,
        "whose": f" ({whose})" if whose else "",
        "window": _window(violation),
        "room_minor": _room(violation, asked),
        "until_us": violation.until_us or "",
    }


def _room(violation: limits.Violation, asked: Asked) -> str | int:
    """How much more might have been staked. Where a table's own rules are broken it follows from
    what was asked for; `UNKNOWN` where that is not known here."""
    if violation.HasField("room_minor"):
        return violation.room_minor
    if violation.limit not in _WITH_ROOM:
        return ""
    if violation.limit == limits.LIMIT_ACCOUNT_MAXIMUM:
        extra = sum(asked.values())
    else:
        extra = asked.get((violation.bet, violation.position), 0)
    if not extra:
        return UNKNOWN
    return max(violation.allowed_minor - violation.would_be_minor + extra, 0)


def _window(violation: limits.Violation) -> str:
    """A window as texts of every language say it; blank where the limit has none."""
    hours = violation.window_s // 3600
    if not hours:
        return "1 session" if violation.limit == limits.LIMIT_SESSION_TIME else ""
    return f"{hours} h" if hours % 24 or hours == 24 else f"{hours // 24} d"


def _percent(part: int, whole: int) -> str:
    """A share to the nearest tenth: 35 of 37 is `94.6`."""
    tenths = (2000 * part + whole) // (2 * whole)
    return f"{tenths // 10}.{tenths % 10}"


def _percent_up(part: int, whole: int) -> str:
    """A greatest share, as it is spoken of: 34 of 37 is 91.9 %, the last number under `92` %."""
    return str(-(-100 * part // whole))


def refused(
    violations: Sequence[limits.Violation],
    facts: Mapping[str, str | int],
    asked: Asked = NOTHING_KNOWN,
) -> Refused:
    """The refusal that tells of all violations; its reason and facts are those of the first one.
    `asked`: what the request would have staked, where the room that is left is to be told."""
    rules = [broken(violation, facts, asked) for violation in violations]
    if not rules:
        return Refused(errors.UNEXPECTED_OUTCOME, facts)
    return Refused(rules[0].reason, rules[0].facts, broken=rules)


def open_to_partners(violations: Sequence[limits.Violation]) -> list[limits.Violation]:
    """Violations as a partner may read them: the figures of an exposure tell what others have
    staked (rule VIS-1)."""
    return [
        limits.Violation(limit=one.limit) if one.limit == limits.LIMIT_EXPOSURE else one
        for one in violations
    ]


def order_refused(body: protection.LimitsOrderRefused, facts: Mapping[str, str | int]) -> Refused:
    """The refusal of an order to limits. `facts` must name `request_id`, `account_id` and
    `table_id`, empty where there is none."""
    reason = ORDERS.get(body.refusal, errors.UNEXPECTED_OUTCOME)
    return Refused(reason, {**facts, "detail": body.detail})
