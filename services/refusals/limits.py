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
    "total on {bet} would be {would_be_minor}, minimum {allowed_minor} (minor units)",
    "le total sur {bet} serait de {would_be_minor}, minimum {allowed_minor} (unités mineures)",
)
ABOVE_MAXIMUM = Reason(
    "ABOVE_MAXIMUM",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "total on {bet} would be {would_be_minor}, maximum {allowed_minor} (minor units)",
    "le total sur {bet} serait de {would_be_minor}, maximum {allowed_minor} (unités mineures)",
)
STAKE_STEP = Reason(
    "STAKE_STEP",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "total on {bet} would be {would_be_minor}, no multiple of {allowed_minor} (minor units)",
    "le total sur {bet} serait de {would_be_minor}, qui n'est pas un multiple de {allowed_minor}"
    " (unités mineures)",
)
OPPOSITE_SIDES = Reason(
    "OPPOSITE_SIDES",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "{bet} may not be held together with {against}",
    "{bet} ne peut pas être joué en même temps que {against}",
)

REASONS = (BELOW_MINIMUM, ABOVE_MAXIMUM, STAKE_STEP, OPPOSITE_SIDES)

LIMITS: Mapping[int, Reason] = {
    limits.LIMIT_BELOW_MINIMUM: BELOW_MINIMUM,
    limits.LIMIT_ABOVE_MAXIMUM: ABOVE_MAXIMUM,
    limits.LIMIT_STAKE_STEP: STAKE_STEP,
    limits.LIMIT_OPPOSITE_SIDES: OPPOSITE_SIDES,
    limits.LIMIT_BOOK_CLOSED: BETTING_CLOSED,
    limits.LIMIT_FAILED: DECISION_FAILED,
}
"""Every `sabot.limits.v1.Limit` but the unspecified one."""


def broken(violation: limits.Violation, facts: Mapping[str, str | int]) -> BrokenRule:
    """One violation as a caller is told of it."""
    reason = LIMITS.get(violation.limit, errors.UNEXPECTED_OUTCOME)
    arithmetic: dict[str, str | int] = {
        "bet": violation.bet,
        "allowed_minor": violation.allowed_minor,
        "would_be_minor": violation.would_be_minor,
        "against": violation.against,
    }
    return BrokenRule(reason, violation.bet, {**facts, **arithmetic})


def refused(violations: Sequence[limits.Violation], facts: Mapping[str, str | int]) -> Refused:
    """The refusal that tells of all violations; its reason and facts are those of the first one."""
    rules = [broken(violation, facts) for violation in violations]
    if not rules:
        return Refused(errors.UNEXPECTED_OUTCOME, facts)
    return Refused(rules[0].reason, rules[0].facts, broken=rules)
