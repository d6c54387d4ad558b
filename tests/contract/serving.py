"""A real grpc.aio server of ours with made-up servicers, and a channel to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import ServiceDescriptor
from google.rpc import error_details_pb2  # type: ignore[import-untyped]  # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # the same
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from services.kernel.call import EVERY_ROLE, Call, rpc
from services.kernel.grpc_server import Server, Watch, method_name
from services.kernel.telemetry import Metrics, Tracing
from services.kernel.tokens import Caller, Role
from tests.contract.places import PATIENCE_S

LEAK = "the balance of account 4711"
UUID7 = "01890a5d-ac96-774b-bcce-b302099a8057"
CALLERS = {
    "n-token": Caller(partner="north"),
    "d-token": Caller(operator="dana", roles=frozenset({Role.DEALER})),
    "s-token": Caller(operator="sam", roles=frozenset({Role.SUPERVISOR})),
}
PARTNER = partners.DESCRIPTOR.services_by_name["PartnerService"]
OPERATOR = operators.DESCRIPTOR.services_by_name["TableOperatorService"]
WALLET = wallets.DESCRIPTOR.services_by_name["WalletService"]
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

Behaviour = Callable[[Any, Call], Any]


class KnownCallers:
    def caller(self, token: str) -> Caller | None:
        return CALLERS.get(token)


@dataclass
class MadeUp:
    """Serves every method of a service by what the test says it does."""

    does: dict[str, Behaviour] = field(default_factory=dict)
    seen: list[tuple[Any, Call]] = field(default_factory=list)


def made_up(service: ServiceDescriptor, **access: Any) -> MadeUp:
    servicer = MadeUp()
    for method in service.methods:
        name = method_name(method.name)

        async def unary(request: Any, call: Call, name: str = name) -> Any:
            servicer.seen.append((request, call))
            return servicer.does[name](request, call)

        async def stream(request: Any, call: Call, name: str = name) -> AsyncIterator[Any]:
            servicer.seen.append((request, call))
            for each in servicer.does[name](request, call):
                yield each

        setattr(servicer, name, rpc(**access)(stream if method.server_streaming else unary))
    return servicer


def unary(channel: grpc.aio.Channel, method: str) -> grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]:
    """A method by its path, bytes in and bytes out."""
    return channel.unary_unary(method)


@dataclass
class Served:
    """A running server and a channel to it."""

    server: Server
    partner: MadeUp
    operator: MadeUp
    wallet: MadeUp
    channel: grpc.aio.Channel
    metrics: Metrics
    spans: InMemorySpanExporter
    tracing: Tracing
    port: int

    async def call(
        self,
        method: str,
        request: bytes,
        *,
        bearer: str | None = "n-token",
        wait_s: float | None = PATIENCE_S,
        **metadata: str,
    ) -> bytes:
        sent = [] if bearer is None else [("authorization", f"Bearer {bearer}")]
        sent += [(key.replace("_", "-"), value) for key, value in metadata.items()]
        return await unary(self.channel, method)(request, timeout=wait_s, metadata=tuple(sent))

    async def refused(self, method: str, request: bytes, **how: Any) -> tuple[Any, Any]:
        """The error that a call ends with, and its ErrorInfo."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.call(method, request, **how)
        return caught.value, info_of(caught.value)


def status_in(error: grpc.aio.AioRpcError) -> Any:
    details = dict(error.trailing_metadata()).get("grpc-status-details-bin")
    assert isinstance(details, bytes)
    return Status.FromString(details)


def info_of(error: grpc.aio.AioRpcError) -> Any:
    info = error_details_pb2.ErrorInfo()
    assert status_in(error).details[0].Unpack(info)
    return info


def fields_of(error: grpc.aio.AioRpcError) -> set[str]:
    bad = error_details_pb2.BadRequest()
    for detail in status_in(error).details:
        if detail.Unpack(bad):
            return {violation.field for violation in bad.field_violations}
    return set()


@asynccontextmanager
async def serving() -> AsyncIterator[Served]:
    metrics, spans = Metrics(), InMemorySpanExporter()
    tracing = Tracing(service="table", ratio=0.0, exporter=spans)
    server = Server(KnownCallers(), watch=Watch(metrics, tracing))
    partner = made_up(PARTNER, partners=True, roles=EVERY_ROLE, deadline=True)
    operator = made_up(OPERATOR, roles=(Role.SUPERVISOR,))
    wallet = made_up(WALLET, partners=True)
    server.add(PARTNER, partner)
    server.add(OPERATOR, operator)
    server.add(WALLET, wallet)
    port = server.listen("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Served(server, partner, operator, wallet, channel, metrics, spans, tracing, port)
    await server.stop(0)
    tracing.close()


PLACE = "/sabot.partner.v1.PartnerService/PlaceBets"
WATCH = "/sabot.partner.v1.PartnerService/WatchTable"
GET_TABLE = "/sabot.partner.v1.PartnerService/GetTable"
LIST_BETS = "/sabot.partner.v1.PartnerService/ListBets"
VOID = "/sabot.table.v1.TableOperatorService/VoidRound"
OPEN_TABLE = "/sabot.table.v1.TableOperatorService/OpenTable"
DEPOSIT = "/sabot.wallet.v1.WalletService/Deposit"


def place(**change: Any) -> partners.PlaceBetsRequest:
    stake = Money(currency_code="EUR", minor_units=500)
    content: dict[str, Any] = {
        "request_id": "r-1",
        "account_id": "a-1",
        "table_id": "t1",
        "round_id": "t1-7",
        "bets": [bet_pb2.BetRequest(bet="player", stake=stake)],
    }
    return partners.PlaceBetsRequest(**{**content, **change})


def accepts(_request: Any, _call: Call) -> partners.PlaceBetsResponse:
    return partners.PlaceBetsResponse(replayed=True)
