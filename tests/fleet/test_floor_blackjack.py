"""Blackjack on the floor of a real fleet with a real nats-server: told by the simulator of the
demonstration through the public calls; a hole card that nobody gets into the log; a misread card;
and the log decided again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson

from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.shoe.v1 import floor_service_pb2 as service
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import operator_service_pb2 as operators
from services.cli import demo_floor
from services.cli.fleet import connect
from services.cli.uuid7 import uuid7
from tests.fleet.clients import AGAIN_S, CALL_S, ENDED, PATIENCE_S
from tests.fleet.ledger import read_events
from tests.fleet.test_blackjack import Seated
from tests.fleet.test_floor import DEVICE, MANUAL, Floor, floor_of

TABLE = "floor-blackjack"
ROUNDS = 4
SCANNER, DEALER = "operator:scanner-1", "operator:dana"


@pytest.fixture
async def hall(tmp_path: Path) -> AsyncIterator[Floor]:
    async with floor_of(tmp_path / "data") as one:
        yield one


async def test_blackjack_is_played_from_the_floor(hall: Floor) -> None:
    """Two accounts at three seats, each driven by what WatchTable shows."""
    await hall.north.open_account("ben", 500_00)
    simulated = asyncio.create_task(demo_floor.simulate_shoe(hall.hands, TABLE, 8))
    seated = [
        Seated(hall.north, "ann", {1: 10_00, 5: 4_00}, 1, TABLE),
        Seated(hall.north, "ben", {3: 6_00}, 2, TABLE),
    ]
    try:
        for _ in range(ROUNDS):
            round_id = await hall.boss.open_round(TABLE)
            await asyncio.gather(*(one.sit(round_id) for one in seated))
            async with asyncio.timeout(PATIENCE_S):
                seen, _ = await asyncio.gather(*(one.play(round_id) for one in seated))
            assert seen.state == partner.ROUND_STATE_PAID
            assert [seat.seat for seat in seen.seats] == [1, 3, 5]
            assert {card.source for card in seen.cards} <= {DEVICE, MANUAL}
            assert list(seen.dealer.cards) == list(seen.result.blackjack.dealer_cards)
            if seen.dealer.cards[0][0] in "ATJQK":
                assert seen.hole_look.blackjack == seen.dealer.blackjack
                assert seen.hole_look.source in (DEVICE, MANUAL)
            else:
                assert not seen.HasField("hole_look")
    finally:
        simulated.cancel()
        await asyncio.gather(simulated, return_exceptions=True)
    assert sum(one.acted for one in seated) > 0


class ByHand:
    """A dealer and a scanner who tell what the test says."""

    def __init__(self, hall: Floor) -> None:
        self.hall = hall
        self.round_id = ""

    async def fill(self) -> None:
        packs = [f"pack-{number}" for number in range(1, 9)]
        for pack in packs:
            received = service.RegisterConsumableRequest(
                request_id=uuid7(),
                consumable_id=pack,
                kind=floor.CONSUMABLE_KIND_CARDS,
                decks=1,
                remark="new",
            )
            await self.call(self.hall.calls.RegisterConsumable, received, DEALER)
        loaded = service.LoadShoeRequest(
            request_id=uuid7(), table_id=TABLE, number=1, decks=8, packs=packs
        )
        await self.call(self.hall.calls.LoadShoe, loaded, DEALER)

    async def call(self, method: Any, request: Any, actor: str) -> Any:
        return await method(request, metadata=self.hall.token(actor), timeout=PATIENCE_S)

    async def awaits(self, what: Any) -> service.Floor:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.hall.hands.awaited(TABLE)
                if what(found):
                    return found
                await asyncio.sleep(AGAIN_S)

    def card(self, text: str, index: int | None) -> service.RecordCardRequest:
        request = service.RecordCardRequest(
            request_id=uuid7(),
            table_id=TABLE,
            shoe_id=f"{TABLE}-s1",
            round_id=self.round_id,
            card=text,
        )
        if index is not None:
            request.index = index
        return request

    def named(self, **more: Any) -> dict[str, Any]:
        return {
            "request_id": uuid7(),
            "table_id": TABLE,
            "shoe_id": f"{TABLE}-s1",
            "round_id": self.round_id,
            **more,
        }

    async def deal(self, *cards: str, actor: str = SCANNER) -> None:
        for text in cards:
            index = (await self.awaits(lambda found: bool(found.hands))).next_index
            await self.call(self.hall.calls.RecordCard, self.card(text, index), actor)

    async def refused(self, text: str, index: int | None, actor: str = SCANNER) -> str:
        return await self.hall.refusal(self.hall.calls.RecordCard, self.card(text, index), actor)


async def test_vis_3_no_call_gets_the_hole_card_into_the_log_before_its_time(hall: Floor) -> None:
    """Named early, without its place, while it is called, while it lies face down, by a correction:
    each is refused, and the log knows nothing of it. Behind that a misread card is corrected."""
    by_hand = ByHand(hall)
    await by_hand.fill()
    round_id = by_hand.round_id = await hall.boss.open_round(TABLE)
    await hall.bet(round_id, "main", "2")
    assert await by_hand.refused("KH", 3) == "CARD_FACE_DOWN"
    await hall.boss.close_betting(round_id)
    await by_hand.deal("9C", "AD")
    assert await by_hand.refused("KH", 3) == "CARD_FACE_DOWN"
    assert await by_hand.refused("KH", None, DEALER) == "CARD_PLACE_NOT_NAMED"
    look = service.RecordPeekRequest(**by_hand.named(blackjack=False))
    assert await hall.refusal(hall.calls.RecordPeek, look, DEALER) == "LOOK_NOT_CALLED"
    early = service.RecordFaceDownRequest(**by_hand.named(index=2))
    assert await hall.refusal(hall.calls.RecordFaceDown, early, SCANNER) == "NOT_FACE_DOWN"
    await by_hand.deal("7S")
    await by_hand.awaits(lambda found: list(found.hands) == [rules.HAND_HOLE])
    assert await by_hand.refused("KH", 3) == "CARD_FACE_DOWN"
    laid = service.RecordFaceDownRequest(**by_hand.named(index=3))
    for actor in ("operator:ada", "partner:north"):
        assert await hall.refusal(hall.calls.RecordFaceDown, laid, actor) == "PERMISSION_DENIED"
    told = await by_hand.call(hall.calls.RecordFaceDown, laid, SCANNER)
    assert [card.card for card in told.outcome.dealt.cards] == [""]
    assert await by_hand.refused("KH", 3, DEALER) == "CARD_FACE_DOWN"
    at: dict[str, Any] = {"table_id": TABLE, "round_id": round_id}
    suspend = operators.SuspendRoundRequest(
        request_id=uuid7(), **at, reason=tables.ROUND_REASON_MISREAD
    )
    await by_hand.call(hall.boss.tables.SuspendRound, suspend, "operator:sam")

    def fix(index: int, text: str) -> operators.CorrectCardRequest:
        return operators.CorrectCardRequest(
            request_id=uuid7(), **at, index=index, card=text, reason=tables.ROUND_REASON_MISREAD
        )

    method = hall.boss.tables.CorrectCard
    assert await hall.refusal(method, fix(3, "KH"), "operator:sam") == "NOTHING_TO_CORRECT"
    await assert_unknown(hall, "KH")

    await by_hand.call(method, fix(1, "8D"), "operator:sam")  # The ace was none: no insurance.
    resume = operators.ResumeRoundRequest(
        request_id=uuid7(), **at, reason=tables.ROUND_REASON_CLEARED
    )
    await by_hand.call(hall.boss.tables.ResumeRound, resume, "operator:sam")
    turn = await until_turn(hall, round_id, 2)
    act = partner.ActRequest(
        request_id=uuid7(),
        account_id="ann",
        **at,
        seat=2,
        turn=turn,
        action=rules.ACTION_STAND,
    )
    await hall.north.known(
        lambda: hall.north.bets.Act(act, metadata=hall.north.metadata, timeout=CALL_S)
    )
    found = await by_hand.awaits(lambda found: found.HasField("turn_over"))
    assert (found.turn_over, found.up_card) == (3, "8D")
    await by_hand.call(hall.calls.RecordCard, by_hand.card("KH", 3), DEALER)
    seen = await hall.over(TABLE, round_id)
    assert list(seen.result.blackjack.dealer_cards) == ["8D", "KH"]
    assert seen.corrected
    assert [card.source for card in seen.cards] == [DEVICE, DEVICE, DEVICE, MANUAL]


async def until_turn(hall: Floor, round_id: str, seat: int) -> int:
    """Wait for a turn of a seat that is no offer of insurance; its number."""
    async with asyncio.timeout(PATIENCE_S):
        async for seen in hall.north.rounds(TABLE):
            runs = seen.round_id == round_id and seen.state not in ENDED
            if runs and seen.turn.hand and seat in seen.turn.seats:
                return seen.turn.turn
    raise AssertionError("the table is watched without end")


async def assert_unknown(hall: Floor, card: str) -> None:
    """Nothing in the log holds this card."""
    log = await connect(hall.running.server)
    events = await read_events(log)
    await log.close()
    assert any(isinstance(event.body, floor.RecordFaceDown) for event in events)
    assert any(isinstance(event.body, shoes.CardsDealt) for event in events)
    assert not any(f'"{card}"' in MessageToJson(event.body) for event in events)
