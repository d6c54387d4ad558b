"""Where drills take place: a fleet of processes on this machine, with what a drill needs beside it,
and two partners' accounts that bet in every round. All of it is started for the drill and ended
with it, and nothing of it is told what this process's own environment says of a cell.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.partner.v1 import partner_service_pb2_grpc as partner_grpc
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import operator_service_pb2_grpc as operators_grpc
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from sabot.wallet.v1 import wallet_service_pb2_grpc as wallets_grpc
from services.cli import demo_seamless
from services.cli.drill_rules import Samples
from services.cli.fleet import CELL
from services.cli.log_source import open_source
from services.cli.private_postgresql import PostgresServer, server_programs
from services.cli.replay import Verified, verify
from services.cli.split import LogServers, SplitFleet, split_fleet, split_services
from services.cli.uuid7 import uuid7
from services.events import SERVICES
from services.games.catalogue import baccarat_1
from services.kernel.embedded import Cluster
from services.kernel.held_ports import HeldPorts
from services.kernel.jetstream import JetStreamLog
from services.kernel.nats_connection import NatsConnection
from services.kernel.nats_process import http_get
from services.kernel.nats_users import TOOLS
from services.kernel.streams import require_stream, stream_name

WINDOW_MS, PAUSE_MS = 1_500, 300
CALL_S = 5.0
SCRAPE_S = 1.0
SCRAPE_WAIT_S = 5.0
"""For a process's metrics; then it counts as down. Prometheus waits ten seconds."""
PATIENCE_S = 180.0
"""For a fleet to start, an alert to hold, a fleet to recover; beyond the alert's own `for`."""
TABLE, CURRENCY = "drill", "EUR"
ACCOUNTS = {"north": "drill-1", demo_seamless.PARTNER: "drill-2"}
"""Whose bets are placed, by partner; the second holds its accounts' money itself."""
STEPPING = ("-m", "services.cli.drill_clock", "services.table")


class DrillFailed(Exception):
    """What should have come did not; what, in words."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a drill needs beside a fleet over one server."""

    three_servers: bool = False
    database: bool = False
    """PostgreSQL for projections and witnesses."""
    partner_wallet: bool = False
    stepping_clock: bool = False
    """A table service whose clock can be set."""


OF_A_FLEET = Needs()
"""Nothing more."""


@dataclass(slots=True)
class Played:
    """What was seen of the game."""

    paid: int = 0
    """Rounds."""
    on: dict[str, int] = field(default_factory=dict[str, int])
    """Bets that are on, by partner."""


@dataclass(slots=True)
class Stage:
    """A running fleet, and what stands beside it."""

    fleet: SplitFleet
    cluster: Cluster | None = None
    database: PostgresServer | None = None
    wallet: demo_seamless.WalletProcess | None = None
    samples: Samples = field(default_factory=Samples)
    played: Played = field(default_factory=Played)

    async def leader(self) -> int:
        """Which of three servers, from 0, stores the cell's stream. Raises DrillFailed."""
        async with _reading(self.fleet.servers) as log:
            reply = await log.connection.request(
                f"$JS.API.STREAM.INFO.{stream_name(CELL)}", b"", wait_s=CALL_S
            )
        name = str(json.loads(reply.data).get("cluster", {}).get("leader", ""))
        if not name.startswith("server"):
            raise DrillFailed("the log has no leader")
        return int(name.removeprefix("server")) - 1


@asynccontextmanager
async def staged(data: Path, needs: Needs) -> AsyncIterator[tuple[Stage, list[Verified]]]:
    """The stage for a drill, in an empty folder, scraped and played on. After it the list holds
    what the log proves. Raises DrillFailed, and what a fleet's start raises."""
    logs = data.parent / f"{data.name}-logs"
    logs.mkdir(parents=True, exist_ok=True)
    inherited = {name: is_ for name, is_ in os.environ.items() if not name.startswith("SABOT_")}
    proof: list[Verified] = []
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(_database()) if needs.database else None
        if database is not None:
            inherited["SABOT_DATABASE_URL"] = database.url("").partition("?")[0]
        wallet, address = None, ""
        if needs.partner_wallet:
            wallet, address = await stack.enter_async_context(_wallet(data))
        programs = {"table": STEPPING} if needs.stepping_clock else {}
        cluster = None
        if needs.three_servers:
            cluster, servers = await stack.enter_async_context(_three_servers(data))
            stack.push_async_callback(_prove_cluster, servers, proof)
            running = split_services(
                data, servers, 0, logs=logs, metrics=True, inherited=inherited, programs=programs
            )
        else:
            stack.push_async_callback(_prove_folder, data, proof)
            running = split_fleet(
                data, 0, logs=logs, metrics=True, inherited=inherited, programs=programs
            )
        async with running as fleet:
            stage = Stage(fleet, cluster, database, wallet)
            async with _scraping(stage), _betting(stage, address):
                yield stage, proof


async def until(seen: Callable[[], bool], otherwise: str) -> None:
    """Wait for what others tell. Raises DrillFailed with `otherwise`."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not seen():  # noqa: ASYNC110 - figures that others tell, no event
                await asyncio.sleep(SCRAPE_S / 4)
    except TimeoutError:
        raise DrillFailed(otherwise) from None


# ---- beside the fleet --------------------------------------------------------------------------


@asynccontextmanager
async def _database() -> AsyncIterator[PostgresServer]:
    programs = server_programs()
    if programs is None:
        raise DrillFailed(
            "this drill stops a PostgreSQL of its own: `initdb` and `postgres` are neither in PATH "
            "nor in /usr/lib/postgresql"
        )
    # Not below the drill's own folder, which another user may not enter.
    folder = Path(tempfile.mkdtemp(prefix="sabot-drill-postgresql-"))
    server = PostgresServer(programs, folder)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        server.let_go()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def _wallet(data: Path) -> AsyncIterator[tuple[demo_seamless.WalletProcess, str]]:
    accounts = (ACCOUNTS[demo_seamless.PARTNER],)
    with HeldPorts(1) as held:  # one that is started again is where it was
        wallet = demo_seamless.WalletProcess(data, CELL, held.numbers[0], accounts, CURRENCY)
        try:
            yield wallet, await wallet.start()
        finally:
            await wallet.stop()


@asynccontextmanager
async def _three_servers(data: Path) -> AsyncIterator[tuple[Cluster, LogServers]]:
    cluster = Cluster(data / "cluster")
    await cluster.start()
    try:
        admin = cluster.admin
        connection = NatsConnection(
            cluster.client_urls,
            name="drill",
            user=admin.user,
            password=admin.password,
            inbox_prefix=admin.inbox_prefix,
        )
        await connection.open(wait_s=CALL_S)
        await require_stream(connection, CELL, replicas=3, may_create=True)
        await connection.close()
        users = dict.fromkeys((*SERVICES, TOOLS), admin)
        yield cluster, LogServers(cluster.client_urls, cluster.monitor_urls, 3, users)
    finally:
        await cluster.stop()


@asynccontextmanager
async def _reading(servers: LogServers) -> AsyncIterator[JetStreamLog]:
    user = servers.users[TOOLS]
    log = await JetStreamLog.connect(
        servers.client_urls,
        CELL,
        name="drill",
        consumer_prefix=user.consumer_prefix,
        user=user.user,
        password=user.password,
        inbox_prefix=user.inbox_prefix,
    )
    try:
        yield log
    finally:
        await log.close()


async def _prove_cluster(servers: LogServers, proof: list[Verified]) -> None:
    async with _reading(servers) as log:
        proof.append(await verify(log))


async def _prove_folder(data: Path, proof: list[Verified]) -> None:
    async with open_source(data, check=True) as log:
        proof.append(await verify(log))


# ---- what is seen of it, and who plays ---------------------------------------------------------


@asynccontextmanager
async def _scraping(stage: Stage) -> AsyncIterator[None]:
    """Scrape every process each second, as Prometheus does: `up` says who answers."""

    async def scrape(name: str, port: int) -> None:
        labels = {"job": "sabot", "instance": name}
        try:
            status, body = await http_get("127.0.0.1", port, "/metrics", wait_s=SCRAPE_WAIT_S)
        except (OSError, TimeoutError, EOFError, ValueError):
            status, body = 0, b""
        now = time.monotonic()
        stage.samples.put("up", labels, now, float(status == 200))
        if status == 200:
            stage.samples.add(body.decode(), now, **labels)

    async def loop() -> None:
        while True:
            ports = [
                (one.name, int(one.environment["SABOT_METRICS_PORT"]))
                for one in stage.fleet.children
            ]
            await asyncio.gather(*(scrape(name, port) for name, port in ports))
            await asyncio.sleep(SCRAPE_S)

    async with _running(loop()):
        yield


@asynccontextmanager
async def _running(*work: Any) -> AsyncIterator[None]:
    tasks = [asyncio.get_running_loop().create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@asynccontextmanager
async def _betting(stage: Stage, wallet_address: str) -> AsyncIterator[None]:
    """A table that deals by itself, and accounts that bet in each round."""
    dealer = _bearer(stage, "operator:sam")
    north = _bearer(stage, "partner:north")
    async with grpc.aio.insecure_channel(stage.fleet.address) as channel:
        tables: operators_grpc.TableOperatorServiceAsyncStub
        tables = operators_grpc.TableOperatorServiceStub(channel)
        wallet: wallets_grpc.WalletServiceAsyncStub = wallets_grpc.WalletServiceStub(channel)
        opened = operators.OpenTableRequest(request_id=uuid7(), spec=_spec())
        await _known(lambda: tables.OpenTable(opened, metadata=dealer, timeout=CALL_S))
        account = wallets.OpenAccountRequest(
            request_id=uuid7(), account_id=ACCOUNTS["north"], currency_code=CURRENCY
        )
        await _known(lambda: wallet.OpenAccount(account, metadata=north, timeout=CALL_S))
        deposit = wallets.DepositRequest(
            request_id=uuid7(), account_id=ACCOUNTS["north"], amount=_money(1_000_000)
        )
        await _known(lambda: wallet.Deposit(deposit, metadata=north, timeout=CALL_S))
        players = ["north"]
        if wallet_address:
            await _open_seamless(stage, channel, wallet, wallet_address)
            players.append(demo_seamless.PARTNER)
        async with _running(*(_play(stage, channel, name) for name in players)):
            yield


async def _open_seamless(
    stage: Stage,
    channel: grpc.aio.Channel,
    wallet: wallets_grpc.WalletServiceAsyncStub,
    address: str,
) -> None:
    name = demo_seamless.PARTNER
    token = stage.fleet.tokens["operator:sam"]
    await _known(lambda: demo_seamless.set_profile(channel, token, address))
    account = wallets.OpenAccountRequest(
        request_id=uuid7(), account_id=ACCOUNTS[name], currency_code=CURRENCY
    )
    bearer = _bearer(stage, f"partner:{name}")
    await _known(lambda: wallet.OpenAccount(account, metadata=bearer, timeout=CALL_S))


async def _play(stage: Stage, channel: grpc.aio.Channel, name: str) -> None:
    """A partner's account bets in each round; the first one's rounds are counted."""
    bets: partner_grpc.PartnerServiceAsyncStub = partner_grpc.PartnerServiceStub(channel)
    bearer = _bearer(stage, f"partner:{name}")
    stage.played.on[name] = 0
    seen = over = ""
    while True:
        await asyncio.sleep(SCRAPE_S / 4)
        with suppress(grpc.aio.AioRpcError):
            told = await bets.GetTable(
                partner.GetTableRequest(table_id=TABLE), metadata=bearer, timeout=CALL_S
            )
            one = told.table.round
            if one.state == partner.ROUND_STATE_PAID and one.round_id not in {"", over}:
                over = one.round_id
                stage.played.paid += name == "north"
            if one.state == partner.ROUND_STATE_BETTING and one.round_id != seen:
                seen = one.round_id
                placed = _bet(ACCOUNTS[name], one.round_id)
                await bets.PlaceBets(placed, metadata=bearer, timeout=CALL_S)
                stage.played.on[name] += 1


def _bearer(stage: Stage, caller: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {stage.fleet.tokens[caller]}"),)


async def _known(call: Callable[[], Awaitable[Any]]) -> None:
    """Call until the outcome is known."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            await call()
        except grpc.aio.AioRpcError as error:
            if time.monotonic() > end:
                raise DrillFailed(f"the fleet does not come up: {error.details()}") from error
            await asyncio.sleep(SCRAPE_S / 2)
        else:
            return


def _spec() -> spec_pb2.TableSpec:
    limit: Mapping[str, Any] = {"min_minor": 100, "max_minor": 100_000, "step_minor": 20}
    return spec_pb2.TableSpec(
        table_id=TABLE,
        currency_code=CURRENCY,
        rule_set=baccarat_1(),
        limits=[spec_pb2.BetLimit(bet=bet, **limit) for bet in ("banker", "player", "tie")],
        pacing=spec_pb2.Pacing(betting_window_ms=WINDOW_MS, pause_ms=PAUSE_MS),
    )


def _bet(account: str, round_id: str) -> partner.PlaceBetsRequest:
    return partner.PlaceBetsRequest(
        request_id=uuid7(),
        account_id=account,
        table_id=TABLE,
        round_id=round_id,
        bets=[bet_pb2.BetRequest(bet="player", stake=_money(100))],
    )


def _money(minor: int) -> Money:
    return Money(currency_code=CURRENCY, minor_units=minor)
