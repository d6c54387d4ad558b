"""GetRound before its projection knows the round: it is looked for once more before it is said not
to exist."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from sabot.partner.v1 import partner_service_pb2 as partners
from services.kernel.call import position_message
from services.kernel.errors import Refused
from services.kernel.event import Position
from services.table.servicer import LAG_S
from tests.unit.fake_edge import FakeQueries
from tests.unit.front import NORTH, Door

REQUEST = partners.GetRoundRequest(round_id="t1-7")
BEHIND = Position(1, 9, 0)
"""The edge of the tests has read up to 10."""


@dataclass
class Lagging(FakeQueries):
    """A projection behind its process: when somebody waits for it it catches up, or does not."""

    position: Position = BEHIND  # a tuple never changes
    catches_up: bool = True
    waited: list[tuple[Position, float]] = field(default_factory=list)

    async def reached(self, position: Position, wait_s: float) -> bool:
        self.waited.append((position, wait_s))
        if self.catches_up:
            self.position = position
            self.rounds["t1-7"] = partners.Round(round_id="t1-7", number=7)
        return self.catches_up


def door(queries: Lagging) -> Door:
    made = Door()
    made.partner._queries = queries
    return made


async def test_a_round_that_opened_just_now_is_found_at_the_second_look() -> None:
    queries = Lagging()
    made = door(queries)
    found = await made.partner.get_round(REQUEST, NORTH)
    assert found.round.number == 7
    assert queries.waited == [(made.edge.position, LAG_S)]
    assert found.position == position_message(made.edge.position), "as of the second look"


async def test_a_round_that_is_there_is_not_waited_for() -> None:
    queries = Lagging(rounds={"t1-7": partners.Round(round_id="t1-7", number=7)})
    found = await door(queries).partner.get_round(REQUEST, NORTH)
    assert found.position == position_message(BEHIND)
    assert queries.waited == []


async def test_a_round_is_not_found_only_after_waiting() -> None:
    queries = Lagging(catches_up=False)
    with pytest.raises(Refused) as caught:
        await door(queries).partner.get_round(REQUEST, NORTH)
    assert caught.value.reason.name == "ROUND_NOT_FOUND"
    assert len(queries.waited) == 1
