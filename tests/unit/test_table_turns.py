"""The table: seats, actions, insurance, and turns whose time is over (rules BJ-3, BJ-6, BJ-7, BJ-11
to BJ-14). Ann holds seats 1 and 2, Ben seat 5; 100 lie at each."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import UNLOGGED
from services.table.domain.core import CORE
from services.table.domain.state import MAX_BETS, Round, TableState
from services.table.domain.timers import timers_wanted
from services.table.domain.turns import MAX_FURTHER_BETS
from tests.unit.blackjack_facts import (
    ANN,
    BEN,
    DECLINE,
    DOUBLE,
    HIT,
    INSURANCE,
    INSURE,
    PLACE,
    PLAY,
    SPLIT,
    STAND,
    bet,
    offered,
    reserved,
    spec,
    taken,
    turn,
)
from tests.unit.deciding import Deciding, Fact, by, failure_of
from tests.unit.table_facts import (
    R1,
    R2,
    S1,
    T,
    bets_rejected,
    close_betting,
    closed,
    open_round,
    open_table,
    paid,
    resume,
    resumed,
    suspend,
    void,
)

ACTION_US = 15_000_000
NOT_YOUR_TURN = table.REFUSAL_NOT_YOUR_TURN


SHOE = by(shoe.ShoeOpened(table_id=T, shoe_id=S1, number=1, cards=416, cut_at=208, ready=True))


def betting(of: spec_pb2.TableSpec | None = None) -> Deciding[TableState]:
    return Deciding(CORE).given(open_table(of=of or spec()), SHOE, open_round())


def place(
    request: str, account: str, *bets: tuple[str, int, int], currency: str = "EUR"
) -> table.PlaceBets:
    """(kind, seat, stake)."""
    return table.PlaceBets(
        request_id=request,
        request_hash=b"h",
        account_id=account,
        currency_code=currency,
        bets=[
            bet_pb2.Bet(bet=kind, position=str(seat), stake_minor=stake)
            for kind, seat, stake in bets
        ],
        **PLACE,
    )


def seated(of: spec_pb2.TableSpec | None = None) -> Deciding[TableState]:
    """Betting is closed over the three seats."""
    game = betting(of).given(place("q1", ANN, ("main", 1, 100), ("main", 2, 100)))
    game.given(reserved(ANN, bet(f"{R1}.1", "main", 100, 1), bet(f"{R1}.2", "main", 100, 2)))
    game.given(place("q2", BEN, ("main", 5, 100)), reserved(BEN, bet(f"{R1}.3", "main", 100, 5)))
    return game.given(close_betting())


def playing(of: spec_pb2.TableSpec | None = None) -> Deciding[TableState]:
    """Seat 1 has the first turn: two eights."""
    return seated(of).given(turn(1, 1, (HIT, STAND, DOUBLE, SPLIT), stake=100, advice=HIT))


def running(game: Deciding[TableState]) -> Round:
    found = game.state.tables[T].running
    assert found is not None
    return found


def act(
    number: int,
    seat: int,
    action: rules.Action.ValueType,
    *,
    account: str = ANN,
    request: str = "act",
    extra: int = 0,
    currency: str = "",
    **place_of: Any,
) -> table.Act:
    return table.Act(
        request_id=request,
        request_hash=f"{request}{action}".encode(),
        account_id=account,
        seat=seat,
        turn=number,
        action=action,
        extra_minor=extra,
        currency_code=currency,
        **{**PLACE, **place_of},
    )


def refused(
    why: table.Refusal.ValueType,
    number: int = 1,
    seat: int = 1,
    *,
    account: str = ANN,
    request: str = "act",
    **place_of: Any,
) -> table.ActionRejected:
    return table.ActionRejected(
        request_id=request,
        account_id=account,
        seat=seat,
        turn=number,
        refusal=why,
        **{**PLACE, **place_of},
    )


def time_out(number: int, timer: int = 1, **place_of: Any) -> Fact:
    body = table.TimeOutTurn(turn=number, timer=timer, **{**PLACE, **place_of})
    return by(body, partner="", actor="system:timer")


def further(number: int, kind: str, stake: int, seat: int) -> bet_pb2.Bet:
    """The bet of an action's stake, by its number in the round."""
    return bet(f"{R1}.{number}", kind, stake, seat)


def declined(of: bet_pb2.Bet, stage: bet_pb2.Stage.ValueType = PLAY) -> wallet.StakeDeclined:
    return wallet.StakeDeclined(
        request_id="act",
        account_id=ANN,
        bets=[of],
        decline=wallet.DECLINE_INSUFFICIENT_FUNDS,
        stage=stage,
        **PLACE,
    )


def over_limit(of: bet_pb2.Bet, stage: bet_pb2.Stage.ValueType = PLAY) -> limits.BetsRefused:
    return limits.BetsRefused(
        request_id="act", account_id=ANN, bet_ids=[of.bet_id], stage=stage, **PLACE
    )


INSURANCE_CLOSED = table.InsuranceClosed(**PLACE)


def ignored(reason: log.IgnoredReason.ValueType) -> log.InputIgnored:
    return log.InputIgnored(reason=reason)


NOT_NOW = ignored(log.IGNORED_REASON_NOT_NOW)
DONE = ignored(log.IGNORED_REASON_ALREADY_DONE)


# ---- seats -------------------------------------------------------------------------------------


def test_bj_11_a_seat_has_one_owner_in_a_round() -> None:
    game = betting().given(place("q1", ANN, ("main", 1, 100)))
    game.when(place("q2", BEN, ("main", 2, 100), ("main", 1, 100)))
    game.then(bets_rejected(table.REFUSAL_SEAT_TAKEN, "q2", account=BEN))
    game.when(by(place("q2", ANN, ("main", 1, 100)), partner="other"))
    game.then(bets_rejected(table.REFUSAL_SEAT_TAKEN, "q2"))
    game.when(place("q3", ANN, ("main", 1, 50), ("perfect_pairs", 7, 50)))
    game.then_only(table.BetsPlaced)
    assert list(running(game).seats) == [1, 7]


def test_bj_11_a_seat_is_free_once_none_of_its_bets_can_come_on() -> None:
    game = betting().given(place("q1", ANN, ("main", 1, 100), ("21_plus_3", 1, 10)))
    game.given(limits.BetsRefused(account_id=ANN, bet_ids=[f"{R1}.1"], **PLACE))
    game.when(place("q2", BEN, ("main", 1, 100)))
    game.then(bets_rejected(table.REFUSAL_SEAT_TAKEN, "q2", account=BEN))
    side = bet(f"{R1}.2", "21_plus_3", 10, 1)
    game.given(wallet.StakeDeclined(account_id=ANN, bets=[side], **PLACE))
    game.when(place("q3", BEN, ("main", 1, 100))).then_only(table.BetsPlaced)
    assert running(game).seats[1].account_id == BEN


def test_bj_11_a_seat_that_is_asked_back_is_held_until_limits_agree() -> None:
    game = betting().given(place("q1", ANN, ("main", 1, 100)))
    back = table.WithdrawBets(request_id="w1", request_hash=b"w", account_id=ANN, **PLACE)
    game.when(back).then_only(table.BetsWithdrawn)
    game.when(place("q2", BEN, ("main", 1, 100)))
    game.then(bets_rejected(table.REFUSAL_SEAT_TAKEN, "q2", account=BEN))
    game.given(
        limits.WithdrawalApproved(account_id=ANN, bets=[bet(f"{R1}.1", "main", 100, 1)], **PLACE)
    )
    game.when(place("q3", BEN, ("main", 1, 100))).then_only(table.BetsPlaced)


def test_a_bet_whose_path_failed_frees_its_seat() -> None:
    for service, failed in (
        ("limits", table.BetsPlaced),
        ("wallet", limits.BetsApproved),
    ):
        game = betting().given(place("q1", ANN, ("main", 1, 100)))
        body = failed(account_id=ANN, bets=[bet(f"{R1}.1", "main", 100, 1)], **PLACE)
        game.when(by(failure_of(body), service=service)).then_only(table.RoundSuspended)
        assert running(game).seats == {}


def test_the_order_of_refusals_of_bets_at_seats() -> None:
    game = betting().given(place("q0", BEN, ("main", 1, 100)))
    taken_seat, nowhere, extra = ("main", 1, 1), ("main", 9, 1), ("double", 2, 1)
    wrong = [
        ([nowhere, extra, taken_seat], "USD", table.REFUSAL_CURRENCY_MISMATCH),
        ([("player", 1, 1), taken_seat], "EUR", table.REFUSAL_UNKNOWN_BET),
        ([nowhere, taken_seat], "EUR", table.REFUSAL_NOT_ON_LAYOUT),
        ([extra, taken_seat], "EUR", table.REFUSAL_NOT_ON_LAYOUT),
        ([taken_seat], "EUR", table.REFUSAL_SEAT_TAKEN),
    ]
    for number, (bets, currency, refusal) in enumerate(wrong):
        game.when(place(f"q{number + 1}", ANN, *bets, currency=currency))
        game.then(bets_rejected(refusal, f"q{number + 1}"))


def test_there_is_room_for_every_further_stake() -> None:
    game = betting()
    most = MAX_BETS - MAX_FURTHER_BETS
    game.given(place("q1", ANN, *[("main", 1, 1)] * most))
    game.when(place("q2", ANN, ("main", 1, 1)))
    game.then(bets_rejected(table.REFUSAL_TOO_MANY_BETS, "q2"))


def test_seats_are_nothing_to_other_games() -> None:
    game: Deciding[TableState] = Deciding(CORE)
    game.given(open_table(), SHOE, open_round())
    body = place("q1", ANN)
    body.bets.add(bet="player", stake_minor=100)
    game.when(body).then_only(table.BetsPlaced)
    assert running(game).seats == {}


# ---- actions -----------------------------------------------------------------------------------


def test_bj_13_a_hit_and_a_stand_are_taken_and_end_the_turn() -> None:
    for action in (HIT, STAND):
        game = playing().when(act(1, 1, action)).then(taken(1, 1, action))
        game.when(act(1, 1, action, request="again"))
        game.then(refused(NOT_YOUR_TURN, request="again"))
        assert timers_wanted(game.state) == []


def test_bj_6_a_double_waits_for_its_stake() -> None:
    game = playing().when(act(1, 1, DOUBLE, extra=40, currency="EUR"))
    double = further(4, "double", 40, 1)
    game.then(taken(1, 1, DOUBLE, extra=double))
    game.when(act(1, 1, HIT, request="more"))
    game.then(refused(table.REFUSAL_ACTION_PENDING, request="more"))
    game.when(reserved(ANN, double, stage=PLAY)).then()
    game.when(act(1, 1, HIT, request="late")).then(refused(NOT_YOUR_TURN, request="late"))
    assert timers_wanted(game.state) == []


def test_bj_7_a_splits_stake_is_the_first_one() -> None:
    game = playing().when(act(1, 1, SPLIT))
    game.then(taken(1, 1, SPLIT, extra=further(4, "split", 100, 1)))


@pytest.mark.parametrize("off", [declined, over_limit])
def test_bj_14_a_refused_stake_leaves_hand_and_turn(off: Any) -> None:
    game = playing()
    before = timers_wanted(game.state)
    double = further(4, "double", 40, 1)
    game.given(act(1, 1, DOUBLE, extra=40))
    game.when(off(double)).then()
    assert timers_wanted(game.state) == before
    game.when(act(1, 1, DOUBLE, extra=30, request="less"))
    game.then(taken(1, 1, DOUBLE, extra=further(5, "double", 30, 1), request="less"))


def test_a_double_whose_path_failed_leaves_the_turn_to_the_supervisor() -> None:
    game = playing().given(act(1, 1, DOUBLE, extra=40))
    failed = taken(1, 1, DOUBLE, extra=further(4, "double", 40, 1))
    game.when(by(failure_of(failed), service="limits")).then_only(table.RoundSuspended)
    game.when(resume()).then(resumed())
    game.when(act(1, 1, STAND, request="now")).then(taken(1, 1, STAND, request="now"))


def test_the_order_of_refusals() -> None:
    """Each request is wrong in every later way too."""
    game = seated()
    wrong: dict[str, Any] = {"extra": 1_000, "currency": "USD"}

    def check(number: int, seat: int, why: table.Refusal.ValueType, **named: Any) -> None:
        request = f"a{len(game.log)}"
        game.when(act(number, seat, INSURE, request=request, **wrong, **named))
        game.then(refused(why, number, seat, request=request, **named))

    check(9, 5, table.REFUSAL_UNKNOWN_TABLE, table_id="t9")
    check(9, 5, table.REFUSAL_UNKNOWN_ROUND, round_id="t1-7")
    game.given(suspend())
    check(9, 5, table.REFUSAL_ROUND_SUSPENDED)
    game.given(resume())
    check(9, 5, table.REFUSAL_NOT_YOUR_SEAT)
    check(9, 7, table.REFUSAL_NOT_YOUR_SEAT)
    check(1, 1, NOT_YOUR_TURN)  # None is given yet.
    game.given(turn(1, 1, (HIT, STAND, DOUBLE), stake=100))
    check(2, 1, NOT_YOUR_TURN)
    check(0, 1, NOT_YOUR_TURN)
    check(1, 2, NOT_YOUR_TURN)
    check(1, 1, table.REFUSAL_ACTION_NOT_ALLOWED)
    for extra, currency, why in (
        (1_000, "USD", table.REFUSAL_CURRENCY_MISMATCH),
        (101, "EUR", table.REFUSAL_BAD_EXTRA_STAKE),
        (0, "EUR", table.REFUSAL_BAD_EXTRA_STAKE),
        (-1, "EUR", table.REFUSAL_BAD_EXTRA_STAKE),
    ):
        request = f"a{len(game.log)}"
        game.when(act(1, 1, DOUBLE, extra=extra, currency=currency, request=request))
        game.then(refused(why, request=request))
    game.when(act(1, 1, HIT, extra=1, request="b1"))
    game.then(refused(table.REFUSAL_BAD_EXTRA_STAKE, request="b1"))
    game.given(act(1, 1, DOUBLE, extra=1, request="b2"))
    check(1, 1, table.REFUSAL_ACTION_PENDING)
    game.given(void())
    check(9, 5, table.REFUSAL_ROUND_VOIDED)
    game.given(wallet.RoundReturned(**PLACE))
    check(9, 5, table.REFUSAL_REQUEST_EXPIRED)


def test_while_bets_are_taken_or_the_result_stands_nobody_has_a_turn() -> None:
    game = betting().given(place("q1", ANN, ("main", 1, 100)))
    game.when(act(1, 1, HIT)).then(refused(NOT_YOUR_TURN))
    game = playing().given(act(1, 1, STAND))
    game.given(rules.RoundResolved(result=rules.Result(blackjack=rules.BlackjackResult()), **PLACE))
    game.when(act(1, 1, HIT, request="late")).then(refused(NOT_YOUR_TURN, request="late"))


def test_a_repeat_has_its_first_outcome_and_an_id_is_used_once() -> None:
    game = playing().given(act(1, 1, HIT))
    game.when(act(1, 1, HIT)).then_only(log.RequestRepeated)
    game.when(act(1, 1, STAND)).then(refused(table.REFUSAL_REQUEST_ID_REUSED))
    game.when(by(act(1, 1, HIT), partner="other"))  # Its ids are its own.
    game.then(refused(table.REFUSAL_NOT_YOUR_SEAT))


def test_a_failed_action_that_is_retried_is_not_taken() -> None:
    game = playing()
    game.given(act(1, 1, HIT))
    fresh = playing()
    fresh.core.evolve(fresh.state, game.last)
    fresh.retry(game.last).then(refused(table.REFUSAL_FAILED))


def test_the_rounds_number_outlives_it() -> None:
    game = playing().given(act(1, 1, STAND))
    game.given(
        rules.RoundResolved(result=rules.Result(blackjack=rules.BlackjackResult()), **PLACE),
        paid(),
    )
    game.when(act(1, 1, HIT, request="x")).then(refused(table.REFUSAL_REQUEST_EXPIRED, request="x"))
    assert closed().next_number == 2
    game.when(act(1, 1, HIT, request="y", round_id=R2)).then(
        refused(table.REFUSAL_UNKNOWN_ROUND, request="y", round_id=R2)
    )


# ---- insurance ---------------------------------------------------------------------------------


def test_bj_3_every_offered_seat_answers_once_and_the_last_ends_the_offer() -> None:
    game = seated().given(offered(1, 1, 2, 5))
    game.when(act(1, 1, DECLINE, request="a1")).then(taken(1, 1, DECLINE, hand=0, request="a1"))
    game.when(act(1, 1, INSURE, request="a2")).then(refused(NOT_YOUR_TURN, request="a2"))
    insurance = further(4, "insurance", 50, 5)
    game.when(act(1, 5, INSURE, account=BEN, request="a3")).then(
        taken(1, 5, INSURE, hand=0, account=BEN, request="a3", extra=insurance)
    )
    game.when(act(1, 5, DECLINE, account=BEN, request="a4"))
    game.then(refused(table.REFUSAL_ACTION_PENDING, 1, 5, account=BEN, request="a4"))
    game.when(act(1, 2, DECLINE, request="a5")).then(taken(1, 2, DECLINE, hand=0, request="a5"))
    game.when(reserved(BEN, insurance, stage=INSURANCE)).then(INSURANCE_CLOSED)
    game.when(act(1, 2, INSURE, request="a6")).then(refused(NOT_YOUR_TURN, 1, 2, request="a6"))


def test_bj_3_a_decline_that_is_the_last_answer_ends_the_offer_at_once() -> None:
    game = seated().given(offered(1, 2))
    game.when(act(1, 2, DECLINE)).then(taken(1, 2, DECLINE, hand=0), INSURANCE_CLOSED)


def test_bj_03_insurance_is_for_offered_seats_and_nothing_else_is_allowed() -> None:
    """V5, V6: at a ten, or after the first hit, there is no offer."""
    game = seated().given(offered(1, 2))
    game.when(act(1, 1, INSURE, request="a1")).then(refused(NOT_YOUR_TURN, request="a1"))
    game.when(act(1, 2, HIT, request="a2"))
    game.then(refused(table.REFUSAL_ACTION_NOT_ALLOWED, 1, 2, request="a2"))
    game.when(act(1, 2, INSURE, extra=13, request="a3"))
    game.then(refused(table.REFUSAL_BAD_EXTRA_STAKE, 1, 2, request="a3"))
    play = playing()
    play.when(act(1, 1, INSURE)).then(refused(table.REFUSAL_ACTION_NOT_ALLOWED))


@pytest.mark.parametrize("off", [declined, over_limit])
def test_bj_14_insurance_without_money_may_be_answered_again(off: Any) -> None:
    game = seated().given(offered(1, 2)).given(act(1, 2, INSURE))
    game.when(off(further(4, "insurance", 50, 2), INSURANCE)).then()
    game.when(act(1, 2, DECLINE, request="no")).then(
        taken(1, 2, DECLINE, hand=0, request="no"), INSURANCE_CLOSED
    )


def test_bj_12_insurance_that_nobody_answers_is_declined() -> None:
    """Also while a stake is under way: that is decided before the seal."""
    game = seated().given(offered(1, 1, 2)).given(act(1, 2, INSURE))
    game.when(time_out(1)).then(INSURANCE_CLOSED)
    game.when(reserved(ANN, further(4, "insurance", 50, 2), stage=INSURANCE)).then()
    other = seated().given(offered(1, 1, 2)).given(act(1, 2, INSURE), time_out(1))
    other.when(declined(further(4, "insurance", 50, 2), INSURANCE)).then()


# ---- time --------------------------------------------------------------------------------------


def test_bj_12_a_turn_has_its_time() -> None:
    """15 seconds from the call, or what the table says."""
    for of, time_us in ((spec(), ACTION_US), (spec(action_ms=4_000), 4_000_000)):
        game = playing(of)
        [timer] = timers_wanted(game.state)
        assert timer.due_us == game.time_us + time_us
        assert isinstance(timer.body, table.TimeOutTurn)
        assert (timer.body.turn, timer.body.timer, timer.body.round_id) == (1, 1, R1)


def test_bj_12_the_system_stands_or_plays_basic_strategy() -> None:
    system = table.SOURCE_TIMER
    game = playing().when(time_out(1)).then(taken(1, 1, STAND, source=system))
    game.when(time_out(1)).then(DONE)
    clever = playing(spec(policy=spec_pb2.TIMEOUT_POLICY_BASIC_STRATEGY))
    clever.when(time_out(1)).then(taken(1, 1, HIT, source=system))


def test_a_timer_for_another_turn_or_setting_is_late_or_early() -> None:
    game = playing()
    game.when(time_out(2)).then(NOT_NOW)
    game.when(time_out(0)).then(DONE)
    game.when(time_out(1, timer=2)).then(NOT_NOW)
    game.when(time_out(1, table_id="t9")).then(ignored(log.IGNORED_REASON_UNKNOWN))
    game.when(time_out(1, round_id=R2)).then(ignored(log.IGNORED_REASON_UNKNOWN))
    game.given(act(1, 1, HIT)).when(time_out(1)).then(DONE)
    game.given(void(), wallet.RoundReturned(**PLACE)).when(time_out(1)).then(DONE)


@pytest.mark.parametrize("off", [declined, over_limit])
def test_bj_12_time_that_is_over_while_a_stake_is_under_way(off: Any) -> None:
    """The turn waits for the stake; if that fails the system acts at once."""
    double = further(4, "double", 40, 1)
    game = playing().given(act(1, 1, DOUBLE, extra=40))
    game.when(time_out(1)).then(NOT_NOW)
    assert timers_wanted(game.state) == []
    game.when(off(double)).then(taken(1, 1, STAND, source=table.SOURCE_TIMER))
    good = playing().given(act(1, 1, DOUBLE, extra=40), time_out(1))
    good.when(reserved(ANN, double, stage=PLAY)).then()
    assert running(good).turn is None


def turns_timed(game: Deciding[TableState]) -> list[Message]:
    """Timers of turns that run; a suspension has one of its own (INC-2)."""
    bodies = [timer.body for timer in timers_wanted(game.state)]
    return [body for body in bodies if isinstance(body, table.TimeOutTurn)]


def test_a_suspension_stops_the_time_and_a_resumption_sets_it_anew() -> None:
    game = playing().given(suspend())
    assert turns_timed(game) == []
    game.when(time_out(1)).then(NOT_NOW)
    game.when(act(1, 1, HIT, request="s")).then(refused(table.REFUSAL_ROUND_SUSPENDED, request="s"))
    game.when(resume()).then(resumed())
    [timer] = timers_wanted(game.state)
    assert timer.due_us == game.time_us + ACTION_US
    assert isinstance(timer.body, table.TimeOutTurn)
    assert timer.body.timer == 2
    game.when(time_out(1)).then(NOT_NOW)
    game.when(time_out(1, timer=2)).then(taken(1, 1, STAND, source=table.SOURCE_TIMER))


def test_a_turn_that_is_called_during_a_suspension_has_its_time_from_the_resumption() -> None:
    game = seated().given(suspend(), turn(1, 1))
    assert turns_timed(game) == []
    game.given(resume())
    [timer] = timers_wanted(game.state)
    assert timer.due_us == game.time_us + ACTION_US


def test_a_stake_declined_during_a_suspension_is_followed_by_the_whole_time() -> None:
    double = further(4, "double", 40, 1)
    game = playing().given(act(1, 1, DOUBLE, extra=40), time_out(1), suspend())
    game.when(declined(double)).then()
    game.given(resume())
    assert len(timers_wanted(game.state)) == 1


def test_a_voided_round_has_no_turn() -> None:
    game = playing().given(void())
    assert timers_wanted(game.state) == []
    assert running(game).turn is None
    game.given(turn(2, 2))
    assert running(game).turn is None
    game.when(time_out(1)).then(DONE)


def test_a_turn_names_what_set_its_timer() -> None:
    game = playing()
    found = running(game).turn
    assert found is not None
    assert found.asked_at == game.last.position != UNLOGGED
    game.given(suspend(), resume())
    found = running(game).turn
    assert found is not None
    assert found.asked_at == game.last.position


def test_an_unknown_rounds_facts_are_nothing_to_the_table() -> None:
    game = betting()
    other: dict[str, Any] = {"table_id": T, "round_id": R2}
    game.when(rules.ActionCalled(turn=1, seat=1, actions=[HIT], **other)).then()
    game.when(by(wallet.StakeReserved(account_id=ANN, stage=PLAY, **other))).then()
    game.given(suspend())
    assert running(game).turn is None
