"""Simulated supervisors who correct rounds that are paid: to another result, to a void, back again;
stale, twice, by one person, and by facts that somebody made up.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as table
from services.games.told_results import completed
from services.kernel.errors import Refused
from services.settlement.previewing import preview
from services.simulator.asking import Callers, hashed
from services.simulator.fleet import Fleet
from services.simulator.log_facts import facts_in
from services.simulator.operators import LOOK_S
from services.simulator.world import Seen, World

PROPOSER, APPROVER = "operator:olga", "operator:otto"
MOST = 4
"""Corrections of a simulation: each reads the whole log."""
CLOSED_WITHIN_S = 60.0
"""How long an approved one may take, whatever happens to the fleet."""
ENDS = (
    table.OrderRejected,
    corrections.CorrectionProposed,
    corrections.CorrectionApproved,
)
DECK = tuple(rank + suit for rank in "A23456789TJQK" for suit in "SHDC")


class Correctors:
    """See the module."""

    def __init__(self, fleet: Fleet, world: World, callers: Callers, rng: random.Random) -> None:
        self.fleet = fleet
        self.world = world
        self.callers = callers
        self.rng = rng
        self.closing = False
        self._paid: list[str] = []
        self._closed: set[str] = set()
        """Corrections of which nothing more comes."""
        world.listen(self._see)

    def _see(self, seen: Seen) -> None:
        body = seen.body
        if isinstance(body, table.RoundClosed) and body.end == table.ROUND_END_PAID:
            self._paid.append(body.round_id)
        elif isinstance(body, corrections.CorrectionClosed):
            self._closed.add(body.correction_id)

    async def work(self) -> None:
        """Correct a few rounds, each some time after it was paid."""
        for _ in range(self.rng.randint(0, MOST)):
            while not self._paid and not self.closing:
                await self.world.changed(LOOK_S)
            if not self.closing:
                await asyncio.sleep(self.rng.uniform(0.0, 3.0))
            if self._paid:
                # The same round is corrected again now and then.
                await self._correct(self.rng.choice(self._paid[-3:]))

    async def _correct(self, round_id: str) -> None:
        seen = self.world.rounds[round_id]
        outcome = self._outcome(seen.rule_set)
        facts = facts_in(self.fleet.store.entries(), round_id)
        try:
            dry, _ = preview(round_id, outcome, facts, 0, 1)
        except Refused as refused:
            self.callers.asked[f"dry run refused: {refused.reason.name}"] += 1
            return
        dry_run = bytes(32) if self.rng.random() < 0.1 else dry.dry_run
        told = await self._ask(
            corrections.ProposeCorrection(
                table_id=seen.table_id,
                round_id=round_id,
                outcome=outcome,
                reason=table.ROUND_REASON_MISREAD,
                reference="INC",
                dry_run=dry_run,
            ),
            PROPOSER,
        )
        if not isinstance(told, corrections.CorrectionProposed):
            self._count_refusal(told)
            return
        if self.rng.random() < 0.2:
            self.callers.asked["correction left without approval"] += 1
            return
        await self._approve(told.correction_id)

    async def _approve(self, name: str) -> None:
        if self.rng.random() < 0.2:
            own = await self._ask(corrections.ApproveCorrection(correction_id=name), PROPOSER)
            self._count_refusal(own)
        approvals = [self._ask(corrections.ApproveCorrection(correction_id=name), APPROVER)]
        if self.rng.random() < 0.3:
            approvals.append(self._ask(corrections.ApproveCorrection(correction_id=name), APPROVER))
        answers = await asyncio.gather(*approvals)
        for one in answers:
            self._count_refusal(one)
        if not any(isinstance(one, corrections.CorrectionApproved) for one in answers):
            return
        self.callers.asked["correction approved"] += 1
        end = asyncio.get_running_loop().time() + CLOSED_WITHIN_S
        while name not in self._closed and asyncio.get_running_loop().time() < end:
            await self.world.changed(LOOK_S)

    async def _ask(self, body: Any, actor: str) -> Message | None:
        body.request_id = self.callers.new_id()
        return await self.callers.ask("table", hashed(body), partner="", actor=actor, until=ENDS)

    def _count_refusal(self, told: Message | None) -> None:
        if isinstance(told, table.OrderRejected):
            name = table.Refusal.Name(told.refusal).removeprefix("REFUSAL_")
            self.callers.asked[f"correction refused: {name}"] += 1

    # ---- what it shall have come to ------------------------------------------------------------

    def _outcome(self, rule_set: rule_set_pb2.RuleSet) -> corrections.CorrectedOutcome:
        draw = _DRAWS.get(rule_set.game)
        if draw is None or self.rng.random() < 0.3:
            return corrections.CorrectedOutcome(voided=True)
        while True:
            result = completed(draw(self.rng))
            if result is not None:
                return corrections.CorrectedOutcome(result=result)


def _baccarat(rng: random.Random) -> rules.Result:
    cards = rng.sample(DECK, 6)
    player, banker = rng.randint(2, 3), rng.randint(2, 3)
    told = rules.BaccaratResult(player_cards=cards[:player], banker_cards=cards[3 : 3 + banker])
    return rules.Result(baccarat=told)


def _roulette(rng: random.Random) -> rules.Result:
    return rules.Result(roulette=rules.RouletteResult(number=rng.randint(0, 36)))


def _sicbo(rng: random.Random) -> rules.Result:
    return rules.Result(sicbo=rules.SicboResult(dice=[rng.randint(1, 6) for _ in range(3)]))


def _dragon_tiger(rng: random.Random) -> rules.Result:
    one, other = rng.sample(DECK, 2)
    two = rules.DragonTigerResult(dragon_card=one, tiger_card=other)
    return rules.Result(dragon_tiger=two)


def _football_studio(rng: random.Random) -> rules.Result:
    one, other = rng.sample(DECK, 2)
    two = rules.FootballStudioResult(home_card=one, away_card=other)
    return rules.Result(football_studio=two)


_DRAWS: Mapping[int, Any] = {
    rule_set_pb2.GAME_BACCARAT: _baccarat,
    rule_set_pb2.GAME_ROULETTE: _roulette,
    rule_set_pb2.GAME_SICBO: _sicbo,
    rule_set_pb2.GAME_DRAGON_TIGER: _dragon_tiger,
    rule_set_pb2.GAME_FOOTBALL_STUDIO: _football_studio,
}
"""By game, a result at random, which need not be one; another game is only voided."""
