"""Corrections at seamless partners (INC-3): what an account gets is credited at the partner, what
it gives back is owed until the partner's wallet has taken it."""

from __future__ import annotations

import pytest
from protovalidate import Validator

from sabot.log.v1 import events_pb2 as log
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.settlement.v1 import correction_events_pb2 as settled_again
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.wallet.partner_replies import request_of
from tests.unit.deciding import Fact
from tests.unit.seamless_facts import (
    Game,
    balanced,
    declined_by_partner,
    ledger,
    movement,
    reply,
    resolve,
    seamless_partner,
    unknown,
)
from tests.unit.test_wallet_corrections import corrected, pay_back
from tests.unit.wallet_facts import A, declined


def owed(game: Game) -> int:
    return game.state.accounts["acme", A].owed_minor


def test_what_an_account_gets_is_credited_and_due_until_confirmed() -> None:
    game = seamless_partner(A)
    difference = corrected(0, 500)
    assert isinstance(difference.body, settled_again.BetsCorrected)
    difference.body.transaction_ids.append("d1")
    game.when(difference).then_only(corrections.CorrectionPosted, seamless.CreditOrdered)
    credit = game.answers[1]
    assert isinstance(credit, seamless.CreditOrdered)
    assert list(credit.debit_transaction_ids) == ["d1"], "no wallet pays for stakes not taken"
    call = request_of(credit.transaction_id, movement(game, credit.transaction_id))
    assert isinstance(call, partner_wallet.CreditRequest)
    assert (list(call.debit_transaction_ids), list(call.bets)) == (["d1"], [])
    assert not Validator().collect_violations(call)
    assert credit.reason == partner_wallet.CREDIT_REASON_CORRECTION
    assert credit.amount_minor == ledger(game, "due") == 500
    assert not game.state.accounts["acme", A].available_minor
    game.when(reply(game, credit.transaction_id)).then_only(seamless.MovementConfirmed)
    assert ledger(game, "due") == 0
    assert balanced(game)


def test_what_an_account_gives_back_is_owed_until_the_partner_has_taken_it() -> None:
    game = seamless_partner(A, reversal_after_settlement=True)
    game.when(corrected(500, 0)).then_only(corrections.CorrectionPosted, seamless.DebitOrdered)
    debit = game.answers[1]
    assert isinstance(debit, seamless.DebitOrdered)
    assert debit.reason == partner_wallet.DEBIT_REASON_CORRECTION
    assert owed(game) == debit.amount_minor == 500
    # Whatever leaves it open does not end it, and meanwhile it is not paid another way.
    game.given(unknown(game, debit.transaction_id))
    game.when(pay_back(60, 1)).then(declined(60, wallet.DECLINE_NOT_OWED))
    game.when(reply(game, debit.transaction_id)).then_only(corrections.ReceivableSettled)
    assert owed(game) == 0
    assert not game.state.seamless.movements
    assert balanced(game)
    game.when(reply_again(game, debit)).then_only(log.InputIgnored)


def reply_again(game: Game, debit: seamless.DebitOrdered) -> seamless.RecordReply:
    del game
    return seamless.RecordReply(
        transaction_id=debit.transaction_id, outcome=seamless.REPLY_OUTCOME_DONE
    )


def test_a_debit_that_the_partner_declines_leaves_the_receivable() -> None:
    game = seamless_partner(A, reversal_after_settlement=True).given(corrected(500, 0))
    (transaction,) = game.state.seamless.movements
    why = partner_wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS
    game.when(declined_by_partner(game, transaction, why)).then_only(
        corrections.CorrectionDebitDeclined
    )
    assert owed(game) == 500
    assert not game.state.seamless.movements
    # The partner collects it another way, and a supervisor says so.
    game.when(pay_back(61, 501)).then(declined(61, wallet.DECLINE_NOT_OWED))
    game.when(pay_back(62, 500)).then_only(corrections.ReceivableSettled)
    assert owed(game) == 0
    assert balanced(game)


@pytest.mark.parametrize("before", [500, 1])
def test_a_wallet_that_takes_no_debits_for_corrections_is_not_asked(before: int) -> None:
    game = seamless_partner(A, reversal_after_settlement=False)
    game.when(corrected(before, 0)).then_only(corrections.CorrectionPosted)
    assert owed(game) == before
    assert balanced(game)


def test_a_contradictory_answer_is_an_alarm_and_the_debit_stays() -> None:
    game = seamless_partner(A, reversal_after_settlement=True).given(corrected(500, 0))
    (transaction,) = game.state.seamless.movements
    odd = reply(game, transaction, seamless.REPLY_OUTCOME_CONTRADICTORY)
    game.when(odd).then_only(seamless.MovementDisputed)
    assert movement(game, transaction).amount_minor == owed(game) == 500


def test_an_operator_says_that_a_debit_was_collected_another_way() -> None:
    game = seamless_partner(A, reversal_after_settlement=True).given(corrected(500, 0))
    (transaction,) = game.state.seamless.movements
    off = resolve(70, transaction, seamless.MOVEMENT_ACTION_WRITE_OFF)
    game.when(off).then_only(seamless.SeamlessOrderRejected)
    again = resolve(71, transaction, seamless.MOVEMENT_ACTION_RETRY)
    game.when(again).then_only(seamless.MovementRetried)
    done = resolve(72, transaction, seamless.MOVEMENT_ACTION_MARK_DONE)
    game.when(done).then_only(corrections.ReceivableSettled)
    assert owed(game) == 0
    assert not game.state.seamless.movements
    assert balanced(game)


def test_a_call_that_is_no_good_does_not_end_the_ones_before_it() -> None:
    """Else what an unanswered call has taken would be collected once more."""
    why = partner_wallet.DEBIT_DECLINE_OTHER
    game = seamless_partner(A, reversal_after_settlement=True).given(corrected(500, 0))
    (transaction,) = game.state.seamless.movements

    def no_good() -> Fact:
        declined_by = seamless.REPLY_OUTCOME_DECLINED
        problem = "INVALID_ARGUMENT"
        return reply(game, transaction, declined_by, debit_decline=why, problem=problem)

    game.given(unknown(game, transaction))
    game.when(no_good()).then_only(seamless.MovementDisputed)
    assert owed(game) == movement(game, transaction).amount_minor == 500
    game.when(pay_back(60, 500)).then(declined(60, wallet.DECLINE_NOT_OWED))
    # An operator has compared both books.
    game.given(resolve(70, transaction, seamless.MOVEMENT_ACTION_RETRY))
    game.when(no_good()).then_only(corrections.CorrectionDebitDeclined)
    game.when(pay_back(61, 500)).then_only(corrections.ReceivableSettled)
    assert balanced(game)
