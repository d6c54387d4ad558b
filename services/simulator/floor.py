"""Simulated floors: dealers at tables whose cards, spins and dice are told, with the devices beside
them. They look at what their table awaits, as GetFloor says, and tell what lies there: late, twice,
wrongly, too early, by hand, or not at all; and they call "no more bets".

What they cannot tell, they find a way around, as a dealer must: a card that is said to be
impossible again and again is set aside face down.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.shoe.v1 import floor_service_pb2 as floor_service
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.cards import CARDS
from services.simulator.asking import Callers
from services.simulator.fleet import Fleet, now_us
from services.simulator.floor_seats import SeatedDealer
from services.simulator.floor_shoes import PhysicalShoe, Stock
from services.simulator.floor_slips import Slips
from services.simulator.floor_stock import StockRoom
from services.simulator.floor_telling import Telling, TrueToss, drawn_toss
from services.simulator.operators import Operators
from services.simulator.world import Seen, SeenRound, World

LOOK_S = (0.02, 0.06)
"""How often a dealer looks."""
CALL_S = (0.08, 0.4)
"""When the dealer calls "no more bets", after a round has opened."""
SET_ASIDE_AFTER = 2
"""A card that was impossible so often goes aside face down."""
CALL_LAG_US = 250_000
"""Between the call and the telling of it, at most."""
WRONG_CLOCKS_US = (-600_000_000, 2_500_000, 3_600_000_000)
"""Devices whose time of the call cannot be."""
SEATED = rule_set_pb2.GAME_BLACKJACK
TOSSES = (rule_set_pb2.GAME_ROULETTE, rule_set_pb2.GAME_SICBO)
NOTICED = 0.6
"""Of misread outcomes, those for which somebody has the round suspended."""
SPILLED = 0.01
"""Of the cards of a shoe whose cut card nobody enters, those behind which nearly all falls."""
FORESEEN = 0.6
"""Those for which that happens before they are told."""


@dataclass(slots=True)
class Plan:
    """How a round on the floor is to go."""

    calls_at: float
    """When betting is called off, by the loop's time."""
    early: bool
    """Whether something comes out before that."""
    hasty: int
    """Cards drawn before anybody called them."""
    surplus: bool
    """Whether a card more is drawn than the round takes."""
    tosses: dict[int, TrueToss] = field(default_factory=dict)
    """What truly came, by attempt."""
    told: dict[int, list[int]] = field(default_factory=dict)
    """What the log has of it."""


class Floor:
    """See the module."""

    def __init__(
        self,
        fleet: Fleet,
        world: World,
        callers: Callers,
        operators: Operators,
        rng: random.Random,
    ) -> None:
        self.world = world
        self.operators = operators
        self.rng = rng
        self.telling = Telling(fleet, callers, rng)
        self.stock = Stock(rng)
        self.room = StockRoom(world, self.telling, self.stock, rng)
        self.slips = Slips(world, self.telling, self.stock, rng)
        self.plans: dict[str, Plan] = {}
        self._asked = callers.asked
        self.seated = SeatedDealer(self.telling, callers.asked, rng)

    # ---- what goes on --------------------------------------------------------------------------

    async def serve(self, table_id: str) -> None:
        """Stand at a table to its end; there is nothing to do where outcomes are drawn."""
        await self.room.receive()
        while table_id not in self.operators.left:
            await asyncio.sleep(self.rng.uniform(*LOOK_S))
            awaited = self.telling.awaited(table_id)
            one = self.world.tables.get(table_id)
            if awaited is None or one is None:
                continue
            if not self.calm and self.rng.random() < 0.05:
                await self.slips.somewhere(table_id)
            if not self.calm and self.rng.random() < 0.06:
                await self.room.look_after()
            await self._look(table_id, awaited, one.running)

    @property
    def calm(self) -> bool:
        """Whether nothing goes wrong any more: the simulation comes to its end."""
        return self.operators.closing

    async def _look(
        self, table_id: str, awaited: floor_service.Floor, running: SeenRound | None
    ) -> None:
        stands = self.stock.shoes.get(awaited.shoe_id)
        if running is not None and running.floor and running.phase == "betting":
            await self._betting(running, self.plan(running))
        if awaited.uncounted_shoe_id and self.rng.random() < 0.5:
            await self.room.count(awaited.uncounted_shoe_id, calm=self.calm)
        if awaited.awaited_shoe:
            await self.room.load(table_id, awaited.awaited_shoe, calm=self.calm)
        elif stands is not None and awaited.first_card:
            await self._tell_card(stands, "", 0)
        elif stands is not None and awaited.burn:
            await self._first_burn(stands, awaited.burn)
        elif running is not None and running.floor:
            await self._in_round(awaited, running, stands)
        if stands is not None:
            await self._watch_cut_card(stands)

    def plan(self, running: SeenRound) -> Plan:
        """What becomes of a round."""
        plan = self.plans.get(running.round_id)
        if plan is None:
            rng = self.rng
            timed = self.world.tables[running.table_id].spec.pacing.betting_window_ms
            wait_s = 0.0 if self.calm else rng.uniform(*CALL_S)
            if timed and rng.random() < 0.4:
                wait_s = 3600.0  # The table's own clock closes betting.
            plan = self.plans[running.round_id] = Plan(
                asyncio.get_running_loop().time() + wait_s,
                early=rng.random() < 0.06 and not self.calm,
                hasty=rng.choice((0, 0, 0, 0, 0, 0, 1, 2, 10)) if not self.calm else 0,
                surplus=rng.random() < 0.08 and not self.calm,
            )
        return plan

    # ---- no more bets --------------------------------------------------------------------------

    async def _betting(self, running: SeenRound, plan: Plan) -> None:
        """The dealer calls "no more bets", now and then too late: something is out already."""
        left_s = 0.0 if self.calm else plan.calls_at - asyncio.get_running_loop().time()
        if plan.early and left_s < CALL_S[0]:
            plan.early = False
            self._asked["outcome before the call"] += 1
            await self._outcome(running, plan)
        elif left_s <= 0.0 and not running.suspended:
            await self.operators.order(self.call(running), self._by_device())

    def call(self, running: SeenRound) -> table.CloseBetting:
        """The call, with its time as a device has it."""
        rng = self.rng
        order = table.CloseBetting(
            table_id=running.table_id, round_id=running.round_id, source=table.SOURCE_OPERATOR
        )
        order.told_when_voided = True
        if self.calm or rng.random() < 0.12:
            return order
        order.device_time_us = now_us() - rng.randint(0, CALL_LAG_US)
        if rng.random() < 0.06:
            self._asked["call at a time that cannot be"] += 1
            order.device_time_us = now_us() + rng.choice(WRONG_CLOCKS_US)
        return order

    def _by_device(self) -> str:
        return "operator:button-1" if self.rng.random() < 0.5 else "operator:dana"

    # ---- outcomes ------------------------------------------------------------------------------

    async def _in_round(
        self, awaited: floor_service.Floor, running: SeenRound, stands: PhysicalShoe | None
    ) -> None:
        plan = self.plan(running)
        if running.suspended and self.rng.random() < 0.7:
            return  # The dealer waits for the supervisor.
        if awaited.spin or awaited.roll:
            await self._tell_toss(running, plan, awaited.spin or awaited.roll)
        elif stands is None:
            return
        elif running.rule_set.game == SEATED:
            await self.seated.deal(awaited, running, stands, calm=self.calm)
        elif awaited.hands:
            await self._tell_card(stands, running.round_id, awaited.next_index)
        elif running.phase in ("paying", "voided") and plan.surplus:
            plan.surplus = False
            self._asked["a card too many"] += 1
            await self._tell_card(stands, running.round_id, awaited.next_index)

    async def _outcome(self, running: SeenRound, plan: Plan) -> None:
        """Whatever comes out first in a round."""
        stands = self.stock.standing(running.table_id)
        if running.rule_set.game in TOSSES:
            await self._tell_toss(running, plan, 1)
        elif stands is not None and running.rule_set.game == SEATED:
            self.seated.at_once(stands, running, stands.next)
        elif stands is not None:
            await self._tell_card(stands, running.round_id, stands.next)

    async def _tell_toss(self, running: SeenRound, plan: Plan, attempt: int) -> None:
        game = running.rule_set.game
        true = plan.tosses.setdefault(attempt, drawn_toss(self.rng, game))
        named = (running.table_id, running.round_id, attempt)
        if self.calm:
            await self.telling.tell(self.telling.toss(*named, true))
            return
        chance = self.rng.random()
        other = drawn_toss(self.rng, game)
        if chance < 0.06:
            self._asked["spin declared void"] += 1
            declared = floor.DeclareNoSpin(
                table_id=named[0], round_id=named[1], attempt=attempt, remark="ball left the wheel"
            )
            if self.rng.random() < 0.3:
                await self._at_once(declared, self.telling.toss(*named, true))
            else:
                await self.telling.tell(declared)
        elif chance < 0.16:
            self._asked["toss misread"] += 1
            self._foresee(running)
            await self.telling.tell(self.telling.toss(*named, other._replace(turns=5)))
            await self._notice(running)
        elif chance < 0.24:
            self._asked["toss read twice"] += 1
            again = true if self.rng.random() < 0.5 else other
            await self._at_once(
                self.telling.toss(*named, true), self.telling.toss(*named, again, by_hand=True)
            )
        elif chance < 0.27:
            self._asked["toss that cannot be"] += 1
            wrong = (37,) if len(true.numbers) == 1 else self.rng.choice(((1, 2, 7), (1, 2)))
            await self.telling.tell(self.telling.toss(*named, TrueToss(wrong)))
        elif chance < 0.31:
            await self._told_behind_the_call(self.telling.toss(*named, true))
        else:
            by_hand = self.rng.random() < 0.2
            await self.telling.tell(self.telling.toss(*named, true, by_hand=by_hand))

    async def _told_behind_the_call(self, told: Any) -> None:
        """What the device saw before the dealer's call, and tells only now."""
        self._asked["outcome seen before the call, told after it"] += 1
        told.device_time_us = now_us() - self.rng.randint(300_000, 900_000)
        await self.telling.tell(told)

    async def _at_once(self, *told: Any) -> None:
        await asyncio.gather(*(self.telling.tell(one) for one in told))

    def _foresee(self, running: SeenRound) -> None:
        """Somebody has the round suspended at once, so that its result is held."""
        if self.rng.random() < FORESEEN and running.phase == "dealing":
            self.telling.put_order(_suspend(running))

    async def _notice(self, running: SeenRound) -> None:
        """Somebody sees that something was misread."""
        if self.rng.random() < NOTICED and running.phase == "dealing" and not running.suspended:
            await self.operators.order(_suspend(running), "operator:dana")

    # ---- cards ---------------------------------------------------------------------------------

    async def _tell_card(self, of: PhysicalShoe, round_id: str, place: int) -> None:
        """The card at the next place comes out and is told, in one way or another."""
        if place >= len(of.cards):
            return
        true = of.cards[place]
        if of.impossible[place] >= SET_ASIDE_AFTER and of.next > 0:
            self._asked["card set aside unread"] += 1
            burn = self.telling.burn(of, shoe.BURN_REASON_DROPPED, face_down=1)
            await self.telling.tell(burn)
            return
        told = self.telling.card(of, true, index=place, round_id=round_id)
        if not self.calm and not await self._by_a_slip(of, round_id, place, told):
            return
        outcome = await self.telling.tell(told)
        if isinstance(outcome, floor.FloorFaultFound):
            of.impossible[place] += outcome.fault == floor.FLOOR_FAULT_IMPOSSIBLE_CARD

    async def _by_a_slip(
        self, of: PhysicalShoe, round_id: str, place: int, told: floor.RecordCard
    ) -> bool:
        """Whether the card is still to be told as it is."""
        rng = self.rng
        chance = rng.random()
        other = rng.choice(of.spent() or CARDS) if rng.random() < 0.4 else rng.choice(CARDS)
        running = self.world.rounds.get(round_id)
        if chance < 0.09:
            self._asked["card misread"] += 1
            told.card = other
            if running is not None:
                self._foresee(running)
            await self.telling.tell(told)
            if running is not None:
                await self._notice(running)
            return False
        if chance < 0.13:
            self._asked["card read twice"] += 1
            again = told.card if rng.random() < 0.6 else other
            await self._at_once(
                told,
                self.telling.card(of, again, index=place, round_id=round_id, by_hand=True),
            )
            return False
        if chance < 0.15:
            self._asked["card dropped"] += 1
            seen = (told.card,) if rng.random() < 0.5 else ()
            reason = rng.choice((shoe.BURN_REASON_DROPPED, shoe.BURN_REASON_PROCEDURE))
            burn = self.telling.burn(of, reason, face_down=int(not seen), cards=seen)
            await self.telling.tell(burn)
            return False
        if chance < 0.17:
            self._asked["card out of order"] += 1
            told.index = place + rng.choice((1, 3))
        elif chance < 0.19:
            self._asked["card that is none"] += 1
            told.card = "1Z"
        elif chance < 0.21 and round_id:
            told.device_time_us = now_us() - rng.randint(300_000, 900_000)
            self._asked["outcome seen before the call, told after it"] += 1
        elif chance < 0.31:
            told.ClearField("index")
        elif chance < 0.40:
            told.source = shoe.CARD_SOURCE_MANUAL
            told.ClearField("device")
            told.ClearField("device_time_us")
        return True

    async def _first_burn(self, of: PhysicalShoe, cards: int) -> None:
        """As many as the first card says, face down (rule BAC-2); sometimes others first."""
        if not self.calm and self.rng.random() < 0.15:
            self._asked["wrong first burn"] += 1
            wrong = self.rng.choice((cards + 1, max(cards - 1, 1)))
            await self.telling.tell(
                self.telling.burn(of, shoe.BURN_REASON_SHOE_START, face_down=wrong)
            )
            await self.telling.tell(self.telling.card(of, of.cards[1], index=None))
        await self.telling.tell(self.telling.burn(of, shoe.BURN_REASON_SHOE_START, face_down=cards))

    async def _watch_cut_card(self, of: PhysicalShoe) -> None:
        """The dealer enters the cut card once it is out, now and then before that."""
        out = of.next > of.cut_at and not of.forgetful and self.rng.random() < 0.6
        by_slip = self.rng.random() < 0.004 and not self.calm
        if not of.over and (by_slip or (out and not of.cut_told)):
            await self.telling.tell(self.telling.cut_card(of))
        left = len(of.cards) - of.next - self.rng.choice((1, 2, 3))
        if of.forgetful and not of.over and left > 0 and self.rng.random() < SPILLED:
            # Nobody enters the cut card that went with them: the shoe runs out.
            self._asked["shoe spilled"] += 1
            reason = shoe.BURN_REASON_PROCEDURE
            await self.telling.tell(self.telling.burn(of, reason, face_down=left))

    # ---- right behind an event -----------------------------------------------------------------

    def see(self, seen: Seen) -> None:
        """Look at an answer as it is stored; now and then something is told at that instant."""
        self.stock.see(seen)
        body: Any = seen.body
        running = self.world.rounds.get(getattr(body, "round_id", ""))
        if running is None or not running.floor:
            return
        self._note(running, body)
        if not self.calm:
            self._right_behind(running, body)

    def _note(self, running: SeenRound, body: Message) -> None:
        """What the log has of a toss."""
        told = self.plan(running).told
        match body:
            case shoe.WheelSpun():
                told[body.attempt] = [body.number]
            case shoe.DiceRolled():
                told[body.attempt] = list(body.dice)
            case floor.OutcomeCorrected():
                told[body.attempt] = list(body.numbers)
            case _:
                pass

    def _right_behind(self, running: SeenRound, body: Message) -> None:
        rng = self.rng
        match body:
            case wallet.StakeReserved() if rng.random() < 0.04 and running.phase == "betting":
                self._asked["call right behind a stake"] += 1
                self.telling.put_order(self.call(running))
            case table.BettingClosed() if rng.random() < 0.06:
                self._asked["outcome between the call and the seal"] += 1
                self._put_outcome(running)
            case wallet.StakesSealed() if rng.random() < 0.12:
                self._asked["outcome right behind the seal"] += 1
                self._put_outcome(running)
            case rules.DrawCalled() if self.plan(running).hasty:
                plan = self.plan(running)
                drawn, plan.hasty = plan.hasty, 0
                self._asked["cards drawn in haste"] += 1
                for ahead in range(drawn):
                    self._put_outcome(running, ahead)
            case floor.OutcomeHeld() if body.shoe_id and rng.random() < 0.15:
                stands = self.stock.shoes[body.shoe_id]
                burn = self.telling.burn(stands, shoe.BURN_REASON_DROPPED, face_down=1)
                self.telling.put(burn)
            case rules.RoundResolved() if rng.random() < 0.06:
                self._asked["outcome right behind the result"] += 1
                self._put_outcome(running)
            case table.RoundVoided() if rng.random() < 0.15:
                self._asked["outcome right behind a void"] += 1
                self._put_outcome(running)
            case rules.SpinCalled() | rules.RollCalled() if rng.random() < 0.05:
                declared = floor.DeclareNoSpin(
                    table_id=running.table_id, round_id=running.round_id, attempt=body.attempt
                )
                self.telling.put(declared)
            case _:
                pass

    def _put_outcome(self, running: SeenRound, ahead: int = 0) -> None:
        """The next card, or what came of a toss, whether called or not. `ahead`: so many cards came
        out at this instant already."""
        plan, stands = self.plan(running), self.stock.standing(running.table_id)
        if running.rule_set.game in TOSSES:
            attempt = max(plan.tosses, default=1)
            true = plan.tosses.setdefault(attempt, drawn_toss(self.rng, running.rule_set.game))
            named = (running.table_id, running.round_id, attempt)
            self.telling.put(self.telling.toss(*named, true, by_hand=self.rng.random() < 0.3))
        elif stands is None or stands.next + ahead >= len(stands.cards):
            return
        elif running.rule_set.game == SEATED:
            self.seated.at_once(stands, running, stands.next + ahead)
        else:
            card = stands.cards[stands.next + ahead]
            told = self.telling.card(stands, card, index=None, round_id=running.round_id)
            self.telling.put(told)


def _suspend(running: SeenRound) -> table.SuspendRound:
    return table.SuspendRound(
        table_id=running.table_id,
        round_id=running.round_id,
        reason=table.ROUND_REASON_MISREAD,
    )
