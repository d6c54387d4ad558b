"""The table: tables and rounds from opening to the last payment, by operators, timers and shoes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import Position
from services.table.domain import decide_orders
from services.table.domain.core import CORE
from services.table.domain.state import TableState
from services.table.domain.timers import Timer, timers_wanted
from tests.unit.deciding import START_US, Deciding, Fact, by, failure_of, request_id
from tests.unit.table_facts import (
    PAUSE_MS,
    R1,
    R2,
    S2,
    WINDOW_MS,
    T,
    accepted,
    betting_closed,
    cards_burned_late,
    close_betting,
    close_table,
    closed,
    cut_card,
    dealt,
    open_round,
    open_table,
    opened,
    order,
    paid,
    place,
    ran_out,
    rejected,
    resolved,
    resume,
    resumed,
    returned,
    round_opened,
    shoe_closed,
    shoe_opened,
    shoe_started,
    spec,
    suspend,
    suspended,
    timer_closes,
    timer_opens,
    void,
    voided,
)

PACED = spec(WINDOW_MS, PAUSE_MS)
ONE_ROUND = (close_betting(), resolved(), paid())


def ready() -> Deciding[TableState]:
    """A table whose rounds an operator opens, with a shoe that is ready."""
    return Deciding(CORE).given(open_table(), shoe_opened(), shoe_started())


def betting() -> Deciding[TableState]:
    return ready().given(open_round())


def paced() -> Deciding[TableState]:
    """A table with a betting window, in its first round, 3 ms after the start."""
    return Deciding(CORE).given(open_table(of=PACED), shoe_opened(), shoe_started())


def ignored(reason: log.IgnoredReason.ValueType) -> log.InputIgnored:
    return log.InputIgnored(reason=reason)


# ---- operators' request ids --------------------------------------------------------------------


def test_a_repeated_order_finds_the_first() -> None:
    log_so_far = betting().given(suspend())
    first = log_so_far.last.position
    repeated = log.RequestRepeated(
        request_id=request_id(4),
        first=entry_pb2.Position(segment=1, sequence=first.sequence, index=0),
    )
    log_so_far.when(suspend()).then(repeated)
    log_so_far.given(resume()).when(suspend()).then(repeated)


def test_a_refused_order_is_remembered_too() -> None:
    log_so_far = ready().given(suspend())
    log_so_far.given(open_round())
    log_so_far.when(suspend()).then_only(log.RequestRepeated)


def test_an_orders_id_with_other_content_is_refused() -> None:
    log_so_far = betting().given(suspend(4))
    other = void(4)
    assert isinstance(other.body, table.VoidRound)
    other.body.request_hash = b"other"
    log_so_far.when(other).then(rejected(table.REFUSAL_REQUEST_ID_REUSED, 4, round_id=R1))


def test_two_operators_have_ids_of_their_own() -> None:
    log_so_far = betting().given(suspend(4))
    theirs = by(resume(4).body, partner="", actor="operator:kim")
    log_so_far.when(theirs).then(resumed())


def test_an_order_more_than_a_day_old_has_expired() -> None:
    log_so_far = betting()
    late = by(
        suspend(4).body, partner="", actor="operator:dana", at_us=24 * 3600 * 1_000_000 + 1_000_000
    )
    log_so_far.when(late).then(rejected(table.REFUSAL_REQUEST_EXPIRED, 4, round_id=R1))


def test_an_order_from_the_future_is_refused() -> None:
    body = table.CloseTable(
        request_id=request_id(9, at_us=120_000_000), request_hash=b"h", table_id=T
    )
    answer = rejected(table.REFUSAL_REQUEST_ID_AHEAD, 9)
    answer.request_id = body.request_id
    betting().when(by(body, partner="", actor="operator:dana")).then(answer)


def test_an_order_whose_decision_failed_is_obeyed_when_it_is_decided_again() -> None:
    """As when a fixed build decides once more what the first could not."""
    log_so_far = betting()
    log_so_far.given(suspend())
    log_so_far.given(resume(5))
    event = log_so_far.log[-2]
    log_so_far.retry(event).then(suspended())


# ---- OpenTable, CloseTable ---------------------------------------------------------------------


def test_a_table_opens_under_the_rules_given() -> None:
    Deciding(CORE).when(open_table()).then(opened())


def test_rules_that_do_not_fit_together_are_refused_in_words() -> None:
    bad = spec()
    bad.rule_set.cut_depth = 5
    del bad.limits[0]
    Deciding(CORE).when(open_table(of=bad)).then(
        rejected(
            table.REFUSAL_BAD_TABLE_SPEC,
            1,
            detail="cut depth 5 is under 6; no limit for banker",
        )
    )


def test_an_open_table_gets_new_rules_between_rounds_only() -> None:
    log_so_far = betting()
    log_so_far.when(open_table(10)).then(rejected(table.REFUSAL_ROUND_RUNNING, 10))
    log_so_far.given(*ONE_ROUND)
    log_so_far.when(open_table(11)).then(opened(2))
    log_so_far.when(open_round(12)).then(round_opened(2, revision=2))


def test_new_rules_do_not_move_the_next_rounds_timer() -> None:
    log_so_far = paced().given(timer_closes(), resolved(), paid())
    due = timers_wanted(log_so_far.state)
    log_so_far.when(open_table(11, PACED)).then(opened(2, PACED))
    assert timers_wanted(log_so_far.state) == due
    log_so_far.when(open_table(12)).then(opened(3))
    assert timers_wanted(log_so_far.state) == []


def test_from_rounds_by_call_to_rounds_by_the_clock() -> None:
    ready().when(open_table(11, PACED)).then(
        opened(2, PACED), round_opened(1, window_ms=WINDOW_MS, revision=2)
    )


def test_a_cell_has_at_most_so_many_open_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide_orders, "MAX_OPEN_TABLES", 1)
    log_so_far = ready()
    log_so_far.when(open_table(11, spec(table_id="t2"))).then(
        rejected(table.REFUSAL_TOO_MANY_TABLES, 11, table_id="t2")
    )
    log_so_far.when(open_table(12)).then(opened(2))
    log_so_far.given(close_table(13))
    log_so_far.when(open_table(14, spec(table_id="t2"))).then_only(table.TableOpened)
    log_so_far.when(open_table(15)).then(rejected(table.REFUSAL_TOO_MANY_TABLES, 15))


def test_a_cell_knows_at_most_so_many_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide_orders, "MAX_KNOWN_TABLES", 1)
    log_so_far = ready().given(close_table())
    log_so_far.when(open_table(11, spec(table_id="t2"))).then(
        rejected(table.REFUSAL_TOO_MANY_TABLES, 11, table_id="t2")
    )
    log_so_far.when(open_table(12)).then(opened(2))


def test_order_of_refusals_of_open_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide_orders, "MAX_OPEN_TABLES", 1)
    bad = spec()
    bad.rule_set.cut_depth = 5
    log_so_far = betting()
    log_so_far.when(open_table(11, bad)).then_only(table.OrderRejected)
    assert isinstance(log_so_far.answers[0], table.OrderRejected)
    assert log_so_far.answers[0].refusal == table.REFUSAL_BAD_TABLE_SPEC
    log_so_far.when(open_table(12)).then(rejected(table.REFUSAL_ROUND_RUNNING, 12))


def test_a_table_closes_and_a_running_round_finishes_first() -> None:
    log_so_far = paced()
    log_so_far.when(close_table()).then(table.TableClosed(table_id=T))
    log_so_far.when(place()).then_only(table.BetsPlaced)
    log_so_far.given(timer_closes(), resolved())
    log_so_far.when(paid()).then(closed(1))
    assert timers_wanted(log_so_far.state) == []
    log_so_far.when(timer_opens(2)).then(ignored(log.IGNORED_REASON_NOT_NOW))


def test_close_table_refused() -> None:
    Deciding(CORE).when(close_table()).then(rejected(table.REFUSAL_UNKNOWN_TABLE, 7))
    ready().given(close_table(7)).when(close_table(8)).then(rejected(table.REFUSAL_TABLE_CLOSED, 8))


def test_a_reopened_table_goes_on_counting_and_waits_for_a_new_shoe() -> None:
    log_so_far = betting().given(close_table(7), *ONE_ROUND, shoe_closed(next_number=0))
    log_so_far.when(open_table(10)).then(opened(2))
    log_so_far.when(open_round(11)).then(rejected(table.REFUSAL_SHOE_NOT_READY, 11))
    log_so_far.given(shoe_opened(S2, 2), shoe_started(S2))
    log_so_far.when(open_round(12)).then(round_opened(2, shoe_id=S2, in_shoe=1, revision=2))


def test_a_round_on_the_shoe_of_a_table_that_was_closed_meanwhile_is_voided() -> None:
    """Closed and reopened at once, while the first shoe's start was still under way: the table
    hears of that start after the reopening, and of the shoe's end after that."""
    log_so_far = Deciding(CORE).given(open_table(), shoe_opened(), close_table(7), open_table(8))
    log_so_far.when(shoe_started()).then()
    log_so_far.when(open_round(9)).then(rejected(table.REFUSAL_SHOE_NOT_READY, 9))
    log_so_far = Deciding(CORE).given(open_table(), close_table(7), open_table(8))
    log_so_far.given(shoe_opened(), shoe_started(), open_round(9), place())
    log_so_far.when(shoe_closed(next_number=0)).then(voided(table.ROUND_REASON_SHOE_EMPTY))


# ---- OpenRound ---------------------------------------------------------------------------------


def test_an_operator_opens_a_round() -> None:
    ready().when(open_round()).then(round_opened())


def test_order_of_refusals_of_open_round() -> None:
    nothing: Deciding[TableState] = Deciding(CORE)
    nothing.when(open_round()).then(rejected(table.REFUSAL_UNKNOWN_TABLE, 2))
    log_so_far = Deciding(CORE).given(open_table())
    log_so_far.when(open_round(10)).then(rejected(table.REFUSAL_SHOE_NOT_READY, 10))
    log_so_far.given(shoe_opened())
    log_so_far.when(open_round(11)).then(rejected(table.REFUSAL_SHOE_NOT_READY, 11))
    log_so_far.given(shoe_started(), open_round(12))
    log_so_far.when(open_round(13)).then(rejected(table.REFUSAL_ROUND_RUNNING, 13))
    log_so_far.given(close_table())
    log_so_far.when(open_round(14)).then(rejected(table.REFUSAL_TABLE_CLOSED, 14))


def test_a_new_round_opens_only_once_the_last_ones_money_is_home() -> None:
    log_so_far = betting().given(close_betting(), resolved())
    log_so_far.when(open_round(10)).then(rejected(table.REFUSAL_ROUND_RUNNING, 10))
    log_so_far.when(paid()).then(closed())
    log_so_far.when(open_round(11)).then(round_opened(2))
    log_so_far.given(void(12, R2))
    log_so_far.when(open_round(13)).then(rejected(table.REFUSAL_ROUND_RUNNING, 13))
    log_so_far.when(returned(R2)).then(closed(2, end=table.ROUND_END_RETURNED))
    log_so_far.when(open_round(14)).then(round_opened(3, in_shoe=2))


def test_the_first_round_by_the_clock_opens_with_the_shoe() -> None:
    log_so_far = Deciding(CORE).given(open_table(of=PACED), shoe_opened())
    assert timers_wanted(log_so_far.state) == []
    log_so_far.when(shoe_started()).then(round_opened(window_ms=WINDOW_MS))
    assert timers_wanted(log_so_far.state) == [
        Timer(
            log_so_far.time_us + WINDOW_MS * 1000,
            table.CloseBetting(
                table_id=T,
                round_id=R1,
                source=table.SOURCE_TIMER,
                timer=1,
                asked_by=entry_pb2.Position(segment=1, sequence=3, index=0),
            ),
        )
    ]


def test_the_next_round_by_the_clock_opens_after_the_pause() -> None:
    log_so_far = paced().given(timer_closes(), resolved())
    log_so_far.when(paid()).then(closed(opens_after_ms=PAUSE_MS))
    wanted = timers_wanted(log_so_far.state)
    assert wanted == [
        Timer(
            log_so_far.time_us + PAUSE_MS * 1000,
            table.OpenRound(
                table_id=T,
                source=table.SOURCE_TIMER,
                number=2,
                asked_by=entry_pb2.Position(segment=1, sequence=6, index=0),
            ),
        )
    ]
    log_so_far.when(timer_opens(2)).then(round_opened(2, window_ms=WINDOW_MS))
    log_so_far.when(timer_opens(2)).then(ignored(log.IGNORED_REASON_ALREADY_DONE))


def test_an_operator_may_open_a_round_before_the_clock_does() -> None:
    log_so_far = paced().given(timer_closes(), resolved(), paid())
    log_so_far.when(open_round(10)).then(round_opened(2, window_ms=WINDOW_MS))
    log_so_far.when(timer_opens(2)).then(ignored(log.IGNORED_REASON_ALREADY_DONE))


def test_a_timer_that_comes_before_the_shoe_is_not_lost() -> None:
    """The round opens with the shoe if its time has come, and by the timer if it has not."""
    log_so_far = paced().given(cut_card(), timer_closes(), resolved(), paid(at_us=1_000_000))
    log_so_far.given(shoe_closed(), shoe_opened(S2, 2))
    log_so_far.when(timer_opens(2, at_us=6_000_000)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    log_so_far.when(shoe_started(S2, at_us=6_500_000)).then(
        round_opened(2, shoe_id=S2, in_shoe=1, window_ms=WINDOW_MS)
    )


def test_a_shoe_that_is_ready_before_the_pause_is_over_waits_for_the_timer() -> None:
    log_so_far = paced().given(cut_card(), timer_closes(), resolved(), paid(at_us=1_000_000))
    log_so_far.given(shoe_closed(), shoe_opened(S2, 2))
    assert timers_wanted(log_so_far.state) == []
    log_so_far.when(shoe_started(S2, at_us=2_000_000)).then()
    assert [timer.due_us for timer in timers_wanted(log_so_far.state)] == [START_US + 6_000_000]
    log_so_far.when(timer_opens(2, at_us=6_000_000)).then(
        round_opened(2, shoe_id=S2, in_shoe=1, window_ms=WINDOW_MS)
    )


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_timer_for_another_round_is_ignored(number: int) -> None:
    log_so_far = paced().given(timer_closes(), resolved(), paid())
    reason = log.IGNORED_REASON_ALREADY_DONE if number < 2 else log.IGNORED_REASON_NOT_NOW
    log_so_far.when(timer_opens(number)).then(ignored(reason))


def test_a_timer_that_nobody_waits_for_is_ignored() -> None:
    nothing: Deciding[TableState] = Deciding(CORE)
    nothing.when(timer_opens(1)).then(ignored(log.IGNORED_REASON_UNKNOWN))
    ready().when(timer_opens(1)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    paced().when(timer_opens(2)).then(ignored(log.IGNORED_REASON_NOT_NOW))


# ---- CloseBetting ------------------------------------------------------------------------------


def test_betting_closes_by_call_or_by_timer() -> None:
    betting().when(close_betting()).then(betting_closed())
    paced().when(close_betting()).then(betting_closed())
    paced().when(timer_closes()).then(betting_closed(table.SOURCE_TIMER))


@pytest.mark.parametrize(
    ("refusal", "happened", "order_"),
    [
        (table.REFUSAL_UNKNOWN_TABLE, [], close_betting(20, table_id="t9")),
        (table.REFUSAL_UNKNOWN_ROUND, [], close_betting(20, R2)),
        (table.REFUSAL_ROUND_OVER, [*ONE_ROUND], close_betting(20)),
        (table.REFUSAL_ROUND_VOIDED, [void()], close_betting(20)),
        (table.REFUSAL_BETTING_CLOSED, [close_betting(), suspend()], close_betting(20)),
        (table.REFUSAL_BETTING_CLOSED, [close_betting(), resolved()], close_betting(20)),
        (table.REFUSAL_ROUND_SUSPENDED, [suspend()], close_betting(20)),
    ],
)
def test_order_of_refusals_of_close_betting(
    refusal: table.Refusal.ValueType, happened: list[Message | Fact], order_: Fact
) -> None:
    body = order_.body
    assert isinstance(body, table.CloseBetting)
    betting().given(*happened).when(order_).then(
        rejected(refusal, 20, round_id=body.round_id, table_id=body.table_id)
    )


def test_a_late_betting_timer_is_ignored() -> None:
    paced().when(timer_closes(table_id="t9")).then(ignored(log.IGNORED_REASON_UNKNOWN))
    paced().when(timer_closes(round_id=R2)).then(ignored(log.IGNORED_REASON_UNKNOWN))
    over = paced().given(timer_closes())
    over.when(timer_closes()).then(ignored(log.IGNORED_REASON_ALREADY_DONE))
    over.given(resolved(), paid())
    over.when(timer_closes()).then(ignored(log.IGNORED_REASON_ALREADY_DONE))
    paced().given(void()).when(timer_closes()).then(ignored(log.IGNORED_REASON_ALREADY_DONE))
    halted = paced().given(suspend())
    halted.when(timer_closes()).then(ignored(log.IGNORED_REASON_NOT_NOW))
    halted.given(resume())
    halted.when(timer_closes(1)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    halted.when(timer_closes(2)).then(betting_closed(table.SOURCE_TIMER))
    betting().when(timer_closes()).then(ignored(log.IGNORED_REASON_NOT_NOW))


# ---- SuspendRound, ResumeRound, VoidRound ------------------------------------------------------


def test_a_suspended_round_gets_its_whole_window_anew() -> None:
    log_so_far = paced().given(suspend())
    assert timers_wanted(log_so_far.state) == []
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


# ---- what others say ---------------------------------------------------------------------------


def test_news_of_rounds_that_do_not_run_is_not_answered() -> None:
    log_so_far = ready()
    for news in (resolved(), paid(), returned(), cut_card(), ran_out(), shoe_opened(S2, 2)):
        log_so_far.when(news).then()
    early = betting()
    early.when(resolved()).then()
    early.when(paid()).then()
    early.when(returned()).then()


def test_a_shoe_that_ran_out_voids_the_round() -> None:
    log_so_far = betting().given(close_betting())
    log_so_far.when(ran_out()).then(voided(table.ROUND_REASON_SHOE_EMPTY))
    log_so_far.given(returned())
    log_so_far.when(open_round(10)).then(rejected(table.REFUSAL_SHOE_NOT_READY, 10))


def test_bac_3_the_cut_card_ends_the_shoe_after_its_round() -> None:
    log_so_far = betting().given(close_betting())
    log_so_far.when(cut_card()).then()
    log_so_far.given(resolved(), paid())
    log_so_far.when(open_round(10)).then(rejected(table.REFUSAL_SHOE_NOT_READY, 10))
    log_so_far.given(shoe_closed(), shoe_opened(S2, 2), shoe_started(S2))
    log_so_far.when(open_round(11)).then(round_opened(2, shoe_id=S2, in_shoe=1))


def test_bac_3_one_more_round_where_the_rules_say_so() -> None:
    log_so_far = betting().given(close_betting(), cut_card(1), resolved(), paid())
    log_so_far.when(open_round(10)).then(round_opened(2))
    log_so_far.given(close_betting(11, R2), resolved(R2), paid(R2))
    log_so_far.when(open_round(12)).then(rejected(table.REFUSAL_SHOE_NOT_READY, 12))


def test_bac_3_the_cut_card_of_a_voided_round_that_is_heard_of_late() -> None:
    """The next round opened before the shoe had said so: it is one too many, and voided."""
    log_so_far = betting().given(close_betting(), void(), returned(), open_round(10))
    log_so_far.when(cut_card(0, R1)).then(voided(table.ROUND_REASON_SHOE_EMPTY, R2))
    log_so_far.given(returned(R2))
    log_so_far.when(open_round(11)).then(rejected(table.REFUSAL_SHOE_NOT_READY, 11))


def test_bac_3_the_cut_card_of_a_voided_round_between_rounds() -> None:
    log_so_far = betting().given(close_betting(), void(), returned(), cut_card(0, R1))
    log_so_far.when(open_round(10)).then(rejected(table.REFUSAL_SHOE_NOT_READY, 10))
    more = betting().given(close_betting(), void(), returned(), cut_card(1, R1))
    more.when(open_round(10)).then_only(table.RoundOpened)


def test_bac_40_a_voided_round_counts_if_a_card_left_the_shoe() -> None:
    untouched = betting().given(void(), returned())
    untouched.when(open_round(10)).then(round_opened(2, in_shoe=1))
    began = betting().given(close_betting(), dealt(), void(), returned())
    began.when(open_round(10)).then(round_opened(2, in_shoe=2))
    burned = betting().given(close_betting(), void(), cards_burned_late(), returned())
    burned.when(open_round(10)).then(round_opened(2, in_shoe=2))
    not_called = betting().given(
        close_betting(), cards_burned_late(shoe.BURN_REASON_NOT_CALLED), void(), returned()
    )
    not_called.when(open_round(10)).then(round_opened(2, in_shoe=2))
    another = betting().given(close_betting(), void(), cards_burned_late(shoe_id=S2), returned())
    another.when(open_round(10)).then(round_opened(2, in_shoe=1))
    burned_late = betting().given(close_betting(), void(), returned(), cards_burned_late())
    burned_late.when(open_round(10)).then(round_opened(2, in_shoe=2))


FAILURES: list[tuple[str, Message]] = [
    ("limits", table.BetsPlaced(table_id=T, round_id=R1)),
    ("wallet", limits.BetsApproved(table_id=T, round_id=R1)),
    ("shoe", table.TableOpened(spec=spec())),
    ("rules", wallet.StakesSealed(table_id=T, round_id=R1)),
]


@pytest.mark.parametrize(("service", "failed"), FAILURES, ids=[name for name, _ in FAILURES])
def test_evt_06_a_decision_that_failed_anywhere_suspends_its_table(
    service: str, failed: Message
) -> None:
    fact = by(failure_of(failed), service=service)
    log_so_far = betting()
    log_so_far.when(fact).then(suspended(table.ROUND_REASON_SYSTEM))
    log_so_far.when(fact).then()


def test_a_failure_elsewhere_suspends_nothing() -> None:
    log_so_far = betting()
    elsewhere = table.BetsPlaced(table_id="t9", round_id="t9-1")
    for failed in (elsewhere, wallet.Deposit(account_id="ann"), log.ActivateBehaviour()):
        log_so_far.when(by(failure_of(failed), service="wallet")).then()
    broken = failure_of(elsewhere)
    broken.input_body = b"\xff\xff"
    log_so_far.when(by(broken, service="wallet")).then()
    at_the_table = by(failure_of(wallet.StakesSealed(table_id=T)), service="settlement")
    ready().when(at_the_table).then()
    betting().given(void()).when(at_the_table).then()
    betting().given(close_betting(), resolved()).when(at_the_table).then()


def test_every_order_without_its_source_is_an_operators() -> None:
    ready().when(order(table.OpenRound(table_id=T), 30)).then(round_opened())


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
