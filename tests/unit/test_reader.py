"""The reader: order, damage, copies, log time, behaviour."""

from __future__ import annotations

import pytest

from sabot.log.v1 import entry_pb2
from sabot.table.v1 import events_pb2 as table
from services.events import event_types
from services.kernel.entry import NotUnderstood, first_head, next_head
from services.kernel.reader import REMEMBERED_COPIES, LogBroken, LogReader
from services.kernel.replica import Replica
from tests.unit.toy import CELL, TABLE, ToyLog, activate, input_entry, open_table


def test_the_chain_of_hashes_stands_for_every_part_of_every_entry() -> None:
    head = first_head("a")
    first = next_head(head, 1, "s", {"A": "1"}, b"x")
    others = [
        next_head(first_head("b"), 1, "s", {"A": "1"}, b"x"),
        next_head(head, 2, "s", {"A": "1"}, b"x"),
        next_head(head, 1, "t", {"A": "1"}, b"x"),
        next_head(head, 1, "s", {"A": "2"}, b"x"),
        next_head(head, 1, "s", {"A": "1", "B": ""}, b"x"),
        next_head(head, 1, "s", {}, b"x"),
        next_head(head, 1, "s", {"A": "1"}, b"y"),
        next_head(head, 1, "sA", {}, b":1\nx"),
    ]
    assert len({first, *others}) == 9
    assert next_head(head, 1, "s", {"B": "2", "A": "1"}, b"") == next_head(
        head, 1, "s", {"A": "1", "B": "2"}, b""
    )


def test_a_gap_breaks_the_log_and_is_named() -> None:
    reader = LogReader(CELL, event_types())
    reader.read(1, f"sabot.{CELL}.table.in", {}, input_entry("w", 1, open_table("a")))
    with pytest.raises(LogBroken, match="entry 2: missing") as caught:
        reader.read(3, f"sabot.{CELL}.table.in", {}, input_entry("w", 2, open_table("b")))
    assert caught.value.sequence == 2


def test_a_copy_is_dropped_and_a_differing_copy_breaks_the_log() -> None:
    log = ToyLog()
    assert not log.append("table.in", input_entry("w", 1, open_table("a"))).copy
    copy = log.append("table.in", input_entry("w", 1, open_table("a")))
    assert copy.copy
    assert copy.events == []
    assert len(log.append("table.in", input_entry("w", 2, open_table("b"))).events) == 1
    assert log.append("table.in", input_entry("w", 1, open_table("a"))).copy
    with pytest.raises(LogBroken, match="differently"):
        log.append("table.in", input_entry("w", 2, open_table("c")))


def test_a_skipped_count_of_a_writer_breaks_the_log() -> None:
    log = ToyLog()
    log.append("table.in", input_entry("w", 1, open_table("a")))
    with pytest.raises(LogBroken, match="skips from its entry 1 to 3"):
        log.append("table.in", input_entry("w", 3, open_table("b")))
    with pytest.raises(LogBroken, match="begins at its entry 2"):
        ToyLog().append("table.in", input_entry("w", 2, open_table("b")))


def test_log_time_never_goes_back_and_is_taken_from_inputs_alone() -> None:
    log = ToyLog()
    first = log.append("table.in", input_entry("w", 1, open_table("a"), time_us=500))
    late = log.append("limits.in", input_entry("w", 1, open_table("x"), time_us=400))
    then = log.append("table.in", input_entry("w", 2, open_table("b"), time_us=700))
    assert [e.events[0].time_us for e in (first, late, then)] == [500, 500, 700]
    assert [e.events[0].edge_us for e in (first, late, then)] == [500, 400, 700]


def test_a_behaviour_holds_from_its_own_position_on() -> None:
    log = ToyLog()
    entry = log.append(
        "table.in", input_entry("w", 1, open_table("a"), activate(2), open_table("b"), activate(1))
    )
    assert [event.behaviour for event in entry.events] == [1, 2, 2, 2]


def test_a_writer_silent_for_a_day_is_forgotten() -> None:
    log = ToyLog()
    day_us = 24 * 3600 * 1_000_000
    log.append("table.in", input_entry("old", 1, open_table("a"), time_us=1))
    log.append("table.in", input_entry("new", 1, open_table("b"), time_us=day_us + 2))
    log.append("table.in", input_entry("newer", 1, open_table("c"), time_us=day_us + 3))
    assert sorted(name for _, name in log.reader.state.writers) == ["new", "newer"]


def test_answers_must_carry_the_head_of_their_last_cause() -> None:
    log = ToyLog()
    replica = Replica(TABLE, writer="r")
    replica.read(log.append("table.in", input_entry("w", 1, open_table("a"))), 0.0)
    append = replica.next_append()
    assert append is not None
    forged = entry_pb2.Entry.FromString(append.payload)
    forged.head = b"\0" * 32
    with pytest.raises(LogBroken, match="given to another log"):
        log.append("table.out", forged.SerializeToString())


@pytest.mark.parametrize(
    "payload",
    [b"\xff", b"", entry_pb2.Entry(writer="w", counter=1).SerializeToString()],
)
def test_what_cannot_be_understood_breaks_the_log(payload: bytes) -> None:
    with pytest.raises(LogBroken):
        ToyLog().append("table.in", payload)


def test_unknown_types_and_enum_values_are_refused() -> None:
    types = event_types()
    with pytest.raises(NotUnderstood, match="not known"):
        types.decode("sabot.table.v1.Nothing", b"")
    body = table.BettingClosed(table_id="t", source=7)  # type: ignore[arg-type]  # unknown on purpose
    with pytest.raises(NotUnderstood, match="unknown value 7"):
        types.decode("sabot.table.v1.BettingClosed", body.SerializeToString())
    nested = table.ResultAccepted()
    nested.result.baccarat.winner = 9  # type: ignore[assignment]  # unknown on purpose
    with pytest.raises(NotUnderstood, match="unknown value 9"):
        types.decode("sabot.table.v1.ResultAccepted", nested.SerializeToString())


def test_an_operator_may_let_an_entry_pass_by_position_and_hash() -> None:
    subject = f"sabot.{CELL}.table.in"
    head = next_head(first_head(CELL), 1, subject, {}, b"\xff")
    reader = LogReader(CELL, event_types(), accepted={1: head})
    assert reader.read(1, subject, {}, b"\xff").events == []
    assert reader.accepted_entries == [1]
    wrong = LogReader(CELL, event_types(), accepted={1: b"\0" * 32})
    with pytest.raises(LogBroken):
        wrong.read(1, subject, {}, b"\xff")


def test_a_copy_that_comes_very_late_is_dropped_all_the_same() -> None:
    log = ToyLog()
    for counter in range(1, REMEMBERED_COPIES + 3):
        log.append("table.in", input_entry("w", counter, open_table(f"t{counter}")))
    late = log.append("table.in", input_entry("w", 1, open_table("t1")))
    assert late.copy
    assert log.reader.copies_unchecked == 1


def test_orders_to_the_whole_cell_stand_on_one_subject_only() -> None:
    ToyLog().append("table.in", input_entry("w", 1, activate(2)))
    with pytest.raises(LogBroken, match="stands on limits, not on table"):
        ToyLog().append("limits.in", input_entry("w", 1, activate(2)))


def test_an_operator_may_let_a_gap_of_a_writer_pass_and_the_writer_goes_on() -> None:
    log = ToyLog()
    log.append("table.in", input_entry("w", 1, open_table("a")))
    subject, payload = f"sabot.{CELL}.table.in", input_entry("w", 3, open_table("c"))
    head = next_head(log.reader.state.head, 2, subject, {}, payload)
    reader = LogReader(CELL, event_types(), accepted={2: head})
    reader.read(*log.messages[0])
    assert reader.read(2, subject, {}, payload).events == []
    goes_on = reader.read(3, subject, {}, input_entry("w", 4, open_table("d")))
    assert len(goes_on.events) == 1
