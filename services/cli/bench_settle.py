"""Big rounds: how long one of thousands of accounts takes to be paid, and what that does to bets at
another table meanwhile.

- `settle_seconds`: from the call that closes betting until WatchTable tells that all is paid, by
  the number of accounts with a bet in the round;
- `other_table_p99_ms`: the 99th percentile of PlaceBets at another table, a few in flight, while
  the biggest of these rounds is settled;
- `other_table_p99_ms_voided`: the same while one as big is voided.

A fleet of its own: what other figures left behind would be in these.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.partner.v1 import partner_service_pb2_grpc as partners_grpc
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import operator_service_pb2_grpc as operators_grpc
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from sabot.wallet.v1 import wallet_service_pb2_grpc as wallets_grpc
from services.cli.bench_child import child
from services.cli.bench_fleet import PATIENCE_S, START_S, SUPERVISOR, patiently, table_spec
from services.cli.bench_load import CALL_S, CURRENCY, PARTNER, STAKE_MINOR, BenchFailed, quantile
from services.cli.uuid7 import uuid7

BIG, OTHER = "bench-big", "bench-other"
AT_ONCE = 64
"""Calls in flight while accounts are opened and their bets placed, uncounted."""
IN_FLIGHT = 4
"""Calls in flight at the other table: it is not to be busy by itself."""
DEPOSIT_MINOR = 100 * STAKE_MINOR
OTHER_DEPOSIT_MINOR = 10**9

ENDED = (partners.ROUND_STATE_PAID, partners.ROUND_STATE_RETURNED)


@dataclass(frozen=True, slots=True)
class BigRounds:
    """What was measured."""

    settle_seconds: dict[int, float]
    """By accounts."""
    settled_p99_ms: float
    voided_p99_ms: float


async def big_rounds(
    place: Path, accounts: Sequence[int], progress: Callable[[str], None]
) -> BigRounds:
    """Measure rounds of so many accounts, ascending; the last is voided once more. Raises
    BenchFailed."""
    most = accounts[-1]
    async with _desk(place) as desk:
        progress(f"{most} accounts")
        await desk.fund(most)
        settled: dict[int, float] = {}
        latencies: list[float] = []
        for count in accounts:
            progress(f"a round of {count} accounts")
            round_id = await desk.full_round(count)
            settled[count], latencies = await desk.end(round_id, desk.close)
        progress(f"a voided round of {most} accounts")
        round_id = await desk.full_round(most)
        _, voided = await desk.end(round_id, desk.void)
        return BigRounds(settled, _p99_ms(latencies), _p99_ms(voided))


def _p99_ms(latencies_s: Sequence[float]) -> float:
    if not latencies_s:
        raise BenchFailed("no bet was placed at the other table while the big round ended")
    return round(quantile(latencies_s, 0.99) * 1000, 3)


@asynccontextmanager
async def _desk(place: Path) -> AsyncIterator[_Desk]:
    data = place / "big"
    told = ("up", "--data", str(data), "--port", "0")
    async with child(place, "big", "services.cli.main", *told, speaks=False) as one:
        address = json.loads(await one.file(data / "fleet.json", START_S))["address"]
        tokens = json.loads((data / "tokens.json").read_text())
        async with grpc.aio.insecure_channel(address) as channel:
            yield _Desk(channel, tokens)


class _Desk:
    """A partner with many accounts and an operator with two tables."""

    def __init__(self, channel: grpc.aio.Channel, tokens: dict[str, str]) -> None:
        self._tokens = tokens
        self._bets: partners_grpc.PartnerServiceAsyncStub
        self._bets = partners_grpc.PartnerServiceStub(channel)
        self._tables: operators_grpc.TableOperatorServiceAsyncStub
        self._tables = operators_grpc.TableOperatorServiceStub(channel)
        self._wallet: wallets_grpc.WalletServiceAsyncStub
        self._wallet = wallets_grpc.WalletServiceStub(channel)

    async def fund(self, count: int) -> None:
        """Open both tables, and accounts with some money."""
        for table_id in (BIG, OTHER):
            opening = operators.OpenTableRequest(request_id=uuid7(), spec=table_spec(table_id))
            await patiently(lambda: self._tables.OpenTable(opening, **self._as(SUPERVISOR)))  # noqa: B023 - awaited before the loop goes on
        await _many(count, lambda number: self._fund(_account(number), DEPOSIT_MINOR))
        await self._fund(OTHER, OTHER_DEPOSIT_MINOR)

    async def full_round(self, count: int) -> str:
        """A round with a bet of each of so many accounts; its id."""
        round_id = await self._open_round(BIG)
        await _many(count, lambda number: self._place(BIG, round_id, _account(number)))
        return round_id

    async def end(
        self, round_id: str, by: Callable[[str], Awaitable[None]]
    ) -> tuple[float, list[float]]:
        """End a round, and bet at the other table until all of its money is where it belongs: how
        long that took, and the latencies of these bets, seconds."""
        other = await self._open_round(OTHER)
        over = asyncio.Event()
        began = time.perf_counter()
        watching = asyncio.create_task(self._ended(round_id))
        bettors = [asyncio.create_task(self._keep_betting(other, over)) for _ in range(IN_FLIGHT)]
        await by(round_id)
        async with asyncio.timeout(PATIENCE_S):
            await watching
        took = time.perf_counter() - began
        over.set()
        latencies = [one for bettor in bettors for one in await bettor]
        await self.close(other)
        await self._ended(other)
        return round(took, 3), latencies

    async def close(self, round_id: str) -> None:
        """No more bets."""
        asked = operators.CloseBettingRequest(
            request_id=uuid7(), table_id=_table_of(round_id), round_id=round_id
        )
        await patiently(lambda: self._tables.CloseBetting(asked, **self._as(SUPERVISOR)))

    async def void(self, round_id: str) -> None:
        """All stakes go back."""
        asked = operators.VoidRoundRequest(
            request_id=uuid7(),
            table_id=_table_of(round_id),
            round_id=round_id,
            reason=tables.ROUND_REASON_DEALER_ERROR,
        )
        await patiently(lambda: self._tables.VoidRound(asked, **self._as(SUPERVISOR)))

    async def _open_round(self, table_id: str) -> str:
        async def open_it() -> operators.OpenRoundResponse:
            fresh = operators.OpenRoundRequest(request_id=uuid7(), table_id=table_id)
            return await self._tables.OpenRound(fresh, **self._as(SUPERVISOR))

        # Refused while the shoe is not there; a refusal is an outcome, so each try has its own id.
        opened = await patiently(open_it, grpc.StatusCode.FAILED_PRECONDITION)
        return opened.round_id

    async def _ended(self, round_id: str) -> None:
        """Wait until the table tells that the round is over."""
        asked = partners.WatchTableRequest(table_id=_table_of(round_id))
        stream = self._bets.WatchTable(asked, metadata=self._metadata(f"partner:{PARTNER}"))
        async for update in stream:
            seen = update.state.round if update.HasField("state") else update.round
            if seen.round_id == round_id and seen.state in ENDED:
                stream.cancel()
                return
        raise BenchFailed(f"round {round_id} was watched, and its end not told")

    async def _keep_betting(self, round_id: str, over: asyncio.Event) -> list[float]:
        latencies: list[float] = []
        while not over.is_set():
            began = time.perf_counter()
            await self._place(OTHER, round_id, OTHER)
            latencies.append(time.perf_counter() - began)
        return latencies

    async def _place(self, table_id: str, round_id: str, account_id: str) -> None:
        stake = Money(currency_code=CURRENCY, minor_units=STAKE_MINOR)
        asked = partners.PlaceBetsRequest(
            request_id=uuid7(),
            account_id=account_id,
            table_id=table_id,
            round_id=round_id,
            bets=[bet_pb2.BetRequest(bet="player", stake=stake)],
        )
        sender = self._as(f"partner:{PARTNER}")
        await patiently(lambda: self._bets.PlaceBets(asked, **sender))

    async def _fund(self, account_id: str, minor: int) -> None:
        opening = wallets.OpenAccountRequest(
            request_id=uuid7(), account_id=account_id, currency_code=CURRENCY
        )
        deposit = wallets.DepositRequest(
            request_id=uuid7(),
            account_id=account_id,
            amount=Money(currency_code=CURRENCY, minor_units=minor),
        )
        sender = self._as(f"partner:{PARTNER}")
        await patiently(lambda: self._wallet.OpenAccount(opening, **sender))
        await patiently(lambda: self._wallet.Deposit(deposit, **sender))

    def _metadata(self, actor: str) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._tokens[actor]}"),)

    def _as(self, actor: str) -> dict[str, Any]:
        return {"metadata": self._metadata(actor), "timeout": CALL_S}


def _account(number: int) -> str:
    return f"big-{number:05}"


def _table_of(round_id: str) -> str:
    return round_id.rpartition("-")[0]


async def _many(count: int, call: Callable[[int], Awaitable[None]]) -> None:
    """Call for each number, a few at once."""
    numbers = iter(range(count))

    async def caller() -> None:
        for number in numbers:
            await call(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(caller())
