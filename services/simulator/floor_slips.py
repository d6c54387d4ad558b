"""What is told from a simulated floor although it cannot be, or is nobody's to tell: each is
refused with its reason, and changes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.games.cards import CARDS
from services.simulator.asking import request_id
from services.simulator.fleet import now_us
from services.simulator.floor_shoes import PhysicalShoe, Stock
from services.simulator.floor_telling import Telling, TrueToss
from services.simulator.world import World

NOWHERE = PhysicalShoe("nowhere-s1", "nowhere", 1, 45, list(CARDS), forgetful=False)
DAY_US = 25 * 3600 * 1_000_000
AHEAD_US = 120 * 1_000_000


class Slips:
    """See the module."""

    def __init__(self, world: World, telling: Telling, stock: Stock, rng: random.Random) -> None:
        self.world = world
        self.telling = telling
        self.stock = stock
        self.rng = rng
        self._last: Any = None
        """What was told last by a slip, with its request id."""
        self._kinds: tuple[Callable[[str], Any], ...] = (
            self._stray_card,
            self._stray_card,
            self._stray_toss,
            self._stray_toss,
            self._stray_burn,
            self._stray_cut_card,
            self._stray_count,
            self._stray_load,
            self._second_reading,
            self._second_reading,
        )

    async def somewhere(self, table_id: str) -> None:
        """Tell something that cannot be, or with an id that must not be used."""
        told = self.rng.choice(self._kinds)(table_id)
        if told is None:
            return
        chance = self.rng.random()
        if chance < 0.06:
            await self.telling.tell(told, request_id=request_id(self.rng, now_us() - DAY_US))
        elif chance < 0.12:
            await self.telling.tell(told, request_id=request_id(self.rng, now_us() + AHEAD_US))
        elif chance < 0.3 and self._last is not None:
            again = self._last if self.rng.random() < 0.4 else told
            await self.telling.tell(again, request_id=self._last.request_id)
        else:
            await self.telling.tell(told)
            self._last = told

    def _shoe(self, table_id: str) -> PhysicalShoe:
        """A shoe somewhere: here, over, sealed by a custodian, or nowhere."""
        here = self.stock.standing(table_id)
        over = [one for one in self.stock.shoes.values() if one.table_id == table_id and one.over]
        chance = self.rng.random()
        if chance < 0.4 and here is not None:
            return here
        if chance < 0.6 and over:
            return self.rng.choice(over)
        if chance < 0.8:
            other = self.rng.choice(list(self.world.tables))
            return PhysicalShoe(f"{other}-s1", other, 1, 45, list(CARDS), forgetful=False)
        if chance < 0.9:
            return PhysicalShoe(f"{table_id}-s99", table_id, 1, 45, list(CARDS), forgetful=False)
        return NOWHERE

    def _stray_card(self, table_id: str) -> Any:
        """A card between rounds, for a round that is over, or of no shoe here."""
        of = self._shoe(table_id)
        rounds = [one.round_id for one in self.world.rounds.values() if one.table_id == table_id]
        if of.shoe_id in self.stock.shoes and not of.over:
            running = self.world.tables[table_id].running
            if of.next >= len(of.cards) or (running is not None and self.rng.random() < 0.8):
                return None
            round_id = self.rng.choice(rounds) if rounds and self.rng.random() < 0.4 else ""
            return self.telling.card(of, of.cards[of.next], index=of.next, round_id=round_id)
        return self.telling.card(of, self.rng.choice(CARDS), index=None)

    def _second_reading(self, table_id: str) -> Any:
        """A card that is out already is read once more."""
        of = self.stock.standing(table_id)
        if of is None or not of.next or len(of.told) < of.next:
            return None  # What lies face down is not read.
        place = self.rng.randrange(of.next)
        known = of.told.get(place, of.cards[place])
        card = known if self.rng.random() < 0.7 else self.rng.choice(CARDS)
        return self.telling.card(of, card, index=place)

    def _stray_toss(self, table_id: str) -> Any:
        """A spin or a roll that nobody called, at some table; or one more word about one."""
        running = self.world.tables[table_id].running
        other = self.rng.choice([*self.world.tables, "nowhere"])
        here = running is not None and self.rng.random() < 0.6
        round_id = running.round_id if running is not None and here else f"{other}-1"
        named = (table_id if here else other, round_id, self.rng.choice((1, 2, 9)))
        if self.rng.random() < 0.4:
            return floor.DeclareNoSpin(table_id=named[0], round_id=named[1], attempt=named[2])
        numbers = self.rng.choice(((17,), (0,), (1, 2, 3), (6, 6, 6), (99,)))
        return self.telling.toss(*named, TrueToss(numbers))

    def _stray_burn(self, table_id: str) -> Any:
        of = self._shoe(table_id)
        reason = self.rng.choice(
            (
                shoe.BURN_REASON_SHOE_START,
                shoe.BURN_REASON_ROUND_OVER,
                shoe.BURN_REASON_DROPPED,
                shoe.BURN_REASON_PROCEDURE,
            )
        )
        known = list(of.told.values())
        cards = self.rng.choice(((), ("0X",), (self.rng.choice(known or CARDS),) * 2))
        face_down = self.rng.choice((1, 2, 500)) if not cards or self.rng.random() < 0.2 else 0
        return self.telling.burn(of, reason, face_down=face_down, cards=cards)

    def _stray_cut_card(self, table_id: str) -> Any:
        of = self._shoe(table_id)
        here = of.shoe_id in self.stock.shoes
        return None if here and not of.cut_told and not of.over else self.telling.cut_card(of)

    def _stray_count(self, table_id: str) -> Any:
        of = self._shoe(table_id)
        here = of.shoe_id in self.stock.shoes and of.over and not of.counted
        return None if here else self.telling.remaining(of, [self.rng.choice(CARDS)], last=True)

    def _stray_load(self, table_id: str) -> Any:
        other = self.rng.choice([table_id, *self.world.tables, "nowhere"])
        return floor.LoadShoe(table_id=other, number=1, decks=1, packs=["c1-1"])
