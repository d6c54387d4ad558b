"""Simulated support: it sets limits for accounts, lets some take a moment's break, and partners try
to loosen what they may not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from services.simulator.asking import Callers, hashed
from services.simulator.players import Player
from services.simulator.tables import CURRENCY

MOST = 6
"""What is done for accounts in a simulation: they must go on playing."""
KINDS = (
    protection.LIMIT_KIND_STAKE,
    protection.LIMIT_KIND_LOSS,
    protection.LIMIT_KIND_DEPOSIT,
)
WINDOWS_S = (3_600, 86_400, 7 * 86_400)
MAXIMA_MINOR = (150, 400, 900, 2_000)
BREAK_S = 1
"""The shortest break that there is: simulations are short."""
ENDS = (protection.LimitsSet, protection.AccountExcluded, protection.LimitsOrderRefused)


class Guardians:
    """See the module."""

    def __init__(self, callers: Callers, players: Sequence[Player], rng: random.Random) -> None:
        self.callers = callers
        self.players = players
        self.rng = rng
        self.closing = False

    async def work(self) -> None:
        """Do a few things, each some time after the one before."""
        for _ in range(self.rng.randint(1, MOST)):
            await asyncio.sleep(self.rng.uniform(0.3, 2.0))
            if self.closing:
                return
            player = self.rng.choice(self.players)
            match self.rng.randrange(4):
                case 0:
                    await self._break(player)
                case 1:
                    await self._limit(player, f"partner:{player.partner}")
                case _:
                    await self._limit(player, "operator:oscar")

    async def _limit(self, player: Player, actor: str) -> None:
        """What it is depends on what there is: of a partner's second wish some are too loose."""
        self.callers.asked["limit of an account set"] += 1
        order = protection.SetLimits(
            request_id=self.callers.new_id(),
            scope=limits.SCOPE_ACCOUNT,
            scope_id=player.account_id,
            currency_code=CURRENCY,
            limits=[
                protection.LimitSetting(
                    kind=self.rng.choice(KINDS),
                    window_s=self.rng.choice(WINDOWS_S),
                    maximum=self.rng.choice(MAXIMA_MINOR),
                )
            ],
            reason="asked for",
        )
        await self._ask(player, order, actor)

    async def _break(self, player: Player) -> None:
        self.callers.asked["break of an account"] += 1
        order = protection.Exclude(
            request_id=self.callers.new_id(),
            account_id=player.account_id,
            kind=protection.EXCLUSION_KIND_COOL_OFF,
            term_s=BREAK_S,
            reason="asked for",
        )
        await self._ask(player, order, f"partner:{player.partner}")

    async def _ask(self, player: Player, order: Message, actor: str) -> None:
        await self.callers.ask(
            "limits", hashed(order), partner=player.partner, actor=actor, until=ENDS
        )
