"""Corrections of a suspended round, and suspensions that last too long (INC-2)."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from services.kernel.event import Position
from services.table.domain.core import CORE
from services.table.domain.state import TableState
from services.table.domain.timers import timers_wanted
from services.table.timers import Timers
from tests.unit import table_facts
from tests.unit.deciding import START_US, Deciding, Fact, by, request_id
from tests.unit.table_facts import (
    R1,
    R2,
    RESULT,
    S1,
    T,
    accepted,
    close_betting,
    open_round,
    order,
    paid,
    rejected,
    resolved,
    resume,
    resumed,
    returned,
    shoe_opened,
    shoe_started,
    suspend,
    void,
    voided,
)
from tests.unit.test_floor_close import betting, floor_spec, running

MISREAD = table.ROUND_REASON_MISREAD


def correct(number: int = 20, round_id: str = R1, table_id: str = T) -> Fact:
    body: Any = orders.CorrectCard(
        table_id=table_id, round_id=round_id, index=9, card="3H", reason=MISREAD, remark="glare"
    )
    return order(body, number)


def correct_spin(number: int = 21, round_id: str = R1) -> Fact:
    body: Any = orders.CorrectOutcome(
        table_id=T, round_id=round_id, attempt=1, numbers=[13], reason=MISREAD
    )
    return order(body, number)


def ordered(number: int = 20) -> orders.CardCorrectionOrdered:
    return orders.CardCorrectionOrdered(
        request_id=request_id(number),
        table_id=T,
        round_id=R1,
        shoe_id=S1,
        index=9,
        card="3H",
        reason=MISREAD,
    )


def corrected() -> Fact:
    return by(
        floor.CardCorrected(table_id=T, shoe_id=S1, round_id=R1, index=9, card="3H"), partner=""
    )


def other_result() -> rules.Result:
    result = rules.Result()
    result.CopyFrom(RESULT)
    result.baccarat.player_cards[0] = "9S"
    return result


def stopped() -> Deciding[TableState]:
    """A round on the floor that is dealt, and stands still."""
    return betting().given(close_betting(), suspend())


# ---- what may be corrected ---------------------------------------------------------------------


def test_a_suspended_round_is_corrected_once_the_shoe_agrees() -> None:
    log_ = stopped().given(resolved())
    log_.when(correct()).then(ordered())
    log_.when(resume()).then(rejected(table.REFUSAL_CORRECTION_PENDING, 5, round_id=R1))
    log_.when(correct(22)).then(rejected(table.REFUSAL_CORRECTION_PENDING, 22, round_id=R1))
    log_.given(corrected())
    assert running(log_).held is None
    again = rules.RoundResolved(table_id=T, round_id=R1, result=other_result())
    log_.given(by(again, partner="")).when(resume(30)).then(
        resumed(), table.ResultAccepted(table_id=T, round_id=R1, result=other_result())
    )


def test_a_misread_spin_is_ordered_to_be_corrected() -> None:
    stopped().when(correct_spin()).then(
        orders.OutcomeCorrectionOrdered(
            request_id=request_id(21),
            table_id=T,
            round_id=R1,
            attempt=1,
            numbers=[13],
            reason=MISREAD,
        )
    )


def test_where_the_shoe_refuses_the_result_stands() -> None:
    log_ = stopped().given(resolved(), correct())
    refusal = floor.FloorRejected(
        request_id=request_id(99),
        table_id=T,
        round_id=R1,
        refusal=floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT,
    )
    log_.given(by(refusal, partner=""))  # Of something else.
    log_.when(resume()).then(rejected(table.REFUSAL_CORRECTION_PENDING, 5, round_id=R1))
    refusal = floor.FloorRejected(request_id=request_id(20), table_id=T, round_id=R1)
    log_.given(by(refusal, partner="")).when(resume(30)).then(resumed(), accepted())


def test_a_result_of_before_the_correction_does_not_count() -> None:
    """Rules decided it before they knew: it comes after the correction, but answers what stands
    before it."""
    log_ = stopped().given(correct(), corrected())
    before = Position(1, log_.last.position.sequence - 1, 0)
    old = rules.RoundResolved(table_id=T, round_id=R1, result=RESULT)
    log_.given(Fact(old, partner="", cause=before))
    assert running(log_).held is None
    log_.given(resume())
    log_.when(Fact(old, partner="", cause=before)).then()
    new = rules.RoundResolved(table_id=T, round_id=R1, result=other_result())
    log_.when(by(new, partner="")).then(
        table.ResultAccepted(table_id=T, round_id=R1, result=other_result())
    )


def test_a_pending_correction_does_not_keep_a_round_from_being_voided() -> None:
    log_ = stopped().given(correct())
    log_.when(void()).then(voided())
    log_.when(corrected()).then()


@pytest.mark.parametrize("make", [correct, correct_spin])
def test_corrections_are_refused_in_this_order(make: Any) -> None:
    number = make().body.request_id
    virtual = table_facts_dealing()
    cases: list[tuple[Deciding[TableState], str, table.Refusal.ValueType]] = [
        (Deciding(CORE), R1, table.REFUSAL_UNKNOWN_TABLE),
        (betting(), R2, table.REFUSAL_UNKNOWN_ROUND),
        (stopped().given(void(), returned()), R1, table.REFUSAL_ROUND_OVER),
        (stopped().given(void()), R1, table.REFUSAL_ROUND_VOIDED),
        (virtual, R1, table.REFUSAL_NOT_ON_FLOOR),
        (
            betting().given(close_betting(), by(resolved(), partner="")),
            R1,
            table.REFUSAL_RESULT_ACCEPTED,
        ),
        (betting().given(close_betting()), R1, table.REFUSAL_NOT_SUSPENDED),
        (betting(), R1, table.REFUSAL_NOT_SUSPENDED),
    ]
    for log_, round_id, refusal in cases:
        log_.when(make(round_id=round_id)).then(
            table.OrderRejected(request_id=number, table_id=T, round_id=round_id, refusal=refusal)
        )


def table_facts_dealing() -> Deciding[TableState]:
    log_ = Deciding(CORE).given(table_facts.open_table(), shoe_opened(), shoe_started())
    return log_.given(open_round(), close_betting(), suspend())


# ---- blackjack: rules have the last word -------------------------------------------------------


def seated() -> Deciding[TableState]:
    """The same round, as if it were blackjack."""
    log_ = stopped()
    running(log_).seated = True
    return log_


def from_rules(body: Any) -> Fact:
    body.table_id, body.round_id = T, R1
    return by(body, partner="")


def turn_called(number: int = 1) -> Fact:
    return from_rules(rules.ActionCalled(turn=number, seat=2, hand=1, actions=[rules.ACTION_STAND]))


def test_at_blackjack_a_correction_is_pending_until_rules_have_answered() -> None:
    log_ = seated().given(correct(), corrected())
    log_.when(resume()).then(rejected(table.REFUSAL_CORRECTION_PENDING, 5, round_id=R1))
    log_.given(from_rules(rules.HandsCorrected()))
    log_.when(resume(number=6)).then(resumed())


def test_while_a_stake_is_under_way_nothing_is_corrected() -> None:
    log_ = seated().given(turn_called())
    turn = running(log_).turn
    assert turn is not None
    turn.pending[2] = "b9"
    log_.when(correct()).then(rejected(table.REFUSAL_ACTION_PENDING, 20, round_id=R1))
    turn.pending.clear()
    log_.when(correct(22)).then_only(orders.CardCorrectionOrdered)


def test_a_turn_that_is_recalled_is_over_and_no_other() -> None:
    log_ = seated().given(turn_called(3))
    log_.given(from_rules(rules.DrawRecalled(turn=2)))
    assert running(log_).turn is not None
    log_.given(from_rules(rules.DrawRecalled()))
    assert running(log_).turn is not None
    log_.given(from_rules(rules.DrawRecalled(turn=3)))
    assert running(log_).turn is None


def test_where_the_play_is_contradicted_the_round_may_be_voided_or_corrected_again() -> None:
    log_ = seated().given(correct(), corrected())
    log_.when(from_rules(rules.PlayContradicted(why="x"))).then()  # It stands still already.
    log_.when(resume()).then(rejected(table.REFUSAL_PLAY_CONTRADICTED, 5, round_id=R1))
    log_.given(correct(22))
    log_.when(resume(number=6)).then(rejected(table.REFUSAL_CORRECTION_PENDING, 6, round_id=R1))
    log_.given(corrected(), from_rules(rules.HandsCorrected()))
    log_.when(resume(number=7)).then(resumed())
    log_ = seated().given(correct(), corrected(), from_rules(rules.PlayContradicted()))
    log_.when(void()).then(voided())


def test_a_contradiction_that_is_found_later_stops_the_round_again() -> None:
    log_ = seated().given(correct(), corrected(), from_rules(rules.HandsCorrected()), resume())
    log_.when(from_rules(rules.PlayContradicted())).then(
        table.RoundSuspended(table_id=T, round_id=R1, reason=MISREAD)
    )
    log_.given(void())
    log_.when(from_rules(rules.PlayContradicted())).then()


def test_a_correction_is_decided_once() -> None:
    log_ = stopped().given(correct())
    log_.when(correct())
    [told] = log_.answers
    assert isinstance(told, log.RequestRepeated)


# ---- suspensions that last ---------------------------------------------------------------------

MAX_MS = 600_000


def escalate(log_: Deciding[TableState], back: int = 0, at_us: int | None = None) -> Fact:
    by_ = running(log_).suspended_by
    body = orders.EscalateSuspension(
        table_id=T,
        round_id=R1,
        asked_by=entry_pb2.Position(
            segment=by_.segment, sequence=by_.sequence - back, index=by_.index
        ),
    )
    return by(body, partner="", actor="system:timers", at_us=at_us)


def due(log_: Deciding[TableState]) -> list[int]:
    return [
        timer.due_us
        for timer in timers_wanted(log_.state)
        if isinstance(timer.body, orders.EscalateSuspension)
    ]


def test_inc_2_a_suspension_is_escalated_once_after_its_time_and_never_ends_by_itself() -> None:
    log_ = stopped()
    since = log_.time_us
    assert due(log_) == [since + MAX_MS * 1000]
    at = since + MAX_MS * 1000 + 5_000 - START_US
    log_.when(escalate(log_, at_us=at)).then(
        orders.SuspensionEscalated(table_id=T, round_id=R1, suspended_ms=MAX_MS + 5)
    )
    assert due(log_) == []
    assert running(log_).suspended
    log_.when(escalate(log_)).then(log.InputIgnored(reason=log.IGNORED_REASON_ALREADY_DONE))
    log_.when(resume()).then(resumed())


def test_inc_2_the_next_suspension_has_its_own_time() -> None:
    log_ = stopped().given(escalate(stopped()), resume(30), suspend(31))
    since = log_.time_us
    log_.when(escalate(log_, back=1)).then(log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW))
    assert due(log_) == [since + MAX_MS * 1000]
    log_.given(resume(32)).when(escalate(log_)).then(
        log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW)
    )
    assert due(log_) == []


def test_inc_2_the_table_says_how_long_and_a_round_that_is_over_is_not_escalated() -> None:
    spec = floor_spec()
    spec.pacing.suspend_max_ms = 1_500
    log_ = Deciding(CORE).given(table_facts.open_table(of=spec), shoe_opened(), shoe_started())
    log_.given(open_round(), suspend())
    assert due(log_) == [log_.time_us + 1_500_000]
    told = escalate(log_)
    log_.given(void())
    log_.when(told).then(log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW))
    log_.given(returned()).when(told).then(log.InputIgnored(reason=log.IGNORED_REASON_UNKNOWN))


def test_inc_2_any_suspension_counts_also_where_outcomes_are_drawn() -> None:
    log_ = table_facts_dealing()
    assert due(log_) == [log_.time_us + MAX_MS * 1000]
    log_.given(resume(), resolved(), paid())
    assert due(log_) == []


def test_inc_2_the_shell_tells_when_the_time_has_come() -> None:
    log_ = stopped()
    timers = Timers()
    at = running(log_).suspended_us
    assert at is not None
    assert list(timers.poll(log_.state, at + MAX_MS * 1000 - 1, leading=True)) == []
    [told] = timers.poll(log_.state, at + MAX_MS * 1000, leading=True)
    assert isinstance(told, orders.EscalateSuspension)
    assert list(timers.poll(log_.state, at + MAX_MS * 1000 + 1, leading=True)) == []
