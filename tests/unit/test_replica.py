"""Replicas: deciding, comparing, the fence, steps, failures and retries, recovery."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2, events_pb2
from sabot.table.v1 import events_pb2 as table
from services.events import event_types
from services.kernel.entry import position_proto
from services.kernel.event import Position
from services.kernel.reader import LogBroken, LogReader, ReaderState
from services.kernel.recovery import Window, read_message
from services.kernel.replica import (
    STANDBY_WAIT_S,
    BehaviourUnknown,
    Diverged,
    Replica,
    ReplicaState,
)
from services.kernel.snapshot import StateCodec
from tests.unit.toy import (
    CELL,
    LIMITS,
    TABLE,
    TableState,
    ToyLog,
    Toys,
    activate,
    input_entry,
    open_table,
)


@pytest.fixture(autouse=True)
def _planted_bug() -> Iterator[None]:
    Toys.broken = True
    yield
    Toys.broken = True


def types_of(entry: Any) -> list[str]:
    return [type(event.body).__name__ for event in entry.events]


def test_an_input_is_answered_and_the_answer_compared_when_read_back() -> None:
    log = ToyLog()
    replica = Replica(TABLE, writer="r")
    replica.read(log.append("table.in", input_entry("w", 1, open_table("a"))), 0.0)
    assert replica.state.core.opened == ["a"], "own answers are folded as they are decided"
    answer = log.answer(replica)
    assert answer is not None
    assert types_of(answer) == ["TableOpened"]
    assert answer.events[0].cause == Position(1, 1, 0)
    assert answer.events[0].actor == "operator:test"
    replica.read(answer, 0.0)
    assert replica.answers_compared == 1
    assert replica.state.core.opened == ["a"], "and not folded again"
    assert replica.next_append() is None


def test_every_input_gets_an_answer() -> None:
    log = ToyLog()
    replica = Replica(TABLE, writer="r")
    replica.read(log.append("table.in", input_entry("w", 1, activate(2))), 0.0)
    answer = log.answer(replica)
    assert answer is not None
    assert types_of(answer) == ["InputNoted"]


def test_of_two_replicas_one_appends_and_the_other_compares() -> None:
    log = ToyLog()
    one, two = Replica(TABLE, writer="one"), Replica(TABLE, writer="two")
    entry = log.append("table.in", input_entry("w", 1, open_table("a")))
    one.read(entry, 0.0)
    two.read(entry, 0.0)
    assert one.ready_at() == STANDBY_WAIT_S, "nobody leads yet: both wait"
    losing = two.next_append()
    assert losing is not None
    answer = log.answer(one)
    assert answer is not None
    two.fence_lost(losing, 2, now=5.0)
    assert two.ready_at() == 5.0 + STANDBY_WAIT_S
    for replica in (one, two):
        replica.read(answer, 5.0)
    assert (one.leading, two.leading) == (True, False)
    assert two.next_append() is None
    nxt = log.append("table.in", input_entry("w", 2, open_table("b")))
    one.read(nxt, 6.0)
    two.read(nxt, 6.0)
    assert one.ready_at() == 6.0, "the leader goes on at once"
    assert two.ready_at() == 6.0 + STANDBY_WAIT_S, "the standby waits"


def test_an_append_read_back_before_its_acknowledgement_is_done() -> None:
    log = ToyLog()
    replica = Replica(TABLE, writer="r")
    replica.read(log.append("table.in", input_entry("w", 1, open_table("a"))), 0.0)
    append = replica.next_append()
    assert append is not None
    replica.read(log.append("table.out", append.payload), 0.0)
    assert replica.in_flight is None
    replica.stored(append, 2)
    assert replica.next_append() is None
    assert replica.state.out_sequence == 2


def test_a_fence_that_names_an_older_entry_is_a_rolled_back_log() -> None:
    log = ToyLog()
    replica = Replica(TABLE, writer="r")
    replica.read(log.append("table.in", input_entry("w", 1, open_table("a"))), 0.0)
    first = log.answer(replica)
    assert first is not None
    replica.read(first, 0.0)
    replica.read(log.append("table.in", input_entry("w", 2, open_table("b"))), 0.0)
    append = replica.next_append()
    assert append is not None
    assert append.expected == 2
    with pytest.raises(LogBroken, match="rolled back"):
        replica.fence_lost(append, 1, now=0.0)


def test_another_answer_than_ones_own_is_a_divergence() -> None:
    log = ToyLog()
    replica = Replica(TABLE, writer="r")
    replica.read(log.append("table.in", input_entry("w", 1, open_table("a"))), 0.0)
    append = replica.next_append()
    assert append is not None
    forged = entry_pb2.Entry.FromString(append.payload)
    forged.writer = "other"
    forged.events[0].body = table.TableOpened(revision=9).SerializeToString()
    with pytest.raises(Diverged, match="1/2/0"):
        replica.read(log.append("table.out", forged.SerializeToString()), 0.0)


def test_an_answer_where_none_was_decided_is_a_divergence() -> None:
    log = ToyLog()
    replica = Replica(LIMITS, writer="r")
    entry = log.append("table.in", input_entry("w", 1, open_table("a")))
    replica.read(entry, 0.0)
    forged = entry_pb2.Entry(writer="x", head=entry.head)
    forged.events.add(
        type="sabot.limits.v1.BookClosed", cause=position_proto(Position(1, 1, 0)), time_us=1_000
    )
    with pytest.raises(Diverged, match="decided here: nothing"):
        replica.read(log.append("limits.out", forged.SerializeToString()), 0.0)


def test_big_work_goes_in_steps_and_other_inputs_come_between() -> None:
    log = ToyLog()
    replica = Replica(TABLE, writer="r")
    names = ["a", "b", "c", "d", "e"]
    for counter, name in enumerate(names, 1):
        replica.read(log.append("table.in", input_entry("w", counter, open_table(name))), 0.0)
    opened = log.answer(replica)
    assert opened is not None
    replica.read(opened, 0.0)
    replica.read(log.append("table.in", input_entry("w", 6, table.CloseTable())), 0.0)
    between = log.append("table.in", input_entry("w", 7, open_table("f")))
    replica.read(between, 0.0)
    steps = []
    while (answer := log.answer(replica)) is not None:
        steps.append(types_of(answer))
        replica.read(answer, 0.0)
    assert steps == [
        ["TableClosed", "TableClosed", "TableOpened"],
        ["TableClosed", "TableClosed"],
        ["TableClosed", "TableClosed"],
    ], "f was opened between, and is closed with the rest"
    assert replica.state.core.closed == 6


def fail_once(log: ToyLog) -> tuple[Replica[Any], Replica[Any]]:
    front, back = Replica(TABLE, writer="r"), Replica(LIMITS, writer="r")
    entry = log.append("table.in", input_entry("w", 1, open_table("boom"), partner="acme"))
    front.read(entry, 0.0)
    back.read(entry, 0.0)
    opened = log.answer(front)
    assert opened is not None
    front.read(opened, 0.0)
    back.read(opened, 0.0)
    return front, back


def test_a_failed_decision_is_an_answer_and_changes_nothing_else() -> None:
    log = ToyLog()
    _, back = fail_once(log)
    answer = log.answer(back)
    assert answer is not None
    assert types_of(answer) == ["InputFailed"]
    failed = answer.events[0].body
    assert isinstance(failed, events_pb2.InputFailed)
    assert failed.error == "InvariantViolated"
    assert failed.input_type == "sabot.table.v1.TableOpened"
    back.read(answer, 0.0)
    assert back.state.core.booked == []
    assert list(back.state.failed) == [Position(1, 2, 0)]


def test_a_retry_decides_again_and_then_the_failure_is_over() -> None:
    log = ToyLog()
    front, back = fail_once(log)
    failed = log.answer(back)
    assert failed is not None
    back.read(failed, 0.0)
    retry = events_pb2.RetryInput(position=position_proto(Position(1, 2, 0)))
    for counter, broken in ((2, True), (3, False)):
        Toys.broken = broken
        entry = log.append("table.in", input_entry("w", counter, retry))
        front.read(entry, 0.0)
        back.read(entry, 0.0)
        answer = log.answer(back)
        assert answer is not None
        back.read(answer, 0.0)
        assert types_of(answer) == ["InputFailed" if broken else "BookClosed"]
        assert answer.events[0].cause == Position(1, entry.sequence, 0)
        assert (answer.events[0].partner, answer.events[0].actor) == ("acme", "partner:acme")
    assert back.state.failed == {}
    assert back.state.core.booked == ["boom"]
    noted = log.answer(front)
    assert noted is not None
    assert types_of(noted) == ["InputNoted", "InputNoted"]


def test_a_memory_error_is_no_answer() -> None:
    def decide(_state: object, _event: object) -> list[object]:
        raise MemoryError

    log = ToyLog()
    replica = Replica(
        type(TABLE)(
            "table",
            1,
            1,
            TABLE.state_type,
            TABLE.initial,
            TABLE.evolve,
            decide,  # type: ignore[arg-type]  # never returns
            TABLE.folds,
            TABLE.answers,
        ),
        writer="r",
    )
    with pytest.raises(MemoryError):
        replica.read(log.append("table.in", input_entry("w", 1, open_table("a"))), 0.0)


def test_a_behaviour_that_this_build_does_not_have_stops_it() -> None:
    log = ToyLog()
    replica = Replica(TABLE, writer="r")
    with pytest.raises(BehaviourUnknown, match="3 is in force"):
        replica.read(log.append("table.in", input_entry("w", 1, activate(3))), 0.0)


def test_all_answers_to_one_cause_go_into_one_entry() -> None:
    log = ToyLog()
    replica = Replica(TABLE, writer="r")
    replica.read(
        log.append("table.in", input_entry("w", 1, *(open_table(f"t{n}") for n in range(700)))), 0.0
    )
    replica.read(
        log.append("table.in", input_entry("w", 2, *(open_table(f"u{n}") for n in range(700)))), 0.0
    )
    sizes = []
    while (answer := log.answer(replica)) is not None:
        sizes.append(len(answer.events))
        replica.read(answer, 0.0)
    assert sizes == [800, 600]


def played_log() -> ToyLog:
    """A log of two services with steps, a failure and a retry in it."""
    log = ToyLog()
    replicas: list[Replica[Any]] = [Replica(TABLE, writer="r"), Replica(LIMITS, writer="r")]
    inputs: list[Any] = [
        open_table("a"), open_table("boom"), open_table("b"), table.CloseTable(), open_table("c"),
        events_pb2.RetryInput(position=position_proto(Position(1, 5, 0))), table.CloseTable(),
    ]  # fmt: skip
    for counter, body in enumerate(inputs, 1):
        Toys.broken = counter < 6
        fresh = [log.append("table.in", input_entry("w", counter, body))]
        while fresh:
            entry = fresh.pop(0)
            for replica in replicas:
                replica.read(entry, 0.0)
            for replica in replicas:
                answer = log.answer(replica)
                if answer is not None:
                    fresh.append(answer)
    return log


@pytest.mark.parametrize("window", [0, 1, 3, 1000])
def test_recovery_gives_the_live_state_whatever_the_window(window: int) -> None:
    log = played_log()
    replicas: list[Replica[Any]] = [Replica(TABLE, writer="n"), Replica(LIMITS, writer="n")]
    reader = LogReader(CELL, event_types())
    recovering = Window(replicas, window)
    Toys.broken = (
        window < 1000
    )  # The window of 1000 takes what is recorded, whatever would be decided.
    try:
        for message in log.messages:
            recovering.push(read_message(reader, message), 0.0)
        recovering.drain(0.0)
    except Diverged:
        assert window < 1000, "a decision of another build shows only where it is decided again"
        return
    front, back = replicas
    assert front.state.core.opened == ["a", "boom", "b", "c"]
    assert front.state.core.closed == 4
    assert back.state.core.seen == ["a", "boom", "b", "c"]
    assert back.state.core.booked == ["a", "b", "c", "boom"]
    assert all(replica.next_append() is None for replica in replicas)


def test_recovery_takes_what_is_recorded_and_decides_what_is_not() -> None:
    log = ToyLog()
    leader = Replica(TABLE, writer="r")
    leader.read(log.append("table.in", input_entry("w", 1, open_table("a"))), 0.0)
    log.answer(leader)
    log.append("table.in", input_entry("w", 2, open_table("b")))
    replica = Replica(TABLE, writer="n")
    recovering = Window([replica], 1000)
    reader = LogReader(CELL, event_types())
    for message in log.messages:
        recovering.push(read_message(reader, message), 0.0)
    recovering.drain(0.0)
    assert replica.state.core.opened == ["a", "b"]
    append = replica.next_append()
    assert append is not None
    entry = entry_pb2.Entry.FromString(append.payload)
    assert [event.cause.sequence for event in entry.events] == [3]
    assert append.expected == 2


def test_recovery_from_a_snapshot_around_an_append_compares_what_was_decided_before() -> None:
    log = ToyLog()
    leader = Replica(TABLE, writer="r")
    leader.read(log.append("table.in", input_entry("w", 1, open_table("a"))), 0.0)
    codec = StateCodec()
    reader_then = codec.dumps(ReaderState, log.reader.state)
    replica_then = codec.dumps(ReplicaState[TableState], leader.state)
    leader.read(log.append("table.in", input_entry("w", 2, open_table("b"))), 0.0)
    log.answer(leader)
    reader = LogReader(CELL, event_types(), codec.loads(ReaderState, reader_then))
    state = codec.loads(ReplicaState[TableState], replica_then)
    replica = Replica(TABLE, writer="n", state=state)
    recovering = Window([replica], 1000)
    for message in log.messages[1:]:
        recovering.push(read_message(reader, message), 0.0)
    recovering.drain(0.0)
    assert replica.state.core.opened == ["a", "b"]
    assert replica.answers_compared == 2
    assert replica.next_append() is None


def test_an_answer_out_of_order_breaks_recovery() -> None:
    log = ToyLog()
    replica = Replica(TABLE, writer="r")
    first = log.append("table.in", input_entry("w", 1, open_table("a")))
    second = log.append("table.in", input_entry("w", 2, open_table("b")))
    for entry in (first, second):
        replica.read(entry, 0.0)
    append = replica.next_append()
    assert append is not None
    swapped = entry_pb2.Entry.FromString(append.payload)
    later, earlier = swapped.events[1], swapped.events[0]
    turned = entry_pb2.Entry(writer="r", head=first.head, events=[later, earlier])
    log.append("table.out", turned.SerializeToString())
    recovering = Window([Replica(TABLE, writer="n")], 1000)
    reader = LogReader(CELL, event_types())
    for message in log.messages:
        recovering.push(read_message(reader, message), 0.0)
    with pytest.raises((LogBroken, Diverged)):
        recovering.drain(0.0)


def test_limits_answers_are_what_they_say() -> None:
    log = played_log()
    reader = LogReader(CELL, event_types())
    booked = [
        event.body.table_id
        for message in log.messages
        for event in read_message(reader, message).events
        if isinstance(event.body, limits.BookClosed)
    ]
    assert booked == ["a", "b", "c", "boom"]


def test_a_core_that_acts_on_failures_acts_on_its_own_once_it_is_in_the_log() -> None:
    def decide(_state: Any, event: Any) -> list[Any]:
        match event.body:
            case events_pb2.InputFailed():
                return [table.TableClosed(table_id=str(event.position))]
            case _:
                raise ValueError

    core = type(TABLE)(
        "table", 1, 1, TABLE.state_type, TABLE.initial, TABLE.evolve, decide,
        TABLE.folds | {events_pb2.InputFailed}, TABLE.answers,
    )  # fmt: skip
    log = ToyLog()
    replica = Replica(core, writer="r")
    replica.read(log.append("table.in", input_entry("w", 1, open_table("a"))), 0.0)
    failed = log.answer(replica)
    assert failed is not None
    assert types_of(failed) == ["InputFailed"]
    assert replica.next_append() is None
    replica.read(failed, 0.0)
    acted = log.answer(replica)
    assert acted is not None
    assert types_of(acted) == ["TableClosed"]
    assert acted.events[0].cause == failed.events[0].position
