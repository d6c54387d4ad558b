"""Writers of inputs: what they gather, count, send again, and when they begin anew."""

from __future__ import annotations

from sabot.log.v1 import entry_pb2
from services.kernel.input_writer import RENEW_US, InputWriter
from services.kernel.reader import WRITER_SILENCE_US
from tests.unit.toy import ToyLog, input_entry, open_table

DAY_US = 24 * 3600 * 1_000_000


def event(name: str, time_us: int) -> entry_pb2.Event:
    made = entry_pb2.Entry.FromString(input_entry("x", 1, open_table(name), time_us=time_us))
    return made.events[0]


def sent(log: ToyLog, writer: InputWriter[str], name: str, now_us: int) -> entry_pb2.Entry:
    writer.put(event(name, now_us), name)
    append = writer.next_append(now_us)
    assert append is not None
    entry = log.append("table.in", append.payload)
    writer.stored(append)
    assert writer.seen(entry.counter) is append
    return entry_pb2.Entry.FromString(append.payload)


def test_a_writer_that_was_silent_for_a_day_is_not_taken_for_one_with_entries_missing() -> None:
    log = ToyLog()
    idle: InputWriter[str] = InputWriter("idle")
    sent(log, idle, "a", 1)
    sent(log, idle, "b", 2)
    log.append("table.in", input_entry("other", 1, open_table("c"), time_us=2 * DAY_US))
    again = sent(log, idle, "d", 2 * DAY_US + 1)
    assert (again.writer, again.counter) == ("idle.1", 1)
    assert sent(log, idle, "e", 2 * DAY_US + 2).counter == 2
    assert RENEW_US < WRITER_SILENCE_US


def test_a_writer_keeps_its_id_while_an_entry_was_not_read_back() -> None:
    writer: InputWriter[str] = InputWriter("w")
    writer.put(event("a", 1), "a")
    first = writer.next_append(1)
    assert first is not None
    writer.stored(first)
    writer.put(event("b", 2), "b")
    second = writer.next_append(DAY_US)
    assert second is not None
    assert entry_pb2.Entry.FromString(second.payload).writer == "w"


def test_a_refused_entry_gives_its_count_back_only_where_no_sending_can_stand() -> None:
    writer: InputWriter[str] = InputWriter("w")
    writer.put(event("a", 1), "a")
    first = writer.next_append(1)
    assert first is not None
    first.maybe_stored = True
    assert writer.refused(first) is None
    first.maybe_stored = False
    assert writer.refused(first) == ["a"]
    writer.put(event("b", 2), "b")
    second = writer.next_append(2)
    assert second is not None
    assert second.counter == 1
