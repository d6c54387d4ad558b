"""The reader knows what failed to be decided, so that an operator retries nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sabot.log.v1 import events_pb2
from services.kernel import reader
from services.kernel.entry import position_proto
from services.kernel.event import Position
from tests.unit.test_replica import fail_once
from tests.unit.toy import ToyLog, Toys, input_entry


@pytest.fixture(autouse=True)
def _planted_bug() -> Iterator[None]:
    Toys.broken = True
    yield
    Toys.broken = True


def test_what_failed_is_known_by_its_position_and_by_that_of_a_retry() -> None:
    log = ToyLog()
    front, back = fail_once(log)
    failed = log.answer(back)
    assert failed is not None
    back.read(failed, 0.0)
    first, known = Position(1, 2, 0), log.reader.state.failed
    assert known == {first: first}
    places: list[Position] = []
    for counter, broken, named in ((2, True, first), (3, True, None), (4, False, None)):
        Toys.broken = broken
        # From the second on, an operator names the retry that failed, as its alarm does.
        position = named or places[-1]
        order = events_pb2.RetryInput(position=position_proto(known[position]))
        entry = log.append("table.in", input_entry("w", counter, order))
        front.read(entry, 0.0)
        back.read(entry, 0.0)
        answer = log.answer(back)
        assert answer is not None
        back.read(answer, 0.0)
        places.append(Position(1, entry.sequence, 0))
    assert back.state.core.booked == ["boom"]
    assert known == dict.fromkeys([first, *places], first)

    nothing = events_pb2.RetryInput(position=position_proto(Position(1, 1, 0)))
    log.append("table.in", input_entry("w", 5, nothing))
    assert len(known) == 4


def test_only_the_latest_failures_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "REMEMBERED_FAILURES", 2)
    log = ToyLog()
    known = log.reader.state.failed
    for sequence in (7, 8, 9):
        log.reader._failed(Position(1, sequence, 0))
    log.reader._failed(Position(1, 9, 0))
    assert list(known) == [Position(1, 8, 0), Position(1, 9, 0)]
    log.reader._retried(Position(1, 12, 0), Position(1, 8, 0))
    assert known == {
        Position(1, 9, 0): Position(1, 9, 0),
        Position(1, 12, 0): Position(1, 8, 0),
    }
