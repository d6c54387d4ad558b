"""TableOperatorService: what it appends, and what operators are told."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import switch_events_pb2 as switches
from sabot.table.v1 import switch_pb2
from services.kernel import ask
from services.kernel.call import Call, position_message
from services.kernel.errors import Refused
from services.kernel.event import Position
from services.kernel.grpc_server import method_name
from services.kernel.tokens import Caller, Role
from services.table.domain.floor_state import FloorRound
from services.table.domain.state import Round
from tests.unit.front import FIRST, REPEATED, SAM, UUID7, Door, table_state


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "REPEAT_POLL_S", 0.0)


# ---- operators' orders -------------------------------------------------------------------------

RANGE: dict[str, Any] = {"request_id": UUID7, "table_id": "t1", "round_id": "t1-7"}
WHY: dict[str, Any] = {"reason": tables.ROUND_REASON_EQUIPMENT, "remark": "the scanner"}
ALL = switch_pb2.Switch(scope=switch_pb2.SWITCH_SCOPE_ALL)
ORDERS: list[tuple[Message, Message, Message]] = [
    (
        operators.OpenTableRequest(request_id=UUID7, spec=table_state().spec),
        tables.OpenTable(request_id=UUID7, spec=table_state().spec),
        tables.TableOpened(revision=4),
    ),
    (
        operators.CloseTableRequest(request_id=UUID7, table_id="t1"),
        tables.CloseTable(request_id=UUID7, table_id="t1"),
        tables.TableClosed(),
    ),
    (
        operators.OpenRoundRequest(request_id=UUID7, table_id="t1"),
        tables.OpenRound(request_id=UUID7, table_id="t1", source=tables.SOURCE_OPERATOR),
        tables.RoundOpened(round_id="t1-8"),
    ),
    (
        operators.CloseBettingRequest(**RANGE, device_time=Timestamp(seconds=7, nanos=5_000)),
        tables.CloseBetting(**RANGE, source=tables.SOURCE_OPERATOR, device_time_us=7_000_005),
        tables.BettingClosed(),
    ),
    (
        operators.CorrectCardRequest(**RANGE, **WHY, index=9, card="3H"),
        orders.CorrectCard(**RANGE, **WHY, index=9, card="3H"),
        floor.CardCorrected(read_as="3D"),
    ),
    (
        operators.CorrectOutcomeRequest(**RANGE, **WHY, attempt=2, numbers=[17]),
        orders.CorrectOutcome(**RANGE, **WHY, attempt=2, numbers=[17]),
        floor.OutcomeCorrected(read_as=[18]),
    ),
    (
        operators.SetSwitchRequest(request_id=UUID7, switch=ALL, off=True, reason="an inquiry"),
        switches.SetSwitch(request_id=UUID7, switch=ALL, off=True, reason="an inquiry"),
        switches.SwitchSet(switch=ALL, off=True),
    ),
    (
        operators.SuspendRoundRequest(**RANGE, **WHY),
        tables.SuspendRound(**RANGE, **WHY),
        tables.RoundSuspended(),
    ),
    (
        operators.ResumeRoundRequest(**RANGE, **WHY),
        tables.ResumeRound(**RANGE, **WHY),
        tables.RoundResumed(),
    ),
    (
        operators.VoidRoundRequest(**RANGE, **WHY),
        tables.VoidRound(**RANGE, **WHY),
        tables.RoundVoided(),
    ),
]


SINCE: dict[type[Message], str] = {
    tables.OpenTable: "blackjack_on_floor",
    tables.CloseBetting: "told_when_voided",
}
"""What every edge says since orders are decided so."""


def order(door: Door, request: Message) -> Any:
    name = method_name(type(request).__name__.removesuffix("Request"))
    return getattr(door.operator, name)(request, SAM)


@pytest.mark.parametrize(
    ("request_", "input_", "answer"), ORDERS, ids=lambda each: type(each).__name__
)
async def test_an_order_is_appended_as_given_and_its_answer_told(
    request_: Message, input_: Message, answer: Message
) -> None:
    door = Door(answer)
    told = await order(door, request_)
    assert told.position == position_message(door.edge.position)
    assert not told.replayed
    (asked,) = door.edge.submitted
    assert (asked.service, asked.partner, asked.actor) == ("table", "", "operator:sam")
    refusals: set[type[Message]] = {tables.OrderRejected}
    if isinstance(request_, operators.CorrectCardRequest | operators.CorrectOutcomeRequest):
        refusals |= {floor.FloorRejected}
    assert asked.until == {type(answer), *refusals}
    assert len(asked.body.request_hash) == 32
    asked.body.ClearField("request_hash")
    since = SINCE.get(type(input_))
    if since is not None:
        assert getattr(asked.body, since)
        asked.body.ClearField(since)
    assert asked.body == input_


@pytest.mark.parametrize(
    ("request_", "input_", "answer"), ORDERS, ids=lambda each: type(each).__name__
)
async def test_an_order_that_is_refused_repeated_or_failed_is_told(
    request_: Message, input_: Message, answer: Message, no_pause: None
) -> None:
    rejected = tables.OrderRejected(refusal=tables.REFUSAL_BAD_TABLE_SPEC, detail="no limits")
    with pytest.raises(Refused) as caught:
        await order(Door(rejected), request_)
    assert caught.value.text("en").endswith("no limits.")
    for broken, reason in (
        (log.InputFailed(), "INPUT_FAILED"),
        (log.InputNoted(), "UNEXPECTED_OUTCOME"),
    ):
        with pytest.raises(Refused) as caught:
            await order(Door(broken), request_)
        assert caught.value.reason.name == reason
    field = next(
        field.name
        for field in partners.RequestOutcome.DESCRIPTOR.fields
        if field.message_type is not None
        and field.message_type.full_name == answer.DESCRIPTOR.full_name
    )
    door = Door(REPEATED)
    content: dict[str, Any] = {field: answer}
    door.queries.outcomes[FIRST] = [partners.RequestOutcome(**content)]
    assert (await order(door, request_)).replayed
    door = Door(REPEATED)
    door.queries.outcomes[FIRST] = [partners.RequestOutcome()]
    with pytest.raises(Refused) as caught:
        await order(door, request_)
    assert caught.value.reason.name == "INPUT_FAILED"


async def test_the_revision_and_the_round_opened_are_told() -> None:
    opened = await order(Door(tables.TableOpened(revision=4)), ORDERS[0][0])
    assert opened.revision == 4
    assert (await order(Door(tables.RoundOpened(round_id="t1-8")), ORDERS[2][0])).round_id == "t1-8"


async def test_what_the_kernel_acts_on_is_noted() -> None:
    door = Door(log.InputNoted(), log.InputNoted(), log.InputIgnored())
    door.edge.failed[Position(1, 5, 0)] = Position(1, 5, 0)
    request = operators.ActivateBehaviourRequest(behaviour=2)
    told = await door.operator.activate_behaviour(request, SAM)
    assert told.position == position_message(door.edge.position)
    again = operators.RetryInputRequest(
        failed=entry_pb2.Position(segment=1, sequence=5), reason="mended"
    )
    await door.operator.retry_input(again, SAM)
    first, second = (asked.body for asked in door.edge.submitted)
    assert first == log.ActivateBehaviour(behaviour=2)
    assert second == log.RetryInput(position=again.failed, reason="mended")
    with pytest.raises(Refused) as caught:
        await door.operator.retry_input(again, SAM)
    assert caught.value.reason.name == "INPUT_IGNORED"


async def test_a_retry_of_what_never_failed_is_refused_before_it_is_in_the_log() -> None:
    door = Door(log.InputNoted())
    retry = operators.RetryInputRequest(
        failed=entry_pb2.Position(segment=1, sequence=5, index=2), reason="mended"
    )
    with pytest.raises(Refused) as caught:
        await door.operator.retry_input(retry, SAM)
    assert caught.value.reason.name == "INPUT_NOT_FAILED"
    assert caught.value.text("en").startswith("Nothing failed at 1/5/2:")
    assert door.edge.submitted == []
    # By the name of an earlier retry, what failed at first is retried.
    door.edge.failed[Position(1, 5, 2)] = Position(1, 3, 0)
    await door.operator.retry_input(retry, SAM)
    (asked,) = door.edge.submitted
    assert asked.body.position == entry_pb2.Position(segment=1, sequence=3)


@pytest.mark.parametrize("behaviour", [1, 4])
async def test_a_behaviour_that_would_stop_the_cell_is_refused_before_it_is_in_the_log(
    behaviour: int,
) -> None:
    door = Door(log.InputNoted())
    with pytest.raises(Refused) as caught:
        await door.operator.activate_behaviour(
            operators.ActivateBehaviourRequest(behaviour=behaviour), SAM
        )
    assert caught.value.reason.name == "BEHAVIOUR_NOT_POSSIBLE"
    assert door.edge.submitted == []


async def test_the_behaviours_in_force_and_known_are_told() -> None:
    door = Door()
    told = await door.operator.get_behaviour(operators.GetBehaviourRequest(), SAM)
    assert (told.in_force, told.known) == (door.edge.behaviour, door.edge.known_behaviour) == (1, 3)


async def test_what_had_been_read_is_told_and_the_shoe_may_refuse_a_correction() -> None:
    card, spin = (
        next(one for one in ORDERS if isinstance(one[0], kind))
        for kind in (operators.CorrectCardRequest, operators.CorrectOutcomeRequest)
    )
    assert (await order(Door(card[2]), card[0])).read_as == "3D"
    assert list((await order(Door(spin[2]), spin[0])).read_as) == [18]
    rejected = floor.FloorRejected(round_id="t1-7", refusal=floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT)
    for request in (card[0], spin[0]):
        with pytest.raises(Refused) as caught:
            await order(Door(rejected), request)
        assert caught.value.reason.name == "NOTHING_TO_CORRECT"


# ---- blackjack on the floor --------------------------------------------------------------------


async def test_vis_3_a_card_that_lies_face_down_is_not_named_by_a_correction() -> None:
    door = Door(floor.CardCorrected(read_as="3D"))
    one = door.edge.states["table"].tables["t1"]
    running = Round("t1-7", 7, "t1-s1", seated=True, at_floor=FloorRound(opened_us=0))
    one.running = running
    one.seen = {8: "2S"}
    request = operators.CorrectCardRequest(**RANGE, **WHY, index=9, card="3H")
    with pytest.raises(Refused) as refused:
        await order(door, request)
    assert refused.value.reason.name == "NOTHING_TO_CORRECT"
    assert not door.edge.submitted
    one.seen[9] = "3D"
    assert (await order(door, request)).read_as == "3D"


@pytest.mark.parametrize("request_", [one[0] for one in ORDERS], ids=lambda one: type(one).__name__)
async def test_a_token_gives_orders_at_its_own_tables_alone(request_: Message) -> None:
    door = Door()
    roles = frozenset({Role.SUPERVISOR})
    call = Call(Caller(operator="sam", roles=roles, tables=frozenset({"t2"})), method="a/B")
    name = method_name(type(request_).__name__.removesuffix("Request"))
    with pytest.raises(Refused) as refused:
        await getattr(door.operator, name)(request_, call)
    assert refused.value.reason.name == "TABLE_NOT_BOUND"
    assert not door.edge.submitted
