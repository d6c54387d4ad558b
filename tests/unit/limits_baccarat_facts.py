"""The facts that the tests of limits at a baccarat table speak of: table `t1`, its round `t1-1`,
account `a1`."""

from __future__ import annotations

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.limits.domain.core import CORE
from services.limits.domain.state import LimitsState
from tests.unit.deciding import Deciding, Fact, by

T, R, A = "t1", "t1-1", "a1"
BETS = ("banker", "banker_no_commission", "player", "tie")


def spec(low: int = 100, high: int = 1_000, step: int = 1) -> spec_pb2.TableSpec:
    return spec_pb2.TableSpec(
        table_id=T,
        currency_code="EUR",
        rule_set=rule_sets.RuleSet(game=rule_sets.GAME_BACCARAT),
        limits=[
            spec_pb2.BetLimit(bet=bet, min_minor=low, max_minor=high, step_minor=step)
            for bet in BETS
        ],
    )


def bets(*wagers: tuple[str, str, int]) -> list[bet_pb2.Bet]:
    """(bet id, kind, stake)."""
    return [bet_pb2.Bet(bet_id=one, bet=kind, stake_minor=stake) for one, kind, stake in wagers]


def placed(
    request: str, *wagers: tuple[str, str, int], account: str = A, round_id: str = R
) -> table.BetsPlaced:
    return table.BetsPlaced(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=round_id,
        currency_code="EUR",
        bets=bets(*wagers),
    )


def approved(request: str, *wagers: tuple[str, str, int], account: str = A) -> limits.BetsApproved:
    return limits.BetsApproved(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=bets(*wagers),
    )


def refused(
    request: str, bet_ids: list[str], *violations: limits.Violation, round_id: str = R
) -> limits.BetsRefused:
    return limits.BetsRefused(
        request_id=request,
        account_id=A,
        table_id=T,
        round_id=round_id,
        bet_ids=bet_ids,
        violations=violations,
    )


def reserved(request: str, *wagers: tuple[str, str, int], account: str = A) -> wallet.StakeReserved:
    return wallet.StakeReserved(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=bets(*wagers),
    )


def declined(request: str, *wagers: tuple[str, str, int]) -> wallet.StakeDeclined:
    return wallet.StakeDeclined(
        request_id=request,
        account_id=A,
        table_id=T,
        round_id=R,
        bets=bets(*wagers),
        decline=wallet.DECLINE_INSUFFICIENT_FUNDS,
    )


def withdrawn(request: str, *wagers: tuple[str, str, int]) -> table.BetsWithdrawn:
    return table.BetsWithdrawn(
        request_id=request, account_id=A, table_id=T, round_id=R, bets=bets(*wagers)
    )


def withdrawal(request: str, *wagers: tuple[str, str, int]) -> limits.WithdrawalApproved:
    return limits.WithdrawalApproved(
        request_id=request, account_id=A, table_id=T, round_id=R, bets=bets(*wagers)
    )


def withdrawal_refused(
    request: str, bet_ids: list[str], *violations: limits.Violation
) -> limits.WithdrawalRefused:
    return limits.WithdrawalRefused(
        request_id=request,
        account_id=A,
        table_id=T,
        round_id=R,
        bet_ids=bet_ids,
        violations=violations,
    )


def returned(request: str, *wagers: tuple[str, str, int]) -> Fact:
    return by(
        wallet.StakeReturned(
            request_id=request,
            account_id=A,
            table_id=T,
            round_id=R,
            currency_code="EUR",
            bets=bets(*wagers),
            reason=wallet.RETURN_REASON_WITHDRAWN,
            partner_id="acme",
        )
    )


def below(bet: str, would_be: int, allowed: int = 100) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_BELOW_MINIMUM, bet=bet, allowed_minor=allowed, would_be_minor=would_be
    )


def above(bet: str, would_be: int, allowed: int = 1_000) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_ABOVE_MAXIMUM, bet=bet, allowed_minor=allowed, would_be_minor=would_be
    )


def off_step(bet: str, would_be: int, step: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_STAKE_STEP, bet=bet, allowed_minor=step, would_be_minor=would_be
    )


def opposite(bet: str, would_be: int, against: str) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_OPPOSITE_SIDES, bet=bet, would_be_minor=would_be, against=against
    )


def plain(limit: limits.Limit.ValueType) -> limits.Violation:
    return limits.Violation(limit=limit)


def round_open(**changes: int) -> Deciding[LimitsState]:
    return Deciding(CORE).given(
        table.TableOpened(spec=spec(**changes), revision=1),
        table.RoundOpened(table_id=T, round_id=R, revision=1),
    )
