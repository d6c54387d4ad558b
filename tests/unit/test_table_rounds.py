"""The table: rounds from their opening to the last payment, by operators, timers and shoes."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.table.domain.core import CORE
from services.table.domain.state import TableState
from services.table.domain.timers import Timer, timers_wanted
from tests.unit.deciding import START_US, Deciding, Fact, by, failure_of
from tests.unit.table_facts import (
    ONE_ROUND,
    PACED,
    PAUSE_MS,
    R1,
    R2,
    S2,
    WINDOW_MS,
    T,
    betting,
    betting_closed,
    cards_burned_late,
    close_betting,
    close_table,
    closed,
    cut_card,
    dealt,
    ignored,
    open_round,
    open_table,
    order,
    paced,
    paid,
    ran_out,
    ready,
    rejected,
    resolved,
    resume,
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
