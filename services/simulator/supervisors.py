"""Simulated supervisors of a floor: they look at rounds that stand still, say what was misread, and
resume or void; in haste they say things that are wrong, or that are not theirs to say yet.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from services.games.baccarat import value
from services.games.cards import CARDS
from services.simulator.floor import SEATED, TOSSES, Floor
from services.simulator.floor_telling import SUPERVISOR, drawn_toss
from services.simulator.operators import Operators
from services.simulator.world import Seen, SeenRound

VOID_REASONS = (
    table.ROUND_REASON_DEALER_ERROR,
    table.ROUND_REASON_MISDEAL,
    table.ROUND_REASON_DROPPED_CARD,
    table.ROUND_REASON_EARLY_OUTCOME,
    table.ROUND_REASON_TABLE_CLOSING,
)
WAIT_S = (0.02, 0.3)
LONG_WAIT_S = (0.3, 0.8)
"""Before somebody comes; now and then longer than a suspension may last."""
CORRECTS = 0.85
"""Of misread outcomes, those which the supervisor sees."""
VOIDS = 0.15


class Supervisors:
    """See the module."""

    def __init__(self, operators: Operators, floor: Floor, rng: random.Random) -> None:
        self.operators = operators
        self.floor = floor
        self.rng = rng
        self._asked = operators.callers.asked

    async def supervise(self, running: SeenRound) -> None:
        """Bring a round that stands still to an end, or let it go on."""
        rng = self.rng
        calm = self.operators.closing
        await asyncio.sleep(rng.uniform(*(LONG_WAIT_S if rng.random() < 0.15 else WAIT_S)))
        about: dict[str, Any] = {"table_id": running.table_id, "round_id": running.round_id}
        for order in self._corrections(running) if calm or rng.random() < CORRECTS else ():
            if not calm and rng.random() < 0.12:
                await self._wrongly(running)
            self._asked["correction"] += 1
            await self.order(order)
        if not calm and rng.random() < (0.5 if self._drew(running) else 0.08):
            await self._wrongly(running)
        if rng.random() < VOIDS:
            await self.order(table.VoidRound(**about, reason=rng.choice(VOID_REASONS)))
        else:
            resume = table.ResumeRound(**about, reason=table.ROUND_REASON_CLEARED)
            await self.order(resume)

    async def order(self, order: Any) -> None:
        """Give an order as a supervisor."""
        await self.operators.order(order, SUPERVISOR)

    def _corrections(self, running: SeenRound) -> Sequence[Any]:
        """What the log has otherwise than it is."""
        about: dict[str, Any] = {
            "table_id": running.table_id,
            "round_id": running.round_id,
            "reason": table.ROUND_REASON_MISREAD,
        }
        if running.rule_set.game in TOSSES:
            plan = self.floor.plan(running)
            return [
                orders.CorrectOutcome(
                    **about, attempt=attempt, numbers=plan.tosses[attempt].numbers
                )
                for attempt, told in plan.told.items()
                if attempt in plan.tosses and tuple(told) != plan.tosses[attempt].numbers
            ]
        if running.rule_set.game == SEATED:
            return []
        stands = self.floor.stock.standing(running.table_id)
        misread = stands.misread(running.round_id) if stands is not None else []
        return [orders.CorrectCard(**about, index=place, card=card) for place, card in misread]

    def _places(self, running: SeenRound) -> Sequence[int]:
        """Where in the shoe the cards of a round were that lie or are held."""
        stands = self.floor.stock.standing(running.table_id)
        return stands.rounds.get(running.round_id, ()) if stands is not None else ()

    def _seen(self, running: SeenRound) -> Mapping[int, str]:
        """By place: the cards that the log knows of the shoe that stands there."""
        stands = self.floor.stock.standing(running.table_id)
        return stands.told if stands is not None else {}

    def _lies(self, running: SeenRound) -> int:
        """How many cards of baccarat lie; 0: another game, or not told from the floor."""
        if running.rule_set.game != rule_set_pb2.GAME_BACCARAT:
            return 0
        return len(self._places(running))

    def _drew(self, running: SeenRound) -> bool:
        """Whether a third card of baccarat lies: a correction may change whose it is."""
        return self._lies(running) > 4

    def _to_a_natural(self, running: SeenRound) -> orders.CorrectCard:
        """The player's first card was another one, with which there is a natural."""
        first, _, second, *_ = self._places(running)
        held = value(self._seen(running)[second])
        return orders.CorrectCard(
            table_id=running.table_id,
            round_id=running.round_id,
            reason=table.ROUND_REASON_MISREAD,
            index=first,
            card=self.rng.choice([one for one in CARDS if (held + value(one)) % 10 >= 8]),
        )

    async def _wrongly(self, running: SeenRound) -> None:
        """A correction of what is right, of nothing, or to what cannot be; or two at once."""
        one = self._any_correction(running)
        if one is None:
            return
        self._asked["wrong correction"] += 1
        if self.rng.random() < 0.5:
            await asyncio.gather(self.order(one), self.order(self._any_correction(running)))
        else:
            await self.order(one)

    def _any_correction(self, running: SeenRound) -> Any:
        """Some correction, mostly of something that is told of this round."""
        rng = self.rng
        about: dict[str, Any] = {
            "table_id": running.table_id,
            "round_id": running.round_id,
            "reason": table.ROUND_REASON_MISREAD,
        }
        if running.rule_set.game in TOSSES:
            told = self.floor.plan(running).told
            numbers = rng.choice(
                (drawn_toss(rng, running.rule_set.game).numbers, (99,), *map(tuple, told.values()))
            )
            attempt = rng.choice([*told, 9])
            return orders.CorrectOutcome(**about, attempt=attempt, numbers=numbers)
        if running.rule_set.game == SEATED:  # There is no such thing: it is refused.
            return orders.CorrectOutcome(**about, attempt=1, numbers=[1])
        places, seen = self._places(running), self._seen(running)
        place = rng.choice([*places, *places, 0])
        known = [seen[place]] if place in seen else []
        card = rng.choice((rng.choice(CARDS), rng.choice(CARDS), "0X", *known))
        return orders.CorrectCard(**about, index=place, card=card)

    # ---- right behind an event -----------------------------------------------------------------

    def see(self, seen: Seen) -> None:
        """Now and then somebody corrects, or lets go on, what is not theirs to decide yet."""
        body: Any = seen.body
        running = self.floor.world.rounds.get(getattr(body, "round_id", ""))
        if running is None or self.operators.closing:
            return
        rng, put = self.rng, self.floor.telling.put_order
        about: dict[str, Any] = {"table_id": running.table_id, "round_id": running.round_id}
        match body:
            case orders.CardCorrectionOrdered() | orders.OutcomeCorrectionOrdered():
                if rng.random() < 0.15:
                    self._asked["order while a correction is under way"] += 1
                    again = table.ResumeRound(**about, reason=table.ROUND_REASON_CLEARED)
                    put(rng.choice((again, self._any_correction(running))), SUPERVISOR)
            case rules.DrawCalled() if self._lies(running) == 4 and rng.random() < 0.2:
                # With a natural, no third card is called.
                self._asked["natural found behind a third card's call"] += 1
                suspend = table.SuspendRound(**about, reason=table.ROUND_REASON_MISREAD)
                put(suspend, SUPERVISOR)
                put(self._to_a_natural(running), SUPERVISOR)
            case rules.DrawCalled() | rules.SpinCalled() if rng.random() < 0.03:
                self._asked["order that nothing waits for"] += 1
                put(table.ResumeRound(**about, reason=table.ROUND_REASON_CLEARED), SUPERVISOR)
            case shoe.CardsDealt() if running.floor and self._drew(running) and rng.random() < 0.25:
                order = table.SuspendRound(**about, reason=table.ROUND_REASON_MISREAD)
                put(order, SUPERVISOR)
            case table.ResultAccepted() | rules.RoundResolved() if rng.random() < 0.06:
                self._asked["correction that is refused"] += 1
                put(self._any_correction(running), SUPERVISOR)
            case rules.ActionCalled() | table.RoundVoided() if rng.random() < 0.02:
                self._asked["correction that is refused"] += 1
                put(self._any_correction(running), SUPERVISOR)
            case _:
                pass
