"""The fleet on one machine: an embedded nats-server and all seven services in this process."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from services.audit.parts import parts as audit_parts
from services.cli.log_source import check_folder, note_folder
from services.events import event_types
from services.kernel import event_loop, host, telemetry
from services.kernel.build import BUILD
from services.kernel.embedded import EmbeddedServer
from services.kernel.health_port import health_port
from services.kernel.jetstream import JetStreamLog
from services.kernel.nats_users import ADMIN, FLEET
from services.kernel.preflight import Preflight, check_log
from services.kernel.settings import ServiceSettings
from services.kernel.streams import require_stream
from services.kernel.tokens import Tokens, create_demo_tokens
from services.limits.parts import parts as limits_parts
from services.rules.parts import parts as rules_parts
from services.settlement.parts import parts as settlement_parts
from services.shoe.parts import parts as shoe_parts
from services.table.parts import parts as table_parts
from services.wallet.parts import parts as wallet_parts

CELL = "main"
"""The cell of an embedded fleet."""
DEFAULT_PORT = 7400
"""Where an embedded fleet takes calls, unless told otherwise."""
RESTART_PAUSE_S = 0.2
"""Before a nats-server that ended is started again."""
LOG_ADVICE = (
    "see that the disk of {data} has room, then stop this fleet and start it again: a nats-server "
    "whose disk was full takes no append until it is restarted; {log} says what it met"
)


@dataclass(slots=True)
class Fleet:
    """A running embedded fleet."""

    data: Path
    server: EmbeddedServer
    log: JetStreamLog
    host: host.Host
    tokens: dict[str, str]
    """The demonstration's bearer tokens, by actor."""

    async def stopped(self) -> BaseException:
        """Wait until it must not go on: its process is at odds with the log, or the log's server
        may not be started again; why."""
        ends = [
            asyncio.ensure_future(self.host.stopped()),
            asyncio.ensure_future(self.server.given_up()),
        ]
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for end in ends:
                end.cancel()

    @property
    def address(self) -> str:
        """Where it takes calls."""
        return f"127.0.0.1:{self.host.port}"


@asynccontextmanager
async def embedded_log(
    data: Path, cell: str = CELL, *, services: Sequence[str] = ()
) -> AsyncIterator[EmbeddedServer]:
    """A nats-server in a data folder, with the cell's stream. Its store is checked before the
    server opens it, and again whenever the server ended and is started anew.

    Raises FolderInUse, StoreNotTheLog, StreamMissing, StreamUnfit, ServerNotStarted."""
    server = EmbeddedServer(data, cell, services=services)
    await server.acquire()
    try:
        check_folder(server.data, server.cell)
        note_folder(server.data, server.cell)
        await server.start()
        await _require(server)
    except BaseException:
        await server.stop()
        raise
    keeper = asyncio.get_running_loop().create_task(_keep_running(server), name="nats-server")
    server.keeper = keeper
    in_order = False
    try:
        yield server
        in_order = server.server.pid is not None
    finally:
        keeper.cancel()
        await asyncio.wait([keeper])
        if in_order:
            await server.server.stop()
            note_folder(server.data, server.cell)
        await server.stop()


async def _require(server: EmbeddedServer) -> None:
    admin = await connect(server, ADMIN)
    try:
        await require_stream(
            admin.connection, server.cell, replicas=1, may_create=not server.held_stream
        )
        server.remember_stream()
    finally:
        await admin.close()


async def _keep_running(server: EmbeddedServer) -> None:
    """Start the server again when it ends by itself. A store that is no longer the log ends
    this. It is checked in a thread: whoever only reads is answered meanwhile."""
    while True:
        await server.server.wait_exit()
        await asyncio.sleep(RESTART_PAUSE_S)
        await asyncio.to_thread(check_folder, server.data, server.cell)
        await server.restart()


async def connect(server: EmbeddedServer, user: str = FLEET, name: str = "") -> JetStreamLog:
    """A connection to an embedded server by one of its users."""
    credentials = server.users[user]
    return await JetStreamLog.connect(
        [server.client_url],
        server.cell,
        name=name or user,
        consumer_prefix=credentials.consumer_prefix,
        user=credentials.user,
        password=credentials.password,
        inbox_prefix=credentials.inbox_prefix,
    )


def all_parts(settings: ServiceSettings) -> Sequence[host.Parts]:
    """The seven services."""
    return [
        part(settings)
        for part in (
            table_parts, limits_parts, wallet_parts, shoe_parts, rules_parts, settlement_parts,
            audit_parts,
        )
    ]  # fmt: skip


@asynccontextmanager
async def fleet(data: Path, port: int = DEFAULT_PORT) -> AsyncIterator[Fleet]:
    """An embedded fleet, ready to take calls; drained at the end."""
    token_file, tokens = prepare_tokens(data)
    settings = ServiceSettings(cell=CELL, data=data, port=port, token_file=token_file)
    async with health_port(settings) as probed, embedded_log(data) as server:
        log = await connect(server)

        async def preflight() -> Preflight:
            return await check_log([server.monitor_url], server.cell, replicas=1)

        try:
            running = await host.start(
                all_parts(settings),
                name="fleet",
                log=log,
                types=event_types(),
                settings=settings,
                tokens=Tokens(token_file),
                preflight=preflight,
                build=BUILD,
                log_advice=LOG_ADVICE.format(data=data, log=server.server.log_path),
                probed=probed,
            )
        except BaseException:
            await log.close()
            raise
        address = data / "fleet.json"
        address.write_text(json.dumps({"address": f"127.0.0.1:{running.port}"}) + "\n")
        try:
            yield Fleet(data, server, log, running, tokens)
        finally:
            address.unlink(missing_ok=True)
            await running.stop(settings.drain_s)
            await log.close()


def prepare_tokens(data: Path) -> tuple[Path, dict[str, str]]:
    """The token file of a data folder, made with the demonstration's callers at the first run, and
    their clear tokens by actor."""
    data.mkdir(parents=True, exist_ok=True)
    token_file, clear_file = data / "tokens.hashed.json", data / "tokens.json"
    create_demo_tokens(token_file, clear_file)
    clear: dict[str, str] = json.loads(clear_file.read_text())
    return token_file, clear


def run_up(data: Path, port: int) -> int:
    """Run the embedded fleet until SIGINT or SIGTERM; the exit code."""
    telemetry.configure_logging(service="fleet")
    try:
        return event_loop.run(_up(data, port))
    except asyncio.CancelledError:
        return 1  # a signal while it started


async def _up(data: Path, port: int) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    event_loop.give_up_at_signals()
    async with fleet(data, port) as running:
        event_loop.at_signals(stop.set)
        print(
            f"sabot takes calls at {running.address}; tokens in {data / 'tokens.json'}", flush=True
        )
        stopped = loop.create_task(running.stopped())
        stopping = loop.create_task(stop.wait())
        done, _ = await asyncio.wait({stopped, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (stopped, stopping):
            task.cancel()
        if stopped in done:
            print(f"stopped: {stopped.result()}", file=sys.stderr)
            return 1
    return 0
