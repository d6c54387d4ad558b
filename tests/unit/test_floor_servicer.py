"""FloorService: what dealers and devices may tell, what it is in the log, what they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.shoe.v1 import floor_service_pb2 as service
from services.games import catalogue
from services.kernel import ask
from services.kernel.call import Call, position_message
from services.kernel.errors import Refused
from services.kernel.event import Position
from services.kernel.grpc_server import method_name
from services.kernel.tokens import Caller, Role
from services.shoe.domain.core import CORE as SHOE
from services.shoe.domain.state import ShoeState
from services.shoe.floor_servicer import FloorServicer
from tests.unit import shoe_facts
from tests.unit.deciding import Deciding
from tests.unit.fake_edge import FakeEdge
from tests.unit.floor_facts import (
    PACKS,
    R1,
    S1,
    T,
    burn,
    card,
    closed,
    cut_card,
    dealing,
    dealt,
    load,
    loaded,
    packed,
    ready,
    round_opened,
    sealed,
    spin,
    spin_called,
    table_opened,
    voided,
)

UUID7 = "01890a5d-ac96-774b-bcce-b302099a8057"
DANA = Call(Caller(operator="dana", roles=frozenset({Role.DEALER})), method="a/B")
SCANNER = Call(Caller(operator="scanner-1", roles=frozenset({Role.DEVICE})), method="a/B")
BOTH = Call(Caller(operator="gate", roles=frozenset({Role.DEALER, Role.DEVICE})), method="a/B")
DEVICE_ONLY = frozenset({Role.DEVICE})
HUB = Call(
    Caller(operator="hub", roles=DEVICE_ONLY, devices=frozenset({"shoe-7", "shoe-8"})), method="a/B"
)
ONE = Call(Caller(operator="box", roles=DEVICE_ONLY, devices=frozenset({"shoe-7"})), method="a/B")
AT: dict[str, Any] = {"request_id": UUID7, "table_id": T}
IN_SHOE: dict[str, Any] = {**AT, "shoe_id": S1}
IN_ROUND: dict[str, Any] = {**AT, "round_id": R1}
SEEN = Timestamp(seconds=7, nanos=5_000)
AGAINST = shoes.SPIN_DIRECTION_AGAINST

ORDERS: list[tuple[Message, Message, Message, str]] = [
    (
        service.LoadShoeRequest(**AT, number=1, decks=8, packs=PACKS),
        floor.LoadShoe(**AT, number=1, decks=8, packs=PACKS),
        shoes.ShoeOpened(shoe_id=S1),
        "opened",
    ),
    (
        service.RecordCardRequest(**IN_SHOE, round_id=R1, index=0, card="2S", device_time=SEEN),
        floor.RecordCard(**IN_SHOE, round_id=R1, index=0, card="2S", device_time_us=7_000_005),
        shoes.CardsDealt(shoe_id=S1),
        "dealt",
    ),
    (
        service.RecordFaceDownRequest(**IN_SHOE, round_id=R1, index=3, device_time=SEEN),
        floor.RecordFaceDown(**IN_SHOE, round_id=R1, index=3, device_time_us=7_000_005),
        shoes.CardsDealt(shoe_id=S1),
        "dealt",
    ),
    (
        service.RecordPeekRequest(**IN_SHOE, round_id=R1, blackjack=True),
        floor.RecordPeek(**IN_SHOE, round_id=R1, blackjack=True),
        shoes.HoleChecked(shoe_id=S1, blackjack=True),
        "looked",
    ),
    (
        service.RecordBurnRequest(**IN_SHOE, reason=shoes.BURN_REASON_DROPPED, cards=["2S", "3S"]),
        floor.RecordBurn(**IN_SHOE, reason=shoes.BURN_REASON_DROPPED, cards=["2S", "3S"]),
        shoes.CardsBurned(shoe_id=S1),
        "burned",
    ),
    (
        service.RecordCutCardRequest(**IN_SHOE),
        floor.RecordCutCard(**IN_SHOE),
        shoes.CutCardReached(shoe_id=S1),
        "cut_card",
    ),
    (
        service.RecordSpinRequest(
            **IN_ROUND, attempt=1, number=17, turns=4, direction=AGAINST, device_time=SEEN
        ),
        shoes.RecordSpin(
            **IN_ROUND,
            attempt=1,
            number=17,
            turns=4,
            direction=AGAINST,
            device_time_us=7_000_005,
        ),
        shoes.WheelSpun(number=17),
        "spun",
    ),
    (
        service.RecordDiceRequest(**IN_ROUND, attempt=1, dice=[1, 1, 6]),
        shoes.RecordDice(**IN_ROUND, attempt=1, dice=[1, 1, 6]),
        shoes.DiceRolled(dice=[1, 1, 6]),
        "rolled",
    ),
    (
        service.DeclareNoSpinRequest(**IN_ROUND, attempt=1, remark="the ball left the wheel"),
        floor.DeclareNoSpin(**IN_ROUND, attempt=1, remark="the ball left the wheel"),
        shoes.SpinInvalidated(attempt=1),
        "invalidated",
    ),
    (
        service.RecordRemainingRequest(**IN_SHOE, cards=["2S"], last=True),
        floor.RecordRemaining(**IN_SHOE, cards=["2S"], last=True),
        floor.ShoeCensus(shoe_id=S1),
        "census",
    ),
    (
        service.RegisterConsumableRequest(
            request_id=UUID7,
            consumable_id="pack-1",
            kind=floor.CONSUMABLE_KIND_CARDS,
            decks=1,
            remark="lot 7",
        ),
        floor.RegisterConsumable(
            request_id=UUID7,
            consumable_id="pack-1",
            kind=floor.CONSUMABLE_KIND_CARDS,
            decks=1,
            remark="lot 7",
        ),
        floor.ConsumableRegistered(consumable_id="pack-1"),
        "registered",
    ),
    (
        service.MoveConsumableRequest(
            request_id=UUID7,
            consumable_id="wheel-7",
            movement=floor.MOVEMENT_PUT_INTO_USE,
            table_id=T,
            reason="new",
        ),
        floor.MoveConsumable(
            request_id=UUID7,
            consumable_id="wheel-7",
            movement=floor.MOVEMENT_PUT_INTO_USE,
            table_id=T,
            reason="new",
        ),
        floor.ConsumableMoved(consumable_id="wheel-7"),
        "moved",
    ),
]
EACH = pytest.mark.parametrize(
    ("request_", "input_", "answer", "name"), ORDERS, ids=[one[3] for one in ORDERS]
)


@dataclass
class Queries:
    """A projection that holds what the test has put there."""

    position: Position = Position(1, 1000, 0)  # noqa: RUF009  # a tuple never changes
    outcomes: dict[Position, service.FloorOutcome] = field(default_factory=dict)
    known: list[service.Consumable] = field(default_factory=list)
    moves: list[service.ConsumableMovement] | None = None
    requests: dict[tuple[str, str], tuple[Position, service.FloorOutcome]] = field(
        default_factory=dict
    )
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    async def reached(self, position: Position, wait_s: float) -> bool:
        del wait_s
        return position <= self.position

    async def consumables(
        self, kind: int, table_id: str, limit: int, after: str, *, destroyed: bool
    ) -> Sequence[service.Consumable]:
        self.asked.append((kind, table_id, limit, after, destroyed))
        return [one for one in self.known if one.consumable_id > after][:limit]

    async def movements(
        self, consumable_id: str, limit: int, after: Position | None
    ) -> Sequence[service.ConsumableMovement] | None:
        self.asked.append((consumable_id, limit, after))
        if self.moves is None:
            return None
        return [
            one for one in self.moves if after is None or one.position.sequence > after.sequence
        ][:limit]

    async def request(
        self, actor: str, request_id: str
    ) -> tuple[Position, service.FloorOutcome] | None:
        return self.requests.get((actor, request_id))

    async def outcome_at(self, position: Position) -> service.FloorOutcome | None:
        return self.outcomes.get(position)


class Door:
    """The servicer over a fake edge."""

    def __init__(self, *answers: Message, log_: Deciding[ShoeState] | None = None) -> None:
        state = log_.state if log_ is not None else ShoeState()
        self.edge = FakeEdge(answers=list(answers), states={"shoe": state})
        self.queries = Queries()
        self.servicer = FloorServicer(self.edge, self.queries)

    async def tell(self, request: Message, call: Call = DANA) -> Any:
        name = method_name(type(request).__name__.removesuffix("Request"))
        return await getattr(self.servicer, name)(request, call)


# ---- what is told ------------------------------------------------------------------------------


@EACH
async def test_what_is_told_is_appended_as_given_and_what_it_came_to_is_told(
    request_: Message, input_: Any, answer: Message, name: str
) -> None:
    door = Door(answer)
    told = await door.tell(request_)
    assert told.outcome.WhichOneof("outcome") == name
    assert getattr(told.outcome, name) == answer
    assert told.position == position_message(door.edge.position)
    assert not told.replayed
    [asked] = door.edge.submitted
    assert (asked.service, asked.partner, asked.actor) == ("shoe", "", "operator:dana")
    assert len(asked.body.request_hash) == 32
    asked.body.ClearField("request_hash")
    if isinstance(asked.body, shoes.RecordSpin | shoes.RecordDice):
        assert asked.body.compared_when_over
        asked.body.ClearField("compared_when_over")
    if isinstance(asked.body, floor.RecordCard):
        assert asked.body.waits_for_held
        asked.body.ClearField("waits_for_held")
    if "source" in input_.DESCRIPTOR.fields_by_name:
        input_ = type(input_).FromString(input_.SerializeToString())
        input_.source = shoes.CARD_SOURCE_MANUAL
    assert asked.body == input_


@EACH
async def test_a_repeat_is_told_the_first_outcome_and_a_refusal_its_reason(
    request_: Message, input_: Message, answer: Message, name: str
) -> None:
    first = Position(1, 4, 2)
    door = Door(
        log.RequestRepeated(
            request_id=UUID7, first=entry_pb2.Position(segment=1, sequence=4, index=2)
        )
    )
    content: dict[str, Any] = {name: answer}
    door.queries.outcomes[first] = service.FloorOutcome(**content)
    told = await door.tell(request_)
    assert told.replayed
    assert getattr(told.outcome, name) == answer
    refusal = floor.FloorRejected(
        request_id=UUID7, table_id=T, refusal=floor.FLOOR_REFUSAL_UNKNOWN_TABLE
    )
    with pytest.raises(Refused) as caught:
        await Door(refusal).tell(request_)
    assert caught.value.reason.name == "TABLE_NOT_FOUND"
    for broken, reason in (
        (log.InputFailed(), "INPUT_FAILED"),
        (log.InputNoted(), "UNEXPECTED_OUTCOME"),
    ):
        with pytest.raises(Refused) as caught:
            await Door(broken).tell(request_)
        assert caught.value.reason.name == reason


@pytest.mark.parametrize(
    ("call", "device", "expected"),
    [
        (DANA, "", (shoes.CARD_SOURCE_MANUAL, "")),
        (SCANNER, "", (shoes.CARD_SOURCE_DEVICE, "scanner-1")),
        (SCANNER, "scanner-1", (shoes.CARD_SOURCE_DEVICE, "scanner-1")),
        (BOTH, "", (shoes.CARD_SOURCE_MANUAL, "")),
        (BOTH, "gate", (shoes.CARD_SOURCE_DEVICE, "gate")),
        (HUB, "shoe-7", (shoes.CARD_SOURCE_DEVICE, "shoe-7")),
        (ONE, "", (shoes.CARD_SOURCE_DEVICE, "shoe-7")),
    ],
)
async def test_the_source_follows_from_who_tells(
    call: Call, device: str, expected: tuple[int, str]
) -> None:
    door = Door(shoes.CardsDealt())
    request = service.RecordCardRequest(**IN_SHOE, card="2S", device=device)
    await door.tell(request, call)
    [asked] = door.edge.submitted
    assert (asked.body.source, asked.body.device) == expected
    assert not asked.body.HasField("index")


@pytest.mark.parametrize(
    ("call", "device"), [(SCANNER, "wheel-7"), (BOTH, "shoe-7"), (HUB, "wheel-7"), (HUB, "")]
)
async def test_a_token_speaks_for_its_own_devices_alone(call: Call, device: str) -> None:
    door = Door()
    with pytest.raises(Refused) as caught:
        await door.tell(service.RecordCardRequest(**IN_SHOE, card="2S", device=device), call)
    assert caught.value.reason.name == "DEVICE_NOT_BOUND"
    assert door.edge.submitted == []


@EACH
async def test_a_token_tells_at_its_own_tables_alone(
    request_: Any, input_: Message, answer: Message, name: str
) -> None:
    del input_, name
    roles = frozenset({Role.DEALER})
    of_others = Call(Caller(operator="dana", roles=roles, tables=frozenset({"t2"})), method="a/B")
    of_this = Call(Caller(operator="dana", roles=roles, tables=frozenset({T, "t2"})), method="a/B")
    door = Door(answer)
    if getattr(request_, "table_id", ""):
        with pytest.raises(Refused) as caught:
            await door.tell(request_, of_others)
        assert caught.value.reason.name == "TABLE_NOT_BOUND"
        assert door.edge.submitted == []
    await door.tell(request_, of_this)
    assert len(door.edge.submitted) == 1


async def test_a_person_names_no_device() -> None:
    door = Door()
    with pytest.raises(Refused) as caught:
        await door.tell(service.RecordCutCardRequest(**IN_SHOE, device="shoe-7"))
    assert caught.value.reason.name == "NOT_A_DEVICE"
    assert door.edge.submitted == []


async def test_what_asked_for_it_is_named_where_it_is_known_and_no_part_of_the_request() -> None:
    request = service.RecordCardRequest(**IN_SHOE, round_id=R1, card="2S")
    called, idle = Door(shoes.CardsDealt(), log_=dealing()), Door(shoes.CardsDealt(), log_=ready())
    for door in (called, idle):
        await door.tell(request)
    [known], [unknown] = called.edge.submitted, idle.edge.submitted
    call = dealing().state.shoes[S1].call
    assert call is not None
    assert known.body.asked_by == position_message(call.asked_by)
    assert not unknown.body.HasField("asked_by")
    assert known.body.request_hash == unknown.body.request_hash

    log_ = Deciding(SHOE).given(table_opened(catalogue.roulette()), round_opened(shoe_id=""))
    door = Door(shoes.WheelSpun(), shoes.WheelSpun(), log_=log_.given(sealed(), spin_called()))
    for attempt, expected in ((1, True), (2, False)):
        told = service.RecordSpinRequest(
            **IN_ROUND, attempt=attempt, number=1, turns=3, direction=AGAINST
        )
        await door.tell(told)
        assert door.edge.submitted[-1].body.HasField("asked_by") == expected

    door = Door(shoes.ShoeOpened(), log_=packed())
    await door.tell(service.LoadShoeRequest(**AT, number=1, decks=8, packs=PACKS))
    assert door.edge.submitted[-1].body.HasField("asked_by")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (floor.FLOOR_FAULT_IMPOSSIBLE_CARD, "IMPOSSIBLE_CARD"),
        (floor.FLOOR_FAULT_CONTRADICTION, "CONTRADICTING_OUTCOME"),
    ],
)
async def test_what_cannot_be_right_is_refused(
    fault: floor.FloorFault.ValueType, reason: str
) -> None:
    told = floor.FloorFaultFound(table_id=T, shoe_id=S1, fault=fault, told="KS")
    with pytest.raises(Refused) as caught:
        await Door(told).tell(service.RecordCardRequest(**IN_SHOE, card="KS"))
    assert caught.value.reason.name == reason
    assert "KS" in caught.value.text("fr")


async def test_an_early_outcome_was_taken_and_is_told_as_a_fault() -> None:
    early = floor.FloorFaultFound(fault=floor.FLOOR_FAULT_EARLY_OUTCOME, told="17")
    request = service.RecordSpinRequest(
        **IN_ROUND, attempt=1, number=17, turns=3, direction=AGAINST
    )
    assert (await Door(early).tell(request)).outcome.fault == early


# ---- what is asked -----------------------------------------------------------------------------


async def floor_of(log_: Deciding[ShoeState]) -> service.Floor:
    request = service.GetFloorRequest(table_id=T)
    found = await Door(log_=log_).servicer.get_floor(request, SCANNER)
    told: service.Floor = found.floor
    return told


async def test_a_table_tells_what_it_awaits_at_every_step() -> None:
    assert await floor_of(packed()) == service.Floor(table_id=T, awaited_shoe=1)
    shoe: dict[str, Any] = {"table_id": T, "shoe_id": S1}
    assert await floor_of(loaded()) == service.Floor(**shoe, first_card=True)
    assert await floor_of(loaded().given(card("7H", ""))) == service.Floor(
        **shoe, next_index=1, burn=7
    )
    assert await floor_of(ready()) == service.Floor(**shoe, next_index=8)
    assert await floor_of(dealing().given(card("2S"))) == service.Floor(
        **shoe,
        round_id=R1,
        next_index=9,
        hands=[rules.HAND_BANKER, rules.HAND_PLAYER, rules.HAND_BANKER],
    )
    over = dealing().given(cut_card(), voided(), closed())
    assert await floor_of(over) == service.Floor(table_id=T, awaited_shoe=2, uncounted_shoe_id=S1)
    assert (await floor_of(over.given(load(2)))).uncounted_shoe_id == ""


async def test_a_wheel_tells_which_spin_it_awaits() -> None:
    log_ = Deciding(SHOE).given(table_opened(catalogue.roulette()), round_opened(shoe_id=""))
    assert await floor_of(log_) == service.Floor(table_id=T, round_id=R1)
    assert (await floor_of(log_.given(sealed(), spin_called()))).spin == 1
    assert (await floor_of(log_.given(spin(1, turns=1)))).spin == 0
    assert (await floor_of(log_.given(spin_called(2)))).spin == 2
    assert (await floor_of(log_.given(spin(1, attempt=2)))).spin == 0


async def test_a_held_card_is_out_of_the_shoe() -> None:
    log_ = ready().given(round_opened(), sealed(), card("2S"))
    assert (await floor_of(log_)).next_index == 9
    assert (await floor_of(log_.given(burn(1)))).next_index == 9  # Refused.


async def test_only_tables_on_the_floor_await_anything_from_it() -> None:
    for log_, reason in (
        (Deciding(SHOE), "TABLE_NOT_FOUND"),
        (shoe_facts.ready(), "NOT_ON_FLOOR"),
    ):
        with pytest.raises(Refused) as caught:
            await floor_of(log_)
        assert caught.value.reason.name == reason


async def test_consumables_come_page_by_page() -> None:
    door = Door()
    door.queries.known = [service.Consumable(consumable_id=f"p-{n}") for n in range(5)]
    request = service.ListConsumablesRequest(
        kind=floor.CONSUMABLE_KIND_CARDS, table_id=T, destroyed=True, page_size=2
    )
    found: list[str] = []
    while True:
        page = await door.servicer.list_consumables(request, DANA)
        found += [one.consumable_id for one in page.consumables]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert found == [f"p-{n}" for n in range(5)]
    assert door.queries.asked[0] == (floor.CONSUMABLE_KIND_CARDS, T, 3, "", True)
    other = service.ListConsumablesRequest(page_token=request.page_token)
    with pytest.raises(Refused) as caught:
        await door.servicer.list_consumables(other, DANA)
    assert caught.value.reason.name == "PAGE_TOKEN_INVALID"


async def test_movements_come_page_by_page_and_of_known_consumables() -> None:
    door = Door()
    request = service.ListMovementsRequest(consumable_id="p-1", page_size=2)
    with pytest.raises(Refused) as caught:
        await door.servicer.list_movements(request, DANA)
    assert caught.value.reason.name == "CONSUMABLE_NOT_FOUND"
    door.queries.moves = [
        service.ConsumableMovement(
            actor=f"operator:{n}", position=entry_pb2.Position(segment=1, sequence=n + 1)
        )
        for n in range(3)
    ]
    first = await door.servicer.list_movements(request, DANA)
    request.page_token = first.next_page_token
    second = await door.servicer.list_movements(request, DANA)
    assert [one.actor for one in (*first.movements, *second.movements)] == [
        f"operator:{n}" for n in range(3)
    ]
    assert second.next_page_token == ""


async def test_an_order_is_found_again_by_whom_it_is() -> None:
    door = Door()
    at, outcome = Position(1, 7, 0), service.FloorOutcome(dealt=dealt(8, "2S", rules.HAND_PLAYER))
    door.queries.requests["operator:scanner-1", UUID7] = (at, outcome)
    request = service.GetOrderRequest(request_id=UUID7)
    found = await door.servicer.get_order(request, SCANNER)
    assert (found.outcome, found.request_position) == (outcome, position_message(at))
    with pytest.raises(Refused) as caught:
        await door.servicer.get_order(request, DANA)
    assert caught.value.reason.name == "REQUEST_NOT_FOUND"


async def test_a_query_waits_for_the_position_it_asks_for() -> None:
    door = Door()
    door.queries.moves = []
    at_least = entry_pb2.Position(segment=1, sequence=5_000)
    for request in (
        service.ListConsumablesRequest(at_least=at_least),
        service.ListMovementsRequest(consumable_id="p-1", at_least=at_least),
        service.GetOrderRequest(request_id=UUID7, at_least=at_least),
    ):
        with pytest.raises(Refused) as caught:
            await door.tell(request)
        assert caught.value.reason.name == "POSITION_NOT_REACHED"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "REPEAT_POLL_S", 0.0)
