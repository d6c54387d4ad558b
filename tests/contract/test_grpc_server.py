"""What every gRPC server of ours does with every call: on a real grpc.aio server over loopback.

The servicers are made up; the methods, messages and rules are the protos' own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from services.kernel import errors
from services.kernel.call import MAX_WAIT_S, Call, rpc
from services.kernel.edge import EdgeBusy, EdgeNotReady, LogIsFull, NotTaken, OutcomeUnknown
from services.kernel.grpc_server import Server
from services.kernel.health_calls import Health
from services.kernel.log import LogUnavailable
from services.kernel.projections import ProjectionUnavailable
from tests.contract.places import PATIENCE_S
from tests.contract.serving import (
    CALLERS,
    DEPOSIT,
    GET_TABLE,
    LEAK,
    PARTNER,
    PLACE,
    TRACEPARENT,
    UUID7,
    VOID,
    WATCH,
    KnownCallers,
    Served,
    accepts,
    info_of,
    made_up,
    place,
    serving,
    status_in,
    unary,
)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as found:
        yield found


# ---- what gets through -------------------------------------------------------------------------


async def test_a_servicer_sees_the_request_and_who_calls(served: Served) -> None:
    served.partner.does["place_bets"] = accepts
    answer = await served.call(
        PLACE, place().SerializeToString(), wait_s=20.0, accept_language="fr-CH, en"
    )
    assert partners.PlaceBetsResponse.FromString(answer).replayed
    request, call = served.partner.seen[0]
    assert request == place()
    assert call.caller == CALLERS["n-token"]
    assert call.partner() == "north"
    assert call.language == "fr"
    assert 0.0 < call.wait_s() <= (20.0 + MAX_WAIT_S) / 2
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
    call = stream(request, timeout=PATIENCE_S, metadata=(("authorization", "Bearer n-token"),))
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
        (LogUnavailable(LEAK), "UNAVAILABLE", "READ_UNAVAILABLE"),
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
            (
                await health.Check(health_pb2.HealthCheckRequest(service=name), timeout=PATIENCE_S)
            ).status
            for name in names
        }

    assert await states() == {health_pb2.HealthCheckResponse.NOT_SERVING}
    served.server.set_ready(True)
    assert await states() == {health_pb2.HealthCheckResponse.SERVING}
    served.server.set_ready(False)
    assert await states() == {health_pb2.HealthCheckResponse.NOT_SERVING}


async def test_reflection_needs_no_token_and_lists_the_services(served: Served) -> None:
    made: Any = reflection_pb2_grpc.ServerReflectionStub  # Any: its stubs know no aio
    stub = made(served.channel)
    call = stub.ServerReflectionInfo(
        iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=PATIENCE_S
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
        running = unary(channel, GET_TABLE)(request, metadata=metadata, timeout=PATIENCE_S)
        await began.wait()
        stopping = asyncio.create_task(server.stop(PATIENCE_S))
        await asyncio.sleep(0)
        go_on.set()
        assert await running == b""
        await stopping
        assert drained
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await unary(channel, GET_TABLE)(request, metadata=metadata, timeout=PATIENCE_S)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_what_has_not_changed_wakes_nobody() -> None:
    """Readiness is set ten times a second, and anybody may watch a thousand names."""
    health = Health()
    health.set("", True)
    waiting = asyncio.create_task(health._changed.wait())
    health.set("", True)
    await asyncio.sleep(0)
    assert not waiting.done()
    health.set("", False)
    assert await waiting


async def test_who_watches_health_is_told_the_end_and_holds_up_no_drain(served: Served) -> None:
    response = health_pb2.HealthCheckResponse
    health: Any = health_pb2_grpc.HealthStub(served.channel)  # Any: its stubs lack the methods
    watches = {
        name: aiter(health.Watch(health_pb2.HealthCheckRequest(service=name)))
        for name in ("", "sabot.wallet.v1.WalletService", "custodian", "nobody")
    }
    told = {name: [(await anext(watch)).status] for name, watch in watches.items()}
    served.server.set_ready(True)
    served.server.set_part("custodian", True)
    for name in ("", "sabot.wallet.v1.WalletService", "custodian"):
        told[name].append((await anext(watches[name])).status)
    async with asyncio.timeout(PATIENCE_S):
        await served.server.stop(10 * PATIENCE_S)
    served.server.set_ready(True)  # too late
    for name, watch in watches.items():
        told[name] += [answer.status async for answer in watch]
    whole = [response.NOT_SERVING, response.SERVING, response.NOT_SERVING]
    assert told == {
        "": whole,
        "sabot.wallet.v1.WalletService": whole,
        "custodian": [response.SERVICE_UNKNOWN, *whole[1:]],
        "nobody": [response.SERVICE_UNKNOWN],
    }
