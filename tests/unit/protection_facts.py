"""The facts that the tests of player protection speak of: partner `acme`, account `ann`."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.wallet.v1 import events_pb2 as wallet
from services.limits.domain.state import LimitsState
from tests.unit.deciding import OPERATOR, PARTNER, START_US, Deciding, Fact, by, request_id
from tests.unit.limits_facts import R, T, approved, placed, reserved, round_open

S = 1_000_000
MINUTE, HOUR, DAY = 60 * S, 3_600 * S, 86_400 * S
DAY_S, WEEK_S = 86_400, 7 * 86_400

BET = protection.LIMIT_KIND_BET
ROUND = protection.LIMIT_KIND_ROUND
STAKE = protection.LIMIT_KIND_STAKE
LOSS = protection.LIMIT_KIND_LOSS
DEPOSIT = protection.LIMIT_KIND_DEPOSIT
SESSION = protection.LIMIT_KIND_SESSION
AGE = protection.LIMIT_KIND_AGE


def opened(
    account: str = "ann",
    jurisdiction: str = "",
    age: limits.AgeStatement.ValueType = limits.AGE_STATEMENT_UNSPECIFIED,
    partner: str = PARTNER,
) -> Fact:
    body = wallet.AccountOpened(
        account_id=account, currency_code="EUR", jurisdiction=jurisdiction, age=age
    )
    return by(body, partner=partner)


def setting(
    kind: protection.LimitKind.ValueType,
    maximum: int | None,
    *,
    window_s: int = 0,
    game: rule_sets.Game.ValueType = rule_sets.GAME_UNSPECIFIED,
    bet: str = "",
) -> protection.LimitSetting:
    return protection.LimitSetting(
        kind=kind, game=game, bet=bet, window_s=window_s, maximum=maximum
    )


def an_id(number: int, at_us: int = 0) -> dict[str, Any]:
    return {"request_id": request_id(number, at_us), "request_hash": b"%d" % number}


def sets(
    number: int,
    scope: limits.Scope.ValueType,
    name: str,
    *of: protection.LimitSetting,
    at_us: int = 0,
    currency: str = "EUR",
    actor: str = OPERATOR,
    partner: str | None = None,
) -> Fact:
    """SetLimits. Of an account the event's partner says whose."""
    body = protection.SetLimits(
        **an_id(number, at_us),
        scope=scope,
        scope_id=name,
        currency_code=currency,
        limits=of,
        reason="asked for",
    )
    owner = PARTNER if scope == limits.SCOPE_ACCOUNT else ""
    return by(body, partner=owner if partner is None else partner, actor=actor, at_us=at_us)


def ann_sets(number: int, *of: protection.LimitSetting, at_us: int = 0, **more: Any) -> Fact:
    return sets(number, limits.SCOPE_ACCOUNT, "ann", *of, at_us=at_us, **more)


def was_set(
    number: int,
    scope: limits.Scope.ValueType,
    name: str,
    *of: protection.LimitSetting,
    at_us: int = 0,
    looser_from: int | None = None,
    currency: str = "EUR",
) -> protection.LimitsSet:
    return protection.LimitsSet(
        request_id=request_id(number, at_us),
        scope=scope,
        scope_id=name,
        currency_code=currency,
        limits=of,
        looser_from_us=0 if looser_from is None else START_US + looser_from,
    )


def not_obeyed(
    number: int,
    refusal: protection.OrderRefusal.ValueType,
    *,
    account: str = "ann",
    detail: str = "",
    at_us: int = 0,
) -> protection.LimitsOrderRefused:
    return protection.LimitsOrderRefused(
        request_id=request_id(number, at_us), account_id=account, refusal=refusal, detail=detail
    )


def exclude(
    number: int,
    term_s: int = 0,
    *,
    kind: protection.ExclusionKind.ValueType = protection.EXCLUSION_KIND_EXCLUSION,
    account: str = "ann",
    at_us: int = 0,
) -> Fact:
    body = protection.Exclude(
        **an_id(number, at_us), account_id=account, kind=kind, term_s=term_s, reason="asked for"
    )
    return by(body, actor="partner:acme", at_us=at_us)


def lift(number: int, *, account: str = "ann", at_us: int = 0) -> Fact:
    body = protection.LiftExclusion(**an_id(number, at_us), account_id=account, reason="asked for")
    return by(body, actor=OPERATOR, at_us=at_us)


def describe(
    number: int,
    jurisdiction: str = "",
    age: limits.AgeStatement.ValueType = limits.AGE_STATEMENT_UNSPECIFIED,
    *,
    at_us: int = 0,
) -> Fact:
    body = protection.DescribeAccount(
        **an_id(number, at_us), account_id="ann", jurisdiction=jurisdiction, age=age
    )
    return by(body, at_us=at_us)


def deposit(number: int, minor: int, at_us: int = 0) -> Fact:
    body = wallet.DepositRequested(
        request_id=f"d{number}", account_id="ann", currency_code="EUR", amount_minor=minor
    )
    return by(body, at_us=at_us)


def paid_in(number: int, minor: int, at_us: int = 0) -> Fact:
    body = wallet.FundsDeposited(
        request_id=f"d{number}", account_id="ann", currency_code="EUR", amount_minor=minor
    )
    return by(body, at_us=at_us)


def deposit_taken(number: int, minor: int) -> limits.DepositApproved:
    return limits.DepositApproved(
        request_id=f"d{number}", account_id="ann", currency_code="EUR", amount_minor=minor
    )


def deposit_refused(
    number: int, minor: int, *violations: limits.Violation
) -> limits.DepositRefused:
    return limits.DepositRefused(
        request_id=f"d{number}",
        account_id="ann",
        currency_code="EUR",
        amount_minor=minor,
        violations=violations,
    )


def paid(stake: int, payout: int, at_us: int = 0, round_id: str = R) -> Fact:
    body = wallet.PayoutPosted(
        partner_id=PARTNER,
        account_id="ann",
        table_id=T,
        round_id=round_id,
        currency_code="EUR",
        stake_minor=stake,
        payout_minor=payout,
    )
    return by(body, partner="", at_us=at_us)


def over(
    limit: limits.Limit.ValueType,
    would_be: int,
    allowed: int,
    room: int,
    window_s: int = DAY_S,
    until: int = 0,
    scope: limits.Scope.ValueType = limits.SCOPE_ACCOUNT,
    scope_id: str = "",
) -> limits.Violation:
    """A window that is passed. `until`: since the start of the test."""
    return limits.Violation(
        limit=limit,
        allowed_minor=allowed,
        would_be_minor=would_be,
        scope=scope,
        scope_id=scope_id,
        window_s=window_s,
        room_minor=room,
        until_us=START_US + until if until else 0,
    )


def of_scope(
    limit: limits.Limit.ValueType,
    would_be: int,
    allowed: int,
    room: int,
    scope: limits.Scope.ValueType = limits.SCOPE_ACCOUNT,
    scope_id: str = "",
    **where: Any,
) -> limits.Violation:
    """A maximum of a scope that is passed."""
    return limits.Violation(
        limit=limit,
        allowed_minor=allowed,
        would_be_minor=would_be,
        scope=scope,
        scope_id=scope_id,
        room_minor=room,
        **where,
    )


class Lobby:
    """An account that bets on `player` of baccarat in one round after another."""

    def __init__(self, spec: Any, account: Fact) -> None:
        self.game: Deciding[LimitsState] = round_open(spec)
        self.game.given(account)
        self.count = 0

    def given(self, *facts: Message | Fact) -> Lobby:
        self.game.given(*facts)
        return self

    def bet(self, minor: int, at_us: int = 0, bet: str = "player") -> list[limits.Violation]:
        """Place a bet; what it breaks. It is reserved at once."""
        self.count += 1
        wager = (f"b{self.count}", bet, "", minor)
        self.game.when(by(placed(f"r{self.count}", wager), at_us=at_us))
        [answer] = self.game.answers
        if isinstance(answer, limits.BetsRefused):
            return list(answer.violations)
        assert answer == approved(f"r{self.count}", wager)
        self.game.given(reserved(f"r{self.count}", wager))
        return []

    def last(self) -> str:
        return f"b{self.count}"
