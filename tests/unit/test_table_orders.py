"""The table: operators' orders and their ids, and how tables open and close."""

from __future__ import annotations

import pytest

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.table.v1 import events_pb2 as table
from services.table.domain import decide_orders
from services.table.domain.core import CORE
from services.table.domain.timers import timers_wanted
from tests.unit.deciding import Deciding, by, request_id
from tests.unit.table_facts import (
    ONE_ROUND,
    PACED,
    R1,
    S2,
    WINDOW_MS,
    T,
    betting,
    close_table,
    closed,
    ignored,
    open_round,
    open_table,
    opened,
    paced,
    paid,
    place,
    ready,
    rejected,
    resolved,
    resume,
    resumed,
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
