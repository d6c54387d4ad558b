"""A dealer of blackjack on a simulated floor: open cards with their round and place, the hole card
face down, a look at it, its turning over; told late, twice, by hand, wrongly, or out of turn.

What is misread here nobody corrects: a look that the card then contradicts ends in a void.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.shoe.v1 import floor_service_pb2 as floor_service
from services.games.cards import CARDS
from services.simulator.audit_judge import twenty_one
from services.simulator.floor_shoes import PhysicalShoe
from services.simulator.floor_telling import Telling
from services.simulator.world import SeenRound

SET_ASIDE_AFTER = 2
"""A card that was impossible so often goes aside face down."""


class SeatedDealer:
    """See the module. `asked`: how often what was done."""

    def __init__(self, telling: Telling, asked: Counter[str], rng: random.Random) -> None:
        self.telling = telling
        self.rng = rng
        self._asked = asked

    async def deal(
        self,
        awaited: floor_service.Floor,
        running: SeenRound,
        stands: PhysicalShoe,
        *,
        calm: bool,
    ) -> None:
        """Do what the table awaits."""
        if awaited.look:
            await self._look(awaited, running, stands, calm=calm)
        elif awaited.HasField("turn_over"):
            await self._tell(stands, running, awaited.turn_over, calm=calm)
        elif awaited.hands and awaited.hands[0] == rules.HAND_HOLE:
            told = self._laid(stands, running, awaited.next_index)
            if not calm and self.rng.random() < 0.1:
                self._asked["hole card laid twice"] += 1
                again = self._laid(stands, running, awaited.next_index)
                await asyncio.gather(self.telling.tell(told), self.telling.tell(again))
            else:
                await self.telling.tell(told)
        elif awaited.hands:
            await self._tell(stands, running, awaited.next_index, calm=calm)
        elif not calm and running.phase == "dealing" and self.rng.random() < 0.01:
            self._asked["card out of turn"] += 1
            await self._tell(stands, running, awaited.next_index, calm=True)

    def at_once(self, stands: PhysicalShoe, running: SeenRound, place: int) -> None:
        """A card comes out at this very instant, whether called or not."""
        self.telling.put(self._card(stands, running, place))

    def _card(self, of: PhysicalShoe, running: SeenRound, place: int) -> floor.RecordCard:
        by_hand = self.rng.random() < 0.15
        card = of.cards[place]
        return self.telling.card(of, card, index=place, round_id=running.round_id, by_hand=by_hand)

    def _laid(self, of: PhysicalShoe, running: SeenRound, place: int) -> floor.RecordFaceDown:
        told = floor.RecordFaceDown(
            table_id=of.table_id, shoe_id=of.shoe_id, round_id=running.round_id, index=place
        )
        self.telling.sourced(told, f"scanner-{of.table_id}", by_hand=self.rng.random() < 0.2)
        return told

    def _peeked(self, of: PhysicalShoe, running: SeenRound, *, blackjack: bool) -> floor.RecordPeek:
        told = floor.RecordPeek(
            table_id=of.table_id,
            shoe_id=of.shoe_id,
            round_id=running.round_id,
            blackjack=blackjack,
        )
        self.telling.sourced(told, f"peek-{of.table_id}", by_hand=self.rng.random() < 0.5)
        return told

    async def _look(
        self,
        awaited: floor_service.Floor,
        running: SeenRound,
        of: PhysicalShoe,
        *,
        calm: bool,
    ) -> None:
        hole = max(of.rounds.get(running.round_id, [0]))
        true = twenty_one((awaited.up_card, of.cards[hole])) == 21
        chance = 1.0 if calm else self.rng.random()
        if chance < 0.15:
            self._asked["look that is wrong"] += 1
            true = not true
        if 0.1 < chance < 0.4:
            self._asked["looked twice"] += 1
            again = true if self.rng.random() < 0.6 else not true
            told = self._peeked(of, running, blackjack=again)
            await asyncio.gather(
                self.telling.tell(self._peeked(of, running, blackjack=true)),
                self.telling.tell(told),
            )
        else:
            await self.telling.tell(self._peeked(of, running, blackjack=true))

    async def _tell(self, of: PhysicalShoe, running: SeenRound, place: int, *, calm: bool) -> None:
        """An open card, or the hole card as it is turned over."""
        if place >= len(of.cards):
            return
        if of.impossible[place] >= SET_ASIDE_AFTER and place == of.next:
            self._asked["card set aside unread"] += 1
            await self.telling.tell(self.telling.burn(of, shoe.BURN_REASON_DROPPED, face_down=1))
            return
        told = self._card(of, running, place)
        chance = 1.0 if calm else self.rng.random()
        if chance < 0.05:
            self._asked["card misread at blackjack"] += 1
            told.card = self.rng.choice(CARDS)
        elif chance < 0.12:
            self._asked["card read twice"] += 1
            again = self._card(of, running, place)
            again.card = again.card if self.rng.random() < 0.6 else self.rng.choice(CARDS)
            await asyncio.gather(self.telling.tell(told), self.telling.tell(again))
            return
        elif chance < 0.14:
            self._asked["card without its place"] += 1
            told.ClearField(self.rng.choice(("index", "round_id")))
        elif chance < 0.16:
            self._asked["card out of order"] += 1
            told.index = place + self.rng.choice((1, 3))
        elif chance < 0.17:
            told.card = "1Z"
        outcome: Any = await self.telling.tell(told)
        if isinstance(outcome, floor.FloorFaultFound):
            of.impossible[place] += outcome.fault == floor.FLOOR_FAULT_IMPOSSIBLE_CARD
