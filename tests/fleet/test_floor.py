"""A wheel and a shoe on the floor of a real fleet with a real nats-server: told by the simulator of
the demonstration through the public calls; late bets, entries of those who may not, and the log
decided again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.shoe.v1 import floor_service_pb2 as service
from sabot.shoe.v1 import floor_service_pb2_grpc
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import operator_service_pb2 as operators
from services.cli import demo_floor
from services.cli.demo_games import DemoTable, floor_tables
from services.cli.fleet import Fleet, connect, fleet
from services.cli.replay import verify
from services.cli.uuid7 import uuid7
from tests.fleet.clients import (
    AGAIN_S,
    CALL_S,
    ENDED,
    PATIENCE_S,
    Operator,
    Partner,
    Servers,
    money,
    reason_of,
)
from tests.fleet.ledger import read_events

ROUNDS = 3
ACTION_MS = 60_000
"""Everybody acts: no turn ends by the clock, however busy the machine is."""
DEPOSIT = 500_00
WHEEL, SHOE = "floor-wheel", "floor-shoe"
DEVICE, MANUAL = shoes.CARD_SOURCE_DEVICE, shoes.CARD_SOURCE_MANUAL
AGAINST = shoes.SPIN_DIRECTION_AGAINST


class Floor:
    """A fleet with two tables on its floor, and those who call it."""

    def __init__(self, running: Fleet) -> None:
        self.running = running
        front_door = Servers(running.address)
        self.north = Partner(front_door, running.tokens["partner:north"])
        self.boss = Operator(front_door, running.tokens["operator:sam"])
        self.calls: floor_service_pb2_grpc.FloorServiceAsyncStub
        self.calls = floor_service_pb2_grpc.FloorServiceStub(front_door.channel)
        self.hands = demo_floor.Hands(front_door.channel, running.tokens, self._patiently)

    async def _patiently(self, call: Callable[[], Awaitable[Any]]) -> Any:
        return await call()

    def token(self, actor: str) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.running.tokens[actor]}"),)

    async def refusal(self, method: Any, request: Any, actor: str) -> str:
        """Why a call of somebody is refused; empty: it is not."""
        try:
            await method(request, metadata=self.token(actor), timeout=PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            return reason_of(error)
        return ""

    async def bet(self, round_id: str, bet: str, position: str = "") -> str:
        request = partner.PlaceBetsRequest(
            request_id=uuid7(),
            account_id="ann",
            table_id=round_id.rpartition("-")[0],
            round_id=round_id,
            bets=[bet_pb2.BetRequest(bet=bet, stake=money(1_00), position=position)],
        )
        answer, _ = await self.north.known(
            lambda: self.north.bets.PlaceBets(request, metadata=self.north.metadata, timeout=CALL_S)
        )
        bet_id: str = answer.bets[0].bet_id
        return bet_id

    async def over(self, table_id: str, round_id: str) -> partner.Round:
        async with asyncio.timeout(PATIENCE_S):
            async for seen in self.north.rounds(table_id):
                if seen.round_id == round_id and seen.state in ENDED:
                    return seen
        raise AssertionError("the table is watched without end")


def by_hand(table: DemoTable) -> spec_pb2.TableSpec:
    """The table with rounds by an operator's call."""
    spec = table.spec()
    spec.pacing.CopyFrom(spec_pb2.Pacing(action_ms=ACTION_MS))
    return spec


@asynccontextmanager
async def floor_of(data: Path) -> AsyncIterator[Floor]:
    """Two tables on the floor, and an account with money."""
    async with fleet(data, port=0) as running:
        one = Floor(running)
        for table in floor_tables():
            await one.boss.open_table(by_hand(table))
        await one.north.open_account("ann", DEPOSIT)
        yield one
        log = await connect(running.server)
        verified = await verify(log)
        await log.close()
        assert verified.right, verified.line()


@pytest.fixture
async def hall(tmp_path: Path) -> AsyncIterator[Floor]:
    async with floor_of(tmp_path / "data") as one:
        yield one


async def test_a_wheel_and_a_shoe_are_played_from_the_floor(hall: Floor) -> None:
    simulated = [
        asyncio.create_task(demo_floor.simulate_wheel(hall.hands, WHEEL)),
        asyncio.create_task(demo_floor.simulate_shoe(hall.hands, SHOE, 8)),
    ]
    try:
        for _ in range(ROUNDS):
            for table_id, bet, position in ((WHEEL, "red", ""), (SHOE, "banker", "")):
                round_id = await hall.boss.open_round(table_id)
                await hall.bet(round_id, bet, position)
                seen = await hall.over(table_id, round_id)
                assert seen.state == partner.ROUND_STATE_PAID
                if table_id == WHEEL:
                    *invalid, last = seen.tosses
                    assert list(last.numbers) == [seen.result.roulette.number]
                    assert last.source == DEVICE
                    assert all(toss.invalid and not toss.numbers for toss in invalid)
                else:
                    assert {card.source for card in seen.cards} <= {DEVICE, MANUAL}
                    assert len(seen.cards) >= 4
    finally:
        for task in simulated:
            task.cancel()
        await asyncio.gather(*simulated, return_exceptions=True)

    listed = await hall.calls.ListConsumables(
        service.ListConsumablesRequest(table_id=SHOE),
        metadata=hall.token("operator:ada"),
        timeout=PATIENCE_S,
    )
    assert [one.state for one in listed.consumables] == [service.CONSUMABLE_STATE_IN_USE] * 8
    told = await hall.calls.ListMovements(
        service.ListMovementsRequest(consumable_id=listed.consumables[0].consumable_id),
        metadata=hall.token("operator:ada"),
        timeout=PATIENCE_S,
    )
    assert [(one.movement, one.actor) for one in told.movements] == [
        (floor.MOVEMENT_UNSPECIFIED, "operator:dana"),
        (floor.MOVEMENT_PUT_INTO_USE, "operator:dana"),
    ]


def now(later_s: float = 0.0) -> Timestamp:
    moment = Timestamp()
    moment.GetCurrentTime()
    moment.FromNanoseconds(moment.ToNanoseconds() + int(later_s * 1e9))
    return moment


async def test_bets_after_the_dealers_call_go_back_and_bad_entries_change_nothing(
    hall: Floor,
) -> None:
    round_id = await hall.boss.open_round(WHEEL)
    in_time = await hall.bet(round_id, "straight", "17")
    taken_back = await hall.bet(round_id, "straight", "18")
    withdrawal = partner.WithdrawBetsRequest(
        request_id=uuid7(),
        account_id="ann",
        table_id=WHEEL,
        round_id=round_id,
        bet_ids=[taken_back],
    )
    noted, _ = await hall.north.known(
        lambda: hall.north.bets.WithdrawBets(
            withdrawal, metadata=hall.north.metadata, timeout=CALL_S
        )
    )
    assert noted.at_close
    called = now()
    await asyncio.sleep(0.05)
    late = await hall.bet(round_id, "straight", "19")
    await bad_entries(hall, round_id)
    close = operators.CloseBettingRequest(
        request_id=uuid7(), table_id=WHEEL, round_id=round_id, device_time=called
    )
    await hall.boss.tables.CloseBetting(
        close, metadata=hall.token("operator:wheel-7"), timeout=PATIENCE_S
    )
    spin = service.RecordSpinRequest(
        request_id=uuid7(),
        table_id=WHEEL,
        round_id=round_id,
        attempt=1,
        number=17,
        turns=4,
        direction=AGAINST,
    )
    await until_called(hall)
    for replayed in (False, True):
        told = await hall.calls.RecordSpin(
            spin, metadata=hall.token("operator:dana"), timeout=PATIENCE_S
        )
        assert told.outcome.spun.source == MANUAL
        assert told.replayed == replayed
    seen = await hall.over(WHEEL, round_id)
    assert seen.tosses[0].source == MANUAL
    events = await read_events_of(hall)
    states = {bet.bet_id: bet.state for bet in await hall.north.list_bets(events, account_id="ann")}
    assert states == {
        in_time: partner.BET_STATE_SETTLED,
        taken_back: partner.BET_STATE_WITHDRAWN,
        late: partner.BET_STATE_LATE,
    }
    available, reserved = await hall.north.balance("ann", at_least=events)
    assert (available, reserved) == (DEPOSIT + 35_00, 0)


async def until_called(hall: Floor) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if (await hall.hands.awaited(WHEEL)).spin:
                return
            await asyncio.sleep(AGAIN_S)


async def read_events_of(hall: Floor) -> Any:
    """Where the log ends now."""
    log = await connect(hall.running.server)
    events = await read_events(log)
    await log.close()
    position = service.GetOrderResponse().position
    position.segment, position.sequence = 1, events[-1].position.sequence
    return position


async def bad_entries(hall: Floor, round_id: str) -> None:
    """Whoever may not tell, and what cannot be: each a refusal of the catalogue."""
    at: dict[str, Any] = {"request_id": uuid7(), "table_id": WHEEL, "round_id": round_id}
    spin: dict[str, Any] = {**at, "attempt": 1, "turns": 4, "direction": AGAINST}
    right = service.RecordSpinRequest(**spin, number=1)
    for actor, request, reason in (
        ("partner:north", right, "PERMISSION_DENIED"),
        ("operator:ada", right, "PERMISSION_DENIED"),
        ("operator:wheel-7", service.RecordSpinRequest(**spin, number=37), "INVALID_REQUEST"),
        ("operator:scanner-1", right, "TABLE_NOT_BOUND"),
        (
            "operator:wheel-7",
            service.RecordSpinRequest(**spin, number=1, device="wheel-8"),
            "DEVICE_NOT_BOUND",
        ),
        (
            "operator:dana",
            service.RecordSpinRequest(**spin, number=1, device="wheel-7"),
            "NOT_A_DEVICE",
        ),
    ):
        assert await hall.refusal(hall.calls.RecordSpin, request, actor) == reason
    close = operators.CloseBettingRequest(**at)
    assert await hall.refusal(hall.boss.tables.CloseBetting, close, "operator:scanner-1") == (
        "TABLE_NOT_BOUND"
    )
    card = service.RecordCardRequest(
        request_id=uuid7(), table_id=SHOE, shoe_id=f"{SHOE}-s1", card="2S"
    )
    assert await hall.refusal(hall.calls.RecordCard, card, "operator:scanner-1") == "SHOE_NOT_FOUND"
    void = operators.VoidRoundRequest(**at, reason=tables.ROUND_REASON_MISDEAL)
    assert await hall.refusal(hall.boss.tables.VoidRound, void, "operator:wheel-7") == (
        "PERMISSION_DENIED"
    )
    fix = operators.CorrectOutcomeRequest(
        **at, attempt=1, numbers=[2], reason=tables.ROUND_REASON_MISREAD
    )
    assert await hall.refusal(hall.boss.tables.CorrectOutcome, fix, "operator:dana") == (
        "PERMISSION_DENIED"
    )
    fix.request_id = uuid7()
    assert await hall.refusal(hall.boss.tables.CorrectOutcome, fix, "operator:sam") == (
        "NOT_SUSPENDED"
    )
