"""One bet is one trace: through every service, each a process's worth of its own, from the call to
the payout.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sabot.partner.v1 import partner_service_pb2 as partner
from services.cli.fleet import all_parts, connect, embedded_log, prepare_tokens
from services.events import event_types
from services.kernel import host, telemetry
from services.kernel.held_ports import HeldPorts
from services.kernel.preflight import Preflight, check_log
from services.kernel.settings import ServiceSettings
from services.kernel.telemetry_names import (
    ATTRIBUTE_EVENT,
    ATTRIBUTE_SERVICE,
    ATTRIBUTES,
    SPAN_ANSWER,
    SPAN_INPUT,
    SPANS,
)
from services.kernel.tokens import Tokens
from tests.fleet import clients
from tests.fleet.clients import PATIENCE_S, Operator, Partner, Servers, table_spec
from tests.fleet.running import until_health

PLACE = "sabot.partner.v1.PartnerService/PlaceBets"
BET = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
SECOND = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
CLOSE = ("1c0dfd5e1f6a4c6b8b6f0f2f7c1d2e3f", "53995c3f42cd8ad8")
STAKE = 4_00
ACCOUNT = "anna-of-the-north"


def traceparent(trace: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return (("traceparent", f"00-{trace[0]}-{trace[1]}-01"),)


class Spans:
    """What each service exports, by its own exporter."""

    def __init__(self) -> None:
        self.by_service: dict[str, InMemorySpanExporter] = {}

    def exporter(self, endpoint: str) -> SpanExporter:
        """Stands for the collector that `endpoint` names: one a service."""
        return self.by_service.setdefault(endpoint, InMemorySpanExporter())

    def all(self) -> list[tuple[str, ReadableSpan]]:
        return [
            (service, span)
            for service, exporter in self.by_service.items()
            for span in exporter.get_finished_spans()
        ]

    def of(self, trace: tuple[str, str]) -> list[tuple[str, ReadableSpan]]:
        wanted = int(trace[0], 16)
        return [(service, span) for service, span in self.all() if context(span) == wanted]


def context(span: ReadableSpan) -> int:
    found = span.get_span_context()
    assert found is not None
    return found.trace_id


@asynccontextmanager
async def seven_hosts(
    data: Path, metrics_port: int
) -> AsyncIterator[tuple[Servers, dict[str, str]]]:
    """Every service with a connection, a replica and telemetry of its own, as in seven
    processes."""
    token_file, tokens = prepare_tokens(data)
    services = [part.core.service for part in all_parts(ServiceSettings(data=data))]
    async with embedded_log(data) as server, AsyncExitStack() as stack:
        held = stack.enter_context(HeldPorts(len(services)))
        ports = dict(zip(services, held.numbers, strict=True))

        async def preflight() -> Preflight:
            return await check_log([server.monitor_url], server.cell, replicas=1)

        hosts: list[host.Host] = []

        async def run(number: int, service: str) -> None:
            settings = ServiceSettings(
                data=data,
                name=service,
                port=ports[service],
                token_file=token_file,
                wallet_address=f"127.0.0.1:{ports['wallet']}",
                limits_address=f"127.0.0.1:{ports['limits']}",
                metrics_port=metrics_port if service == "table" else None,
                trace_ratio=0.0,
            ).model_copy(update={"otlp_endpoint": service})
            log = await connect(server, name=service)
            stack.push_async_callback(log.close)
            hosts.append(
                await host.start(
                    [all_parts(settings)[number]],
                    name=service,
                    log=log,
                    types=event_types(),
                    settings=settings,
                    tokens=Tokens(token_file),
                    preflight=preflight,
                    build="test",
                )
            )

        async def stop() -> None:
            await asyncio.gather(*(each.stop(10.0) for each in hosts))

        await asyncio.gather(*(run(number, service) for number, service in enumerate(services)))
        stack.push_async_callback(stop)
        await asyncio.gather(*(until_health(port) for port in ports.values()))
        servers = Servers(f"127.0.0.1:{ports['table']}")
        yield servers, tokens
        await servers.close()


def exemplars(port: int) -> set[str]:
    """The traces that the buckets of calls' durations name, as Prometheus scrapes them."""
    asked = Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Accept": "application/openmetrics-text"}
    )
    with urlopen(asked, timeout=30) as reply:  # noqa: S310  # loopback, by http
        told = reply.read().decode()
    return set(
        re.findall(
            rf'^sabot_rpc_seconds_bucket.*"{PLACE}".*# {{trace_id="(\w+)"}}', told, re.MULTILINE
        )
    )


@pytest.fixture
def metrics_port() -> Iterator[int]:
    with HeldPorts(1) as held:
        yield held.numbers[0]


async def test_one_bet_is_one_trace_from_the_call_to_the_payout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metrics_port: int
) -> None:
    monkeypatch.setattr(clients, "CALL_S", PATIENCE_S)  # What is sent again leaves more spans.
    spans = Spans()
    monkeypatch.setattr(telemetry, "otlp_exporter", spans.exporter)
    async with seven_hosts(tmp_path / "data", metrics_port) as (servers, tokens):
        north = Partner(servers, tokens["partner:north"])
        dealer = Operator(servers, tokens["operator:sam"])
        await dealer.open_table(table_spec("t1"))
        await north.open_account(ACCOUNT, 100_00)
        await north.open_account("ben", 100_00)
        round_id = await dealer.open_round("t1")
        plain = north.metadata

        # given one bet of a caller that traces it, one more of the same account, one untraced
        north.metadata = plain + traceparent(BET)
        placed = await north.place(ACCOUNT, round_id, ("banker", STAKE), request_id="the-bet")
        north.metadata = plain + traceparent(SECOND)
        await north.place(ACCOUNT, round_id, ("tie", STAKE), request_id="another")
        north.metadata = plain
        await north.place("ben", round_id, ("player", STAKE))

        # when betting is closed, which is traced too, and the round is played
        dealer.metadata += traceparent(CLOSE)
        await dealer.close_betting(round_id)
        await north.round_in("t1", partner.ROUND_STATE_PAID)
        seen = await asyncio.to_thread(exemplars, metrics_port)
    assert len(placed.bets) == 1

    # then its trace holds the call and every event from the request to the payout, each told by the
    # service that wrote it, and none twice
    path = [
        (service, span.name, str((span.attributes or {}).get(ATTRIBUTE_EVENT, "")))
        for service, span in spans.of(BET)
    ]
    assert sorted(path) == sorted(
        [
            ("table", PLACE, ""),
            ("table", SPAN_INPUT, "sabot.table.v1.PlaceBets"),
            ("table", SPAN_ANSWER, "sabot.table.v1.BetsPlaced"),
            ("limits", SPAN_ANSWER, "sabot.limits.v1.BetsApproved"),
            ("wallet", SPAN_ANSWER, "sabot.wallet.v1.StakeReserved"),
            ("settlement", SPAN_ANSWER, "sabot.settlement.v1.BetsSettled"),
            ("wallet", SPAN_ANSWER, "sabot.wallet.v1.PayoutPosted"),
        ]
    )
    # and it is the caller's: the call stands under the caller's span, all else under the call
    (call,) = (span for _, span in spans.of(BET) if span.name == PLACE)
    assert call.parent is not None
    assert call.parent.span_id == int(BET[1], 16)
    about = call.get_span_context()
    assert about is not None
    for _, span in spans.of(BET):
        assert span is call or (span.parent is not None and span.parent.span_id == about.span_id)

    # and the settlement is linked to the account's other request; what closes betting is a trace of
    # its own
    (settled,) = (span for service, span in spans.of(BET) if service == "settlement")
    assert {link.context.trace_id for link in settled.links} == {int(SECOND[0], 16)}
    closing = {str((span.attributes or {}).get(ATTRIBUTE_EVENT)) for _, span in spans.of(CLOSE)}
    assert closing >= {"sabot.table.v1.BettingClosed", "sabot.wallet.v1.StakesSealed"}

    # and nothing but registered names is told, and nothing of what was asked
    secret = re.compile(rf"{ACCOUNT}|ben|the-bet|{STAKE}|Bearer|" + "|".join(tokens.values()))
    for service, span in spans.all():
        attributes = dict(span.attributes or {})
        assert span.name in SPANS or span.name.startswith("sabot.")
        assert attributes.keys() <= ATTRIBUTES
        assert attributes.get(ATTRIBUTE_SERVICE, service) == service
        assert not secret.search(
            f"{span.name} {attributes} {span.events} {span.status.description}"
        )
    # and the histogram of durations names a trace
    assert seen & {BET[0], SECOND[0]}
