"""Broken limits, each with its arithmetic (rule LIM-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import grpc

from sabot.limits.v1 import events_pb2 as limits
from services.kernel import errors
from services.kernel.errors import BrokenRule, Reason, Refused, Retry
from services.refusals.table import BETTING_CLOSED
from services.refusals.wallet import DECISION_FAILED

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
    "total on {place} would be {would_be_minor}, maximum {allowed_minor} (minor units)",
    "le total sur {place} serait de {would_be_minor}, maximum {allowed_minor} (unités mineures)",
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
    "all stakes of the account in the round would be {would_be_minor}, maximum {allowed_minor}"
    " (minor units)",
    "toutes les mises du compte dans la manche seraient de {would_be_minor}, maximum"
    " {allowed_minor} (unités mineures)",
)
EXPOSURE = Reason(
    "EXPOSURE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "the house might have to pay {would_be_minor} more in the round, room is left for"
    " {allowed_minor} (minor units)",
    "la maison pourrait devoir payer {would_be_minor} de plus dans la manche, il reste de la"
    " place pour {allowed_minor} (unités mineures)",
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
}
"""Every `sabot.limits.v1.Limit` but the unspecified one."""


def broken(violation: limits.Violation, facts: Mapping[str, str | int]) -> BrokenRule:
    """One violation as a caller is told of it. What concerns no bet alone has no subject."""
    reason = LIMITS.get(violation.limit, errors.UNEXPECTED_OUTCOME)
    place = f"{violation.bet} {violation.position}".rstrip()
    return BrokenRule(reason, place, {**facts, **_arithmetic(violation, place)})


def _arithmetic(violation: limits.Violation, place: str) -> dict[str, str | int]:
    """The numbers of a violation, and what follows from them; blank where a number says nothing."""
    of_count = violation.of_count
    counted = violation.would_be_count > 0
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
    }


def _percent(part: int, whole: int) -> str:
    """A share to the nearest tenth: 35 of 37 is `94.6`."""
    tenths = (2000 * part + whole) // (2 * whole)
    return f"{tenths // 10}.{tenths % 10}"


def _percent_up(part: int, whole: int) -> str:
    """A greatest share, as it is spoken of: 34 of 37 is 91.9 %, the last number under `92` %."""
    return str(-(-100 * part // whole))


def refused(violations: Sequence[limits.Violation], facts: Mapping[str, str | int]) -> Refused:
    """The refusal that tells of all violations; its reason and facts are those of the first one."""
    rules = [broken(violation, facts) for violation in violations]
    if not rules:
        return Refused(errors.UNEXPECTED_OUTCOME, facts)
    return Refused(rules[0].reason, rules[0].facts, broken=rules)
