"""What operators may ask of the shoe's projection: consumables with their history, and orders."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sabot.log.v1 import events_pb2 as log
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.shoe.v1 import floor_service_pb2 as service
from services.kernel.event import Event, Position
from services.kernel.projections import Projector
from services.shoe.projection import ShoeProjection
from services.shoe.projection_queries import SqlFloorQueries
from services.shoe.queries import FloorQueries
from tests.unit.projecting import ON_BOTH, url_of
from tests.unit.projection_log import HandMadeLog

pytestmark = ON_BOTH

DANA, SAM = "operator:dana", "operator:sam"
WAIT_S = 60.0
CARDS, WHEEL = floor.CONSUMABLE_KIND_CARDS, floor.CONSUMABLE_KIND_WHEEL


class Store:
    """A log of consumables, its projection, and queries of it."""

    def __init__(self, folder: Path) -> None:
        self.log = HandMadeLog()
        self._url = url_of(folder, "shoe")
        self._fed = 0
        self._begin()

    def _begin(self) -> None:
        self.projector = Projector(ShoeProjection(), self._url, self.log.read)
        self.queries = SqlFloorQueries(self.projector)

    async def restart(self) -> None:
        await self.projector.close()
        self._begin()
        assert await self.projector.start(wait_s=WAIT_S)

    async def read(self) -> SqlFloorQueries:
        self.log.flush()
        for entry in self.log.entries[self._fed :]:
            self.projector.feed(*entry)
        self._fed = len(self.log.entries)
        assert await self.queries.reached(Position(1, self._fed, 0), WAIT_S)
        return self.queries

    def register(
        self, consumable_id: str, kind: floor.ConsumableKind.ValueType, decks: int = 0
    ) -> Event:
        asked = self.log.add(
            "shoe",
            floor.RegisterConsumable(request_id=f"r-{consumable_id}"),
            actor=DANA,
        )
        body = floor.ConsumableRegistered(
            consumable_id=consumable_id, kind=kind, decks=decks, remark="lot 7"
        )
        return self.log.add("shoe", body, asked)

    def move(
        self,
        consumable_id: str,
        movement: floor.Movement.ValueType,
        table_id: str = "",
        shoe_id: str = "",
        actor: str = SAM,
    ) -> Event:
        asked = self.log.add("shoe", floor.MoveConsumable(request_id="m"), actor=actor)
        body = floor.ConsumableMoved(
            consumable_id=consumable_id,
            movement=movement,
            table_id=table_id,
            shoe_id=shoe_id,
            reason="as planned",
        )
        return self.log.add("shoe", body, asked)

    async def states(self) -> dict[str, service.ConsumableState.ValueType]:
        found = await (await self.read()).consumables(0, "", 100, "", destroyed=True)
        return {one.consumable_id: one.state for one in found}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    one = Store(tmp_path)
    assert await one.projector.start(wait_s=WAIT_S)
    yield one
    await one.projector.close()


def test_the_queries_are_those_that_the_shell_asks_for(store: Store) -> None:
    shell: FloorQueries = store.queries
    assert shell is store.queries


async def test_a_wheel_from_receipt_to_destruction_with_who_touched_it(store: Store) -> None:
    received = store.register("wheel-7", WHEEL)
    steps = [
        (floor.MOVEMENT_PUT_INTO_USE, "t1", service.CONSUMABLE_STATE_IN_USE),
        (floor.MOVEMENT_INSPECTED, "t1", service.CONSUMABLE_STATE_IN_USE),
        (floor.MOVEMENT_REJECTED, "t1", service.CONSUMABLE_STATE_REJECTED),
        (floor.MOVEMENT_INSPECTED, "", service.CONSUMABLE_STATE_STORED),
        (floor.MOVEMENT_PUT_INTO_USE, "t2", service.CONSUMABLE_STATE_IN_USE),
        (floor.MOVEMENT_TAKEN_OUT, "t2", service.CONSUMABLE_STATE_STORED),
        (floor.MOVEMENT_DESTROYED, "", service.CONSUMABLE_STATE_DESTROYED),
    ]
    assert await store.states() == {"wheel-7": service.CONSUMABLE_STATE_STORED}
    moves = [received]
    for movement, table_id, state in steps:
        moves.append(store.move("wheel-7", movement, table_id))
        assert await store.states() == {"wheel-7": state}
        await store.restart()
    found = await store.queries.movements("wheel-7", 100, None)
    assert found is not None
    assert [(one.movement, one.actor, one.table_id) for one in found] == [
        (0, DANA, ""),
        *((movement, SAM, table_id) for movement, table_id, _ in steps),
    ]
    assert [one.position.sequence for one in found] == [one.position.sequence for one in moves]
    assert [one.time.ToMicroseconds() for one in found] == [one.time_us for one in moves]
    assert (found[0].reason, found[1].reason) == ("lot 7", "as planned")
    after = await store.queries.movements("wheel-7", 2, moves[2].position)
    assert after is not None
    assert [one.movement for one in after] == [steps[2][0], steps[3][0]]
    assert await store.queries.movements("wheel-7", 2, moves[-1].position) == []
    assert await store.queries.movements("none", 2, None) is None


async def test_consumables_are_found_by_kind_table_and_whether_they_are_left(
    store: Store,
) -> None:
    store.register("a-1", CARDS, 8)
    store.register("b-1", WHEEL)
    store.register("c-1", CARDS, 1)
    store.register("d-1", CARDS, 1)
    store.move("a-1", floor.MOVEMENT_PUT_INTO_USE, "t1", "t1-s1")
    store.move("b-1", floor.MOVEMENT_PUT_INTO_USE, "t1")
    store.move("d-1", floor.MOVEMENT_DESTROYED)
    queries = await store.read()

    async def found(
        kind: int = 0, table_id: str = "", after: str = "", *, all_: bool = False
    ) -> str:
        told = await queries.consumables(kind, table_id, 100, after, destroyed=all_)
        return " ".join(one.consumable_id for one in told)

    assert await found() == "a-1 b-1 c-1"
    assert await found(all_=True) == "a-1 b-1 c-1 d-1"
    assert await found(CARDS) == "a-1 c-1"
    assert await found(table_id="t1") == "a-1 b-1"
    assert await found(CARDS, "t1") == "a-1"
    assert await found(after="a-1") == "b-1 c-1"
    [first] = await queries.consumables(CARDS, "t1", 1, "", destroyed=False)
    assert first == service.Consumable(
        consumable_id="a-1",
        kind=CARDS,
        decks=8,
        state=service.CONSUMABLE_STATE_IN_USE,
        table_id="t1",
        shoe_id="t1-s1",
        remark="lot 7",
    )


async def test_what_became_of_an_order(store: Store) -> None:
    log_ = store.log
    asked = log_.add("shoe", shoes.RecordSpin(request_id="r1"), actor="operator:wheel-7")
    log_.add("shoe", shoes.RecordSpin(number=3), actor="system:custodian")  # Drawn: no request.
    assert await (await store.read()).outcome_at(asked.position) == service.FloorOutcome(
        pending=True
    )
    log_.add("shoe", shoes.WheelSpun(number=17), asked)
    told = service.FloorOutcome(spun=shoes.WheelSpun(number=17))
    queries = await store.read()
    assert await queries.outcome_at(asked.position) == told
    assert await queries.request("operator:wheel-7", "r1") == (asked.position, told)
    assert await queries.request("operator:other", "r1") is None
    failed = log_.add("shoe", floor.RecordCard(request_id="r2"), actor="operator:s")
    log_.add("shoe", log.InputFailed(input_type="sabot.shoe.v1.RecordCard"), failed)
    assert await (await store.read()).outcome_at(failed.position) == service.FloorOutcome()
    refused = log_.add("shoe", floor.RecordCard(request_id="r3"), actor="operator:s")
    log_.add("shoe", floor.FloorRejected(request_id="r3"), refused)
    found = await (await store.read()).outcome_at(refused.position)
    assert found is not None
    assert found.WhichOneof("outcome") == "rejected"
