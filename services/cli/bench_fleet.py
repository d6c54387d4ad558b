"""The fleet that `sabot bench` measures: `sabot up` itself, in a process of its own; and the
operator and the partner who see to it that bets can be placed there.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import grpc

from sabot.log.v1.entry_pb2 import Position
from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.partner.v1 import partner_service_pb2_grpc as partners_grpc
from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import operator_service_pb2_grpc as operators_grpc
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import wallet_operator_service_pb2 as wallet_operators
from sabot.wallet.v1 import wallet_operator_service_pb2_grpc as wallet_operators_grpc
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from sabot.wallet.v1 import wallet_service_pb2_grpc as wallets_grpc
from sabot.wallet.v1.partner_profile_pb2 import WALLET_MODE_SEAMLESS, PartnerProfile
from services.cli.bench_child import Child, child
from services.cli.bench_load import (
    ACCOUNTS,
    CALL_S,
    CURRENCY,
    DEPOSIT_MINOR,
    LIMIT_MINOR,
    PARTNER,
    TABLE,
    BenchFailed,
    account,
)
from services.cli.uuid7 import uuid7
from services.games.catalogue import baccarat_1

SUPERVISOR = "operator:sam"
PATIENCE_S = 120.0
"""For a round of tens of thousands of bets to be paid."""
PAUSE_S = 0.05
"""Between two looks at whether it is."""
START_S = 60.0
"""For a fleet to take calls."""
AT_ONCE = 32
"""Accounts opened at once."""

T = TypeVar("T")


@dataclass(slots=True)
class Desk:
    """Calls of a partner and an operator at a fleet."""

    channel: grpc.aio.Channel
    tokens: dict[str, str]
    round_id: str = ""
    """The round whose betting is open."""
    seamless: str = ""
    """Where the partner's wallet is that holds its accounts' money; empty: it is here."""
    lags_s: list[float] = field(default_factory=list[float])
    """How long projections took to catch up, each time after the last bet of a slice."""

    def metadata(self, actor: str) -> tuple[tuple[str, str], ...]:
        """What an actor sends with each call."""
        return (("authorization", f"Bearer {self.tokens[actor]}"),)

    @property
    def partner(self) -> tuple[tuple[str, str], ...]:
        """What the partner sends with each call."""
        return self.metadata(f"partner:{PARTNER}")

    async def set_up(self) -> None:
        """Open the table and fund the accounts."""
        stub: operators_grpc.TableOperatorServiceAsyncStub
        stub = operators_grpc.TableOperatorServiceStub(self.channel)
        opening = operators.OpenTableRequest(request_id=uuid7(), spec=table_spec(TABLE))
        await patiently(lambda: stub.OpenTable(opening, **self._as(SUPERVISOR)))
        if self.seamless:
            await self._be_seamless()
        await self.open_accounts(range(ACCOUNTS))

    async def open_accounts(self, numbers: Iterable[int]) -> None:
        """Open accounts and fund them, some at once."""
        gate = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._fund(gate, number) for number in numbers))

    async def open_round(self) -> str:
        """Open the next round; its id. The one before must be settled."""
        stub: operators_grpc.TableOperatorServiceAsyncStub
        stub = operators_grpc.TableOperatorServiceStub(self.channel)

        async def open_it() -> operators.OpenRoundResponse:
            fresh = operators.OpenRoundRequest(request_id=uuid7(), table_id=TABLE)
            return await stub.OpenRound(fresh, **self._as(SUPERVISOR))

        # Refused while the shoe is not there; a refusal is an outcome, so each try has its own id.
        opened = await patiently(open_it, grpc.StatusCode.FAILED_PRECONDITION)
        self.round_id = opened.round_id
        return opened.round_id

    async def note_lag(self, last: Position) -> None:
        """Wait until the projections have what `last` says, and note how long that takes."""
        began = time.perf_counter()
        await self._seen(last)
        self.lags_s.append(time.perf_counter() - began)

    async def settle(self) -> None:
        """Close betting and wait until all is paid and the projection has it."""
        stub: operators_grpc.TableOperatorServiceAsyncStub
        stub = operators_grpc.TableOperatorServiceStub(self.channel)
        closing = operators.CloseBettingRequest(
            request_id=uuid7(), table_id=TABLE, round_id=self.round_id
        )
        closed = await patiently(lambda: stub.CloseBetting(closing, **self._as(SUPERVISOR)))
        deadline = time.monotonic() + PATIENCE_S
        at_least = closed.position
        while True:
            told = await self._seen(at_least)
            if told.round.state == partners.ROUND_STATE_PAID:
                return
            if time.monotonic() > deadline:
                raise BenchFailed(f"round {self.round_id} is not paid in {PATIENCE_S:.0f} s")
            at_least = told.position
            await asyncio.sleep(PAUSE_S)

    async def _seen(self, at_least: Position) -> partners.GetRoundResponse:
        stub: partners_grpc.PartnerServiceAsyncStub
        stub = partners_grpc.PartnerServiceStub(self.channel)
        asking = partners.GetRoundRequest(round_id=self.round_id, at_least=at_least)
        return await patiently(lambda: stub.GetRound(asking, **self._as(f"partner:{PARTNER}")))

    async def _fund(self, gate: asyncio.Semaphore, number: int) -> None:
        stub: wallets_grpc.WalletServiceAsyncStub = wallets_grpc.WalletServiceStub(self.channel)
        opening = wallets.OpenAccountRequest(
            request_id=uuid7(), account_id=account(number), currency_code=CURRENCY
        )
        deposit = wallets.DepositRequest(
            request_id=uuid7(),
            account_id=account(number),
            amount=Money(currency_code=CURRENCY, minor_units=DEPOSIT_MINOR),
        )
        sender = self._as(f"partner:{PARTNER}")
        async with gate:
            await patiently(lambda: stub.OpenAccount(opening, **sender))
            if self.seamless:
                return
            await patiently(lambda: stub.Deposit(deposit, **sender))

    async def _be_seamless(self) -> None:
        stub: wallet_operators_grpc.WalletOperatorServiceAsyncStub
        stub = wallet_operators_grpc.WalletOperatorServiceStub(self.channel)
        request = wallet_operators.SetPartnerProfileRequest(
            request_id=uuid7(),
            partner_id=PARTNER,
            profile=PartnerProfile(
                mode=WALLET_MODE_SEAMLESS,
                address=self.seamless,
                plaintext=True,
                conventions=conventions.WalletConventions(
                    repeats=conventions.REPEAT_CONVENTION_FIRST_ANSWER,
                    settled_rollbacks=conventions.SETTLED_ROLLBACK_CONVENTION_REFUSED,
                    overdraws=conventions.OVERDRAW_CONVENTION_DECLINED,
                ),
            ),
            reason="bench",
        )
        await patiently(lambda: stub.SetPartnerProfile(request, **self._as(SUPERVISOR)))

    def _as(self, actor: str) -> dict[str, Any]:
        return {"metadata": self.metadata(actor), "timeout": CALL_S}


@dataclass(frozen=True, slots=True)
class BenchFleet:
    """A running fleet."""

    child: Child
    address: str
    token_file: Path
    desk: Desk


@asynccontextmanager
async def bench_fleet(folder: Path, data: Path, seamless: str = "") -> AsyncIterator[BenchFleet]:
    """`sabot up`, with its table open and its accounts funded, or their money at a wallet at
    `seamless`. Raises BenchFailed."""
    told = ("up", "--data", str(data), "--port", "0")
    async with child(folder, "fleet", "services.cli.main", *told, speaks=False) as one:
        address = json.loads(await one.file(data / "fleet.json", START_S))["address"]
        tokens = json.loads((data / "tokens.json").read_text())
        async with grpc.aio.insecure_channel(address) as channel:
            desk = Desk(channel, tokens, seamless=seamless)
            await desk.set_up()
            yield BenchFleet(one, address, data / "tokens.hashed.json", desk)


async def patiently(call: Callable[[], Awaitable[T]], *also: grpc.StatusCode) -> T:
    """Call, and call again while the outcome is unknown, or refused with a code of `also`.

    Raises BenchFailed."""
    again = {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        *also,
    }
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            if error.code() not in again or time.monotonic() > deadline:
                raise BenchFailed(f"{error.code().name}: {error.details()}") from error
        await asyncio.sleep(PAUSE_S)


def table_spec(table_id: str) -> spec_pb2.TableSpec:
    """An operator's table: betting stays open until it is closed."""
    return spec_pb2.TableSpec(
        table_id=table_id,
        currency_code=CURRENCY,
        rule_set=baccarat_1(),
        limits=[
            spec_pb2.BetLimit(bet=bet, min_minor=100, max_minor=LIMIT_MINOR, step_minor=20)
            for bet in ("banker", "player", "tie")
        ],
        pacing=spec_pb2.Pacing(betting_window_ms=0, pause_ms=0),
    )
