"""How `sabot bench` calls: the same bytes-in, bytes-out client for everything that is compared, so
that what differs between two figures is the server.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.table.v1 import bet_pb2
from services.cli.uuid7 import uuid7

PLACE_BETS = "/sabot.partner.v1.PartnerService/PlaceBets"
PARTNER = "north"
TABLE = "bench-1"
CURRENCY = "EUR"
STAKE_MINOR = 100
LIMIT_MINOR = 10**9
"""Of every bet's stake in a round: never reached."""
DEPOSIT_MINOR = 10**12
ACCOUNTS = 512
"""So many share a slice's bets: each stays far below 500 bets a round (its limit at a table)."""
CALL_S = 10.0
"""Deadline of a call."""
WARM_S = 0.25
"""Called, but not counted, at the start of every slice: the servers before it fall idle, this one's
queues fill."""
SPARE = 1.5
"""Requests are made ahead for so much more than the last slice sent; more are made on the way."""
LEAST_AHEAD = 500


AGAIN = frozenset(
    (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    )
)
"""Refused for the moment, or unknown: the same bytes are sent again, as a partner would."""
AGAIN_PAUSE_S = 0.02
TRIES = 500
"""Of one request."""


class BenchFailed(Exception):
    """A figure cannot be had; the message says why."""


@dataclass(slots=True)
class Slice:
    """One stretch of calls."""

    latencies_s: list[float] = field(default_factory=list[float])
    """Of the calls that ended while it was counted."""
    counted_s: float = 0.0
    sent: int = 0
    """Calls in all, those while warming up included."""
    answers: list[bytes] = field(default_factory=list[bytes])
    again: int = 0
    """How often a call was sent again; the time of all its tries counts."""


@dataclass(slots=True)
class Figure:
    """What all slices of one kind come to."""

    latencies_s: list[float] = field(default_factory=list[float])
    counted_s: float = 0.0
    again: int = 0

    def add(self, one: Slice) -> None:
        """Count a slice."""
        self.latencies_s += one.latencies_s
        self.counted_s += one.counted_s
        self.again += one.again

    @property
    def per_s(self) -> float:
        """Calls a second."""
        return len(self.latencies_s) / self.counted_s if self.counted_s else 0.0

    def told(self) -> dict[str, float]:
        """As it stands in the report."""
        return {
            "per_s": round(self.per_s, 1),
            "p50_ms": round(quantile(self.latencies_s, 0.50) * 1000, 3),
            "p99_ms": round(quantile(self.latencies_s, 0.99) * 1000, 3),
        }


def quantile(values: Sequence[float], part: float) -> float:
    """The least of the values that `part` of them do not exceed; 0 where there are none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-len(ordered) * part // 1) - 1))]


def account(number: int) -> str:
    """The id of one of the accounts."""
    return f"bench-{number:04}"


def bets_request(number: int, round_id: str) -> bytes:
    """A request of PlaceBets: one bet of the `number`th account, always on the same side."""
    number %= ACCOUNTS
    request = partners.PlaceBetsRequest(
        request_id=uuid7(),
        account_id=account(number),
        table_id=TABLE,
        round_id=round_id,
        bets=[
            bet_pb2.BetRequest(
                bet="player" if number % 2 else "banker",
                stake=Money(currency_code=CURRENCY, minor_units=STAKE_MINOR),
            )
        ],
    )
    request.client_send_time.GetCurrentTime()
    return request.SerializeToString()


class Target:
    """A server under load. `metadata` None: none and no deadline, as bare as a call can be."""

    def __init__(
        self, name: str, address: str, metadata: tuple[tuple[str, str], ...] | None
    ) -> None:
        self.name = name
        self.channel = grpc.aio.insecure_channel(address)
        self._call: Any = self.channel.unary_unary(PLACE_BETS)  # no codec: bytes
        self._options: dict[str, Any] = (
            {} if metadata is None else {"metadata": metadata, "timeout": CALL_S}
        )
        self._numbers = itertools.count()
        self._ahead: dict[int, int] = {}

    async def run(self, round_id: str, in_flight: int, seconds: float, warm_s: float) -> Slice:
        """Keep `in_flight` calls going, for `seconds` counted ones. Raises BenchFailed."""
        ahead = self._ahead.get(in_flight, LEAST_AHEAD)
        made = [bets_request(next(self._numbers), round_id) for _ in range(ahead)]
        more = (bets_request(next(self._numbers), round_id) for _ in itertools.count())
        one = Slice(counted_s=seconds)
        await self._drive(itertools.chain(made, more), one, in_flight, warm_s)
        self._ahead[in_flight] = max(LEAST_AHEAD, int(one.sent * SPARE))
        return one

    async def _drive(
        self, requests: Iterator[bytes], one: Slice, in_flight: int, warm_s: float
    ) -> None:
        clock: Callable[[], float] = time.perf_counter
        start = clock() + warm_s
        end = start + one.counted_s
        latencies, answers = one.latencies_s, one.answers

        async def client() -> None:
            nonlocal end
            while (began := clock()) < end:
                answer = await self._once(next(requests), one)
                ended = clock()
                answers.append(answer)
                if ended >= end and not latencies:
                    # No call has ended in time: the first that does is counted by its own.
                    end = ended
                    one.counted_s = ended - start
                    latencies.append(ended - began)
                elif start <= ended < end:
                    latencies.append(ended - began)

        async with asyncio.TaskGroup() as group:
            for _ in range(in_flight):
                group.create_task(client())
        one.sent = len(answers)

    async def _once(self, request: bytes, one: Slice) -> bytes:
        """One request's answer. Raises BenchFailed."""
        for _ in range(TRIES):
            try:
                answer: bytes = await self._call(request, **self._options)
            except grpc.aio.AioRpcError as error:
                if error.code() not in AGAIN:
                    raise BenchFailed(
                        f"{self.name}: {error.code().name}: {error.details()}"
                    ) from error
            else:
                return answer
            one.again += 1
            await asyncio.sleep(AGAIN_PAUSE_S)
        raise BenchFailed(f"{self.name}: no outcome after {TRIES} tries")

    async def close(self) -> None:
        """Let go of the connection."""
        await self.channel.close()


def check_placed(name: str, one: Slice) -> None:
    """Every answer says that its bet is on; what was sent once is on once. Raises BenchFailed."""
    bet_ids: set[str] = set()
    for raw in one.answers:
        told = partners.PlaceBetsResponse.FromString(raw)
        if len(told.bets) != 1 or (told.replayed and not one.again):
            raise BenchFailed(f"{name}: an answer that accepts no new bet: {told}")
        bet_ids.add(told.bets[0].bet_id)
    if len(bet_ids) != len(one.answers):
        raise BenchFailed(f"{name}: two answers name the same bet")
