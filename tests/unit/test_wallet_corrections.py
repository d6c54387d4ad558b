"""Corrections in the wallet (INC-3): differences are posted, balanced; what an account cannot give
back it owes, and it pays that when a supervisor says so."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import correction_events_pb2 as settlement
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import InvariantViolated
from services.wallet.domain.core import CORE
from services.wallet.domain.postings import Kind, postings
from services.wallet.domain.state import WalletState, sums
from tests.unit.deciding import Deciding, Fact, by, request_id
from tests.unit.wallet_facts import (
    SUPERVISOR,
    A,
    R,
    T,
    approved,
    balance,
    close,
    declined,
    deposit,
    deposit_approved,
    open_account,
    with_money,
    withdraw,
)

C1 = "correction-1"


def settled_bet(payout: int, commission: int, stake: int, bet_id: str = "b1") -> Any:
    return settlements.SettledBet(
        bet_id=bet_id,
        bet="banker",
        stake_minor=stake,
        profit_minor=payout - stake,
        payout_minor=payout,
        commission_minor=commission,
    )


def corrected(
    before: int, after: int, *, kept: tuple[int, int] = (0, 0), account: str = A, stake: int = 100
) -> Fact:
    """An account's one bet paid `before` and pays `after`; of it was and is kept `kept`."""
    body = settlement.BetsCorrected(
        correction_id=C1,
        partner_id="acme",
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        version=1,
        bets=[
            settlement.CorrectedBet(
                before=settled_bet(before, kept[0], stake), after=settled_bet(after, kept[1], stake)
            )
        ],
        payout_delta_minor=after - before,
        commission_delta_minor=kept[1] - kept[0],
    )
    return by(body, partner="", actor="system:factchecker")


def posted(delta: int, *, commission: int = 0, owed: int = 0) -> corrections.CorrectionPosted:
    return corrections.CorrectionPosted(
        correction_id=C1,
        partner_id="acme",
        account_id=A,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        payout_delta_minor=delta,
        commission_delta_minor=commission,
        receivable_minor=owed,
        version=1,
        bet_ids=["b1"],
    )


def asked(body: Any, number: int, partner: str = "acme") -> Fact:
    body.request_id = request_id(number)
    body.request_hash = str(body).encode()
    return by(body, partner=partner, actor=SUPERVISOR)


def pay_back(number: int, minor: int, currency: str = "EUR", account: str = A) -> Fact:
    body = corrections.SettleReceivable(
        partner_id="acme", account_id=account, currency_code=currency, amount_minor=minor
    )
    return asked(body, number)


def policy(number: int, what: corrections.ShortfallPolicy.ValueType) -> Fact:
    return asked(corrections.SetShortfallPolicy(partner_id="acme", policy=what), number)


def owed(game: Deciding[WalletState], account: str = A) -> int:
    return game.state.accounts["acme", account].owed_minor


def test_a_difference_goes_to_the_account_and_comes_from_it() -> None:
    game = with_money(500, A)
    game.when(corrected(0, 195, kept=(0, 5))).then(posted(195, commission=5))
    assert balance(game) == (695, 0)
    assert game.state.ledgers["commission", "acme", "EUR"] == 5
    assert game.state.ledgers["corrections", "acme", "EUR"] == -200
    game.when(corrected(195, 0, kept=(5, 0))).then(posted(-195, commission=-5))
    assert balance(game) == (500, 0)
    assert game.state.ledgers["commission", "acme", "EUR"] == 0
    assert not any(sums(game.state).values())


def test_an_account_whose_changes_cancel_out_moves_nothing() -> None:
    game = with_money(500, A)
    game.when(corrected(100, 100)).then(posted(0))
    assert postings(posted(0), "") == ()


def test_ops_01_what_cannot_be_given_back_is_owed_and_not_forgotten() -> None:
    game = with_money(10_000, A)
    game.when(corrected(36_000, 0)).then(posted(-36_000, owed=26_000))
    assert (balance(game), owed(game)) == ((0, 0), 26_000)
    # What comes in later does not pay it by itself.
    game.given(deposit(50, 1_000), deposit_approved(50, 1_000))
    game.given(corrected(0, 500))
    assert (balance(game), owed(game)) == ((1_500, 0), 26_000)
    legs = {leg.kind: leg.minor for leg in postings(posted(-36_000, owed=26_000), "")}
    assert legs == {Kind.CASH: -10_000, Kind.RECEIVABLE: -26_000, Kind.CORRECTIONS: 36_000}
    assert not any(sums(game.state).values())


def test_ops_01_a_partner_may_have_balances_below_zero() -> None:
    game = with_money(10_000, A)
    game.when(policy(40, corrections.SHORTFALL_POLICY_NEGATIVE_BALANCE)).then(
        corrections.ShortfallPolicySet(
            request_id=request_id(40),
            partner_id="acme",
            policy=corrections.SHORTFALL_POLICY_NEGATIVE_BALANCE,
        )
    )
    game.when(corrected(36_000, 0)).then(posted(-36_000))
    assert (balance(game), owed(game)) == ((-26_000, 0), 0)
    game.when(by(approved("q", ("b9", "player", 100)), partner="acme"))
    assert isinstance(game.answers[0], wallet.StakeDeclined)
    assert game.answers[0].decline == wallet.DECLINE_INSUFFICIENT_FUNDS
    # Back to receivables: a balance that is below zero gives nothing.
    game.given(policy(41, corrections.SHORTFALL_POLICY_RECEIVABLE))
    game.when(corrected(50, 0)).then(posted(-50, owed=50))
    assert (balance(game), owed(game)) == ((-26_000, 0), 50)


def test_a_receivable_is_settled_by_an_order_only() -> None:
    game = with_money(100, A).given(corrected(300, 0), deposit(50, 150), deposit_approved(50, 150))
    assert (balance(game), owed(game)) == ((150, 0), 200)
    wrong_currency = declined(60, wallet.DECLINE_CURRENCY_MISMATCH)
    game.when(pay_back(60, 900, "SEK")).then(wrong_currency)
    game.when(pay_back(61, 201)).then(declined(61, wallet.DECLINE_NOT_OWED))
    game.when(pay_back(62, 151)).then(declined(62, wallet.DECLINE_INSUFFICIENT_FUNDS))
    game.when(pay_back(63, 120)).then(
        corrections.ReceivableSettled(
            request_id=request_id(63),
            partner_id="acme",
            account_id=A,
            currency_code="EUR",
            amount_minor=120,
        )
    )
    assert (balance(game), owed(game)) == ((30, 0), 80)
    game.when(pay_back(63, 120)).then_only(log.RequestRepeated)
    game.when(pay_back(63, 20)).then(declined(63, wallet.DECLINE_REQUEST_ID_REUSED))
    unknown = pay_back(64, 1, account="nobody")
    game.when(unknown).then(declined(64, wallet.DECLINE_UNKNOWN_ACCOUNT, account="nobody"))
    assert not any(sums(game.state).values())


def test_an_account_that_owes_cannot_be_closed_and_a_closed_one_still_gets_its_due() -> None:
    game = with_money(100, A).given(corrected(300, 0))
    game.when(close(70)).then(declined(70, wallet.DECLINE_ACCOUNT_NOT_EMPTY))

    other = Deciding(CORE).given(open_account(), close(71))
    other.when(withdraw(72, 10)).then(declined(72, wallet.DECLINE_ACCOUNT_CLOSED))
    other.when(corrected(0, 300)).then(posted(300))
    other.when(withdraw(73, 300)).then_only(wallet.FundsWithdrawn)
    other.when(withdraw(74, 1)).then(declined(74, wallet.DECLINE_ACCOUNT_CLOSED))
    other.when(corrected(300, 200)).then(posted(-100, owed=100))
    other.when(pay_back(75, 100)).then(declined(75, wallet.DECLINE_INSUFFICIENT_FUNDS))


def test_the_marker_follows_the_last_difference() -> None:
    body = settlement.RoundCorrected(correction_id=C1, table_id=T, round_id=R, accounts=1)
    marker = corrections.CorrectionsPosted(correction_id=C1, table_id=T, round_id=R)
    with_money(100, A).when(by(body, partner="")).then(marker)


def test_a_difference_that_does_not_add_up_is_a_fault() -> None:
    game = with_money(100, A)
    wrong = corrected(0, 100)
    assert isinstance(wrong.body, settlement.BetsCorrected)
    wrong.body.payout_delta_minor = 99
    with pytest.raises(InvariantViolated, match="bets change by 100"):
        game.when(wrong)
    other_stake = corrected(0, 100)
    assert isinstance(other_stake.body, settlement.BetsCorrected)
    other_stake.body.bets[0].after.stake_minor = 1
    with pytest.raises(InvariantViolated, match="does not add up"):
        with_money(100, A).when(other_stake)
    with pytest.raises(InvariantViolated, match="never held"):
        with_money(100, A).when(corrected(0, 100, account="nobody"))
