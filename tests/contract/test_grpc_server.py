"""What every gRPC server of ours does with every call: on a real grpc.aio server over loopback.

The servicers are made up; the methods, messages and rules are the protos' own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import ServiceDescriptor
from google.rpc import error_details_pb2  # type: ignore[import-untyped]  # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # the same
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from services.kernel import errors
from services.kernel.call import EVERY_ROLE, Call, rpc
from services.kernel.edge import EdgeBusy, EdgeNotReady, LogIsFull, NotTaken, OutcomeUnknown
from services.kernel.grpc_server import Server, Watch, method_name
from services.kernel.projections import ProjectionUnavailable
from services.kernel.telemetry import Metrics, Tracing
from services.kernel.tokens import Caller, Role

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

    async def call(
        self,
        method: str,
        request: bytes,
        *,
        bearer: str | None = "n-token",
        wait_s: float | None = 5.0,
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


@pytest.fixture
async def served() -> AsyncIterator[Served]:
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
        yield Served(server, partner, operator, wallet, channel, metrics, spans, tracing)
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


# ---- what gets through -------------------------------------------------------------------------


async def test_a_servicer_sees_the_request_and_who_calls(served: Served) -> None:
    served.partner.does["place_bets"] = accepts
    answer = await served.call(PLACE, place().SerializeToString(), accept_language="fr-CH, en")
    assert partners.PlaceBetsResponse.FromString(answer).replayed
    request, call = served.partner.seen[0]
    assert request == place()
    assert call.caller == CALLERS["n-token"]
    assert call.partner() == "north"
    assert call.language == "fr"
    assert 4.0 < call.wait_s() <= 5.0
    assert call.traceparent == ""
    assert "n-token" not in repr(call)


async def test_a_stream_is_served_and_its_errors_too(served: Served) -> None:
    def three_then_break(_request: Any, _call: Call) -> Any:
        for _ in range(3):
            yield partners.WatchTableResponse(heartbeat=True)
        raise RuntimeError(LEAK)

    served.partner.does["watch_table"] = three_then_break
    stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = served.channel.unary_stream(WATCH)
    request = partners.WatchTableRequest(table_id="t1").SerializeToString()
    call = stream(request, timeout=5, metadata=(("authorization", "Bearer n-token"),))
    got = [await call.read() for _ in range(3)]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call.read()
    assert len(got) == 3
    assert info_of(caught.value).reason == "INTERNAL"
    assert LEAK not in str(caught.value)


# ---- who may -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        (None, "TOKEN_MISSING"),
        ("", "TOKEN_MISSING"),
        ("Bearer", "TOKEN_MISSING"),
        ("Bearer ", "TOKEN_MISSING"),
        ("Basic n-token", "TOKEN_MISSING"),
        ("n-token", "TOKEN_MISSING"),
        ("Bearer x-token", "TOKEN_UNKNOWN"),
        ("Bearer n-token ", "TOKEN_UNKNOWN"),
        ("Bearer N-TOKEN", "TOKEN_UNKNOWN"),
    ],
)
async def test_without_a_known_token_nothing_is_served(
    served: Served, authorization: str | None, reason: str
) -> None:
    metadata = {} if authorization is None else {"authorization": authorization}
    error, info = await served.refused(PLACE, b"\xff", bearer=None, **metadata)
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert (info.reason, info.domain) == (reason, "sabot")
    assert not served.partner.seen


@pytest.mark.parametrize(
    ("method", "token"), [(VOID, "n-token"), (VOID, "d-token"), (DEPOSIT, "s-token")]
)
async def test_without_the_right_it_is_permission_denied(
    served: Served, method: str, token: str
) -> None:
    error, info = await served.refused(method, b"", bearer=token)
    assert error.code() is grpc.StatusCode.PERMISSION_DENIED
    assert info.reason == "PERMISSION_DENIED"
    assert info.metadata["allowed"]


async def test_money_needs_a_deadline(served: Served) -> None:
    error, info = await served.refused(PLACE, place().SerializeToString(), wait_s=None)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info.reason == "DEADLINE_REQUIRED"
    served.operator.does["void_round"] = lambda _request, _call: operators.VoidRoundResponse()
    request = operators.VoidRoundRequest(
        request_id=UUID7, table_id="t1", round_id="t1-7", reason=tables.ROUND_REASON_SYSTEM
    )
    await served.call(VOID, request.SerializeToString(), bearer="s-token", wait_s=None)
    assert served.operator.seen[0][1].deadline is None


# ---- what is malformed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage", [b"\xff", b"\x0a\xff\x01", b"\x00" * 100, b"{}", b"\x0a\x02\xc3\x28"]
)
async def test_garbage_is_told_as_such_and_the_server_lives(served: Served, garbage: bytes) -> None:
    error, info = await served.refused(PLACE, garbage)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info.reason == "MALFORMED_REQUEST"
    served.partner.does["place_bets"] = accepts
    assert await served.call(PLACE, place().SerializeToString())


async def test_grpc_03_a_request_of_5_mib_is_refused_and_the_server_lives(served: Served) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.call(PLACE, b"\x0a" + b"x" * (5 * 1024 * 1024))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    served.partner.does["place_bets"] = accepts
    assert await served.call(PLACE, place().SerializeToString())
    assert len(served.partner.seen) == 1


@pytest.mark.parametrize("page_size", [-1, -(2**31), 501, 10**9, 2**31 - 1])
async def test_grpc_03_page_sizes_out_of_range_are_refused(served: Served, page_size: int) -> None:
    request = partners.ListBetsRequest(page_size=page_size)
    error, info = await served.refused(LIST_BETS, request.SerializeToString())
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info.reason == "INVALID_REQUEST"
    assert fields_of(error) == {"page_size"}


@pytest.mark.parametrize("page_size", [0, 1, 500])
async def test_grpc_03_page_sizes_in_range_are_served(served: Served, page_size: int) -> None:
    served.partner.does["list_bets"] = lambda _request, _call: partners.ListBetsResponse()
    await served.call(LIST_BETS, partners.ListBetsRequest(page_size=page_size).SerializeToString())
    assert served.partner.seen[0][0].page_size == page_size


@pytest.mark.parametrize(
    ("change", "field_name"),
    [
        ({"request_id": ""}, "request_id"),
        ({"request_id": "r" * 65}, "request_id"),
        ({"request_id": "r\n"}, "request_id"),
        ({"request_id": "r 1"}, "request_id"),
        ({"request_id": "r\x00"}, "request_id"),
        ({"request_id": "\u202er"}, "request_id"),
        ({"account_id": "Zoë"}, "account_id"),
        ({"account_id": "a\x7f"}, "account_id"),
        ({"table_id": "T1"}, "table_id"),
        ({"table_id": "-t"}, "table_id"),
        ({"table_id": "t" * 33}, "table_id"),
        ({"round_id": "t1/7"}, "round_id"),
        ({"round_id": "t1-7\n"}, "round_id"),
        ({"bets": []}, "bets"),
        ({"bets": [bet_pb2.BetRequest(bet="player")]}, "bets[0].stake"),
    ],
)
async def test_what_a_proto_forbids_never_reaches_a_servicer(
    served: Served, change: dict[str, Any], field_name: str
) -> None:
    error, info = await served.refused(PLACE, place(**change).SerializeToString())
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info.reason == "INVALID_REQUEST"
    assert fields_of(error) == {field_name}
    assert not served.partner.seen


@pytest.mark.parametrize(
    ("bet", "currency", "minor", "fields"),
    [
        ("", "EUR", 500, {"bets[0].bet"}),
        ("Player", "EUR", 500, {"bets[0].bet"}),
        ("player", "eur", 500, {"bets[0].stake.currency_code"}),
        ("player", "", 500, {"bets[0].stake.currency_code"}),
        ("player", "EUR", 0, {"bets[0].stake"}),
        ("player", "EUR", -1, {"bets[0].stake"}),
        ("player", "EUR", 10**12 + 1, {"bets[0].stake"}),
        ("player", "EUR", 2**63 - 1, {"bets[0].stake"}),
        ("player", "EUR", -(2**63), {"bets[0].stake"}),
    ],
)
async def test_a_bet_that_is_none_names_its_field(
    served: Served, bet: str, currency: str, minor: int, fields: set[str]
) -> None:
    stake = Money(currency_code=currency, minor_units=minor)
    request = place(bets=[bet_pb2.BetRequest(bet=bet, stake=stake)])
    error, _ = await served.refused(PLACE, request.SerializeToString())
    assert fields_of(error) == fields


async def test_too_many_bets_are_refused(served: Served) -> None:
    error, _ = await served.refused(PLACE, place(bets=list(place().bets) * 33).SerializeToString())
    assert fields_of(error) == {"bets"}


# ---- GRPC-04 -----------------------------------------------------------------------------------


def test_grpc_04_an_int64_survives_json_as_a_string() -> None:
    money = Money(currency_code="EUR", minor_units=9007199254740993)
    text = json_format.MessageToJson(money)
    assert '"9007199254740993"' in text
    assert json_format.Parse(text, Money()) == money


@pytest.mark.parametrize(
    ("written", "minor"), [("123", 123), ('"123"', 123), ('"1.0"', 1), ("1e2", 100)]
)
def test_grpc_04_json_that_means_a_whole_number_is_one(written: str, minor: int) -> None:
    try:
        money = json_format.Parse(f'{{"minorUnits": {written}}}', Money())
    except json_format.ParseError:
        # A library may be stricter than the format; then the caller is told, and no amount changes.
        assert written == '"1.0"'
    else:
        assert money.minor_units == minor


@pytest.mark.parametrize("written", ["1.5", '"1.5"', '""', '"x"', "true", "9223372036854775808"])
def test_grpc_04_json_that_is_no_whole_number_is_refused(written: str) -> None:
    with pytest.raises(json_format.ParseError):
        json_format.Parse(f'{{"minorUnits": {written}}}', Money())


def test_grpc_04_an_unknown_enum_name_is_refused_in_json() -> None:
    with pytest.raises(json_format.ParseError):
        json_format.Parse('{"reason": "NOPE"}', operators.VoidRoundRequest())


def test_grpc_04_zero_of_every_enum_is_unspecified() -> None:
    for module in (partners, operators, tables, wallets):
        for enum in module.DESCRIPTOR.enum_types_by_name.values():
            assert enum.values_by_number[0].name.endswith("_UNSPECIFIED"), enum.full_name


@pytest.mark.parametrize("reason", [None, 0, 999, -1])
async def test_grpc_04_an_enum_missing_zero_or_unknown_is_invalid(
    served: Served, reason: int | None
) -> None:
    request = operators.VoidRoundRequest(request_id=UUID7, table_id="t1", round_id="t1-7")
    if reason is not None:
        request.reason = reason  # type: ignore[assignment]  # what a newer client might send
    error, info = await served.refused(VOID, request.SerializeToString(), bearer="s-token")
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info.reason == "INVALID_REQUEST"
    assert fields_of(error) == {"reason"}
    assert not served.operator.seen


async def test_grpc_04_an_unknown_enum_is_found_deep_in_a_message(served: Served) -> None:
    request = operators.OpenTableRequest(request_id=UUID7)
    request.spec.table_id = "t1"
    request.spec.rule_set.game = 999  # type: ignore[assignment]  # what a newer client might send
    error, _ = await served.refused(OPEN_TABLE, request.SerializeToString(), bearer="s-token")
    assert "spec.rule_set.game" in fields_of(error)


@pytest.mark.parametrize("bet", [None, "", "0", "999"])
async def test_grpc_04_a_bet_without_a_kind_is_never_a_bet_on_player(
    served: Served, bet: str | None
) -> None:
    served.partner.does["place_bets"] = accepts
    stake = Money(currency_code="EUR", minor_units=500)
    request = place(bets=[bet_pb2.BetRequest(bet=bet or "", stake=stake)])
    if bet:  # a kind like any other, which no table offers: the table's core says so
        await served.call(PLACE, request.SerializeToString())
        assert served.partner.seen[0][0].bets[0].bet == bet
        return
    error, _ = await served.refused(PLACE, request.SerializeToString())
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert fields_of(error) == {"bets[0].bet"}


async def test_grpc_04_an_amount_unset_is_not_zero(served: Served) -> None:
    request = wallets.DepositRequest(request_id=UUID7, account_id="a-1")
    error, _ = await served.refused(DEPOSIT, request.SerializeToString())
    assert fields_of(error) == {"amount"}
    request.amount.currency_code = "EUR"
    error, _ = await served.refused(DEPOSIT, request.SerializeToString())
    assert fields_of(error) == {"amount"}


# ---- what goes wrong inside --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "code", "reason"),
    [
        (EdgeNotReady(LEAK), "UNAVAILABLE", "NOT_READY"),
        (NotTaken(LEAK), "UNAVAILABLE", "NOT_READY"),
        (EdgeBusy(LEAK), "RESOURCE_EXHAUSTED", "BUSY"),
        (LogIsFull(LEAK), "RESOURCE_EXHAUSTED", "LOG_FULL"),
        (OutcomeUnknown(LEAK), "UNAVAILABLE", "OUTCOME_UNKNOWN"),
        (ProjectionUnavailable(LEAK), "UNAVAILABLE", "READ_UNAVAILABLE"),
        (
            errors.Refused(errors.REQUEST_EXPIRED, {"request_id": "r-1"}),
            "FAILED_PRECONDITION",
            "REQUEST_EXPIRED",
        ),
        (ValueError(LEAK), "INTERNAL", "INTERNAL"),
        (KeyError(LEAK), "INTERNAL", "INTERNAL"),
        (RecursionError(LEAK), "INTERNAL", "INTERNAL"),
        (grpc.RpcError(LEAK), "INTERNAL", "INTERNAL"),
        (BaseExceptionGroup("g", [ValueError(LEAK)]), "INTERNAL", "INTERNAL"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
async def test_every_exception_is_told_from_the_catalogue_and_none_leaks(
    served: Served, raised: BaseException, code: str, reason: str
) -> None:
    def breaks(_request: Any, _call: Call) -> Any:
        raise raised

    served.partner.does["place_bets"] = breaks
    error, info = await served.refused(PLACE, place().SerializeToString())
    assert (error.code().name, info.reason) == (code, reason)
    assert LEAK not in str(error)
    assert LEAK.encode() not in status_in(error).SerializeToString()
    if reason == "INTERNAL":
        assert len(info.metadata["incident"]) == 32
        assert info.metadata["incident"] in error.details()
    value = served.metrics.registry.get_sample_value
    assert value("sabot_rpc_refusals_total", {"reason": reason}) == 1
    assert value("sabot_rpcs_total", {"method": PLACE[1:], "code": code}) == 1
    assert value("sabot_rpcs_running", {"method": PLACE[1:]}) == 0


async def test_an_answer_that_cannot_be_sent_is_an_incident(served: Served) -> None:
    served.partner.does["place_bets"] = lambda _request, _call: None
    _, info = await served.refused(PLACE, place().SerializeToString())
    assert info.reason == "INTERNAL"


async def test_another_servers_error_is_told_as_it_came(served: Served) -> None:
    status = errors.status_of(errors.Refused(errors.BUSY))

    def breaks(_request: Any, _call: Call) -> Any:
        raise errors.PassedOn(
            grpc.StatusCode.RESOURCE_EXHAUSTED, status.message, status.SerializeToString()
        )

    served.wallet.does["get_balance"] = breaks
    request = wallets.GetBalanceRequest(account_id="a-1").SerializeToString()
    error, _ = await served.refused("/sabot.wallet.v1.WalletService/GetBalance", request)
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert status_in(error) == status


async def test_what_is_not_served_is_unimplemented(served: Served) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.call("/sabot.partner.v1.PartnerService/Nope", b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_method_that_is_missing_or_open_to_nobody_stops_the_start() -> None:
    server = Server(KnownCallers())
    servicer = made_up(PARTNER, partners=True)
    del servicer.get_round  # type: ignore[attr-defined]  # made at run time
    with pytest.raises(TypeError, match="get_round is missing"):
        server.add(PARTNER, servicer)
    servicer.get_round = lambda _request, _call: None  # type: ignore[attr-defined]  # the same
    with pytest.raises(TypeError, match="not marked"):
        server.add(PARTNER, servicer)


# ---- health, reflection, traces, drain ---------------------------------------------------------


async def test_health_needs_no_token_and_follows_readiness(served: Served) -> None:
    health: Any = health_pb2_grpc.HealthStub(served.channel)  # Any: its stubs lack the methods
    names = ("", "sabot.partner.v1.PartnerService", "sabot.wallet.v1.WalletService")

    async def states() -> set[int]:
        return {
            (await health.Check(health_pb2.HealthCheckRequest(service=name), timeout=5)).status
            for name in names
        }

    assert await states() == {health_pb2.HealthCheckResponse.NOT_SERVING}
    await served.server.set_ready(True)
    assert await states() == {health_pb2.HealthCheckResponse.SERVING}
    await served.server.set_ready(False)
    assert await states() == {health_pb2.HealthCheckResponse.NOT_SERVING}


async def test_reflection_needs_no_token_and_lists_the_services(served: Served) -> None:
    made: Any = reflection_pb2_grpc.ServerReflectionStub  # Any: its stubs know no aio
    stub = made(served.channel)
    call = stub.ServerReflectionInfo(
        iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=5
    )
    found = {service.name async for each in call for service in each.list_services_response.service}
    assert {
        "sabot.partner.v1.PartnerService",
        "sabot.table.v1.TableOperatorService",
        "sabot.wallet.v1.WalletService",
        "grpc.health.v1.Health",
    } <= found


async def test_a_sampled_callers_trace_goes_on(served: Served) -> None:
    served.partner.does["place_bets"] = accepts
    await served.call(PLACE, place().SerializeToString(), traceparent=TRACEPARENT)
    await served.call(PLACE, place().SerializeToString(), traceparent="nonsense")
    await served.call(PLACE, place().SerializeToString(), traceparent=TRACEPARENT[:-1] + "0")
    traced, untraced, unsampled = (call.traceparent for _, call in served.partner.seen)
    assert traced[:36] == TRACEPARENT[:36]
    assert traced != TRACEPARENT
    assert untraced == unsampled == ""
    served.tracing.close()
    (span,) = served.spans.get_finished_spans()
    assert span.name == PLACE[1:]


async def test_a_drain_lets_running_calls_finish_and_takes_no_new_ones(served: Served) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_request: Any, _call: Call) -> partners.GetTableResponse:
        began.set()
        await go_on.wait()
        return partners.GetTableResponse()

    server = Server(KnownCallers())
    servicer = made_up(PARTNER, partners=True)
    drained: list[bool] = []
    servicer.drain = lambda: drained.append(True)  # type: ignore[attr-defined]  # made at run time
    servicer.get_table = rpc(partners=True)(slow)  # type: ignore[attr-defined]  # made at run time
    server.add(PARTNER, servicer)
    port = server.listen("127.0.0.1:0")
    await server.start()
    metadata = (("authorization", "Bearer n-token"),)
    request = partners.GetTableRequest(table_id="t1").SerializeToString()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        running = unary(channel, GET_TABLE)(request, metadata=metadata, timeout=10)
        await began.wait()
        stopping = asyncio.create_task(server.stop(10))
        await asyncio.sleep(0)
        go_on.set()
        assert await running == b""
        await stopping
        assert drained
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await unary(channel, GET_TABLE)(request, metadata=metadata, timeout=1)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
