"""Every right that a user of the log's servers has, and every one that it has not, tried.

On three real servers with the configuration that `sabot nats config` prints and the secrets that
`sabot nats secrets` draws, and a stream that `sabot streams apply` made.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
import pytest
import pytest_asyncio

from services.cli.cores import CORES
from services.cli.nats_config import SERVER_NAME, ServerPlace, config, write_secrets
from services.cli.nats_watch import LogWatch
from services.cli.streams import Servers, What, applied, bucket_applied, planned
from services.events import SERVICES
from services.kernel.held_ports import HOST, HeldPorts
from services.kernel.jetstream import JetStreamLog
from services.kernel.log import AppendRefused
from services.kernel.nats_connection import Forbidden, NatsConnection
from services.kernel.nats_process import http_get, server_binary
from services.kernel.nats_users import ADMIN, SNAPSHOTS, NatsUser, cluster_users, service_users
from services.kernel.object_store import ObjectBucket, bucket_stream, chunk_subject, meta_subject
from services.kernel.preflight import check_log
from services.kernel.shared_snapshots import (
    SharedSnapshots,
    snapshot_bucket,
    snapshot_chunks,
    snapshot_names,
    snapshot_subjects,
)
from services.kernel.streams import find_stream, stream_name
from services.kernel.telemetry_names import AlarmKind
from tests.contract.places import PATIENCE_S, reading

pytestmark = pytest.mark.asyncio(loop_scope="session")

CELL = "main"
STREAM = stream_name(CELL)
BUCKET = bucket_stream(snapshot_bucket(CELL))
SIZE = 3
DANGEROUS = [
    f"STREAM.DELETE.{STREAM}",
    f"STREAM.PURGE.{STREAM}",
    f"STREAM.MSG.DELETE.{STREAM}",
    f"STREAM.MSG.GET.{STREAM}",
    f"STREAM.SNAPSHOT.{STREAM}",
    f"STREAM.RESTORE.{STREAM}",
    f"STREAM.LEADER.STEPDOWN.{STREAM}",
    f"STREAM.PEER.REMOVE.{STREAM}",
    "STREAM.CREATE.OTHER",
    "STREAM.LIST",
    "STREAM.NAMES",
    "META.LEADER.STEPDOWN",
    "SERVER.REMOVE",
    "ACCOUNT.PURGE.$G",
    f"DIRECT.GET.{STREAM}",
    f"CONSUMER.LIST.{STREAM}",
    f"CONSUMER.NAMES.{STREAM}",
    f"CONSUMER.CREATE.{STREAM}",
    f"CONSUMER.CREATE.{STREAM}.of-nobody",
    f"CONSUMER.DURABLE.CREATE.{STREAM}.of-nobody",
    f"CONSUMER.PAUSE.{STREAM}.table_0",
    f"CONSUMER.LEADER.STEPDOWN.{STREAM}.table_0",
    *(f"STREAM.{verb}.{BUCKET}" for verb in ("DELETE", "PURGE", "MSG.DELETE", "MSG.GET")),
    *(f"STREAM.{verb}.{BUCKET}" for verb in ("SNAPSHOT", "RESTORE", "LEADER.STEPDOWN")),
    f"DIRECT.GET.{BUCKET}",
    f"CONSUMER.CREATE.{BUCKET}",
    f"CONSUMER.CREATE.{BUCKET}.of-nobody",
    f"CONSUMER.LIST.{BUCKET}",
]
"""What none of the cluster's users may ask of JetStream."""


@dataclass
class Cell:
    """Three servers as they would run, on this machine."""

    folder: Path
    urls: list[str] = field(default_factory=list[str])
    monitors: list[str] = field(default_factory=list[str])
    processes: list[Process] = field(default_factory=list[Process])
    watches: list[LogWatch] = field(default_factory=list[LogWatch])
    """Of each server's log, as the pods have one."""
    misused: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    """What they alarmed of."""
    told: io.StringIO = field(default_factory=io.StringIO)
    held: HeldPorts = field(default_factory=lambda: HeldPorts(0))

    @property
    def servers(self) -> Servers:
        return Servers(self.urls, ADMIN, self.folder / f"{ADMIN}.password")

    def password(self, user: str) -> str:
        return (self.folder / f"{user}.password").read_text().strip()

    async def start(self) -> None:
        self.held = HeldPorts(3 * SIZE)
        ports = self.held.numbers
        write_secrets(self.folder, [f"{HOST}:{port}" for port in ports[2::3]])
        for number in range(SIZE):
            client, monitor, route = ports[3 * number : 3 * number + 3]
            place = ServerPlace(
                client=f"{HOST}:{client}",
                monitor=f"{HOST}:{monitor}",
                route=f"{HOST}:{route}",
                store=str(self.folder / f"store{number}"),
                pid_file=str(self.folder / f"nats{number}.pid"),
                log_file=str(self.folder / f"nats{number}.log"),
            )
            self.watches.append(LogWatch(Path(place.log_file), self.alarm, self.told))
            path = self.folder / f"nats{number}.conf"
            path.write_text(config(CELL, place))
            self.urls.append(f"nats://{HOST}:{client}")
            self.monitors.append(f"http://{HOST}:{monitor}")
            self.processes.append(
                await asyncio.create_subprocess_exec(
                    server_binary(),
                    "--config",
                    str(path),
                    env={**os.environ, SERVER_NAME: f"nats-{number}"},
                    stderr=asyncio.subprocess.DEVNULL,
                )
            )
        async with asyncio.timeout(PATIENCE_S):
            while not all([await self.healthy(url) for url in self.monitors]):  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.05)

    async def healthy(self, url: str) -> bool:
        """As the pods' startup probe asks."""
        try:
            port = int(url.rpartition(":")[2])
            status, _ = await http_get(HOST, port, "/healthz?js-server-only=true", wait_s=1.0)
        except (OSError, TimeoutError, EOFError):
            return False
        return status == 200

    def alarm(self, kind: AlarmKind, facts: Mapping[str, Any]) -> None:
        assert kind == "log_misused"
        self.misused.append(facts)

    async def alarmed(self, what: str, user: str, subject: str = "") -> None:
        """Wait until an operator is told of an attempt, once."""
        wanted = {"what": what, "user": user, "times": 1} | (
            {"subject": subject} if subject else {}
        )
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for watch in self.watches:
                    watch.look()
                for facts in self.misused:
                    if wanted.items() <= facts.items():
                        assert facts["from"] == HOST
                        self.misused.remove(facts)
                        return
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        await asyncio.gather(*(process.wait() for process in self.processes))
        for watch in self.watches:
            watch.close()
        self.held.release()

    async def log_of(self, user: NatsUser) -> JetStreamLog:
        return await JetStreamLog.connect(
            self.urls,
            CELL,
            name=user.name,
            consumer_prefix=user.consumer_prefix,
            user=user.name,
            password=self.password(user.name),
            inbox_prefix=user.inbox_prefix,
            wait_s=PATIENCE_S,
        )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cell(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Cell, None]:
    """With the stream, made as an operator makes it."""
    running = Cell(tmp_path_factory.mktemp("nats"))
    await running.start()
    made = await applied(
        running.servers, CELL, replicas=SIZE, max_bytes=10_000_000, may_create=True
    )
    assert made.what is What.CREATE
    for what in (What.CREATE, What.NOTHING):
        bucket = await bucket_applied(running.servers, CELL, replicas=SIZE, max_bytes=20_000_000)
        assert (bucket.what, bucket.stream) == (what, BUCKET)
    yield running
    await running.stop()


async def refused(connection: NatsConnection, subject: str) -> bool:
    """Whether the server refuses to take a message; anything else answers or lets it time out."""
    with pytest.raises(Forbidden) as told:
        await connection.request(subject, b"{}", wait_s=PATIENCE_S)
    return subject in str(told.value)


async def test_the_stream_is_strong_and_applying_again_changes_nothing(cell: Cell) -> None:
    found = await check_log(
        cell.monitors, CELL, replicas=SIZE, max_bytes=10_000_000, wait_s=PATIENCE_S
    )
    assert found.problems == ()
    again = await applied(cell.servers, CELL, replicas=SIZE, max_bytes=None, may_create=False)
    assert again.what is What.NOTHING


@pytest.mark.parametrize("user", service_users(SERVICES), ids=lambda user: user.name)
async def test_a_service_appends_to_its_own_subjects_and_to_no_other_s(
    cell: Cell, user: NatsUser
) -> None:
    log = await cell.log_of(user)
    for service in SERVICES:
        for kind in ("in", "out"):
            subject = f"sabot.{CELL}.{service}.{kind}"
            if service == user.name:
                assert await log.append(subject, b"1", expected=None, wait_s=PATIENCE_S) > 0
            else:
                with pytest.raises(AppendRefused, match="may not publish"):
                    await log.append(subject, b"1", expected=None, wait_s=PATIENCE_S)
                await cell.alarmed("publish", user.name, subject)
    elsewhere = f"sabot.other.{user.name}.in"
    with pytest.raises(AppendRefused, match="may not publish"):
        await log.append(elsewhere, b"1", expected=None, wait_s=PATIENCE_S)
    await cell.alarmed("publish", user.name, elsewhere)
    assert (await log.info(wait_s=PATIENCE_S)).last_sequence > 0
    async with reading(log, 0) as entries:
        assert (await anext(entries)).sequence == 1
    await log.close()


@pytest.mark.parametrize("user", cluster_users(SERVICES), ids=lambda user: user.name)
async def test_nobody_may_delete_purge_read_aside_or_touch_a_foreign_consumer(
    cell: Cell, user: NatsUser
) -> None:
    log = await cell.log_of(user)
    foreign = next(name for name in SERVICES if name != user.name)
    asked = [
        *DANGEROUS,
        *(
            f"CONSUMER.{verb}.{STREAM}.{foreign}_0"
            for verb in ("CREATE", "MSG.NEXT", "DELETE", "INFO")
        ),
        *(
            f"CONSUMER.{verb}.{BUCKET}.{foreign}_0{of}"
            for verb, of in (
                ("CREATE", ""),
                ("CREATE", f".{snapshot_chunks(CELL, foreign)}"),
                ("MSG.NEXT", ""),
                ("DELETE", ""),
            )
        ),
        *(
            []
            if user.makes_stream
            else [
                f"STREAM.{verb}.{stream}"
                for verb in ("UPDATE", "CREATE")
                for stream in (STREAM, BUCKET)
            ]
        ),
    ]
    for what in asked:
        assert await refused(log.connection, f"$JS.API.{what}"), what
        await cell.alarmed("publish", user.name, f"$JS.API.{what}")
    assert await refused(log.connection, f"_INBOX_{foreign}.anything"), "a foreign inbox"
    await cell.alarmed("publish", user.name, f"_INBOX_{foreign}.anything")
    await log.close()


async def test_snapshots_are_written_by_two_and_each_service_reads_its_own(cell: Cell) -> None:
    """Every pair of a user and a service, of writing and of reading."""
    raw = b"a state" * 40_000
    telling: list[str] = []
    users = cluster_users(SERVICES)
    writers = {user.name for user in users if user.writes_snapshots}
    assert writers == {"audit", "snapshots"}
    for user in sorted(users, key=lambda user: user.name not in writers):
        log = await cell.log_of(user)
        objects = ObjectBucket(log.connection, snapshot_bucket(CELL), consumer_prefix=user.name)
        shared = SharedSnapshots(objects)
        for core in CORES:
            service = core.service
            place = snapshot_names(service)[0]
            if user.name in writers:
                outcome = await shared.store(
                    [core], 1, {service: raw}, "b", lambda _, why: telling.append(why)
                )
                assert outcome == "stored", telling
            else:
                for subject in (
                    chunk_subject(snapshot_bucket(CELL), place),
                    meta_subject(snapshot_bucket(CELL), place),
                ):
                    assert await refused(log.connection, subject)
                    await cell.alarmed("publish", user.name, subject)
            if user.name in writers or service in user.snapshots_of:
                found = await shared.listed([service])
                assert [await shared.load(one) for one in found] == [raw] * len(found)
                assert found
            else:
                chunks = chunk_subject(snapshot_bucket(CELL), place)
                for subject in (
                    f"DIRECT.GET.{BUCKET}.{snapshot_subjects(CELL, service)[0]}",
                    f"CONSUMER.CREATE.{BUCKET}.{user.name}_0.{chunks}",
                ):
                    assert await refused(log.connection, f"$JS.API.{subject}"), subject
                    await cell.alarmed("publish", user.name, f"$JS.API.{subject}")
        await log.close()


async def test_who_builds_snapshots_names_them_and_appends_nothing_else(cell: Cell) -> None:
    log = await cell.log_of(SNAPSHOTS)
    assert await log.append(f"sabot.{CELL}.audit.in", b"1", expected=None, wait_s=PATIENCE_S) > 0
    for service in SERVICES:
        for kind in ("in", "out"):
            subject = f"sabot.{CELL}.{service}.{kind}"
            if (service, kind) != ("audit", "in"):
                with pytest.raises(AppendRefused, match="may not publish"):
                    await log.append(subject, b"1", expected=None, wait_s=PATIENCE_S)
                await cell.alarmed("publish", SNAPSHOTS.name, subject)
    await log.close()


@pytest.mark.parametrize("user", cluster_users(SERVICES), ids=lambda user: user.name)
async def test_nobody_may_listen_to_another_s_inbox_or_past_the_stream(
    cell: Cell, user: NatsUser
) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()

    async def on_error(error: Exception) -> None:
        told.put_nowait(str(error))

    client = await nats.connect(
        cell.urls, user=user.name, password=cell.password(user.name), error_cb=on_error
    )
    foreign = next(name for name in SERVICES if name != user.name)
    for subject in (f"_INBOX_{foreign}.>", "_INBOX.>", ">", f"sabot.{CELL}.>", "$JS.>", "$SYS.>"):
        await client.subscribe(subject)
        error = await asyncio.wait_for(told.get(), PATIENCE_S)
        assert re.search("permissions violation for subscription", error, re.IGNORECASE), error
        assert subject.lower() in error.lower()
        await cell.alarmed("subscribe", user.name, subject)
    await client.close()


@pytest.mark.parametrize("user", ["table", "root"])
async def test_who_has_no_password_is_not_let_in_and_an_operator_is_told(
    cell: Cell, user: str
) -> None:
    reader, writer = await asyncio.open_connection(HOST, int(cell.urls[0].rpartition(":")[2]))
    offered = json.dumps({"user": user, "pass": "guessed", "verbose": False, "pedantic": False})
    async with asyncio.timeout(PATIENCE_S):
        assert (await reader.readline()).startswith(b"INFO ")
        writer.write(f"CONNECT {offered}\r\nPING\r\n".encode())
        told = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert b"Authorization Violation" in told
    await cell.alarmed("connect", user)


async def test_what_is_allowed_raises_no_alarm(cell: Cell) -> None:
    log = await cell.log_of(NatsUser("prove"))
    async with reading(log, 0) as entries:
        await anext(entries)
    await log.close()
    for watch in cell.watches:
        watch.look()
    assert [one for one in cell.misused if one["user"] == "prove"] == []
    assert "Server is ready" in cell.told.getvalue(), "what a server says is passed on"


async def test_the_admin_appends_nothing_and_reads_nothing(cell: Cell) -> None:
    admin = next(user for user in cluster_users(SERVICES) if user.name == ADMIN)
    log = await cell.log_of(admin)
    with pytest.raises(AppendRefused, match="may not publish"):
        await log.append(f"sabot.{CELL}.table.in", b"1", expected=None, wait_s=PATIENCE_S)
    assert await refused(log.connection, f"$JS.API.CONSUMER.CREATE.{STREAM}.{ADMIN}_0")
    await log.close()


async def test_streams_apply_gives_room_and_takes_none(cell: Cell) -> None:
    more = await applied(cell.servers, CELL, replicas=SIZE, max_bytes=20_000_000, may_create=False)
    assert (more.what, len(more.changes)) == (What.UPDATE, 1)
    less = await applied(cell.servers, CELL, replicas=SIZE, max_bytes=10_000_000, may_create=False)
    assert (less.what, len(less.refused)) == (What.REFUSE, 1)
    fewer = await applied(cell.servers, CELL, replicas=1, max_bytes=None, may_create=False)
    assert fewer.what is What.REFUSE
    async with cell.servers.connected() as connection:
        kept = await find_stream(connection, CELL, wait_s=PATIENCE_S)
    assert (kept["max_bytes"], kept["num_replicas"]) == (20_000_000, SIZE)
    drifted = {**kept, "deny_purge": True, "max_age": 600_000_000_000}
    async with cell.servers.connected() as connection:
        reply = await connection.request(
            f"$JS.API.STREAM.UPDATE.{STREAM}", json.dumps(drifted).encode(), wait_s=PATIENCE_S
        )
    assert "error" not in json.loads(reply.data)
    seen = await planned(cell.servers, CELL, replicas=SIZE, max_bytes=None, may_create=False)
    assert (seen.what, [one.split(" ")[0] for one in seen.changes]) == (What.UPDATE, ["max_age"])
    await applied(cell.servers, CELL, replicas=SIZE, max_bytes=None, may_create=False)
    found = await check_log(
        cell.monitors, CELL, replicas=SIZE, max_bytes=20_000_000, wait_s=PATIENCE_S
    )
    assert found.problems == ()


async def test_no_route_joins_without_the_secret(cell: Cell) -> None:
    routes = json.loads(
        next(
            line.partition(": ")[2]
            for line in (cell.folder / "secrets.conf").read_text().splitlines()
            if line.startswith("ROUTES: ")
        )
    )
    port = int(routes[0].rpartition(":")[2])
    reader, writer = await asyncio.open_connection(HOST, port)
    async with asyncio.timeout(PATIENCE_S):
        assert (await reader.readline()).startswith(b"INFO ")
        writer.write(b'CONNECT {"name":"intruder","cluster":"sabot"}\r\nPING\r\n')
        told = await reader.read()
    writer.close()
    assert b"Authorization Violation" in told
