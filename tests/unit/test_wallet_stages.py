"""The wallet core: stakes that are reserved after the betting window (rules BJ-6, BJ-7, BJ-13)."""

from __future__ import annotations

from sabot.limits.v1 import events_pb2 as limits
from sabot.table.v1 import bet_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.wallet.domain.state import sums
from tests.unit.wallet_facts import (
    BOOK_CLOSED,
    BOOK_VOIDED,
    PAID,
    RETURNED,
    ROUND_SETTLED,
    SEALED,
    A,
    R,
    T,
    approved,
    balance,
    payout,
    reserved,
    settled,
    with_money,
)

INSURANCE_CLOSED = limits.BookClosed(table_id=T, round_id=R, stage=bet_pb2.STAGE_INSURANCE)
INSURANCE_SEALED = wallet.StakesSealed(table_id=T, round_id=R, stage=bet_pb2.STAGE_INSURANCE)


def at_seat(bet_id: str, bet: str, stake: int, seat: int = 1) -> bet_pb2.Bet:
    return bet_pb2.Bet(bet_id=bet_id, bet=bet, stake_minor=stake, position=str(seat))


MAIN = at_seat("b1", "main", 100)
DOUBLE = at_seat("b2", "double", 100)
INSURANCE = at_seat("b3", "insurance", 50)


def asked(bet: bet_pb2.Bet, stage: bet_pb2.Stage.ValueType) -> limits.BetsApproved:
    """Limits let a further stake pass."""
    return limits.BetsApproved(
        request_id=f"r-{bet.bet_id}",
        account_id=A,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=[bet],
        stage=stage,
    )


def held(bet: bet_pb2.Bet, stage: bet_pb2.Stage.ValueType) -> wallet.StakeReserved:
    return wallet.StakeReserved(
        request_id=f"r-{bet.bet_id}",
        account_id=A,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=[bet],
        stage=stage,
    )


def refused(
    bet: bet_pb2.Bet, stage: bet_pb2.Stage.ValueType, why: wallet.Decline.ValueType
) -> wallet.StakeDeclined:
    return wallet.StakeDeclined(
        request_id=f"r-{bet.bet_id}",
        account_id=A,
        table_id=T,
        round_id=R,
        bets=[bet],
        decline=why,
        stage=stage,
    )


PLAY, INSURE = bet_pb2.STAGE_PLAY, bet_pb2.STAGE_INSURANCE


def test_bj_6_a_further_stake_is_reserved_after_the_windows_seal() -> None:
    game = with_money(1_000).given(asked(MAIN, bet_pb2.STAGE_UNSPECIFIED)).when(BOOK_CLOSED)
    game.then(SEALED)
    game.when(asked(DOUBLE, PLAY)).then(held(DOUBLE, PLAY))
    assert balance(game) == (800, 200)
    game.when(approved("late", ("b9", "main", 10)))
    [late] = game.answers
    assert isinstance(late, wallet.StakeDeclined)
    assert late.decline == wallet.DECLINE_STAKES_SEALED


def test_bj_13_insurance_has_a_seal_of_its_own() -> None:
    game = with_money(1_000).given(asked(MAIN, bet_pb2.STAGE_UNSPECIFIED), BOOK_CLOSED)
    game.when(asked(INSURANCE, INSURE)).then(held(INSURANCE, INSURE))
    game.when(INSURANCE_CLOSED).then(INSURANCE_SEALED)
    late = at_seat("b4", "insurance", 50, seat=2)
    game.when(asked(late, INSURE)).then(refused(late, INSURE, wallet.DECLINE_STAKES_SEALED))
    game.when(asked(DOUBLE, PLAY)).then(held(DOUBLE, PLAY))
    assert balance(game) == (750, 250)


def test_bj_14_a_further_stake_without_money_is_declined() -> None:
    game = with_money(150).given(asked(MAIN, bet_pb2.STAGE_UNSPECIFIED), BOOK_CLOSED)
    game.when(asked(DOUBLE, PLAY)).then(refused(DOUBLE, PLAY, wallet.DECLINE_INSUFFICIENT_FUNDS))
    assert balance(game) == (50, 100)


def test_inc_2_a_void_returns_further_stakes_with_their_seats_and_reserves_no_more() -> None:
    game = with_money(1_000).given(asked(MAIN, bet_pb2.STAGE_UNSPECIFIED), BOOK_CLOSED)
    game.given(asked(INSURANCE, INSURE), INSURANCE_CLOSED, asked(DOUBLE, PLAY))
    game.when(BOOK_VOIDED).then(
        wallet.StakeReturned(
            account_id=A,
            table_id=T,
            round_id=R,
            currency_code="EUR",
            bets=[MAIN, INSURANCE, DOUBLE],
            reason=wallet.RETURN_REASON_VOIDED,
            partner_id="acme",
        ),
        RETURNED,
    )
    assert balance(game) == (1_000, 0)
    voided = with_money(1_000).given(reserved_main(), BOOK_CLOSED)
    voided.state.rounds[R].voided = True
    for stage in (PLAY, INSURE):
        voided.when(asked(DOUBLE, stage)).then(refused(DOUBLE, stage, wallet.DECLINE_STAKES_SEALED))


def reserved_main() -> limits.BetsApproved:
    return asked(MAIN, bet_pb2.STAGE_UNSPECIFIED)


def test_a_double_is_paid_with_its_hand() -> None:
    game = with_money(1_000).given(reserved_main(), BOOK_CLOSED, asked(DOUBLE, PLAY))
    game.when(settled(("b1", "main", 100, 100, 0), ("b2", "double", 100, 100, 0)))
    game.then(payout(200, 400))
    game.when(ROUND_SETTLED).then(PAID)
    assert balance(game) == (1_200, 0)
    assert sums(game.state) == {"EUR": 0}


def test_a_stage_is_told_on_with_the_answer() -> None:
    """A window's stake says none, as it always did."""
    game = with_money(100).when(approved("r1", ("b1", "banker", 60)))
    game.then(reserved("r1", ("b1", "banker", 60)))
