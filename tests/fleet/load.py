"""A crowd that plays: several accounts of two partners bet in every round of a table."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from sabot.partner.v1 import partner_service_pb2 as partner
from tests.fleet.clients import ENDED, Operator, Partner, table_spec

PARTNERS = ("north", "south")
ACCOUNTS = 3
"""Of each partner."""
WINDOW_MS = 700
PAUSE_MS = 100
DEPOSIT_MINOR = 10_000_000
"""Enough for every bet of a campaign."""
TABLE = "t1"


class Front(Protocol):
    """A fleet that takes calls."""

    def partner(self, name: str) -> Partner: ...
    def operator(self) -> Operator: ...


class Crowd:
    """Bets until it is told to stop. `seed`: of what it bets and when."""

    def __init__(self, running: Front, seed: int, seamless: frozenset[str] = frozenset()) -> None:
        """`seamless`: partners whose accounts have their money elsewhere."""
        self.seamless = seamless
        self.partners: dict[str, Partner] = {name: running.partner(name) for name in PARTNERS}
        self.operator: Operator = running.operator()
        self.random = random.Random(seed)
        self.rounds_over: set[str] = set()
        self._over = asyncio.Condition()
        self._stop = False
        self._bettors: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def north(self) -> Partner:
        return self.partners["north"]

    async def begin(self) -> None:
        """Open the table and the accounts, and play."""
        await self.operator.open_table(table_spec(TABLE, WINDOW_MS, PAUSE_MS))
        await asyncio.gather(
            *(
                one.open_account(f"{name}-{number}", 0 if name in self.seamless else DEPOSIT_MINOR)
                for name, one in self.partners.items()
                for number in range(ACCOUNTS)
            )
        )
        started = [asyncio.Event() for _ in self.partners]
        for one, event in zip(self.partners.values(), started, strict=True):
            self._tasks.append(asyncio.create_task(one.follow_bets(event)))
        await asyncio.gather(*(event.wait() for event in started))
        self._tasks.append(asyncio.create_task(self._play()))

    async def _play(self) -> None:
        seen_before: set[str] = set()
        async for seen in self.north.rounds(TABLE):
            if seen.state in ENDED:
                self.rounds_over.add(seen.round_id)
                async with self._over:
                    self._over.notify_all()
            elif seen.state == partner.ROUND_STATE_BETTING and seen.round_id not in seen_before:
                seen_before.add(seen.round_id)
                if not self._stop:
                    self._bettors += [
                        asyncio.create_task(self._bet(name, number, seen.round_id))
                        for name in PARTNERS
                        for number in range(ACCOUNTS)
                    ]

    async def _bet(self, name: str, number: int, round_id: str) -> None:
        """A few requests of one account; now and then it takes bets back or pays in."""
        one, account, chance = self.partners[name], f"{name}-{number}", self.random
        for _ in range(chance.randint(1, 3)):
            side = chance.choice(("player", "banker"))
            wagers = [(side, 100 * chance.randint(1, 20))]
            if chance.random() < 0.2:
                wagers.append(("tie", 100))
            placed = await one.place(account, round_id, *wagers)
            if placed.bets and chance.random() < 0.1:
                await one.withdraw(account, round_id, placed.bets[0][0])
            if chance.random() < 0.1 and name not in self.seamless:
                await one.deposit(account, 100)
            await asyncio.sleep(chance.random() * 0.2)  # People take their time.

    async def rounds_go_on(self, count: int = 1) -> None:
        """Wait until so many more rounds are over."""
        before = len(self.rounds_over)
        async with asyncio.timeout(60), self._over:
            await self._over.wait_for(lambda: len(self.rounds_over) >= before + count)

    async def rest(self) -> None:
        """No more bets; wait until every outcome is known and every round over."""
        self._stop = True
        await self.operator.close_table(TABLE)
        await asyncio.gather(*self._bettors)
        await self.north.round_in(TABLE, *ENDED)
        for one in self.partners.values():
            await one.all_told()
        for task in self._tasks:
            if task.done():
                await task  # It goes on for ever, unless something broke.

    async def end(self) -> None:
        for task in (*self._tasks, *self._bettors):
            task.cancel()
        for task in (*self._tasks, *self._bettors):
            with contextlib.suppress(asyncio.CancelledError):
                await task


@asynccontextmanager
async def crowd(
    running: Front, seed: int, seamless: frozenset[str] = frozenset()
) -> AsyncIterator[Crowd]:
    """A crowd at a table of its own, with a few bets on already."""
    playing = Crowd(running, seed, seamless)
    await playing.begin()
    try:
        await playing.north.more_bets_on(3)
        yield playing
    finally:
        await playing.end()
