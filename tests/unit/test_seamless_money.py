"""The wallet core: what goes back to seamless partners, until they have confirmed it."""

from __future__ import annotations

import pytest

from sabot.log.v1 import events_pb2 as log
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import partner_profile_pb2 as profiles
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.snapshot import StateCodec
from services.wallet.domain.core import CORE
from services.wallet.domain.seamless_confirming import is_called, is_stuck, safe_actions
from services.wallet.domain.seamless_state import MovementStanding
from tests.unit.deciding import Deciding, request_id
from tests.unit.seamless_facts import (
    T_US,
    TRANSFER,
    Game,
    approved_at,
    balanced,
    ids,
    ledger,
    movement,
    on,
    order,
    profile,
    rejected,
    reply,
    reserved_minor,
    resolve,
    seamless_partner,
    set_profile,
    unknown,
)
from tests.unit.wallet_facts import (
    BOOK_CLOSED,
    BOOK_VOIDED,
    PAID,
    ROUND_SETTLED,
    A,
    R,
    T,
    bets,
    declined,
    deposit,
    open_account,
    settled,
    with_money,
    withdraw,
    withdrawal,
)

TIE = ("b1", "tie", 100)
BANKER = ("b2", "banker", 250)
RETRY = seamless.MOVEMENT_ACTION_RETRY
DONE = seamless.MOVEMENT_ACTION_MARK_DONE
OFF = seamless.MOVEMENT_ACTION_WRITE_OFF
DECLINED = seamless.REPLY_OUTCOME_DECLINED


def won(**changed: bool) -> tuple[Game, str]:
    """Ann's bet has won 800: the credit that is due."""
    game = seamless_partner(**changed)
    on(game, "r1", TIE, BANKER)
    game.given(BOOK_CLOSED)
    game.when(settled(("b1", "tie", 100, 800, 40), ("b2", "banker", 250, 0, 0)))
    (credit,) = ids(game, seamless.CreditOrdered)
    return game, credit


# ---- payouts -----------------------------------------------------------------------------------


def test_a_payout_is_due_to_the_partner_until_it_has_confirmed() -> None:
    game = seamless_partner()
    debits = on(game, "r1", TIE) + on(game, "r2", BANKER)
    game.given(BOOK_CLOSED)
    game.when(settled(("b1", "tie", 100, 800, 40), ("b2", "banker", 250, -250, 0)))
    (credit,) = ids(game, seamless.CreditOrdered)
    game.then(
        wallet.PayoutPosted(
            partner_id="acme",
            account_id=A,
            table_id=T,
            round_id=R,
            currency_code="EUR",
            stake_minor=350,
            payout_minor=900,
            commission_minor=40,
            due=True,
            transaction_id=credit,
        ),
        seamless.CreditOrdered(
            transaction_id=credit,
            partner_id="acme",
            account_id=A,
            table_id=T,
            round_id=R,
            currency_code="EUR",
            amount_minor=900,
            reason=partner_wallet.CREDIT_REASON_WINNINGS,
            bets=bets(TIE, BANKER),
            debit_transaction_ids=debits,
            round_ended=True,
        ),
    )
    assert (ledger(game, "due"), ledger(game, "external")) == (900, -350)
    assert reserved_minor(game) == 0
    assert balanced(game)
    # The round ends whatever the partner does.
    game.when(ROUND_SETTLED).then(PAID)
    told = reply(game, credit, partner_transaction_id="w-7")
    game.when(told).then(
        seamless.MovementConfirmed(
            transaction_id=credit,
            partner_id="acme",
            account_id=A,
            table_id=T,
            round_id=R,
            currency_code="EUR",
            amount_minor=900,
            partner_transaction_id="w-7",
        )
    )
    assert (ledger(game, "due"), ledger(game, "external")) == (0, 550)
    assert balanced(game)
    assert not game.state.seamless.rounds


def test_a_payout_names_the_bets_that_it_pays_and_none_that_were_withdrawn() -> None:
    game = seamless_partner()
    on(game, "r1", TIE, BANKER)
    game.given(withdrawal("w1", BANKER), BOOK_CLOSED)
    game.when(settled(("b1", "tie", 100, 800, 40)))
    (credit,) = [one for one in game.answers if isinstance(one, seamless.CreditOrdered)]
    assert list(credit.bets) == bets(TIE)


def test_nothing_is_told_of_a_round_that_pays_nothing() -> None:
    game = seamless_partner()
    on(game, "r1", TIE)
    game.given(BOOK_CLOSED)
    game.when(settled(("b1", "tie", 100, -100, 0))).then_only(wallet.PayoutPosted)
    game.when(ROUND_SETTLED).then(PAID)
    assert not game.state.seamless.movements
    assert balanced(game)


def test_the_end_of_a_round_is_told_where_the_profile_asks_for_it() -> None:
    game = seamless_partner(end_of_round=True)
    debits = on(game, "r1", TIE)
    game.given(BOOK_CLOSED)
    game.when(settled(("b1", "tie", 100, -100, 0))).then_only(
        wallet.PayoutPosted, seamless.CreditOrdered
    )
    told = game.answers[1]
    assert isinstance(told, seamless.CreditOrdered)
    assert (told.amount_minor, told.reason, told.round_ended, list(told.debit_transaction_ids)) == (
        0,
        partner_wallet.CREDIT_REASON_ROUND_ENDED,
        True,
        debits,
    )
    game.when(reply(game, told.transaction_id)).then_only(seamless.MovementConfirmed)
    assert balanced(game)


# ---- stakes that go back -----------------------------------------------------------------------


def test_a_part_of_a_debit_goes_back_by_a_credit_and_so_does_the_rest() -> None:
    game = seamless_partner()
    (debit,) = on(game, "r1", TIE, BANKER)
    game.when(withdrawal("w1", TIE)).then_only(wallet.StakeReturned, seamless.CreditOrdered)
    credit = game.answers[1]
    assert isinstance(credit, seamless.CreditOrdered)
    assert (credit.amount_minor, credit.reason, list(credit.debit_transaction_ids)) == (
        100,
        partner_wallet.CREDIT_REASON_STAKE_RETURNED,
        [debit],
    )
    assert not credit.round_ended
    assert ledger(game, "due") == 100
    # A credit has named the debit: the wallet would refuse to roll it back.
    game.when(withdrawal("w2", BANKER)).then_only(wallet.StakeReturned, seamless.CreditOrdered)
    assert ledger(game, "due") == 350
    assert balanced(game)


def test_a_whole_debit_goes_back_by_its_rollback() -> None:
    game = seamless_partner()
    first = on(game, "r1", TIE, BANKER)
    second = on(game, "r2", ("b3", "player", 70))
    game.when(withdrawal("w1", TIE, BANKER, ("b3", "player", 70))).then_only(
        wallet.StakeReturned, seamless.RollbackOrdered, seamless.RollbackOrdered
    )
    rollbacks = [one for one in game.answers if isinstance(one, seamless.RollbackOrdered)]
    assert [one.debit_transaction_id for one in rollbacks] == first + second
    assert all(one.booked for one in rollbacks)
    back = game.answers[0]
    assert isinstance(back, wallet.StakeReturned)
    assert list(back.transaction_ids) == [one.transaction_id for one in rollbacks]
    assert ledger(game, "due") == 420
    for one in rollbacks:
        game.when(reply(game, one.transaction_id)).then_only(seamless.MovementConfirmed)
    assert (ledger(game, "due"), ledger(game, "external")) == (0, 0)
    assert balanced(game)


def test_a_void_rolls_back_in_steps_that_fit() -> None:
    game = seamless_partner(debit_per_bet=True)
    game.careful = False
    for number in range(90):
        on(game, f"r{number}", *[(f"b{number}-{one}", "tie", 10) for one in range(5)])
    assert reserved_minor(game) == 4500
    game.when(BOOK_VOIDED)
    assert len(game.steps) > 1
    assert len(ids(game, seamless.RollbackOrdered)) == 450
    assert isinstance(game.answers[-1], wallet.RoundReturned)
    assert (reserved_minor(game), ledger(game, "due")) == (0, 4500)
    assert balanced(game)


def test_a_void_after_a_withdrawal_credits_what_is_left_of_a_debit() -> None:
    game = seamless_partner()
    on(game, "r1", TIE, BANKER)
    game.given(withdrawal("w1", TIE))
    game.when(BOOK_VOIDED).then_only(
        wallet.StakeReturned, seamless.CreditOrdered, wallet.RoundReturned
    )
    assert ledger(game, "due") == 350


# ---- until it is confirmed ---------------------------------------------------------------------


def test_a_credit_is_never_given_up() -> None:
    game, credit = won()
    for _ in range(3):
        game.when(unknown(game, credit, "UNAVAILABLE")).then()
    known = movement(game, credit)
    assert (known.calls, known.last_reason) == (3, "UNAVAILABLE")
    assert is_called(known)
    assert not is_stuck(known, known.ordered_us + T_US)
    assert is_stuck(known, known.ordered_us + T_US + 1)
    assert ledger(game, "due") == 1150


def test_a_refused_credit_is_one_alarm_and_is_asked_for_again() -> None:
    game, credit = won()
    refused = partner_wallet.CREDIT_REFUSAL_ACCOUNT_UNKNOWN
    game.when(reply(game, credit, DECLINED, credit_refusal=refused)).then(
        seamless.MovementRefused(
            transaction_id=credit, partner_id="acme", round_id=R, credit_refusal=refused
        )
    )
    known = movement(game, credit)
    assert (known.last_reason, is_called(known)) == ("ACCOUNT_UNKNOWN", True)
    assert is_stuck(known, known.ordered_us)
    game.when(reply(game, credit, DECLINED, credit_refusal=refused)).then()
    game.when(reply(game, credit)).then_only(seamless.MovementConfirmed)
    assert balanced(game)


def test_a_refused_rollback_is_final() -> None:
    game = seamless_partner()
    on(game, "r1", TIE)
    (rollback,) = ids(game.when(withdrawal("w1", TIE)), seamless.RollbackOrdered)
    refused = partner_wallet.ROLLBACK_REFUSAL_ALREADY_SETTLED
    game.when(reply(game, rollback, DECLINED, rollback_refusal=refused)).then_only(
        seamless.MovementRefused
    )
    assert not is_called(movement(game, rollback))
    assert movement(game, rollback).last_reason == "ALREADY_SETTLED"


def test_a_contradictory_answer_stops_the_calls() -> None:
    game, credit = won()
    contradictory = reply(
        game, credit, seamless.REPLY_OUTCOME_CONTRADICTORY, problem="OTHER_TRANSACTION"
    )
    game.when(contradictory).then_only(seamless.MovementDisputed)
    assert movement(game, credit).standing is MovementStanding.DISPUTED
    assert not is_called(movement(game, credit))
    again = reply(game, credit, seamless.REPLY_OUTCOME_CONTRADICTORY, problem="MALFORMED")
    game.when(again).then()
    assert ledger(game, "due") == 1150, "nothing is lost"


# ---- what operators decide ---------------------------------------------------------------------


def test_what_only_was_not_answered_cannot_be_written_off() -> None:
    game, credit = won()
    game.given(unknown(game, credit))
    assert safe_actions(movement(game, credit)) == (RETRY, DONE)
    game.when(resolve(1, credit, OFF)).then(rejected(1, seamless.SEAMLESS_REFUSAL_NOT_REFUSED))
    assert ledger(game, "due") == 1150


def test_a_credit_that_was_paid_another_way_is_counted_as_done() -> None:
    game, credit = won()
    game.when(resolve(1, credit, DONE)).then(
        seamless.MovementConfirmed(
            transaction_id=credit,
            partner_id="acme",
            account_id=A,
            table_id=T,
            round_id=R,
            currency_code="EUR",
            amount_minor=1150,
            request_id=request_id(1),
            reason="as agreed",
        )
    )
    assert (ledger(game, "due"), ledger(game, "external")) == (0, 800)
    # What comes of the last call after all agrees with that.
    game.when(reply(game, credit)).then(log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW))
    game.when(resolve(1, credit, DONE)).then_only(log.RequestRepeated)
    game.when(resolve(2, credit, DONE)).then(
        rejected(2, seamless.SEAMLESS_REFUSAL_UNKNOWN_MOVEMENT)
    )


def test_what_is_refused_can_be_written_off_and_a_late_yes_is_an_alarm() -> None:
    game, credit = won()
    refused = partner_wallet.CREDIT_REFUSAL_OTHER
    game.given(reply(game, credit, DECLINED, credit_refusal=refused))
    assert safe_actions(movement(game, credit)) == (RETRY, DONE, OFF)
    game.when(resolve(1, credit, OFF)).then(
        seamless.MovementWrittenOff(
            request_id=request_id(1),
            transaction_id=credit,
            partner_id="acme",
            account_id=A,
            table_id=T,
            round_id=R,
            currency_code="EUR",
            amount_minor=1150,
            reason="as agreed",
        )
    )
    assert (ledger(game, "due"), ledger(game, "written_off")) == (0, 1150)
    assert balanced(game)
    game.when(reply(game, credit)).then(
        seamless.MovementDisputed(
            transaction_id=credit,
            partner_id="acme",
            round_id=R,
            problem="CONFIRMED_AFTER_WRITE_OFF",
        )
    )
    assert balanced(game)


def test_a_disputed_movement_is_called_again_when_an_operator_says_so() -> None:
    game, credit = won()
    contradictory = seamless.REPLY_OUTCOME_CONTRADICTORY
    game.given(reply(game, credit, contradictory, problem="MALFORMED"))
    assert safe_actions(movement(game, credit)) == (DONE, RETRY)
    game.when(resolve(1, credit, OFF)).then(rejected(1, seamless.SEAMLESS_REFUSAL_NOT_REFUSED))
    game.when(resolve(2, credit, RETRY)).then(
        seamless.MovementRetried(
            request_id=request_id(2),
            transaction_id=credit,
            partner_id="acme",
            reason="as agreed",
        )
    )
    assert is_called(movement(game, credit))
    assert movement(game, credit).retries == 1


def test_a_debit_decides_itself() -> None:
    game = seamless_partner()
    (debit,) = ids(game.when(approved_at("r1", TIE)), seamless.DebitOrdered)
    for number, action in ((1, DONE), (2, OFF)):
        game.when(resolve(number, debit, action)).then(
            rejected(number, seamless.SEAMLESS_REFUSAL_STILL_DECIDING)
        )
    game.when(resolve(3, debit, RETRY)).then_only(seamless.MovementRetried)
    game.when(reply(game, debit)).then_only(wallet.StakeReserved)


def test_an_order_about_another_partners_movement_finds_none() -> None:
    game, credit = won()
    body = resolve(1, credit, DONE)
    game.when(type(body)(body.body, partner="north", actor=body.actor)).then(
        rejected(1, seamless.SEAMLESS_REFUSAL_UNKNOWN_MOVEMENT)
    )


def test_an_order_with_a_used_or_old_id_is_refused() -> None:
    game, credit = won()
    game.given(resolve(1, credit, RETRY))
    game.when(resolve(1, credit, DONE)).then(
        rejected(1, seamless.SEAMLESS_REFUSAL_REQUEST_ID_REUSED)
    )
    day_us = 24 * 3600 * 1_000_000
    old = resolve(2, credit, DONE)
    late = type(old)(old.body, actor=old.actor, at_us=day_us + 60_000_000)
    game.when(late).then(rejected(2, seamless.SEAMLESS_REFUSAL_REQUEST_EXPIRED))
    body = seamless.ResolveMovement(transaction_id=credit, action=DONE)
    ahead = order(body, 3)
    body.request_id = request_id(3, 2 * day_us)
    game.when(ahead).then(
        seamless.SeamlessOrderRejected(
            request_id=body.request_id, refusal=seamless.SEAMLESS_REFUSAL_REQUEST_ID_AHEAD
        )
    )


# ---- profiles ----------------------------------------------------------------------------------


def test_a_partner_becomes_seamless_while_it_holds_nothing() -> None:
    game = Deciding(CORE).given(open_account())
    game.when(set_profile(1, profile())).then(
        seamless.PartnerProfileSet(
            request_id=request_id(1),
            partner_id="acme",
            profile=profile(),
            reason="as agreed",
        )
    )
    game.when(deposit(2, 500)).then(declined(2, wallet.DECLINE_BALANCE_AT_PARTNER))
    game.when(withdraw(3, 500)).then(declined(3, wallet.DECLINE_BALANCE_AT_PARTNER))
    game.when(set_profile(4, TRANSFER)).then_only(seamless.PartnerProfileSet)
    game.when(deposit(5, 500)).then_only(wallet.DepositRequested)


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        (profile(address=""), "the address is not host:port"),
        (profile(address="127.0.0.1"), "the address is not host:port"),
        (profile(address="127.0.0.1:0"), "the address is not host:port"),
        (profile(address="127.0.0.1:65536"), "the address is not host:port"),
        (
            profile(address="wallet.example:7600"),
            "calls in plain text go to this machine only",
        ),
        (
            profile(root_certificates="PEM"),
            "calls in plain text check no certificate",
        ),
        (profile(deadline_ms=5), "the deadline is under 20 ms"),
        (
            profiles.PartnerProfile(
                mode=profiles.WALLET_MODE_SEAMLESS, address="[::1]:7600", plaintext=True
            ),
            "a convention is not known",
        ),
        (
            profiles.PartnerProfile(mode=profiles.WALLET_MODE_TRANSFER, address="a:1"),
            "a transfer partner has no wallet to describe",
        ),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused(
    told: profiles.PartnerProfile, fault: str
) -> None:
    Deciding(CORE).when(set_profile(1, told)).then(
        rejected(1, seamless.SEAMLESS_REFUSAL_BAD_PROFILE, fault)
    )


def test_a_profile_over_tls_may_be_anywhere() -> None:
    told = profile(address="wallet.example:443", plaintext=False, root_certificates="PEM")
    Deciding(CORE).when(set_profile(1, told)).then_only(seamless.PartnerProfileSet)


def test_the_mode_does_not_change_while_money_is_under_way() -> None:
    refused = seamless.SEAMLESS_REFUSAL_MONEY_UNDER_WAY
    game = with_money(500)
    game.when(set_profile(1, profile())).then(
        rejected(1, refused, f"account {A} holds money or stakes")
    )
    game = Deciding(CORE).given(open_account(), deposit(2, 500))
    game.when(set_profile(1, profile())).then(rejected(1, refused, "a deposit is under way"))
    game, credit = won()
    game.when(set_profile(1, TRANSFER)).then(rejected(1, refused, "movements are not confirmed"))
    game.when(set_profile(2, profile(end_of_round=True))).then_only(seamless.PartnerProfileSet)
    game.given(reply(game, credit))
    game.when(set_profile(3, TRANSFER)).then_only(seamless.PartnerProfileSet)
    game = seamless_partner()
    on(game, "r1", TIE)
    game.when(set_profile(1, TRANSFER)).then(
        rejected(1, refused, f"account {A} holds money or stakes")
    )


# ---- snapshots ---------------------------------------------------------------------------------


def test_the_state_survives_a_snapshot_with_something_of_everything() -> None:
    game, credit = won(debit_per_bet=True)
    game.given(unknown(game, credit))
    game.given(approved_at("r2", ("b8", "tie", 10), ("b9", "player", 20)))
    refused = partner_wallet.CREDIT_REFUSAL_OTHER
    game.given(reply(game, credit, DECLINED, credit_refusal=refused), resolve(1, credit, OFF))
    codec = StateCodec()
    raw = codec.dumps(CORE.state_type, game.state)
    back = codec.loads(CORE.state_type, raw)
    assert back == game.state
    assert codec.dumps(CORE.state_type, back) == raw


def test_transactions_have_ids_of_their_own_and_always_the_same() -> None:
    def orders() -> list[str]:
        game = seamless_partner(debit_per_bet=True)
        first = on(game, "r1", TIE, BANKER)
        game.when(withdrawal("w1", TIE))
        return first + ids(game, seamless.RollbackOrdered)

    assert orders() == orders()
    assert len(set(orders())) == 3
