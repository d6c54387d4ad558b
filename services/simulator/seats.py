"""Simulated bettors at the seats of blackjack: they answer their turns, often not as they should,
and sometimes not at all."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import events_pb2 as table
from services.simulator.asking import Callers, hashed
from services.simulator.tables import CURRENCY
from services.simulator.world import ABOUT_ACTIONS, ABOUT_STAKED_ACTIONS, Seen, SeenRound, World

ABSENT = 0.15
"""Turns that nobody answers: the table decides (rule BJ-12)."""
WRONG = 0.2
"""Turns that are answered in a wrong way first."""
WAIT_S = (0.0, 0.1)
"""Before a turn is answered: sometimes longer than it lasts."""
ALL_ACTIONS = (
    rules.ACTION_HIT,
    rules.ACTION_STAND,
    rules.ACTION_DOUBLE,
    rules.ACTION_SPLIT,
    rules.ACTION_INSURE,
    rules.ACTION_DECLINE_INSURANCE,
)
STAKED = (rules.ACTION_DOUBLE, rules.ACTION_SPLIT, rules.ACTION_INSURE)


class Seats:
    """See the module."""

    def __init__(self, world: World, callers: Callers, rng: random.Random) -> None:
        self.world = world
        self.callers = callers
        self.rng = rng
        self.tasks: list[asyncio.Task[None]] = []

    def see(self, seen: Seen) -> None:
        """Look at an answer as it is stored; answer it where it is a turn."""
        body: Any = seen.body
        match body:
            case rules.ActionCalled():
                self._begin(body, [body.seat])
            case rules.InsuranceOffered():
                self._begin(body, list(body.seats))
            case _:
                pass

    def _begin(self, turn: Any, seats: list[int]) -> None:
        one = self.world.rounds[turn.round_id]
        for seat in seats:
            owner = self.world.who_sits(one, seat)
            if owner is None or self.rng.random() < ABSENT:
                self.callers.asked["turn not answered"] += 1
                continue
            work = self._answer(one, turn, seat, owner)
            self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def _answer(self, one: SeenRound, turn: Any, seat: int, owner: tuple[str, str]) -> None:
        await asyncio.sleep(self.rng.uniform(*WAIT_S))
        if self.rng.random() < WRONG:
            await self._ask(owner, self._wrong(one, turn, seat, owner))
        act = self._act(one, turn, seat, owner)
        if self.rng.random() < 0.1:
            self.callers.asked["two actions at once"] += 1
            other = self._act(one, turn, seat, owner)
            await asyncio.gather(self._ask(owner, act), self._ask(owner, other))
        else:
            await self._ask(owner, act)
        if self.rng.random() < 0.1:
            self.callers.asked["action repeated"] += 1
            await self._ask(owner, act)

    def _act(self, one: SeenRound, turn: Any, seat: int, owner: tuple[str, str]) -> table.Act:
        if isinstance(turn, rules.InsuranceOffered):
            allowed = [rules.ACTION_INSURE, rules.ACTION_DECLINE_INSURANCE]
        else:
            allowed = list(turn.actions)
        weights = [3 if action in STAKED else 2 for action in allowed]
        action = self.rng.choices(allowed, weights)[0]
        act = table.Act(
            request_id=self.callers.new_id(),
            account_id=owner[1],
            table_id=one.table_id,
            round_id=one.round_id,
            seat=seat,
            turn=turn.turn,
            action=action,
        )
        if action == rules.ACTION_DOUBLE:
            act.extra_minor = self.rng.choice((1, turn.max_double_minor, turn.max_double_minor))
            act.currency_code = CURRENCY
        hashed(act)
        return act

    def _wrong(self, one: SeenRound, turn: Any, seat: int, owner: tuple[str, str]) -> table.Act:
        """An action that no table takes."""
        act = self._act(one, turn, seat, owner)
        match self.rng.randrange(6):
            case 0:
                what, act.turn = "action for another turn", turn.turn + self.rng.choice((-1, 1, 5))
            case 1:
                what, act.seat = "action at another seat", seat % 7 + 1
            case 2:
                what = "action that is not allowed"
                act.action = self.rng.choice(ALL_ACTIONS)
            case 3:
                what, act.extra_minor = "further stake out of range", 5_000
            case 4:
                what, act.currency_code = "further stake in another currency", "USD"
            case _:
                what, act.account_id = "action of a stranger", "nobody"
        self.callers.asked[what] += 1
        hashed(act)
        return act

    async def _ask(self, owner: tuple[str, str], act: table.Act) -> Message | None:
        until = ABOUT_STAKED_ACTIONS if act.action in STAKED else ABOUT_ACTIONS
        return await self.callers.ask(
            "table", act, partner=owner[0], actor=f"partner:{owner[0]}", until=until
        )
