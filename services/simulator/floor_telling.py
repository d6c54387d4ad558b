"""How a simulated floor tells the fleet what it sees: by devices with clocks and delays of their
own and by dealers' hands, at any machine that takes inputs, again after an unknown outcome.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from google.protobuf.message import Message

from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.shoe.v1 import floor_service_pb2 as floor_service
from services.games import roulette, sicbo
from services.kernel.entry import position_proto
from services.shoe.domain.state import ShoeState
from services.shoe.floor_servicer import ORDER_ENDS, awaited_at, call_answered
from services.simulator.asking import Callers, LuckyEdge, hashed
from services.simulator.fleet import Fleet, now_us
from services.simulator.floor_shoes import PhysicalShoe

DEALER = "operator:dana"
SUPERVISOR = "operator:sue"
LAG_US = (0, 120_000)
"""Between what a device sees and its telling."""
TURNS = (3, 9)
"""Of a ball that counts (rule ROU-6)."""


class TrueToss(NamedTuple):
    """What a wheel or dice truly showed."""

    numbers: tuple[int, ...]
    turns: int = 5
    direction: shoe.SpinDirection.ValueType = shoe.SPIN_DIRECTION_AGAINST

    @property
    def counts(self) -> bool:
        """Whether it is no void spin."""
        return self.turns >= TURNS[0] and self.direction == shoe.SPIN_DIRECTION_AGAINST


def drawn_toss(rng: random.Random, game: int) -> TrueToss:
    """A spin or a roll; some spins are void (rule ROU-6)."""
    if game == rule_set_pb2.GAME_SICBO:
        return TrueToss(tuple(rng.randint(1, 6) for _ in range(sicbo.DICE)))
    turns = 2 if rng.random() < 0.06 else rng.randint(*TURNS)
    with_wheel = rng.random() < 0.04
    direction = shoe.SPIN_DIRECTION_WITH if with_wheel else shoe.SPIN_DIRECTION_AGAINST
    return TrueToss((rng.choice(roulette.NUMBERS),), turns, direction)


class Telling:
    """See the module."""

    def __init__(self, fleet: Fleet, callers: Callers, rng: random.Random) -> None:
        self.fleet = fleet
        self.callers = callers
        self.rng = rng
        self._edge = LuckyEdge(fleet, "lucky-floor")

    # ---- what is told --------------------------------------------------------------------------

    def seen_at(self) -> int:
        """A device's time of something that happened just now."""
        return now_us() - self.rng.randint(*LAG_US)

    def card(
        self,
        of: PhysicalShoe,
        card: str,
        *,
        index: int | None,
        round_id: str = "",
        by_hand: bool = False,
    ) -> floor.RecordCard:
        """A card came out."""
        told = floor.RecordCard(
            table_id=of.table_id,
            shoe_id=of.shoe_id,
            round_id=round_id,
            card=card,
            waits_for_held=True,
        )
        if index is not None:
            told.index = index
        self.sourced(told, f"scanner-{of.table_id}", by_hand=by_hand)
        return told

    def toss(
        self, table_id: str, round_id: str, attempt: int, true: TrueToss, *, by_hand: bool = False
    ) -> Any:
        """A wheel or dice came to rest."""
        named: dict[str, Any] = {"table_id": table_id, "round_id": round_id, "attempt": attempt}
        if len(true.numbers) == 1:
            told: Any = shoe.RecordSpin(
                **named, number=true.numbers[0], turns=true.turns, direction=true.direction
            )
        else:
            told = shoe.RecordDice(**named, dice=true.numbers)
        # Edges from before it was compared do not set it.
        told.compared_when_over = self.rng.random() < 0.8
        self.sourced(told, f"sensor-{table_id}", by_hand=by_hand)
        return told

    def burn(
        self,
        of: PhysicalShoe,
        reason: shoe.BurnReason.ValueType,
        *,
        face_down: int = 0,
        cards: tuple[str, ...] = (),
    ) -> floor.RecordBurn:
        """Cards leave the shoe unplayed."""
        told = floor.RecordBurn(
            table_id=of.table_id,
            shoe_id=of.shoe_id,
            reason=reason,
            face_down=face_down,
            cards=cards,
        )
        self.sourced(told, "", by_hand=True)
        return told

    def cut_card(self, of: PhysicalShoe) -> floor.RecordCutCard:
        """The dealer sees the cut card."""
        told = floor.RecordCutCard(table_id=of.table_id, shoe_id=of.shoe_id)
        self.sourced(told, f"scanner-{of.table_id}", by_hand=self.rng.random() < 0.7)
        return told

    def remaining(self, of: PhysicalShoe, cards: list[str], *, last: bool) -> floor.RecordRemaining:
        """Cards that nobody has seen go through the scanner."""
        told = floor.RecordRemaining(
            table_id=of.table_id, shoe_id=of.shoe_id, cards=cards, last=last
        )
        self.sourced(told, f"scanner-{of.table_id}", by_hand=False)
        return told

    def sourced(self, told: Any, device: str, *, by_hand: bool) -> None:
        """Say where it comes from, and by a device's clock when it was seen."""
        if by_hand:
            told.source = shoe.CARD_SOURCE_MANUAL
            return
        told.source, told.device = shoe.CARD_SOURCE_DEVICE, device
        if "device_time_us" in told.DESCRIPTOR.fields_by_name:
            told.device_time_us = self.seen_at()

    # ---- how -----------------------------------------------------------------------------------

    async def tell(self, told: Any, *, request_id: str = "") -> Message | None:
        """Tell until it is known what it came to; None where that stays unknown."""
        self._signed(told, request_id)
        state = self._state()
        if state is not None and "asked_by" in told.DESCRIPTOR.fields_by_name:
            asked_by = call_answered(state, told)
            if asked_by is not None:
                told.asked_by.CopyFrom(position_proto(asked_by))
        return await self.callers.ask(
            "shoe", told, partner="", actor=_actor(told), until=tuple(ORDER_ENDS)
        )

    def put(self, told: Any) -> bool:
        """Tell it at this very instant, right behind what was stored last."""
        self._signed(told, "")
        return self._edge.put("shoe", told, actor=_actor(told))

    def put_order(self, order: Any, actor: str = DEALER) -> bool:
        """The same for an order to the table."""
        self._signed(order, "")
        return self._edge.put("table", order, actor=actor)

    def _signed(self, told: Any, request_id: str) -> None:
        told.request_id = request_id or self.callers.new_id()
        if "asked_by" in told.DESCRIPTOR.fields_by_name:
            told.ClearField("asked_by")  # No part of the request.
        hashed(told)

    def awaited(self, table_id: str) -> floor_service.Floor | None:
        """What a table awaits, as some machine says that may lag behind; None: nothing."""
        state = self._state()
        table = None if state is None else state.tables.get(table_id)
        if state is None or table is None:
            return None
        standing = state.shoes.get(table.shoe_id)
        if not table.floor and (standing is None or standing.floor is None):
            return None
        return awaited_at(state, table, standing)

    def _state(self) -> ShoeState | None:
        machines = self.fleet.hosting("shoe")
        process = self.rng.choice(machines).process if machines else None
        if process is None:
            return None
        state: ShoeState = process.replica("shoe").state.core
        return state


def _actor(told: Any) -> str:
    device = getattr(told, "device", "")
    return f"operator:{device}" if device else DEALER
