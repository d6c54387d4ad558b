"""What happens right behind a certain event of a round: the gaps of the pipeline.

For some rounds the director picks an event and a deed. The instant the event is stored, before any
service can read it, the deed is done: an input stands right behind it, a machine dies, a snapshot
is taken.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.asking import Callers, LuckyEdge, hashed
from services.simulator.fleet import Fleet
from services.simulator.tables import CURRENCY
from services.simulator.wagers import plain
from services.simulator.world import Seen, World

GAPS: tuple[type[Message], ...] = (
    table.RoundOpened,
    table.BetsPlaced,
    limits.BetsApproved,
    wallet.StakeReserved,
    wallet.StakeDeclined,
    table.BetsWithdrawn,
    limits.WithdrawalApproved,
    wallet.StakeReturned,
    table.BettingClosed,
    limits.BookClosed,
    wallet.StakesSealed,
    rules.DrawCalled,
    shoe.CardsDealt,
    rules.SideBetDecided,
    rules.InsuranceOffered,
    table.InsuranceClosed,
    rules.ActionCalled,
    table.ActionTaken,
    rules.HoleCalled,
    shoe.HoleChecked,
    rules.SpinCalled,
    shoe.WheelSpun,
    rules.RollCalled,
    shoe.DiceRolled,
    rules.RoundResolved,
    table.ResultAccepted,
    settlement.BetsSettled,
    settlement.RoundSettled,
    wallet.PayoutPosted,
    wallet.RoundPaid,
)
"""The events behind which something may happen."""
RARE = frozenset(
    {wallet.StakeDeclined, table.BetsWithdrawn, limits.WithdrawalApproved, wallet.StakeReturned}
)
"""Not every round has them."""
OF_CARDS = frozenset({rules.DrawCalled, shoe.CardsDealt})
OF_WHEELS = frozenset({rules.SpinCalled, shoe.WheelSpun})
OF_DICE = frozenset({rules.RollCalled, shoe.DiceRolled})
OF_TURNS = frozenset(
    {
        rules.SideBetDecided,
        rules.InsuranceOffered,
        table.InsuranceClosed,
        rules.ActionCalled,
        table.ActionTaken,
        rules.HoleCalled,
        shoe.HoleChecked,
    }
)
SELDOM = frozenset({rules.InsuranceOffered, table.InsuranceClosed, shoe.HoleChecked})
"""Only where the dealer shows an ace."""
OF_GAME: dict[int, frozenset[type[Message]]] = {
    rule_set_pb2.GAME_BLACKJACK: OF_CARDS | OF_TURNS,
    rule_set_pb2.GAME_ROULETTE: OF_WHEELS,
    rule_set_pb2.GAME_SICBO: OF_DICE,
}
"""What a game has that others have not; the others have cards."""
OF_SOME = OF_CARDS | OF_TURNS | OF_WHEELS | OF_DICE
OFTEN = RARE | OF_TURNS | OF_WHEELS | OF_DICE
"""Fewer tables have turns, wheels and dice: what happens there is picked more often too."""
VOID_GAPS: tuple[type[Message], ...] = (table.RoundVoided, limits.BookVoided, wallet.RoundReturned)
"""The same, for a round that is voided."""
FLOOR_GAPS: tuple[type[Message], ...] = (
    orders.WithdrawalNoted,
    floor.OutcomeHeld,
    floor.FloorFaultFound,
    shoe.SpinInvalidated,
    orders.CardCorrectionOrdered,
    orders.OutcomeCorrectionOrdered,
    floor.CardCorrected,
    floor.OutcomeCorrected,
    rules.HandsCorrected,
    rules.DrawRecalled,
)
"""The same, on the floor: events that few rounds have."""
FLOOR_SHARE = 0.5
"""Of these events, those behind which something happens."""
DEEDS = ("void", "withdrawal", "suspend", "crash", "bet", "snapshot")
WEIGHTS = (5, 5, 3, 6, 2, 1)
SETTLEMENT_WITHIN_S = 2.0
"""So long an activation waits for a settlement to begin."""
SHARE = 0.8
"""Of rounds with a deed."""


@dataclass(slots=True)
class Plan:
    """What is to happen in a round."""

    event: type[Message]
    """Behind one of these."""
    skip: int
    """How many of them are let pass first."""
    deed: str
    done: bool = False


class Director:
    """See the module. `counts`: `<deed> after <event>`."""

    def __init__(
        self,
        fleet: Fleet,
        world: World,
        callers: Callers,
        rng: random.Random,
    ) -> None:
        self.fleet = fleet
        self.world = world
        self.callers = callers
        self.rng = rng
        self.counts: Counter[str] = Counter()
        self.resting = False
        self.activated = False
        """Whether behaviour 2 is in force."""
        self._activating = False
        """Whether it shall be behind the next event of a settlement."""
        self.tasks: list[asyncio.Task[Any]] = []
        self._edge = LuckyEdge(fleet)
        self._planned: dict[str, list[Plan]] = {}
        """By round."""

    def see(self, seen: Seen) -> None:
        """Look at an answer as it is stored; do what is planned behind it."""
        body = seen.body
        if self._activating and isinstance(body, table.ResultAccepted | settlement.BetsSettled):
            self._bring_into_force("behaviour 2 activated in the middle of a settlement")
        round_id = getattr(body, "round_id", "")
        if not round_id or self.resting:
            return
        if isinstance(body, table.RoundOpened):
            self._plan(round_id, self.world.rounds[round_id].rule_set.game)
        for plan in self._planned.get(round_id, ()):
            if plan.event is not type(body) or plan.done:
                continue
            if plan.skip:
                plan.skip -= 1
                continue
            plan.done = True
            self._do(plan.deed, body)
        if isinstance(body, FLOOR_GAPS) and self.rng.random() < FLOOR_SHARE:
            self._do(self.rng.choices(DEEDS, WEIGHTS)[0], body)

    def _plan(self, round_id: str, game: int) -> None:
        if self.rng.random() > SHARE:
            return
        gaps = [gap for gap in GAPS if gap not in OF_SOME or gap in OF_GAME.get(game, OF_CARDS)]
        plans = [self._pick(gaps) for _ in range(self.rng.choice((1, 1, 2, 2, 3)))]
        if any(plan.deed == "void" for plan in plans) and self.rng.random() < 0.5:
            plans.append(self._pick(VOID_GAPS))
        self._planned[round_id] = plans

    def _pick(self, gaps: Sequence[type[Message]]) -> Plan:
        weights = [10 if gap in SELDOM else 3 if gap in OFTEN else 1 for gap in gaps]
        event = self.rng.choices(gaps, weights)[0]
        skip = 0 if event in RARE | SELDOM else self.rng.choice((0, 0, 0, 1, 2))
        return Plan(event, skip, self.rng.choices(DEEDS, WEIGHTS)[0])

    def _do(self, deed: str, body: Any) -> None:
        done = False
        match deed:
            case "void":
                done = self._order(table.VoidRound(reason=table.ROUND_REASON_DISPUTE), body)
                tossed = isinstance(body, shoe.CardsDealt | shoe.WheelSpun | shoe.DiceRolled)
                if tossed and self.rng.random() < 0.5:
                    # So that the result comes late, from a standby.
                    self._crash_leader("rules")
            case "suspend":
                done = self._order(table.SuspendRound(reason=table.ROUND_REASON_SYSTEM), body)
            case "withdrawal":
                done = self._withdraw(body)
            case "bet":
                done = self._bet(body)
            case "crash":
                done = self._crash(body)
            case _:
                self._later(self._take_snapshots())
                done = True
        if done:
            self.counts[f"{deed} after {type(body).__name__}"] += 1

    # ---- releases ------------------------------------------------------------------------------

    async def activate(self, *, carefully: bool) -> None:
        """Bring behaviour 2 into force, in the middle of a settlement if one comes. Not carefully:
        before release 2 is everywhere; what is left of release 1 must then stop."""
        if carefully:
            await self._upgrade_all()
        self._activating = True
        await asyncio.sleep(SETTLEMENT_WITHIN_S)
        self._activating = False
        while not self.activated:
            self._bring_into_force("behaviour 2 activated")
            await asyncio.sleep(0.1)
        await self._upgrade_all()

    async def _upgrade_all(self) -> None:
        for machine in self.fleet.machines:
            if machine.release == 1:
                self.fleet.upgrade(machine)
                await asyncio.sleep(self.rng.uniform(0.1, 0.8))

    def _bring_into_force(self, counted_as: str) -> None:
        order = logs.ActivateBehaviour(behaviour=2)
        if self._edge.put("table", order, actor="operator:omar"):
            self._activating = False
            self.activated = True
            self.counts[counted_as] += 1

    # ---- deeds ---------------------------------------------------------------------------------

    def _later(self, work: Coroutine[Any, Any, Any]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def _take_snapshots(self) -> None:
        self.fleet.take_snapshots()

    def _order(self, order: Any, body: Any) -> bool:
        order.table_id, order.round_id = body.table_id, body.round_id
        order.request_id = self.callers.new_id()
        return self._edge.put("table", hashed(order), actor="operator:omar")

    def _withdraw(self, body: Any) -> bool:
        """Of all that an account has on; of one that has nothing, where nobody has."""
        reserved = self.world.rounds[body.round_id].reserved
        owners = [owner for owner, bets in reserved.items() if bets] or [("acme", "nobody")]
        partner, account_id = self.rng.choice(owners)
        request = table.WithdrawBets(
            request_id=self.callers.new_id(),
            account_id=account_id,
            table_id=body.table_id,
            round_id=body.round_id,
        )
        return self._edge.put("table", hashed(request), partner=partner, actor=f"partner:{partner}")

    def _bet(self, body: Any) -> bool:
        owners = list(self.world.rounds[body.round_id].reserved)
        if not owners:
            return False
        partner, account_id = self.rng.choice(owners)
        one = plain(self.rng, self.world.rounds[body.round_id].rule_set, 12)
        request = table.PlaceBets(
            request_id=self.callers.new_id(),
            account_id=account_id,
            table_id=body.table_id,
            round_id=body.round_id,
            currency_code=CURRENCY,
            bets=[bet_pb2.Bet(bet=one.bet, stake_minor=one.stake_minor, position=one.position)],
        )
        return self._edge.put("table", hashed(request), partner=partner, actor=f"partner:{partner}")

    def _crash(self, body: Any) -> bool:
        """Kill a machine that wrote this, or one that is about to answer it."""
        service = self.rng.choice(
            (str(body.DESCRIPTOR.full_name).split(".")[1], *self.fleet.releases[0])
        )
        return self._crash_leader(service)

    def _crash_leader(self, service: str) -> bool:
        machine = self.fleet.leader(service)
        if machine is None:
            return False
        self.fleet.crash(machine)
        return True
