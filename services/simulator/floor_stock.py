"""The stock room of a simulated floor: packs, wheels and dice are received, put into use, looked at
and destroyed; packs become shoes; shoes that are over are counted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from sabot.shoe.v1 import floor_events_pb2 as floor
from services.games.cards import CARDS
from services.simulator.floor_shoes import Pack, Stock
from services.simulator.floor_telling import Telling
from services.simulator.world import World

MOVEMENTS = (
    floor.MOVEMENT_PUT_INTO_USE,
    floor.MOVEMENT_TAKEN_OUT,
    floor.MOVEMENT_INSPECTED,
    floor.MOVEMENT_REJECTED,
    floor.MOVEMENT_DESTROYED,
)
CARDS_KIND = floor.CONSUMABLE_KIND_CARDS
OTHERS = (floor.CONSUMABLE_KIND_WHEEL, floor.CONSUMABLE_KIND_DICE)


class StockRoom:
    """See the module."""

    def __init__(self, world: World, telling: Telling, stock: Stock, rng: random.Random) -> None:
        self.world = world
        self.telling = telling
        self.stock = stock
        self.rng = rng
        self._asked = telling.callers.asked
        self._numbers: dict[int, int] = {}
        """By kind: how many were received."""

    # ---- what is received and moved ------------------------------------------------------------

    async def receive(self) -> None:
        """A wheel or dice, that a shoe cannot be filled with."""
        await self._register(self.rng.choice(OTHERS), 0)

    async def _register(self, kind: int, decks: int) -> str:
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        name = f"c{kind}-{number}"
        await self.telling.tell(
            floor.RegisterConsumable(
                consumable_id=name, kind=floor.ConsumableKind.ValueType(kind), decks=decks
            )
        )
        return name

    async def look_after(self) -> None:
        """Something is done to something, whether that can be or not."""
        known = list(self.stock.packs.values())
        chance = self.rng.random()
        if chance < 0.25 or not known:
            await self.receive()
        elif chance < 0.4:
            self._asked["consumable registered wrongly"] += 1
            one = self.rng.choice(known)
            wrong_decks = self.rng.random() < 0.5
            await self.telling.tell(
                floor.RegisterConsumable(
                    consumable_id="c-wrong" if wrong_decks else one.consumable_id,
                    kind=CARDS_KIND,
                    decks=0 if wrong_decks else 1,
                )
            )
        else:
            one = self.rng.choice(known)
            movement = self.rng.choice(MOVEMENTS)
            await self._move(one.consumable_id, movement)
            if movement == floor.MOVEMENT_REJECTED and self.rng.random() < 0.6:
                await self._move(one.consumable_id, floor.MOVEMENT_INSPECTED)

    async def _move(self, name: str, movement: floor.Movement.ValueType) -> Message | None:
        tables = [*self.world.tables, "nowhere"]
        return await self.telling.tell(
            floor.MoveConsumable(
                consumable_id=name if self.rng.random() < 0.95 else "c-unknown",
                movement=movement,
                table_id=self.rng.choice(tables) if movement == MOVEMENTS[0] else "",
                reason="simulated",
            )
        )

    # ---- a shoe is filled ----------------------------------------------------------------------

    async def load(self, table_id: str, number: int, *, calm: bool) -> None:
        """Packs become the shoe that a table awaits, sometimes after packs that may not."""
        decks = self.world.tables[table_id].spec.rule_set.decks
        if not calm and self.rng.random() < 0.25:
            self._asked["shoe filled wrongly"] += 1
            await self.telling.tell(self._wrong_load(table_id, number, decks))
        packs = await self._packs(table_id, decks)
        await self.telling.tell(
            floor.LoadShoe(table_id=table_id, number=number, decks=decks, packs=packs)
        )

    async def _packs(self, table_id: str, decks: int) -> list[str]:
        """Usable packs with so many decks; what is missing is received."""
        usable = self.stock.usable(table_id)
        self.rng.shuffle(usable)
        chosen: list[str] = []
        for one in usable:
            if 0 < one.decks <= decks:
                chosen.append(one.consumable_id)
                decks -= one.decks
        if decks:
            chosen.append(await self._register(CARDS_KIND, decks))
        return chosen

    def _wrong_load(self, table_id: str, number: int, decks: int) -> floor.LoadShoe:
        def named(packs: Sequence[Pack]) -> list[str]:
            return [self.rng.choice(packs).consumable_id] if packs else ["c-unknown"]

        known = list(self.stock.packs.values())
        packs: list[str]
        match self.rng.randrange(8):
            case 0:
                packs = ["c-unknown"]
            case 1:
                packs = named([one for one in known if one.destroyed])
            case 2:
                packs = named([one for one in known if one.rejected and not one.destroyed])
            case 3:
                packs = named([one for one in known if self.stock.deals(one)])
            case 4:
                packs = named([one for one in known if one.kind != CARDS_KIND])
            case 5:
                packs, number = named(known), number + self.rng.choice((-1, 1))
            case 6:
                packs, decks = named(known), decks + 1
            case _:
                packs = named(self.stock.usable(table_id)) * 2
        return floor.LoadShoe(table_id=table_id, number=number, decks=decks, packs=packs)

    # ---- a shoe is counted ---------------------------------------------------------------------

    async def count(self, shoe_id: str, *, calm: bool) -> None:
        """What nobody has seen of a shoe goes through the scanner: whole or in parts, sometimes
        with a card too few or too many."""
        one = self.stock.shoes.get(shoe_id)
        if one is None or one.counted:
            return
        cards = one.unseen()
        chance = self.rng.random()
        if calm:
            pass
        elif chance < 0.1 and cards:
            self._asked["card lost before the count"] += 1
            cards.pop(self.rng.randrange(len(cards)))
        elif chance < 0.2:
            self._asked["strange card in the count"] += 1
            cards.append(self.rng.choice(CARDS))
        elif chance < 0.25:
            await self._tell(one, ["0X"], last=False)
        if self.rng.random() < 0.4 and len(cards) > 1:
            half = self.rng.randrange(1, len(cards))
            await self._tell(one, cards[:half], last=False)
            cards = cards[half:]
        await self._tell(one, cards, last=True)

    async def _tell(self, one: Any, cards: list[str], *, last: bool) -> None:
        await self.telling.tell(self.telling.remaining(one, cards, last=last))
