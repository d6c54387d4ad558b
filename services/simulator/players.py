"""Simulated partners' accounts: they bet on everything, and often not as they should."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.asking import Callers, hashed, request_id
from services.simulator.fleet import now_us
from services.simulator.releases import (
    POISONED_CLIENT_TIME,
    POISONED_LIMITS_STAKE,
    POISONED_WALLET_STAKE,
)
from services.simulator.tables import CURRENCY
from services.simulator.wagers import Wager, nonsense, over_limits, plain, raced, usual
from services.simulator.world import ABOUT_BETS, ABOUT_WITHDRAWALS, SeenRound

OLD_S = 2.5
"""How old a request must be that is sent once more although its outcome is long known."""
KEPT_REQUESTS = 20
AT_ONCE = 3
"""Requests of a player under way at once."""
MONEY_ENDS = (wallet.FundsDeposited, wallet.FundsWithdrawn, wallet.AccountRequestDeclined)
OPEN_ENDS = (wallet.AccountOpened, wallet.AccountRequestDeclined)

Action = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Player:
    """One account. `poisons`: whether it sends what planted bugs stumble over."""

    callers: Callers
    rng: random.Random
    partner: str
    account_id: str
    poisons: bool
    playing: bool = True
    _bets: list[table.PlaceBets] = field(default_factory=list)
    """Its last requests for bets."""
    _money: list[tuple[float, wallet.Deposit | wallet.Withdraw]] = field(default_factory=list)
    """Its last requests about money, and when."""
    _under_way: list[asyncio.Task[None]] = field(default_factory=list)

    async def play(self) -> None:
        """Open the account, pay in, and bet until told to stop; then wait for what is under way."""
        opened = wallet.OpenAccount(
            request_id=self.callers.new_id(), account_id=self.account_id, currency_code=CURRENCY
        )
        await self._ask("wallet", hashed(opened), OPEN_ENDS)
        await self._deposit(self.rng.choice((60, 400, 1500, 4000)))
        loop = asyncio.get_running_loop()
        while self.playing:
            await asyncio.sleep(self.rng.uniform(0.02, 0.25))
            action = self.rng.choices(*self._actions())[0]
            self._under_way = [task for task in self._under_way if not task.done()]
            if len(self._under_way) < AT_ONCE:
                self._under_way.append(loop.create_task(self._do(action)))
        await asyncio.gather(*self._under_way)

    @staticmethod
    async def _do(action: Action) -> None:
        await action()

    def _actions(self) -> tuple[Sequence[Action], Sequence[int]]:
        return (
            self._place,
            self._raise,
            self._race,
            self._break_limits,
            self._nonsense,
            self._late,
            self._reuse,
            self._take_back,
            self._withdraw_funds,
            self._deposit_more,
            self._ask_again_later,
            self._wrong_time,
            self._be_blocked,
            self._poison,
        ), (40, 8, 6, 8, 6, 6, 6, 9, 4, 5, 6, 2, 2, 6 if self.poisons else 0)

    async def _ask(
        self, service: str, body: Message, until: tuple[type[Message], ...]
    ) -> Message | None:
        return await self.callers.ask(
            service,
            body,
            partner=self.partner,
            actor=f"partner:{self.partner}",
            until=until,
        )

    def _count(self, what: str) -> None:
        self.callers.asked[what] += 1

    # ---- bets ----------------------------------------------------------------------------------

    def _round(self, *phases: str) -> SeenRound | None:
        found = self.callers.world.running(*(phases or ("betting",)))
        return self.rng.choice(found) if found else None

    def _request(self, one: SeenRound, *wagers: Wager) -> table.PlaceBets:
        return table.PlaceBets(
            request_id=self.callers.new_id(),
            account_id=self.account_id,
            table_id=one.table_id,
            round_id=one.round_id,
            currency_code=CURRENCY,
            bets=[
                bet_pb2.Bet(bet=bet, stake_minor=stake, position=position)
                for bet, stake, position in wagers
            ],
        )

    async def _send(self, request: table.PlaceBets) -> None:
        self._bets = [*self._bets[1 - KEPT_REQUESTS :], hashed(request)]
        await self._ask("table", request, ABOUT_BETS)

    def _held(self, one: SeenRound) -> list[bet_pb2.Bet]:
        return list(one.reserved.get((self.partner, self.account_id), {}).values())

    async def _place(self) -> None:
        one = self._round()
        if one is not None:
            await self._send(self._request(one, *usual(self.rng, one.rule_set)))

    def _plain(self, one: SeenRound, stake_minor: int) -> Wager:
        return plain(self.rng, one.rule_set, stake_minor)

    async def _raise(self) -> None:
        """Less than the minimum, on top of what is on."""
        one = self._round()
        held = self._held(one) if one is not None else []
        if one is not None and held:
            self._count("raise under the minimum")
            bet = self.rng.choice(held)
            more = Wager(bet.bet, self.rng.randint(1, 9), bet.position)
            await self._send(self._request(one, more))

    async def _race(self) -> None:
        """A bet that the account can hardly pay, and what stands on it before that is decided."""
        one = self._round()
        if one is not None:
            self._count("raise before its bet is decided")
            first, second = raced(self.rng, one.rule_set)
            await asyncio.gather(
                self._send(self._request(one, first)), self._send(self._request(one, second))
            )

    async def _break_limits(self) -> None:
        one = self._round()
        if one is not None:
            self._count("bets over the limits")
            await self._send(self._request(one, *over_limits(self.rng, one.rule_set)))

    async def _nonsense(self) -> None:
        one = self._round()
        if one is not None:
            what, wagers = nonsense(self.rng, one.rule_set)
            request = self._request(one, *wagers)
            match self.rng.randrange(6):
                case 0:
                    what, request.currency_code = "bets in another currency", "USD"
                case 1:
                    what, request.table_id = "bets at no table", "nowhere"
                case 2:
                    what, request.round_id = "bets on no round", f"{one.table_id}-999999"
                case _:
                    pass
            self._count(what)
            await self._send(request)

    async def _late(self) -> None:
        one = self._round("dealing", "paying", "voided")
        if one is not None:
            self._count("late bets")
            await self._send(self._request(one, *usual(self.rng, one.rule_set)))

    async def _reuse(self) -> None:
        """An id once more: with the same body, or with another."""
        if not self._bets:
            return
        again = table.PlaceBets()
        again.CopyFrom(self.rng.choice(self._bets[-3:]))
        if self.rng.random() < 0.5:
            self._count("id reused with another body")
            again.client_time_us += 1
            if again.bets:  # A request may ask for none.
                again.bets[0].stake_minor += 10
            await self._ask("table", hashed(again), ABOUT_BETS)
        else:
            self._count("request repeated")
            await self._ask("table", again, ABOUT_BETS)

    async def _take_back(self) -> None:
        one = self._round("betting", "betting", "dealing")
        held = self._held(one) if one is not None else []
        if one is None:
            return
        self._count("withdrawal of bets")
        request = table.WithdrawBets(
            request_id=self.callers.new_id(),
            account_id=self.account_id,
            table_id=one.table_id,
            round_id=one.round_id,
        )
        if held and self.rng.random() < 0.5:
            request.bet_ids.append(self.rng.choice(held).bet_id)
        await self._ask("table", hashed(request), ABOUT_WITHDRAWALS)

    async def _poison(self) -> None:
        one = self._round()
        if one is None:
            return
        match self.rng.randrange(3):
            case 0:
                request = self._request(one, self._plain(one, 20))
                request.client_time_us = POISONED_CLIENT_TIME
            case 1:
                request = self._request(one, self._plain(one, POISONED_LIMITS_STAKE))
            case _:
                request = self._request(one, self._plain(one, POISONED_WALLET_STAKE))
        await self._send(request)

    # ---- money ---------------------------------------------------------------------------------

    async def _deposit(self, amount_minor: int) -> None:
        await self._move(
            wallet.Deposit(
                request_id=self.callers.new_id(),
                account_id=self.account_id,
                currency_code=CURRENCY,
                amount_minor=amount_minor,
            )
        )

    async def _deposit_more(self) -> None:
        await self._deposit(self.rng.choice((50, 200, 700)))

    async def _withdraw_funds(self) -> None:
        self._count("withdrawal of funds")
        await self._move(
            wallet.Withdraw(
                request_id=self.callers.new_id(),
                account_id=self.account_id,
                currency_code=self.rng.choice((CURRENCY, CURRENCY, CURRENCY, "USD")),
                amount_minor=self.rng.choice((5, 40, 100, 900)),
            )
        )

    async def _move(self, request: wallet.Deposit | wallet.Withdraw) -> None:
        now = asyncio.get_running_loop().time()
        self._money = [*self._money[1 - KEPT_REQUESTS :], (now, hashed(request))]
        await self._ask("wallet", request, MONEY_ENDS)

    async def _ask_again_later(self) -> None:
        """A client that forgot that it was answered long ago."""
        now = asyncio.get_running_loop().time()
        old = [request for made, request in self._money if made + OLD_S < now]
        if old:
            self._count("old request about money again")
            await self._ask("wallet", self.rng.choice(old), MONEY_ENDS)

    async def _wrong_time(self) -> None:
        """A request id that was made a day ago, or will be in two minutes."""
        self._count("request id of another time")
        made_us = now_us() + self.rng.choice((-25 * 3600, 120)) * 1_000_000
        request = wallet.Deposit(
            request_id=request_id(self.rng, made_us),
            account_id=self.account_id,
            currency_code=CURRENCY,
            amount_minor=77,
        )
        await self._ask("wallet", hashed(request), MONEY_ENDS)

    async def _be_blocked(self) -> None:
        """An operator blocks the account for a moment."""
        self._count("account blocked")
        await self._be(wallet.BlockAccount, wallet.AccountBlocked)
        await asyncio.sleep(self.rng.uniform(0.05, 0.4))
        await self._be(wallet.UnblockAccount, wallet.AccountUnblocked)

    async def _be(self, order: type[Message], done: type[Message]) -> None:
        body: Any = order()
        body.request_id, body.account_id = self.callers.new_id(), self.account_id
        await self.callers.ask(
            "wallet",
            hashed(body),
            partner=self.partner,
            actor="operator:oscar",
            until=(done, wallet.AccountRequestDeclined),
        )
