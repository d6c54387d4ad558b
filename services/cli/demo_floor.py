"""A SIMULATOR of a floor, for the demonstration alone: no device stands behind it.

It plays the parts of a wheel's sensor, a shoe's scanner and the dealer beside them, with a ball and
cards of its own imagination, and tells the fleet of them through the public calls, as a real floor
would: the dealer fills the shoe, calls "no more bets" and enters burns and the cut card; the sensor
and the scanner tell what they see. Now and then a spin has too few turns, and must be spun again;
now and then the scanner fails to read a card, and the dealer enters it by hand. At blackjack the
scanner lets the hole card pass unread, and tells whether it makes a blackjack where that is asked.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import (
    events_pb2,
    floor_events_pb2,
    floor_service_pb2,
    floor_service_pb2_grpc,
    shoe_service_pb2,
    shoe_service_pb2_grpc,
)
from sabot.table.v1 import operator_service_pb2, operator_service_pb2_grpc
from services.cli.uuid7 import uuid7
from services.games import roulette
from services.games.blackjack import is_blackjack
from services.games.cards import pack

DEALER, SENSOR, SCANNER = "operator:dana", "operator:wheel-7", "operator:scanner-1"
LOOK_S = 0.05
"""How often the simulated floor looks at what is awaited."""
CALL_AFTER_S = 0.9
"""When the dealer calls "no more bets", before the window's own end."""
SPIN_S = 0.4
"""How long the ball runs on."""
CARD_S = 0.04
"""How long it takes to draw a card."""
FEW_TURNS = 0.1
"""Of spins that have too few turns (rule ROU-6)."""
UNREAD = 0.05
"""Of cards that the scanner cannot read."""
CALL_S = 5.0
"""Deadline of every call."""

Patiently = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]
_Metadata = tuple[tuple[str, str], ...]


class Hands:
    """The calls of the simulated floor, by whoever makes them."""

    def __init__(
        self, channel: grpc.aio.Channel, tokens: Mapping[str, str], until_known: Patiently
    ) -> None:
        self.floor: floor_service_pb2_grpc.FloorServiceAsyncStub
        self.floor = floor_service_pb2_grpc.FloorServiceStub(channel)
        self.shoe: shoe_service_pb2_grpc.ShoeServiceAsyncStub
        self.shoe = shoe_service_pb2_grpc.ShoeServiceStub(channel)
        self.table: operator_service_pb2_grpc.TableOperatorServiceAsyncStub
        self.table = operator_service_pb2_grpc.TableOperatorServiceStub(channel)
        self._until_known = until_known
        self._metadata: dict[str, _Metadata] = {
            who: (("authorization", f"Bearer {tokens[who]}"),) for who in (DEALER, SENSOR, SCANNER)
        }

    async def call(self, who: str, method: Any, request: Any) -> Any:
        """Make a call until its outcome is known."""
        metadata = self._metadata[who]
        return await self._until_known(lambda: method(request, metadata=metadata, timeout=CALL_S))

    async def tell(self, who: str, method: Any, request: Any) -> Any:
        """Tell of something. What is refused has come too late, or a predecessor told it already:
        the next look at the table says how it goes on."""
        with suppress(grpc.aio.AioRpcError):
            return await self.call(who, method, request)
        return None

    async def awaited(self, table_id: str) -> floor_service_pb2.Floor:
        """What the table awaits."""
        request = floor_service_pb2.GetFloorRequest(table_id=table_id)
        found: floor_service_pb2.Floor = (
            await self.call(DEALER, self.floor.GetFloor, request)
        ).floor
        return found


def _now() -> Timestamp:
    """A device's clock: the simulator's own."""
    moment = Timestamp()
    moment.FromNanoseconds(time.time_ns())
    return moment


class Dealer:
    """Calls "no more bets" in each round of a table, once."""

    def __init__(self, hands: Hands, table_id: str) -> None:
        self._hands = hands
        self._table_id = table_id
        self._round_id = ""
        self._call_at = 0.0

    async def look(self, awaited: floor_service_pb2.Floor) -> None:
        """Call, if it is time."""
        now = asyncio.get_running_loop().time()
        if awaited.round_id != self._round_id:
            self._round_id, self._call_at = awaited.round_id, now + CALL_AFTER_S
        elif self._round_id and now >= self._call_at > 0.0:
            self._call_at = 0.0
            request = operator_service_pb2.CloseBettingRequest(
                request_id=uuid7(),
                table_id=self._table_id,
                round_id=self._round_id,
                device_time=_now(),
            )
            await self._hands.tell(DEALER, self._hands.table.CloseBetting, request)


async def simulate_wheel(hands: Hands, table_id: str) -> None:
    """A wheel with its sensor, until cancelled."""
    dealer = Dealer(hands, table_id)
    chance = random.Random()  # noqa: S311 - a simulated ball, not a draw of the fleet
    while True:
        awaited = await hands.awaited(table_id)
        await dealer.look(awaited)
        if awaited.spin:
            await asyncio.sleep(SPIN_S)
            request = floor_service_pb2.RecordSpinRequest(
                request_id=uuid7(),
                table_id=table_id,
                round_id=awaited.round_id,
                attempt=awaited.spin,
                number=chance.choice(roulette.NUMBERS),
                turns=chance.randint(3, 9) if chance.random() > FEW_TURNS else 2,
                direction=events_pb2.SPIN_DIRECTION_AGAINST,
                device_time=_now(),
            )
            await hands.tell(SENSOR, hands.floor.RecordSpin, request)
        await asyncio.sleep(LOOK_S)


class ShoeOfCards:
    """The cards of a simulated shoe: what is in it, and what went face down."""

    def __init__(self, decks: int, chance: random.Random) -> None:
        self._decks = decks
        self._chance = chance
        self.shoe_id = ""
        self.left: list[str] = []
        """In dealing order."""
        self.aside: list[str] = []
        """Burned face down."""
        self.cut_at = 0
        """How many cards stand before the cut card."""
        self.cut = False
        """Whether the cut card is out."""
        self.hole = ""
        """Blackjack: the card that lies face down."""
        self.hole_of = ""
        """The round in which it does."""

    def fill(self, shoe_id: str, seen: Sequence[str] = (), gone: int = 0) -> None:
        """All cards but those that were seen; so many had left it, seen or not."""
        cards = list((Counter(pack(self._decks)) - Counter(seen)).elements())
        self._chance.shuffle(cards)
        hidden = max(gone - len(seen), 0)
        self.shoe_id, self.aside, self.left = shoe_id, cards[:hidden], cards[hidden:]
        self.cut = False
        self.hole = self.hole_of = ""

    def lay_face_down(self, round_id: str) -> None:
        """The next card is the hole card of a round."""
        self.hole, self.hole_of = self.left.pop(0), round_id

    def take_up_hole(self, awaited: floor_service_pb2.Floor) -> str:
        """The hole card of the running round. One that a predecessor laid down was of its own
        imagination: then any will do that fits what it told of it."""
        if self.hole_of != awaited.round_id:
            self.put_hole_aside()
            fitting = [
                card
                for card in (*self.aside, *self.left)
                if not awaited.HasField("looked")
                or is_blackjack((awaited.up_card, card)) == awaited.looked
            ]
            self.hole, self.hole_of = fitting[0], awaited.round_id
            if self.hole in self.aside:
                self.aside.remove(self.hole)
            else:
                self.left[self.left.index(self.hole)] = self.aside.pop()
        return self.hole

    def put_hole_aside(self) -> None:
        """The hole card was never turned over."""
        if self.hole:
            self.aside.append(self.hole)
        self.hole = self.hole_of = ""


async def simulate_shoe(hands: Hands, table_id: str, decks: int) -> None:
    """A shoe with its scanner and its dealer, until cancelled."""
    chance = random.Random()  # noqa: S311 - simulated cards, not a draw of the fleet
    cards, dealer = ShoeOfCards(decks, chance), Dealer(hands, table_id)
    packs = [f"{table_id}-pack-{number}" for number in range(1, decks + 1)]
    await asyncio.gather(*(_register(hands, name) for name in packs))
    while True:
        awaited = await hands.awaited(table_id)
        await dealer.look(awaited)
        if awaited.uncounted_shoe_id and awaited.uncounted_shoe_id == cards.shoe_id:
            await _count(hands, table_id, cards)
        elif awaited.awaited_shoe:
            await _load(hands, table_id, awaited.awaited_shoe, packs)
        elif awaited.shoe_id:
            if awaited.shoe_id != cards.shoe_id:
                await _take_over(hands, awaited.shoe_id, cards)
            await _deal(hands, awaited, cards, chance)
        await asyncio.sleep(LOOK_S)


async def _register(hands: Hands, pack: str) -> None:
    """A pack was received."""
    request = floor_service_pb2.RegisterConsumableRequest(
        request_id=uuid7(),
        consumable_id=pack,
        kind=floor_events_pb2.CONSUMABLE_KIND_CARDS,
        decks=1,
        remark="imagined by the demonstration",
    )
    await hands.tell(DEALER, hands.floor.RegisterConsumable, request)


async def _load(hands: Hands, table_id: str, number: int, packs: Sequence[str]) -> None:
    """The dealer fills the shoe with the table's own packs."""
    request = floor_service_pb2.LoadShoeRequest(
        request_id=uuid7(), table_id=table_id, number=number, decks=len(packs), packs=packs
    )
    await hands.tell(DEALER, hands.floor.LoadShoe, request)


async def _take_over(hands: Hands, shoe_id: str, cards: ShoeOfCards) -> None:
    """A shoe that stands at the table: new, or of a demonstration before this one."""
    request = shoe_service_pb2.GetShoeRequest(shoe_id=shoe_id)
    found = await hands.tell(DEALER, hands.shoe.GetShoe, request)
    if found is not None:
        cards.fill(shoe_id, [one.card for one in found.opened], found.gone)
        cards.cut_at, cards.cut = found.cut_at, found.gone > found.cut_at


async def _deal(
    hands: Hands,
    awaited: floor_service_pb2.Floor,
    cards: ShoeOfCards,
    chance: random.Random,
) -> None:
    """What the shoe awaits: its first card, its burn, cards for hands, a look at the hole card, or
    its turning over."""
    shoe: dict[str, Any] = {"table_id": awaited.table_id, "shoe_id": awaited.shoe_id}
    if awaited.burn:
        burn = floor_service_pb2.RecordBurnRequest(
            request_id=uuid7(),
            **shoe,
            reason=events_pb2.BURN_REASON_SHOE_START,
            face_down=awaited.burn,
        )
        if await hands.tell(DEALER, hands.floor.RecordBurn, burn) is not None:
            cards.aside += cards.left[: awaited.burn]
            del cards.left[: awaited.burn]
    elif awaited.look or awaited.HasField("turn_over"):
        await _hole(hands, awaited, cards, chance)
    else:
        called = [rules.HAND_UNSPECIFIED] if awaited.first_card else list(awaited.hands)
        for index, hand in enumerate(called[: len(cards.left)], awaited.next_index):
            await asyncio.sleep(CARD_S)
            if not await _draw(hands, awaited, cards, chance, index, hand):
                break  # The next look says how it goes on.


async def _draw(
    hands: Hands,
    awaited: floor_service_pb2.Floor,
    cards: ShoeOfCards,
    chance: random.Random,
    index: int,
    hand: rules.Hand.ValueType,
) -> bool:
    """The next card comes out, for a hand; whether the table took it. The dealer sees the cut card
    behind it (rule BAC-3)."""
    shoe: dict[str, Any] = {"table_id": awaited.table_id, "shoe_id": awaited.shoe_id}
    named: dict[str, Any] = {
        **shoe,
        "request_id": uuid7(),
        "round_id": awaited.round_id,
        "index": index,
    }
    if hand == rules.HAND_HOLE:
        laid = floor_service_pb2.RecordFaceDownRequest(**named, device_time=_now())
        if await hands.tell(SCANNER, hands.floor.RecordFaceDown, laid) is None:
            return False
        cards.put_hole_aside()
        cards.lay_face_down(awaited.round_id)
    else:
        seen = floor_service_pb2.RecordCardRequest(**named, card=cards.left[0])
        unread = chance.random() < UNREAD
        if not unread:
            seen.device_time.CopyFrom(_now())
        who = DEALER if unread else SCANNER
        if await hands.tell(who, hands.floor.RecordCard, seen) is None:
            return False
        del cards.left[0]
    if index >= cards.cut_at and not cards.cut:
        cards.cut = True
        cut = floor_service_pb2.RecordCutCardRequest(**shoe, request_id=uuid7())
        await hands.tell(DEALER, hands.floor.RecordCutCard, cut)
    return True


async def _hole(
    hands: Hands, awaited: floor_service_pb2.Floor, cards: ShoeOfCards, chance: random.Random
) -> None:
    """The hole card is looked at, or turned over."""
    await asyncio.sleep(CARD_S)
    card = cards.take_up_hole(awaited)
    who = DEALER if chance.random() < UNREAD else SCANNER
    named: dict[str, Any] = {
        "request_id": uuid7(),
        "table_id": awaited.table_id,
        "shoe_id": awaited.shoe_id,
        "round_id": awaited.round_id,
    }
    if awaited.look:
        look = floor_service_pb2.RecordPeekRequest(
            **named, blackjack=is_blackjack((awaited.up_card, card))
        )
        await hands.tell(who, hands.floor.RecordPeek, look)
        return
    turned = floor_service_pb2.RecordCardRequest(**named, index=awaited.turn_over, card=card)
    if await hands.tell(who, hands.floor.RecordCard, turned) is not None:
        cards.hole = cards.hole_of = ""


async def _count(hands: Hands, table_id: str, cards: ShoeOfCards) -> None:
    """Burned and remaining cards go through the scanner."""
    request = floor_service_pb2.RecordRemainingRequest(
        request_id=uuid7(),
        table_id=table_id,
        shoe_id=cards.shoe_id,
        cards=[*cards.aside, *cards.left, *filter(None, [cards.hole])],
        last=True,
    )
    await hands.tell(SCANNER, hands.floor.RecordRemaining, request)
    cards.shoe_id = ""
