"""Every difference of an entry is named, not only its first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sabot.log.v1 import entry_pb2
from services.cli.differences import differences_in
from services.kernel.entry import position_proto
from services.kernel.event import Position
from services.kernel.replica import Diverged

AT = Position(1, 500, 3)


def answer(name: str, body: str = "right") -> entry_pb2.Event:
    """`c0` is the first answer to cause c."""
    cause = position_proto(Position(1, 100 + ord(name[0]), 0))
    return entry_pb2.Event(type="t", body=body.encode(), cause=cause, index=int(name[1]))


def named(due: Sequence[entry_pb2.Event], told: Sequence[entry_pb2.Event]) -> list[tuple[int, int]]:
    """By difference, the place in the entry and that of what was due; -1: nothing was."""
    first = Diverged("wallet", AT, due[0] if due else None, told[0], due, told)
    return [
        (
            one.position.index - AT.index,
            next((place for place, other in enumerate(due) if other is one.expected), -1),
        )
        for one in differences_in(first)
    ]


RIGHT = [answer("a0"), answer("a1"), answer("b0")]
CASES = {
    "the first alone": ([answer("a0", "x"), *RIGHT[1:]], [(0, 0)]),
    "behind the first": ([answer("a0", "x"), RIGHT[1], answer("b0", "x")], [(0, 0), (2, 2)]),
    "all": ([answer(one, "x") for one in ("a0", "a1", "b0")], [(0, 0), (1, 1), (2, 2)]),
    "one is added at the front": ([answer("Z0"), *RIGHT], [(0, 0)]),
    "one is added behind": ([answer("a0", "x"), *RIGHT[1:], answer("c0")], [(0, 0), (3, -1)]),
    "one is told twice": ([answer("a0", "x"), RIGHT[1], RIGHT[1]], [(0, 0), (2, -1)]),
    "the first lacks": (RIGHT[1:], [(0, 0)]),
    "the first two lack": (RIGHT[2:], [(0, 0), (0, 1)]),
    "what stands behind a lacking one is wrong": ([answer("a1", "x")], [(0, 0), (0, 1)]),
    "the rest of a group lacks": ([answer("a0", "x")], [(0, 0), (0, 1)]),
    "one lacks in between": ([answer("a0", "x"), RIGHT[2]], [(0, 0), (1, 1)]),
    "later groups may come later": ([answer("a0", "x"), RIGHT[1]], [(0, 0)]),
}


@pytest.mark.parametrize("case", CASES)
def test_all_that_differs_in_an_entry_is_named(case: str) -> None:
    told, differing = CASES[case]
    assert named(RIGHT, told) == differing


def test_nothing_was_due() -> None:
    assert named([], RIGHT) == [(0, -1), (1, -1), (2, -1)]
