"""Clients over the public calls, as partners and operators write them: a request whose outcome is
unknown is sent again with the same id until it is known, and every outcome is remembered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import grpc
from google.rpc import error_details_pb2  # type: ignore[import-untyped] # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped] # the same

from sabot.log.v1 import entry_pb2
from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.partner.v1 import partner_service_pb2_grpc as partner_grpc
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import operator_service_pb2_grpc as operators_grpc
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from sabot.wallet.v1 import wallet_service_pb2_grpc as wallets_grpc
from services.cli.uuid7 import uuid7
from services.games.catalogue import baccarat_1
from services.kernel.call_again import CALL_AGAIN

T = TypeVar("T")

CURRENCY = "EUR"
CALL_S = 3.0
"""Deadline of one sending of several; afterwards its outcome is unknown."""
PATIENCE_S = 60.0
"""Whatever must become known is known by then, on a busy machine too; and the deadline of what is
sent once."""
SILENCE_S = 7.0
"""A stream that says nothing for so long is broken: there is a heartbeat every five seconds."""
AGAIN_S = 0.1
"""Between two sendings to servers that do not answer."""
UNKNOWN = frozenset(
    (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.CANCELLED,
    )
)
"""What a request is sent again after."""
ENDED = (partner.ROUND_STATE_PAID, partner.ROUND_STATE_RETURNED)

Metadata = tuple[tuple[str, str], ...]


class RefusedError(Exception):
    """An outcome that is no success: the catalogue's reason."""

    def __init__(self, code: grpc.StatusCode, reason: str, text: str) -> None:
        super().__init__(f"{code.name} {reason}: {text}")
        self.code = code
        self.reason = reason


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """The reason of the catalogue that an error carries; empty where it carries none."""
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            status = Status.FromString(value)
            info = error_details_pb2.ErrorInfo()
            for detail in status.details:
                if detail.Unpack(info):
                    return str(info.reason)
    return ""


@dataclass(frozen=True, slots=True)
class Placed:
    """The outcome of a request for bets that was told to the client."""

    account_id: str
    round_id: str
    bets: tuple[tuple[str, str, int], ...]
    """Id, kind and stake of each; empty where they were refused."""
    refused: str = ""
    sent: int = field(default=1, compare=False)
    """How often it was sent, which makes no other outcome of it."""


class Servers:
    """Channels to the replicas of a front door; a call goes to the next where one is away, and
    where there is one alone, to that once more."""

    def __init__(
        self, *addresses: str, tls: grpc.ChannelCredentials | None = None, again: bool = True
    ) -> None:
        """Unless `again`, each call is sent once."""
        options = CALL_AGAIN if again and len(addresses) == 1 else ()
        self._channels = [
            grpc.aio.secure_channel(address, tls, options)
            if tls is not None
            else grpc.aio.insecure_channel(address, options)
            for address in addresses
        ]
        self._at = 0

    @property
    def channel(self) -> grpc.aio.Channel:
        return self._channels[self._at]

    def go_on(self, failed: grpc.aio.Channel) -> None:
        """Leave this one, unless another call did so already."""
        if self.channel is failed:
            self._at = (self._at + 1) % len(self._channels)

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()


class Caller:
    """One bearer of a token."""

    def __init__(self, servers: Servers, token: str) -> None:
        self.servers = servers
        self.metadata: Metadata = (("authorization", f"Bearer {token}"),)

    async def known(self, call: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        """Call until the outcome is known; it, and how often was called. Raises RefusedError."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_S
        for sent in range(1, 10_000):
            channel = self.servers.channel
            try:
                return await call(), sent
            except grpc.aio.AioRpcError as error:
                if error.code() not in UNKNOWN:
                    text = error.details() or ""
                    raise RefusedError(error.code(), reason_of(error), text) from error
                if loop.time() > end:
                    raise
                if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                    self.servers.go_on(channel)
            await asyncio.sleep(AGAIN_S)
        raise AssertionError

    @property
    def bets(self) -> partner_grpc.PartnerServiceAsyncStub:
        stub: partner_grpc.PartnerServiceAsyncStub
        stub = partner_grpc.PartnerServiceStub(self.servers.channel)
        return stub

    @property
    def wallet(self) -> wallets_grpc.WalletServiceAsyncStub:
        stub: wallets_grpc.WalletServiceAsyncStub
        stub = wallets_grpc.WalletServiceStub(self.servers.channel)
        return stub


@dataclass
class Told:
    """All that a partner was told."""

    requests: dict[tuple[str, str], Placed] = field(default_factory=dict)
    """By round and request id."""
    withdrawn: dict[str, str] = field(default_factory=dict)
    """Bets taken back, and the request that did it."""
    deposits: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Account and amount by request id."""
    outcomes: dict[str, partner.PlacedBet] = field(default_factory=dict)
    """The last that WatchBets said of each bet."""
    updates: int = 0

    @property
    def on(self) -> dict[str, tuple[str, str, int]]:
        """Round, account and stake of every bet that was acknowledged, by id."""
        return {
            bet_id: (placed.round_id, placed.account_id, stake)
            for placed in self.requests.values()
            for bet_id, _, stake in placed.bets
        }


class Partner(Caller):
    """A partner platform."""

    def __init__(self, servers: Servers, token: str) -> None:
        super().__init__(servers, token)
        self.told = Told()
        self._changed = asyncio.Condition()

    # ---- accounts ------------------------------------------------------------------------------

    async def open_account(self, account_id: str, minor: int) -> None:
        """Open an account and pay in; nothing where its money is elsewhere."""
        request = wallets.OpenAccountRequest(
            request_id=uuid7(), account_id=account_id, currency_code=CURRENCY
        )
        await self.known(
            lambda: self.wallet.OpenAccount(request, metadata=self.metadata, timeout=CALL_S)
        )
        if minor:
            await self.deposit(account_id, minor)

    async def deposit(self, account_id: str, minor: int) -> entry_pb2.Position:
        request = wallets.DepositRequest(
            request_id=uuid7(), account_id=account_id, amount=money(minor)
        )
        answer, _ = await self.known(
            lambda: self.wallet.Deposit(request, metadata=self.metadata, timeout=CALL_S)
        )
        self.told.deposits[request.request_id] = (account_id, minor)
        return answer.position

    async def balance(
        self, account_id: str, at_least: entry_pb2.Position | None = None
    ) -> tuple[int, int]:
        """What is available and what is reserved, minor units."""
        request = wallets.GetBalanceRequest(account_id=account_id, at_least=at_least)
        found, _ = await self.known(
            lambda: self.wallet.GetBalance(request, metadata=self.metadata, timeout=CALL_S)
        )
        return found.available.minor_units, found.reserved.minor_units

    # ---- bets ----------------------------------------------------------------------------------

    async def place(
        self, account_id: str, round_id: str, *wagers: tuple[str, int], request_id: str = ""
    ) -> Placed:
        """Place bets and remember what was told; refusals are outcomes too."""
        request = partner.PlaceBetsRequest(
            request_id=request_id or uuid7(),
            account_id=account_id,
            table_id=round_id.rpartition("-")[0],
            round_id=round_id,
            bets=[bet_pb2.BetRequest(bet=bet, stake=money(minor)) for bet, minor in wagers],
        )
        try:
            answer, sent = await self.known(
                lambda: self.bets.PlaceBets(request, metadata=self.metadata, timeout=CALL_S)
            )
        except RefusedError as refused:
            if refused.reason == "REQUEST_EXPIRED":
                placed = await self._ask(request)
            else:
                placed = Placed(account_id, round_id, (), refused.reason)
        else:
            bets = tuple((bet.bet_id, bet.bet, bet.stake_minor) for bet in answer.bets)
            placed = Placed(account_id, round_id, bets, sent=sent)
        self.told.requests[round_id, request.request_id] = placed
        async with self._changed:
            self._changed.notify_all()
        return placed

    async def _ask(self, request: partner.PlaceBetsRequest) -> Placed:
        """The round is over: what has become of a request that was sent while it ran?"""
        over = partner.GetRoundResponse()
        while over.round.state not in ENDED:
            over, _ = await self.known(
                lambda: self.bets.GetRound(
                    partner.GetRoundRequest(round_id=request.round_id),
                    metadata=self.metadata, timeout=CALL_S,
                )
            )  # fmt: skip
        ask = partner.GetRequestRequest(
            request_id=request.request_id, round_id=request.round_id, at_least=over.position
        )
        try:
            answer, _ = await self.known(
                lambda: self.bets.GetRequest(ask, metadata=self.metadata, timeout=CALL_S)
            )
        except RefusedError as refused:
            if refused.reason != "REQUEST_NOT_FOUND":
                raise
            return Placed(request.account_id, request.round_id, (), refused.reason)
        kind = answer.outcome.WhichOneof("outcome")
        reserved = answer.outcome.reserved
        bets = tuple((bet.bet_id, bet.bet, bet.stake_minor) for bet in reserved.bets)
        if bool(bets) != (kind == "reserved"):
            raise AssertionError(f"GetRequest tells {answer}")
        return Placed(request.account_id, request.round_id, bets, "" if bets else str(kind))

    async def withdraw(self, account_id: str, round_id: str, *bet_ids: str) -> str:
        """Take bets back; why that was refused, or nothing."""
        request = partner.WithdrawBetsRequest(
            request_id=uuid7(),
            account_id=account_id,
            table_id=round_id.rpartition("-")[0],
            round_id=round_id,
            bet_ids=bet_ids,
        )
        try:
            answer, _ = await self.known(
                lambda: self.bets.WithdrawBets(request, metadata=self.metadata, timeout=CALL_S)
            )
        except RefusedError as refused:
            return refused.reason
        for bet in answer.bets:
            self.told.withdrawn[bet.bet_id] = request.request_id
        return ""

    async def more_bets_on(self, count: int, wait_s: float = PATIENCE_S) -> float:
        """Wait until so many more bets have been acknowledged; how long it took, seconds."""
        loop = asyncio.get_running_loop()
        began, before = loop.time(), len(self.told.on)
        async with asyncio.timeout(wait_s), self._changed:
            await self._changed.wait_for(lambda: len(self.told.on) >= before + count)
        return loop.time() - began

    # ---- streams -------------------------------------------------------------------------------

    async def table_changes(self, table_id: str) -> AsyncIterator[partner.WatchTableResponse]:
        """A table's changes across broken streams."""
        token = ""
        while True:
            channel = self.servers.channel
            try:
                stream = self.bets.WatchTable(
                    partner.WatchTableRequest(table_id=table_id, resume_token=token),
                    metadata=self.metadata,
                )
                async for update in heard(stream):
                    token = update.resume_token
                    if not update.HasField("heartbeat"):
                        yield update
            except grpc.aio.AioRpcError as error:
                if error.code() not in UNKNOWN:
                    raise
            self.servers.go_on(channel)  # it ended or fell silent
            await asyncio.sleep(AGAIN_S)

    async def rounds(self, table_id: str) -> AsyncIterator[partner.Round]:
        """A table's rounds as they change."""
        async for update in self.table_changes(table_id):
            seen = update.state.round if update.HasField("state") else update.round
            if seen.round_id:
                yield seen

    async def round_in(self, table_id: str, *states: partner.RoundState.ValueType) -> partner.Round:
        """Wait for a round of the table that is in one of these states."""
        async with asyncio.timeout(PATIENCE_S):
            async for seen in self.rounds(table_id):
                if seen.state in states:
                    return seen
        raise AssertionError

    async def follow_bets(self, started: asyncio.Event | None = None) -> None:
        """Keep what WatchBets tells, across broken streams, until cancelled."""
        token = ""
        while True:
            channel = self.servers.channel
            try:
                stream = self.bets.WatchBets(
                    partner.WatchBetsRequest(resume_token=token), metadata=self.metadata
                )
                async for update in heard(stream):
                    token = update.resume_token
                    if started is not None:
                        started.set()
                    if update.HasField("bet"):
                        self.told.outcomes[update.bet.bet_id] = update.bet
                        self.told.updates += 1
                        async with self._changed:
                            self._changed.notify_all()
            except grpc.aio.AioRpcError as error:
                if error.code() not in UNKNOWN:
                    raise
            self.servers.go_on(channel)  # it ended or fell silent
            await asyncio.sleep(AGAIN_S)

    async def all_told(self) -> None:
        """Wait until WatchBets has told the end of every bet that was acknowledged."""
        ends = (
            partner.BET_STATE_SETTLED,
            partner.BET_STATE_VOIDED,
            partner.BET_STATE_WITHDRAWN,
        )

        def open_bets() -> list[str]:
            outcomes = self.told.outcomes
            return [
                bet_id
                for bet_id in self.told.on
                if bet_id not in outcomes or outcomes[bet_id].state not in ends
            ]

        try:
            async with asyncio.timeout(PATIENCE_S), self._changed:
                await self._changed.wait_for(lambda: not open_bets())
        except TimeoutError:
            left = open_bets()
            found = [str(self.told.outcomes.get(bet_id)) for bet_id in left[:3]]
            raise AssertionError(f"WatchBets never told the end of {left}: {found}") from None

    async def list_bets(
        self, at_least: entry_pb2.Position, account_id: str = "", round_id: str = ""
    ) -> list[partner.PlacedBet]:
        """All bets, page by page."""
        found: list[partner.PlacedBet] = []
        token = ""
        while True:
            request = partner.ListBetsRequest(
                account_id=account_id, round_id=round_id, page_size=500, page_token=token,
                at_least=at_least,
            )  # fmt: skip
            page, _ = await self.known(
                lambda: self.bets.ListBets(request, metadata=self.metadata, timeout=CALL_S)  # noqa: B023 - called before the loop goes on
            )
            found += page.bets
            token = page.next_page_token
            if not token:
                return found


class Operator(Caller):
    """A dealer and supervisor."""

    @property
    def tables(self) -> operators_grpc.TableOperatorServiceAsyncStub:
        stub: operators_grpc.TableOperatorServiceAsyncStub
        stub = operators_grpc.TableOperatorServiceStub(self.servers.channel)
        return stub

    async def open_table(self, spec: spec_pb2.TableSpec) -> entry_pb2.Position:
        request = operators.OpenTableRequest(request_id=uuid7(), spec=spec)
        answer, _ = await self.known(
            lambda: self.tables.OpenTable(request, metadata=self.metadata, timeout=CALL_S)
        )
        return answer.position

    async def close_table(self, table_id: str) -> None:
        """No further rounds."""
        request = operators.CloseTableRequest(request_id=uuid7(), table_id=table_id)
        await self.known(
            lambda: self.tables.CloseTable(request, metadata=self.metadata, timeout=CALL_S)
        )

    async def open_round(self, table_id: str) -> str:
        """The next round, once the shoe is ready; its id. The id of the request is new each time
        that the shoe is not ready, and the same while the outcome is unknown."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_S
        request_id = uuid7()
        while True:
            request = operators.OpenRoundRequest(request_id=request_id, table_id=table_id)
            channel = self.servers.channel
            try:
                answer = await self.tables.OpenRound(
                    request, metadata=self.metadata, timeout=CALL_S
                )
            except grpc.aio.AioRpcError as error:
                if loop.time() > end:
                    raise
                if reason_of(error) == "SHOE_NOT_READY":
                    request_id = uuid7()
                elif error.code() in UNKNOWN:
                    self.servers.go_on(channel)
                else:
                    raise RefusedError(error.code(), reason_of(error), str(error)) from error
            else:
                return answer.round_id
            await asyncio.sleep(AGAIN_S)

    async def close_betting(self, round_id: str) -> None:
        request = operators.CloseBettingRequest(
            request_id=uuid7(), table_id=round_id.rpartition("-")[0], round_id=round_id
        )
        await self.known(
            lambda: self.tables.CloseBetting(request, metadata=self.metadata, timeout=CALL_S)
        )


async def heard(stream: grpc.aio.UnaryStreamCall[Any, T]) -> AsyncIterator[T]:
    """The messages of a stream until it ends or falls silent."""
    try:
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    message = await stream.read()
            except TimeoutError:
                return
            if message is grpc.aio.EOF:
                return
            yield cast("T", message)
    finally:
        stream.cancel()


def money(minor: int) -> Money:
    return Money(currency_code=CURRENCY, minor_units=minor)


def table_spec(
    table_id: str = "t1", window_ms: int = 0, pause_ms: int = 0, bets: Sequence[str] = ()
) -> spec_pb2.TableSpec:
    """A baccarat table in euro. Without a window an operator opens rounds and closes betting."""
    limit = {"min_minor": 100, "max_minor": 100_000, "step_minor": 20}
    return spec_pb2.TableSpec(
        table_id=table_id,
        currency_code=CURRENCY,
        rule_set=baccarat_1(),
        limits=[spec_pb2.BetLimit(bet=bet, **limit) for bet in bets or ("banker", "player", "tie")],
        pacing=spec_pb2.Pacing(betting_window_ms=window_ms, pause_ms=pause_ms),
    )
