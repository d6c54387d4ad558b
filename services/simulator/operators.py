"""Simulated operators: they open tables and change their rules, call the rounds of some, bring
suspended rounds to an end, and have failed decisions decided again once release 2 is everywhere.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as logs
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from services.kernel.edge import NotTaken, Outcome, OutcomeUnknown
from services.kernel.entry import position_proto
from services.kernel.event import Position
from services.simulator.asking import Callers, hashed
from services.simulator.fleet import Fleet
from services.simulator.releases import BASE
from services.simulator.tables import Kind, table_spec
from services.simulator.world import SeenRound, SeenTable, World

VOID_REASONS = (
    table.ROUND_REASON_DEALER_ERROR,
    table.ROUND_REASON_EQUIPMENT,
    table.ROUND_REASON_DISPUTE,
)
MAX_RETRIES = 4
"""What fails more often needs a programmer; the auditor will find what it left behind."""
AGAIN_S = 1.0
"""Before a retry that follows another one."""
QUIET_ROUNDS = 37
"""Rounds of a lasting shoe before its players come: the first side bets close after 40."""
LOOK_S = 0.04
"""How often an operator looks."""
ORDER_ENDS = (
    table.OrderRejected,
    table.TableOpened,
    table.TableClosed,
    table.RoundOpened,
    table.BettingClosed,
    table.RoundSuspended,
    table.RoundResumed,
    table.RoundVoided,
    floor.CardCorrected,
    floor.OutcomeCorrected,
    floor.FloorRejected,
)

ANY_ANSWER: frozenset[type[Message]] = frozenset().union(*(core.answers for core in BASE.values()))


class Operators:
    """Everything that people at the tables and behind them do."""

    def __init__(self, fleet: Fleet, world: World, callers: Callers, rng: random.Random) -> None:
        self.fleet = fleet
        self.world = world
        self.callers = callers
        self.rng = rng
        self.closing = False
        """Whether the simulation comes to its end: no further rounds."""
        self.lasting = False
        """Whether shoes shall last, so that their side bets are closed in the end."""
        self.left: set[str] = set()
        """Tables that are closed for good: no order to open one is under way any more."""
        self.supervise: Callable[[SeenRound], Awaitable[None]] | None = None
        """Who looks at rounds on the floor that stand still."""
        self._retries: Counter[Position] = Counter()
        """By failed input."""
        self._retried: dict[Position, Position] = {}
        """What each retry in the log was to decide again."""

    async def order(self, body: Any, actor: str = "operator:olga") -> Message | None:
        """Give an order until its outcome is known."""
        body.request_id = self.callers.new_id()
        return await self.callers.ask(
            "table", hashed(body), partner="", actor=actor, until=ORDER_ENDS
        )

    async def run_table(self, table_id: str, kind: Kind, *, timed: bool) -> None:
        """Open a table for a game and look after it to the end."""
        await self._open(table_id, kind, timed=timed)
        while not self._over(table_id):
            await asyncio.sleep(LOOK_S)
            one = self.world.tables.get(table_id)
            if one is None:
                continue
            if one.running is not None:
                await self._look_after(one, one.running)
            elif self.closing:
                if one.open:
                    await self.order(table.CloseTable(table_id=table_id))
            elif not one.open:
                self.callers.asked["table reopened"] += 1
                await self._open(table_id, kind, timed=self.rng.random() < 0.5)
            else:
                kind = await self._between_rounds(table_id, one, kind)
        self.left.add(table_id)

    async def _open(self, table_id: str, kind: Kind, *, timed: bool) -> None:
        """Open a table, or change the rules of an open one; it keeps its game."""
        spec = table_spec(self.rng, table_id, kind, timed=timed, lasting=self.lasting)
        await self.order(table.OpenTable(spec=spec, blackjack_on_floor=True))

    def _over(self, table_id: str) -> bool:
        one = self.world.tables.get(table_id)
        return self.closing and one is not None and not one.open and one.running is None

    @property
    def hurries(self) -> bool:
        """Whether rounds follow one another as fast as can be: nobody bets yet, or no more."""
        return self.closing or (self.lasting and self.world.rounds_closed < QUIET_ROUNDS)

    async def _between_rounds(self, table_id: str, one: SeenTable, kind: Kind) -> Kind:
        """Open the next round, or change the rules first; where outcomes come from then."""
        if self.rng.random() < 0.08:
            self.callers.asked["rules of a table changed"] += 1
            if kind.may_move and not self.lasting and self.rng.random() < 0.15:
                self.callers.asked["table moved to the floor or from it"] += 1
                kind = kind._replace(floor=not kind.floor)
            await self._open(table_id, kind, timed=bool(one.spec.pacing.betting_window_ms))
        elif not one.spec.pacing.betting_window_ms and one.shoe_ready:
            await self.order(table.OpenRound(table_id=table_id, source=table.SOURCE_OPERATOR))
        return kind

    async def _look_after(self, one: SeenTable, running: SeenRound) -> None:
        about: dict[str, Any] = {"table_id": running.table_id, "round_id": running.round_id}
        if self.rng.random() < 0.01 and one.open and not self.lasting:
            self.callers.asked["table closed while a round ran"] += 1
            await self.order(table.CloseTable(table_id=running.table_id))
        elif running.suspended and running.floor and self.supervise is not None:
            await self.supervise(running)
        elif running.suspended:
            await asyncio.sleep(self.rng.uniform(0.02, 0.4))
            reason = self.rng.choice(VOID_REASONS)
            if self.rng.random() < 0.7:
                cleared = table.ROUND_REASON_CLEARED
                await self.order(table.ResumeRound(**about, reason=cleared))
            else:
                await self.order(table.VoidRound(**about, reason=reason))
        elif running.phase == "paying" and running.unsettled and self.rng.random() < 0.1:
            self.callers.asked["void of a round whose settlement failed"] += 1
            await self.order(table.VoidRound(**about, reason=self.rng.choice(VOID_REASONS)))
        elif running.floor:
            pass  # Its dealer calls.
        elif running.phase == "betting" and not one.spec.pacing.betting_window_ms:
            await asyncio.sleep(0.0 if self.hurries else self.rng.uniform(0.1, 0.4))
            await self.order(table.CloseBetting(**about, source=table.SOURCE_OPERATOR))

    # ---- bugs that a release mends -------------------------------------------------------------

    async def retry_failures(self) -> None:
        """Have everything decided again that failed, in the order of the log."""
        while self.world.failures:
            failed = self.world.failures.pop(0)
            # A retry that failed again still names the input that failed first.
            position = self._retried.get(failed.cause, failed.cause)
            self._retries[position] += 1
            if self._retries[position] > MAX_RETRIES:
                continue
            if self._retries[position] > 1:
                await asyncio.sleep(AGAIN_S)
            self.callers.asked["failed decision retried"] += 1
            order = logs.RetryInput(position=position_proto(position))
            retries = [self._tell_until("table", order)]
            if self.rng.random() < 0.3:
                self.callers.asked["failed decision retried twice at once"] += 1
                retries.append(self._tell_until("table", order))
            for outcome in await asyncio.gather(*retries):
                self._retried[outcome.input_position] = position

    async def _tell_until(self, service: str, body: Message) -> Outcome:
        """Append a kernel's input until it is known to be in the log. A second one does no harm."""
        while True:
            machines = self.fleet.hosting(service)
            process = self.rng.choice(machines).process if machines else None
            if process is not None:
                with suppress(NotTaken, OutcomeUnknown):
                    return await process.submit(
                        service,
                        body,
                        partner="",
                        actor="operator:olga",
                        until=ANY_ANSWER,
                        wait_s=1.5,
                    )
            await asyncio.sleep(0.1)
