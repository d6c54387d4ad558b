"""Fleets for tests: on one nats-server or three, in processes of their own, each stopped by its
pid; and the whole proof at the end.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sqlalchemy import MetaData, select
from sqlalchemy.engine import URL

from services.cli.fleet import CELL, Fleet, connect, fleet
from services.cli.replay import verify
from services.cli.split import (
    NO_PROGRAMS,
    Child,
    LogServers,
    Replicas,
    SplitFleet,
    split_fleet,
    split_services,
)
from services.events import SERVICES, event_types
from services.kernel.databases import open_engine, reading
from services.kernel.embedded import Cluster
from services.kernel.entry import decode_entry
from services.kernel.jetstream import JetStreamLog
from services.kernel.log import Log
from services.kernel.nats_connection import NatsConnection
from services.kernel.nats_process import NatsProcess
from services.kernel.nats_users import TOOLS
from services.kernel.offered_snapshots import events_of
from services.kernel.projection_places import projection_url, sqlite_url
from services.kernel.projection_store import Projection
from services.kernel.projections import Projector
from services.kernel.settings import ServiceSettings
from services.kernel.streams import require_stream, stream_name
from services.settlement.projection import SettlementProjection
from services.shoe.projection import ShoeProjection
from services.table.projection import TableProjection
from services.wallet.projection import WalletProjection
from tests.fleet.clients import AGAIN_S, PATIENCE_S, Operator, Partner, Servers
from tests.fleet.ledger import Ledger, read_events

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
PROJECTIONS: dict[str, Projection] = {
    "table": TableProjection(),
    "wallet": WalletProjection(),
    "settlement": SettlementProjection(),
    "shoe": ShoeProjection(),
}
RECENT = 300
"""Entries among which every service has answered something while rounds are played."""
HARMLESS = frozenset({"snapshot_unknown", "log_strained", "events_noted"})
"""Alarms that a kill or a busy machine may bring about: the last tells that nothing was served for
a while."""
UNTOLD = re.compile(r"no server of the log tells |\d+ servers are seen to keep the stream ")
"""What is weak about a log whose servers were asked twice and took more than two seconds."""


def is_harmless(kind: str, facts: Mapping[str, Any]) -> bool:
    """Whether an alarm is right and nothing is wrong: something was killed, or this machine is so
    busy that nobody could tell for a while how strong the log is."""
    return kind in HARMLESS or (
        kind == "log_weak" and all(UNTOLD.match(str(one)) for one in facts["found"])
    )


async def until_health(port: int, wanted: int = SERVING) -> None:
    """Wait until a process says so of itself, whether or not it runs yet."""
    request = health_pb2.HealthCheckRequest()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                stub: Any = health_pb2_grpc.HealthStub(channel)
                try:
                    async for answer in stub.Watch(request):
                        if answer.status == wanted:
                            return
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(AGAIN_S)


def kill(pid: int) -> None:
    """End a process as a crash would."""
    os.kill(pid, signal.SIGKILL)


@dataclass
class Running:
    """A running fleet of processes."""

    fleet: SplitFleet
    folder: Path
    cluster: Cluster | None = None
    """The log's servers where they are the test's own."""
    servers: list[Servers] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.fleet.data

    def _servers(self) -> Servers:
        fronts = [child for child in self.fleet.children if child.service == "table"]
        made = Servers(*(f"127.0.0.1:{child.port}" for child in fronts))
        self.servers.append(made)
        return made

    def partner(self, name: str) -> Partner:
        return Partner(self._servers(), self.fleet.tokens[f"partner:{name}"])

    def operator(self, name: str = "sam") -> Operator:
        return Operator(self._servers(), self.fleet.tokens[f"operator:{name}"])

    async def until_ready(self, children: Sequence[Child] = ()) -> None:
        """Wait until these processes, or all, take calls."""
        await asyncio.gather(
            *(until_health(child.port) for child in children or self.fleet.children)
        )

    # ---- the log -------------------------------------------------------------------------------

    def server(self, leader: str = "") -> NatsProcess:
        """A server of the log."""
        if self.fleet.embedded is not None:
            return self.fleet.embedded.server
        assert self.cluster is not None
        return self.cluster.servers[int(leader.removeprefix("server") or "1") - 1]

    async def leader(self) -> str:
        """Which server of three stores the cell's stream just now."""
        async with self.log() as log:
            reply = await log.connection.request(
                f"$JS.API.STREAM.INFO.{stream_name(CELL)}", b"", wait_s=PATIENCE_S
            )
        return str(json.loads(reply.data).get("cluster", {}).get("leader", ""))

    @asynccontextmanager
    async def log(self) -> AsyncIterator[JetStreamLog]:
        """Read the log, as tools do."""
        servers = self.fleet.servers
        user = servers.users[TOOLS]
        log = await JetStreamLog.connect(
            servers.client_urls,
            CELL,
            name="test",
            consumer_prefix=user.consumer_prefix,
            user=user.user,
            password=user.password,
            inbox_prefix=user.inbox_prefix,
            wait_s=PATIENCE_S,
        )
        try:
            yield log
        finally:
            await log.close()

    async def leads(self, service: str) -> str:
        """The process that wrote a service's last answers; audit has none to give here."""
        async with self.log() as log:
            last = (await log.info(wait_s=PATIENCE_S)).last_sequence
            writer = ""
            async for batch in log.read(max(0, last - RECENT)):
                for message in batch:
                    if message.subject == f"sabot.{CELL}.{service}.out":
                        writer = decode_entry(message.payload).writer
                if batch[-1].sequence >= last:
                    break
        return writer.rpartition("-")[0] or service

    # ---- the proof -----------------------------------------------------------------------------

    async def proven(self, **partners: Partner) -> Ledger:
        """Assert all that a log at rest must show, and what partners were told with it."""
        async with self.log() as log:
            found = await verify(log)
            assert found.right, (found.line(), found.differences[:3])
            events = await read_events(log)
            ledger = Ledger(events)
            wrong = ledger.at_rest()
            for name, partner in partners.items():
                wrong += ledger.denies(name, partner.told.on)
                wrong += _misled(ledger, name, partner)
            assert wrong == []
            for name, partner in partners.items():
                for account in {account for _, account, _ in partner.told.on.values()}:
                    known = ledger.available[name, account], ledger.reserved[name, account]
                    assert await partner.balance(account) == known
            for service, projection in PROJECTIONS.items():
                await self._rebuilt_equals(service, projection, log)
        return ledger

    async def _rebuilt_equals(self, service: str, projection: Projection, log: Log) -> None:
        """A projection from nothing equals the live one (invariant 6)."""
        async with asyncio.timeout(PATIENCE_S):
            for attempt in itertools.count():
                fresh = sqlite_url(self.folder, f"{service}-again-{attempt}")
                projector = Projector(projection, fresh, events_of(log, event_types()))
                assert await projector.start(wait_s=PATIENCE_S)
                assert await projector.caught_up(PATIENCE_S)
                await projector.close()
                rows = await rows_of_projection(self.data, service, projection)
                again = await _rows(fresh, projection.metadata)
                if rows["projection_positions"] == again["projection_positions"]:
                    break
                await asyncio.sleep(AGAIN_S)  # The log went on, or the live one is a moment behind.
        assert rows == again

    def alarms(self) -> list[dict[str, Any]]:
        """What an operator would have been alarmed by, and rightly looked for a fault."""
        found: list[dict[str, Any]] = []
        for path in sorted((self.folder / "logs").iterdir()):
            for line in path.read_text().splitlines():
                if line.startswith("{"):
                    fact = json.loads(line)
                    if fact["event"] == "alarm" and not is_harmless(fact["kind"], fact):
                        found.append(fact)
        return found

    async def close(self) -> None:
        for servers in self.servers:
            await servers.close()


@dataclass(frozen=True)
class Inside:
    """A fleet in this process, with its log."""

    fleet: Fleet
    log: JetStreamLog

    def partner(self, name: str) -> Partner:
        return Partner(Servers(self.fleet.address), self.fleet.tokens[f"partner:{name}"])

    def operator(self, name: str = "sam") -> Operator:
        return Operator(Servers(self.fleet.address), self.fleet.tokens[f"operator:{name}"])

    async def ledger(self) -> Ledger:
        """The log as it stands; asserts that everything follows."""
        found = await verify(self.log)
        assert found.right, (found.line(), found.differences[:3])
        return Ledger(await read_events(self.log))

    async def last_sequence(self) -> int:
        return (await self.log.info(wait_s=PATIENCE_S)).last_sequence


@asynccontextmanager
async def inside(data: Path) -> AsyncIterator[Inside]:
    """The whole fleet in this process, over an embedded nats-server."""
    async with fleet(data, port=0) as running:
        log = await connect(running.server)
        try:
            yield Inside(running, log)
        finally:
            await log.close()


@asynccontextmanager
async def on_one_server(
    folder: Path, replicas: Replicas = 1, programs: Mapping[str, Sequence[str]] = NO_PROGRAMS
) -> AsyncIterator[Running]:
    """The fleet over one nats-server, ready; whatever ends is started again. `programs`: what runs
    in a process's place, by its name."""
    logs = folder / "logs"
    logs.mkdir(parents=True)
    async with split_fleet(folder / "data", 0, replicas, logs=logs, programs=programs) as split:
        running = Running(split, folder)
        await running.until_ready()
        try:
            yield running
        finally:
            await running.close()


@asynccontextmanager
async def on_three_servers(folder: Path) -> AsyncIterator[Running]:
    """The fleet over three nats-servers that keep every entry three times, ready."""
    logs, data = folder / "logs", folder / "data"
    logs.mkdir(parents=True)
    data.mkdir()
    cluster = Cluster(folder / "cluster")
    await cluster.start()
    try:
        admin = cluster.admin
        connection = NatsConnection(
            cluster.client_urls,
            name="test",
            user=admin.user,
            password=admin.password,
            inbox_prefix=admin.inbox_prefix,
        )
        await connection.open(wait_s=PATIENCE_S)
        await require_stream(connection, CELL, replicas=3, may_create=True)
        await connection.close()
        users = dict.fromkeys((*SERVICES, TOOLS), admin)
        servers = LogServers(cluster.client_urls, cluster.monitor_urls, 3, users)
        async with split_services(data, servers, 0, logs=logs) as split:
            running = Running(split, folder, cluster)
            await running.until_ready()
            try:
                yield running
            finally:
                await running.close()
    finally:
        await cluster.stop()


def _misled(ledger: Ledger, name: str, partner: Partner) -> list[str]:
    """What a partner was told that the log does not bear out, bets that are on apart."""
    told, wrong = partner.told, []
    for (round_id, request_id), placed in told.requests.items():
        in_log = (name, round_id, request_id) in ledger.reserved_requests
        if in_log != bool(placed.bets):
            wrong.append(f"2/3: {request_id} was told as {placed}; in the log: {in_log}")
    wrong += [
        f"7: deposit {request_id} moved money {ledger.moved['deposit', name, request_id]} times"
        for request_id in told.deposits
        if ledger.moved["deposit", name, request_id] != 1
    ]
    return wrong


Rows = dict[str, list[tuple[Any, ...]]]


async def rows_of_projection(data: Path, service: str, projection: Projection) -> Rows:
    """All rows of a fleet's projection, by table."""
    url = projection_url(ServiceSettings(cell=CELL, data=data), service)
    return await _rows(url, projection.metadata)


async def _rows(url: URL, metadata: MetaData) -> Rows:
    """All rows of a database, by table."""
    engine = open_engine(url)
    async with reading(engine).connect() as connection:
        found = {
            table.name: [
                tuple(row)
                for row in await connection.execute(select(table).order_by(*table.primary_key))
            ]
            for table in metadata.sorted_tables
        }
    await engine.dispose()
    return found
