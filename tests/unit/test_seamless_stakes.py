"""The wallet core: stakes of accounts whose money a partner holds."""

from __future__ import annotations

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.table.v1 import bet_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.wallet.domain import seamless_debits
from tests.unit.deciding import by
from tests.unit.seamless_facts import (
    T_US,
    Game,
    approved_at,
    balanced,
    debit_of,
    declined_by_partner,
    ids,
    ledger,
    movement,
    on,
    reply,
    reserved_minor,
    seamless_partner,
    timeout,
    unknown,
)
from tests.unit.wallet_facts import (
    BOOK_CLOSED,
    BOOK_VOIDED,
    RETURNED,
    SEALED,
    A,
    R,
    T,
    bets,
    block,
    close,
    withdrawal,
)

ALREADY = log.InputIgnored(reason=log.IGNORED_REASON_ALREADY_DONE)
CONTRADICTS = log.InputIgnored(reason=log.IGNORED_REASON_CONTRADICTS)
IMPOSSIBLE = log.InputIgnored(reason=log.IGNORED_REASON_IMPOSSIBLE)
NOT_NOW = log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW)
PLAY, INSURE = bet_pb2.STAGE_PLAY, bet_pb2.STAGE_INSURANCE
TIE = ("b1", "tie", 100)
BANKER = ("b2", "banker", 250)


def since(game: Game, transaction_id: str) -> entry_pb2.Position:
    at = movement(game, transaction_id).asked_by
    return entry_pb2.Position(segment=at.segment, sequence=at.sequence, index=at.index)


def is_on(
    game: Game,
    waiting: entry_pb2.Position,
    debits: list[str],
    *wagers: tuple[str, str, int],
    request: str = "r1",
) -> wallet.StakeReserved:
    del game
    return wallet.StakeReserved(
        request_id=request,
        account_id=A,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=bets(*wagers),
        transaction_ids=debits,
        waiting_since=waiting,
    )


def is_off(
    waiting: entry_pb2.Position,
    decline: wallet.Decline.ValueType,
    *wagers: tuple[str, str, int],
    request: str = "r1",
    stage: bet_pb2.Stage.ValueType = bet_pb2.STAGE_UNSPECIFIED,
) -> wallet.StakeDeclined:
    return wallet.StakeDeclined(
        request_id=request,
        account_id=A,
        table_id=T,
        round_id=R,
        bets=bets(*wagers),
        decline=decline,
        stage=stage,
        waiting_since=waiting,
        partner_id="acme",
    )


def test_a_partner_is_asked_and_nothing_moves_before_it_answers() -> None:
    game = seamless_partner()
    game.when(approved_at("r1", TIE, BANKER))
    debit = debit_of(game)
    game.then(
        seamless.DebitOrdered(
            transaction_id=debit,
            partner_id="acme",
            account_id=A,
            table_id=T,
            round_id=R,
            request_id="r1",
            currency_code="EUR",
            amount_minor=350,
            reason=partner_wallet.DEBIT_REASON_STAKE,
            bets=bets(TIE, BANKER),
            waiting_since=since(game, debit),
        )
    )
    assert len(debit) == 32
    assert reserved_minor(game) == 0
    assert not game.state.ledgers


def test_a_bet_is_on_once_its_debit_is_taken() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE, BANKER)))
    waiting = since(game, debit)
    game.when(reply(game, debit)).then(is_on(game, waiting, [debit], TIE, BANKER))
    assert reserved_minor(game) == 350
    assert ledger(game, "external") == -350
    assert balanced(game)
    assert not game.state.seamless.movements
    assert not game.state.seamless.open


def test_a_debit_for_each_bet_and_all_must_be_taken() -> None:
    game = seamless_partner(debit_per_bet=True)
    game.when(approved_at("r1", TIE, BANKER))
    first, second = ids(game, seamless.DebitOrdered)
    assert [movement(game, one).amount_minor for one in (first, second)] == [100, 250]
    waiting = since(game, first)
    game.when(reply(game, second)).then()
    assert reserved_minor(game) == 0
    game.when(reply(game, first)).then(is_on(game, waiting, [first, second], TIE, BANKER))
    assert balanced(game)


def test_where_one_of_several_is_declined_the_others_are_rolled_back() -> None:
    game = seamless_partner(debit_per_bet=True)
    game.when(approved_at("r1", TIE, BANKER, ("b3", "player", 70)))
    first, second, third = ids(game, seamless.DebitOrdered)
    waiting = since(game, first)
    game.when(reply(game, first)).then()
    why = partner_wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS
    game.when(declined_by_partner(game, second, why)).then_only(
        wallet.StakeDeclined, seamless.RollbackOrdered, seamless.RollbackOrdered
    )
    assert game.answers[0] == is_off(
        waiting, wallet.DECLINE_INSUFFICIENT_FUNDS, TIE, BANKER, ("b3", "player", 70)
    )
    cancelled = [one for one in game.answers if isinstance(one, seamless.RollbackOrdered)]
    assert [one.debit_transaction_id for one in cancelled] == [first, third]
    assert not any(one.booked for one in cancelled)
    assert balanced(game)


@pytest.mark.parametrize(
    ("told", "decline"),
    [
        (partner_wallet.DEBIT_DECLINE_ACCOUNT_UNKNOWN, wallet.DECLINE_UNKNOWN_ACCOUNT),
        (partner_wallet.DEBIT_DECLINE_ACCOUNT_BLOCKED, wallet.DECLINE_ACCOUNT_BLOCKED),
        (partner_wallet.DEBIT_DECLINE_CURRENCY, wallet.DECLINE_CURRENCY_MISMATCH),
        (partner_wallet.DEBIT_DECLINE_LIMIT, wallet.DECLINE_PARTNER_LIMIT),
        (partner_wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS, wallet.DECLINE_INSUFFICIENT_FUNDS),
        (partner_wallet.DEBIT_DECLINE_ROLLED_BACK, wallet.DECLINE_PARTNER_DECLINED),
        (partner_wallet.DEBIT_DECLINE_OTHER, wallet.DECLINE_PARTNER_DECLINED),
        (partner_wallet.DEBIT_DECLINE_UNSPECIFIED, wallet.DECLINE_PARTNER_DECLINED),
    ],
)
def test_a_declined_debit_is_told_in_the_bettors_words(
    told: int, decline: wallet.Decline.ValueType
) -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE)))
    waiting = since(game, debit)
    game.when(declined_by_partner(game, debit, told)).then(is_off(waiting, decline, TIE))
    assert not game.state.seamless.movements


# ---- no answer ---------------------------------------------------------------------------------


def test_a_call_that_is_no_good_does_not_end_the_ones_before_it() -> None:
    """Nothing is remembered of it, so one that was not answered may still be carried out."""
    for earlier in (0, 1):
        game = seamless_partner()
        debit = debit_of(game.when(approved_at("r1", TIE)))
        for _ in range(earlier):
            game.given(unknown(game, debit, "UNAVAILABLE"))
        why = partner_wallet.DEBIT_DECLINE_OTHER
        no_good = reply(
            game,
            debit,
            seamless.REPLY_OUTCOME_DECLINED,
            debit_decline=why,
            problem="INVALID_ARGUMENT",
        )
        game.when(no_good).then_only(wallet.StakeDeclined, *[seamless.RollbackOrdered] * earlier)
        assert balanced(game)


def test_an_unknown_outcome_decides_nothing_and_is_kept() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE)))
    game.when(unknown(game, debit)).then()
    known = movement(game, debit)
    assert (known.last_outcome, known.last_reason) == (
        seamless.REPLY_OUTCOME_UNKNOWN,
        "DEADLINE_EXCEEDED",
    )
    assert reserved_minor(game) == 0


def test_stakes_are_sealed_behind_the_last_answer() -> None:
    game = seamless_partner()
    first = debit_of(game.when(approved_at("r1", TIE)))
    second = debit_of(game.when(approved_at("r2", BANKER)))
    game.when(BOOK_CLOSED).then()
    waiting = since(game, second)
    game.when(reply(game, second)).then(is_on(game, waiting, [second], BANKER, request="r2"))
    waiting = since(game, first)
    game.when(reply(game, first)).then(is_on(game, waiting, [first], TIE), SEALED)


def test_an_unanswered_debit_is_declined_two_seconds_after_the_book_closed() -> None:
    """It is rolled back outside, and the round goes on."""
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE)))
    waiting = since(game, debit)
    assert movement(game, debit).due_us is None
    game.when(BOOK_CLOSED).then()
    assert movement(game, debit).due_us == game.time_us + T_US
    game.when(timeout(game, debit, early_us=1)).then(NOT_NOW)
    game.when(timeout(game, debit)).then_only(
        wallet.StakeDeclined, seamless.RollbackOrdered, wallet.StakesSealed
    )
    assert game.answers[0] == is_off(waiting, wallet.DECLINE_PARTNER_UNANSWERED, TIE)
    assert game.answers[2] == SEALED
    (rollback,) = ids(game, seamless.RollbackOrdered)
    assert rollback != debit
    assert movement(game, rollback).debits == [debit]
    # The answer that comes after all changes nothing: the rollback is under way.
    late = reply(game, debit)
    game.when(late).then(NOT_NOW)
    game.when(reply(game, rollback)).then_only(seamless.MovementConfirmed)
    assert not game.state.seamless.movements
    assert balanced(game)
    assert not game.state.ledgers, "no money moved"


def test_a_timer_of_another_book_or_partner_does_nothing() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE)))
    game.when(timeout(game, debit)).then(NOT_NOW)  # Betting is open.
    game.given(BOOK_CLOSED)
    game.when(timeout(game, debit, partner="north")).then(IMPOSSIBLE)
    body = timeout(game, debit).body
    assert isinstance(body, seamless.TimeOutDebit)
    other = seamless.TimeOutDebit(transaction_id=debit)
    game.when(by(other, actor="system:debittimers", at_us=3 * T_US)).then(NOT_NOW)
    game.given(reply(game, debit))
    game.when(by(body, actor="system:debittimers")).then(ALREADY)


def test_a_further_stake_has_its_time_from_its_order() -> None:
    game = seamless_partner()
    on(game, "r1", TIE)
    game.given(BOOK_CLOSED)
    double = ("b2", "double", 100)
    debit = debit_of(game.when(approved_at("r2", double, stage=PLAY)))
    assert movement(game, debit).reason == partner_wallet.DEBIT_REASON_FURTHER_STAKE
    assert movement(game, debit).due_us == game.time_us + T_US
    waiting = since(game, debit)
    game.when(timeout(game, debit)).then_only(wallet.StakeDeclined, seamless.RollbackOrdered)
    declined = is_off(waiting, wallet.DECLINE_PARTNER_UNANSWERED, double, request="r2", stage=PLAY)
    assert game.answers[0] == declined


def test_insurance_is_sealed_behind_its_own_answers() -> None:
    game = seamless_partner()
    on(game, "r1", TIE)
    game.given(BOOK_CLOSED)
    debit = debit_of(game.when(approved_at("r2", ("b2", "insurance", 50), stage=INSURE)))
    assert movement(game, debit).due_us is None
    closed = limits.BookClosed(table_id=T, round_id=R, stage=INSURE)
    game.when(closed).then()
    assert movement(game, debit).due_us == game.time_us + T_US
    game.when(reply(game, debit)).then_only(wallet.StakeReserved, wallet.StakesSealed)
    sealed = game.answers[1]
    assert isinstance(sealed, wallet.StakesSealed)
    assert sealed.stage == INSURE


# ---- what cannot be ----------------------------------------------------------------------------


def test_a_contradictory_answer_is_an_alarm_and_the_bet_is_not_on() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE)))
    contradictory = reply(
        game, debit, seamless.REPLY_OUTCOME_CONTRADICTORY, problem="OTHER_TRANSACTION"
    )
    game.when(contradictory).then_only(
        seamless.MovementDisputed, wallet.StakeDeclined, seamless.RollbackOrdered
    )
    assert game.answers[0] == seamless.MovementDisputed(
        transaction_id=debit, partner_id="acme", round_id=R, problem="OTHER_TRANSACTION"
    )
    declined = game.answers[1]
    assert isinstance(declined, wallet.StakeDeclined)
    assert declined.decline == wallet.DECLINE_PARTNER_CONTRADICTS


def test_the_first_answer_stands_and_another_one_is_an_alarm() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE)))
    again = reply(game, debit)
    other = declined_by_partner(game, debit, partner_wallet.DEBIT_DECLINE_LIMIT)
    game.when(reply(game, debit)).then_only(wallet.StakeReserved)
    game.when(again).then(ALREADY)
    game.when(other).then(CONTRADICTS)
    assert reserved_minor(game) == 100


def test_of_several_debits_the_first_answer_stands_too() -> None:
    game = seamless_partner(debit_per_bet=True)
    game.when(approved_at("r1", TIE, BANKER))
    first, _ = ids(game, seamless.DebitOrdered)
    game.when(reply(game, first)).then()
    game.when(reply(game, first)).then(ALREADY)
    game.when(unknown(game, first)).then(ALREADY)
    game.when(declined_by_partner(game, first, partner_wallet.DEBIT_DECLINE_LIMIT)).then(
        CONTRADICTS
    )


def test_an_answer_in_another_partners_name_or_for_another_order_is_an_alarm() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE)))
    game.when(reply(game, debit, partner="north")).then(IMPOSSIBLE)
    elsewhere = movement(game, debit).asked_by._replace(index=7)
    game.when(reply(game, debit, asked_by=elsewhere)).then(IMPOSSIBLE)
    game.when(reply(game, "0" * 32)).then(NOT_NOW)
    assert reserved_minor(game) == 0
    # Neither of them is taken for the answer.
    game.when(reply(game, debit)).then_only(wallet.StakeReserved)


# ---- refused here ------------------------------------------------------------------------------


def test_what_is_declined_here_is_not_asked_of_the_partner() -> None:
    game = seamless_partner(A, "b")
    game.given(block(1, "b"))
    for facts, decline in (
        (approved_at("r1", TIE, account="nobody"), wallet.DECLINE_UNKNOWN_ACCOUNT),
        (approved_at("r2", TIE, account="b"), wallet.DECLINE_ACCOUNT_BLOCKED),
    ):
        game.when(facts).then_only(wallet.StakeDeclined)
        declined = game.answers[0]
        assert isinstance(declined, wallet.StakeDeclined)
        assert declined.decline == decline
        assert not declined.HasField("waiting_since")
    game.given(BOOK_CLOSED)
    game.when(approved_at("r3", TIE)).then_only(wallet.StakeDeclined)
    assert not game.state.seamless.movements


def test_a_partner_that_confirms_nothing_is_asked_for_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seamless_debits, "MAX_OPEN", 2)
    game = seamless_partner()
    first = debit_of(game.when(approved_at("r1", TIE)))
    game.given(approved_at("r2", BANKER))
    game.when(approved_at("r3", ("b3", "player", 5))).then_only(wallet.StakeDeclined)
    declined = game.answers[0]
    assert isinstance(declined, wallet.StakeDeclined)
    assert declined.decline == wallet.DECLINE_PARTNER_OVERDUE
    game.given(reply(game, first))
    game.when(approved_at("r4", ("b4", "player", 5))).then_only(seamless.DebitOrdered)


def test_an_account_with_money_under_way_is_not_closed() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE)))
    game.when(close(5)).then_only(wallet.AccountRequestDeclined)
    game.given(declined_by_partner(game, debit, partner_wallet.DEBIT_DECLINE_LIMIT))
    game.when(close(6)).then_only(wallet.AccountClosed)


# ---- withdrawn and voided while the partner is waited for ---------------------------------------


def test_a_request_that_is_withdrawn_whole_before_the_answer_is_off() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE, BANKER)))
    game.when(withdrawal("w1", TIE)).then_only(wallet.StakeReturned)
    game.when(withdrawal("w2", BANKER)).then_only(
        wallet.StakeReturned, wallet.StakeDeclined, seamless.RollbackOrdered
    )
    declined, rollback = game.answers[1:]
    assert isinstance(declined, wallet.StakeDeclined)
    assert isinstance(rollback, seamless.RollbackOrdered)
    assert declined.decline == wallet.DECLINE_WITHDRAWN
    assert (rollback.debit_transaction_id, rollback.reason, rollback.booked) == (
        debit,
        partner_wallet.ROLLBACK_REASON_WITHDRAWN,
        False,
    )
    game.when(BOOK_CLOSED).then(SEALED)


def test_a_part_that_is_withdrawn_before_the_answer_goes_back_once_the_request_is_on() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE, BANKER)))
    game.when(withdrawal("w1", TIE)).then_only(wallet.StakeReturned)
    assert not game.answers[0].bets  # type: ignore[attr-defined]  # a StakeReturned
    game.given(BOOK_CLOSED)
    game.when(reply(game, debit)).then_only(
        wallet.StakeReserved, wallet.StakeReturned, seamless.CreditOrdered, wallet.StakesSealed
    )
    back, credit = game.answers[1:3]
    assert isinstance(back, wallet.StakeReturned)
    assert isinstance(credit, seamless.CreditOrdered)
    assert (back.request_id, list(back.bets)) == ("w1", bets(TIE))
    assert (credit.amount_minor, list(credit.debit_transaction_ids)) == (100, [debit])
    assert reserved_minor(game) == 250
    assert ledger(game, "due") == 100
    assert balanced(game)


def test_a_void_takes_back_what_the_partner_has_not_answered() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE)))
    waiting = since(game, debit)
    game.when(BOOK_VOIDED).then_only(
        wallet.StakeDeclined, seamless.RollbackOrdered, wallet.RoundReturned
    )
    assert game.answers[0] == is_off(waiting, wallet.DECLINE_STAKES_SEALED, TIE)
    assert game.answers[2] == RETURNED
    game.when(reply(game, debit)).then(NOT_NOW)
    assert balanced(game)


def test_a_void_of_many_unanswered_requests_goes_in_steps() -> None:
    game = seamless_partner(debit_per_bet=True)
    game.careful = False
    for number in range(90):
        wagers = [(f"b{number}-{one}", "tie", 10) for one in range(5)]
        game.given(approved_at(f"r{number}", *wagers))
    assert len(game.state.seamless.movements) == 450
    game.when(BOOK_VOIDED)
    assert len(game.steps) > 1
    assert isinstance(game.answers[-1], wallet.RoundReturned)
    assert sum(isinstance(one, wallet.StakeDeclined) for one in game.answers) == 90
    rolled_back = ids(game, seamless.RollbackOrdered)
    assert len(set(rolled_back)) == 450
    assert set(game.state.seamless.movements) == set(rolled_back)


def test_late_bets_on_the_floor_go_back_whether_the_partner_has_answered_or_not() -> None:
    """They are returned as betting closes, in nobody's name but the account's own partner's."""
    game = seamless_partner()
    on(game, "r1", TIE)
    waiting = debit_of(game.when(approved_at("r2", BANKER)))
    late = limits.WithdrawalApproved(
        account_id=A,
        table_id=T,
        round_id=R,
        bets=bets(TIE, BANKER),
        partner_id="acme",
        late=True,
    )
    game.when(by(late, partner="", actor="operator:dana")).then_only(
        wallet.StakeReturned,
        seamless.RollbackOrdered,
        wallet.StakeDeclined,
        seamless.RollbackOrdered,
    )
    back, booked, off, unbooked = game.answers
    assert isinstance(back, wallet.StakeReturned)
    assert isinstance(booked, seamless.RollbackOrdered)
    assert isinstance(off, wallet.StakeDeclined)
    assert isinstance(unbooked, seamless.RollbackOrdered)
    assert (back.reason, list(back.bets)) == (wallet.RETURN_REASON_LATE, bets(TIE))
    assert (off.partner_id, list(off.bets)) == ("acme", bets(BANKER))
    assert (booked.booked, unbooked.booked) == (True, False)
    assert unbooked.debit_transaction_id == waiting
    game.when(BOOK_CLOSED).then(SEALED)
    assert balanced(game)
    assert reserved_minor(game) == 0


def test_a_part_of_a_request_that_is_late_goes_back_once_it_is_on() -> None:
    game = seamless_partner()
    debit = debit_of(game.when(approved_at("r1", TIE, BANKER)))
    late = limits.WithdrawalApproved(
        account_id=A, table_id=T, round_id=R, bets=bets(TIE), partner_id="acme", late=True
    )
    game.when(by(late, partner="", actor="operator:dana")).then_only(wallet.StakeReturned)
    game.when(reply(game, debit)).then_only(
        wallet.StakeReserved, wallet.StakeReturned, seamless.CreditOrdered
    )
    back = game.answers[1]
    assert isinstance(back, wallet.StakeReturned)
    assert (back.reason, list(back.bets)) == (wallet.RETURN_REASON_LATE, bets(TIE))
    assert (reserved_minor(game), ledger(game, "due")) == (250, 100)
    assert balanced(game)
