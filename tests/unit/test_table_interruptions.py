"""The table: rounds that are suspended, resumed and voided, and results whose settlement failed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as table_floor
from services.kernel.event import Position
from services.table.domain.timers import timers_wanted
from tests.unit.deciding import Fact, by, failure_of
from tests.unit.table_facts import (
    ONE_ROUND,
    R1,
    R2,
    WINDOW_MS,
    T,
    accepted,
    betting,
    close_betting,
    closed,
    open_round,
    paced,
    paid,
    rejected,
    resolved,
    resume,
    resumed,
    returned,
    suspend,
    suspended,
    timer_closes,
    void,
    voided,
)

# ---- SuspendRound, ResumeRound, VoidRound ------------------------------------------------------


def test_a_suspended_round_gets_its_whole_window_anew() -> None:
    log_so_far = paced().given(suspend())
    [only] = timers_wanted(log_so_far.state)
    assert isinstance(only.body, table_floor.EscalateSuspension)
    log_so_far.when(resume()).then(resumed(WINDOW_MS, timer=2))
    [timer] = timers_wanted(log_so_far.state)
    assert timer.due_us == log_so_far.time_us + WINDOW_MS * 1000
    assert isinstance(timer.body, table.CloseBetting)
    assert timer.body.timer == 2


def test_a_round_that_was_suspended_after_the_close_just_goes_on() -> None:
    log_so_far = paced().given(timer_closes())
    log_so_far.when(suspend()).then(suspended())
    log_so_far.when(resume()).then(resumed())
    log_so_far.when(resolved()).then(accepted())


def test_a_result_is_held_while_the_round_is_suspended() -> None:
    log_so_far = betting().given(close_betting(), suspend())
    log_so_far.when(resolved()).then()
    log_so_far.when(resume()).then(resumed(), accepted())
    log_so_far.when(resolved()).then()


def test_a_held_result_dies_with_a_void() -> None:
    log_so_far = betting().given(close_betting(), suspend(), resolved())
    log_so_far.when(void()).then(voided())
    log_so_far.when(resume()).then(rejected(table.REFUSAL_ROUND_VOIDED, 5, round_id=R1))


@pytest.mark.parametrize(
    "happened",
    [[], [suspend()], [close_betting()], [close_betting(), suspend()]],
    ids=["betting", "betting, suspended", "dealing", "dealing, suspended"],
)
def test_a_round_is_voided_from_any_state_before_its_result(happened: list[Fact]) -> None:
    log_so_far = betting().given(*happened)
    log_so_far.when(void()).then(voided())
    log_so_far.when(resolved()).then()
    log_so_far.when(paid()).then()
    log_so_far.when(returned()).then(closed(end=table.ROUND_END_RETURNED))


GONE: tuple[Message | Fact, ...] = (void(), returned(), open_round(21))


@pytest.mark.parametrize("make", [suspend, resume, void], ids=["suspend", "resume", "void"])
@pytest.mark.parametrize(
    ("refusal", "happened", "round_id", "table_id"),
    [
        (table.REFUSAL_UNKNOWN_TABLE, (), R1, "t9"),
        (table.REFUSAL_UNKNOWN_ROUND, (), R2, T),
        (table.REFUSAL_ROUND_OVER, ONE_ROUND, R1, T),
        (table.REFUSAL_ROUND_OVER, GONE, R1, T),
        (table.REFUSAL_ROUND_VOIDED, (void(),), R1, T),
    ],
)
def test_order_of_refusals_of_orders_about_a_round(
    make: Callable[[int, str, str], Fact],
    refusal: table.Refusal.ValueType,
    happened: tuple[Message | Fact, ...],
    round_id: str,
    table_id: str,
) -> None:
    betting().given(*happened).when(make(20, round_id, table_id)).then(
        rejected(refusal, 20, round_id=round_id, table_id=table_id)
    )


@pytest.mark.parametrize(
    ("refusal", "happened", "order_"),
    [
        (table.REFUSAL_RESULT_ACCEPTED, (close_betting(), resolved()), suspend(20)),
        (table.REFUSAL_ALREADY_SUSPENDED, (suspend(),), suspend(20)),
        (table.REFUSAL_NOT_SUSPENDED, (), resume(20)),
        (table.REFUSAL_NOT_SUSPENDED, (close_betting(), resolved()), resume(20)),
        (table.REFUSAL_RESULT_ACCEPTED, (close_betting(), resolved()), void(20)),
    ],
)
def test_orders_that_come_at_the_wrong_time(
    refusal: table.Refusal.ValueType, happened: tuple[Message | Fact, ...], order_: Fact
) -> None:
    betting().given(*happened).when(order_).then(rejected(refusal, 20, round_id=R1))


# ---- a result whose settlement failed ----------------------------------------------------------

AT = Position(1, 900, 0)
"""Where the result stands whose settlement fails; its exact place does not matter to the table."""


def settlement_fails(cause: Position = AT) -> Fact:
    return Fact(failure_of(accepted()), service="settlement", cause=cause)


def retry_settlement() -> Fact:
    about = entry_pb2.Position(segment=AT.segment, sequence=AT.sequence, index=AT.index)
    return by(log.RetryInput(position=about), partner="", service="table")


def test_a_round_whose_settlement_failed_may_be_voided() -> None:
    failed = betting().given(close_betting(), resolved(), settlement_fails())
    failed.when(void()).then(voided())
    failed.when(returned()).then(closed(end=table.ROUND_END_RETURNED))


def test_while_a_retry_is_undecided_the_round_may_not_be_voided() -> None:
    failed = betting().given(close_betting(), resolved(), settlement_fails(), retry_settlement())
    retried_at = failed.last.position
    failed.when(void(20)).then(rejected(table.REFUSAL_RESULT_ACCEPTED, 20, round_id=R1))
    failed.given(settlement_fails(retried_at))
    failed.when(void(21)).then(voided())


def test_a_retry_of_a_retry_still_speaks_of_the_first_failure() -> None:
    failed = betting().given(close_betting(), resolved(), settlement_fails(), retry_settlement())
    failed.given(settlement_fails(failed.last.position), retry_settlement())
    failed.when(void(20)).then(rejected(table.REFUSAL_RESULT_ACCEPTED, 20, round_id=R1))
    failed.when(paid()).then(closed())


def test_of_two_retries_at_once_both_must_have_failed() -> None:
    failed = betting().given(close_betting(), resolved(), settlement_fails(), retry_settlement())
    first = failed.last.position
    failed.given(retry_settlement())
    second = failed.last.position
    failed.given(settlement_fails(first))
    failed.when(void(20)).then(rejected(table.REFUSAL_RESULT_ACCEPTED, 20, round_id=R1))
    failed.given(settlement_fails(second))
    failed.when(void(21)).then(voided())


def test_a_failure_in_a_later_step_leaves_only_a_retry() -> None:
    step = settlement.BetsSettled(table_id=T, round_id=R1)
    later = by(failure_of(step), service="settlement")
    failed = betting().given(close_betting(), resolved(), later)
    failed.when(void(20)).then(rejected(table.REFUSAL_RESULT_ACCEPTED, 20, round_id=R1))
