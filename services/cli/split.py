"""`sabot up --split`: each service in a process of its own, over an embedded nats-server or others.

Replicas of a service share a data folder; each has a witness and a projection database of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from services.cli.fleet import CELL, DEFAULT_PORT, embedded_log, prepare_tokens
from services.events import SERVICES
from services.kernel import event_loop
from services.kernel.embedded import Credentials, EmbeddedServer
from services.kernel.held_ports import HeldPorts
from services.kernel.nats_process import LAUNCHER, write_private
from services.kernel.tokens import Tokens

STOP_WAIT_S = 20.0
"""For a service to drain; then it is ended by force."""
RESTART_PAUSE_S = 0.5
"""Before a service that ended is started again."""

NO_PROGRAMS: Mapping[str, Sequence[str]] = MappingProxyType({})
Replicas = int | Mapping[str, int]
"""Processes of each service, or by service where it is not one."""


@dataclass(frozen=True, slots=True)
class LogServers:
    """The servers of a log, as its services are told of them."""

    client_urls: Sequence[str]
    monitor_urls: Sequence[str]
    replicas: int
    users: Mapping[str, Credentials]
    """By service."""

    @classmethod
    def embedded(cls, server: EmbeddedServer) -> LogServers:
        """One server in the data folder."""
        return cls([server.client_url], [server.monitor_url], 1, server.users)


@dataclass(slots=True)
class Child:
    """One service's process."""

    service: str
    name: str
    port: int
    environment: dict[str, str]
    program: tuple[str, ...] = ()
    """What Python runs, where it is not the service itself."""
    log_path: Path | None = None
    """Where its log lines go; None: to this process's standard error."""
    process: asyncio.subprocess.Process | None = None
    keeper: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Its process id. Raises RuntimeError while it does not run."""
        if self.process is None or self.process.returncode is not None:
            raise RuntimeError(f"{self.name} does not run")
        return self.process.pid

    async def start(self) -> None:
        """Start it; it says by itself when it is ready (health)."""
        with contextlib.ExitStack() as files:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                "-c",
                LAUNCHER,  # it ends when this process is killed, as the log's server does
                str(os.getpid()),
                sys.executable,
                *(self.program or ("-m", f"services.{self.service}")),
                env=self.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=files.enter_context(self.log_path.open("ab")) if self.log_path else None,
                start_new_session=True,  # Ctrl-C reaches the parent, which drains its children
            )

    async def keep(self) -> None:
        """Start it whenever it ended by itself."""
        while True:
            if self.process is not None:
                await self.process.wait()
            await asyncio.sleep(RESTART_PAUSE_S)
            await self.start()

    async def stop(self) -> None:
        """Let it drain."""
        if self.keeper is not None:
            self.keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.keeper
        if self.process is None or self.process.returncode is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.process.wait(), STOP_WAIT_S)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


@dataclass(slots=True)
class SplitFleet:
    """A running fleet of processes."""

    data: Path
    servers: LogServers
    tokens: dict[str, str]
    children: list[Child] = field(default_factory=list[Child])
    embedded: EmbeddedServer | None = None
    """The fleet's own nats-server, where it has one."""

    def child(self, name: str) -> Child:
        """A process by its name, such as `wallet` or `wallet-2`."""
        return next(child for child in self.children if child.name == name)

    @property
    def address(self) -> str:
        """The front door."""
        return f"127.0.0.1:{self.child('table').port}"


@asynccontextmanager
async def split_fleet(
    data: Path,
    port: int = DEFAULT_PORT,
    replicas: Replicas = 1,
    *,
    restart: bool = True,
    logs: Path | None = None,
    metrics: bool = False,
    inherited: Mapping[str, str] | None = None,
    programs: Mapping[str, Sequence[str]] = NO_PROGRAMS,
) -> AsyncIterator[SplitFleet]:
    """The fleet over an embedded server; see `split_services`."""
    async with embedded_log(data, CELL, services=SERVICES) as server:
        servers = LogServers.embedded(server)
        async with split_services(
            data,
            servers,
            port,
            replicas,
            restart=restart,
            logs=logs,
            metrics=metrics,
            inherited=inherited,
            programs=programs,
        ) as fleet:
            fleet.embedded = server
            yield fleet


@asynccontextmanager
async def split_services(
    data: Path,
    servers: LogServers,
    port: int,
    replicas: Replicas = 1,
    *,
    restart: bool = True,
    logs: Path | None = None,
    metrics: bool = False,
    inherited: Mapping[str, str] | None = None,
    programs: Mapping[str, Sequence[str]] = NO_PROGRAMS,
) -> AsyncIterator[SplitFleet]:
    """`replicas` of each service in processes of their own, over a folder; stopped at the end.

    With `restart`, a process that ends by itself is started again. `logs`: a folder for what each
    of them logs. With `metrics`, each serves them at a port of its own. `inherited`: what each has
    in its environment beside what it is told; None: what this process has. `programs`: what Python
    runs by name of a process, where that is not the service itself."""
    token_file, tokens = prepare_tokens(data)
    Tokens(token_file)
    fleet = SplitFleet(data, servers, tokens)
    names = _names(replicas)
    with HeldPorts(
        len(names) * (1 + metrics)
    ) as held:  # a process that is started again has its own again
        ports = list(held.numbers[: len(names)])
        told_at = held.numbers[len(names) :] or ports
        if port:
            ports[0] = port
        behind = {
            wanted: ",".join(
                f"127.0.0.1:{at}"
                for (service, _), at in zip(names, ports, strict=True)
                if service == wanted
            )
            for wanted in ("wallet", "limits")
        }
        for (service, name), at, metrics_at in zip(names, ports, told_at, strict=True):
            environment = {
                **(os.environ if inherited is None else inherited),
                **_environment(data, servers, service, name, at, token_file),
                # All of them: gRPC goes on to the next where one is away.
                "SABOT_WALLET_ADDRESS": f"ipv4:{behind['wallet']}",
                "SABOT_LIMITS_ADDRESS": f"ipv4:{behind['limits']}",
            }
            if metrics:
                environment["SABOT_METRICS_PORT"] = str(metrics_at)
            log_path = logs / f"{name}.log" if logs else None
            program = tuple(programs.get(name, ()))
            fleet.children.append(Child(service, name, at, environment, program, log_path))
        try:
            for child in fleet.children:
                await child.start()
                if restart:
                    child.keeper = asyncio.create_task(child.keep(), name=child.name)
            yield fleet
        finally:
            await asyncio.gather(*(child.stop() for child in fleet.children))


def _names(replicas: Replicas) -> list[tuple[str, str]]:
    """Service and name of every process, the front door first."""
    counts = {
        service: replicas if isinstance(replicas, int) else replicas.get(service, 1)
        for service in SERVICES
    }
    return [
        (service, service if number == 0 else f"{service}-{number + 1}")
        for number in range(max(counts.values()))
        for service in SERVICES
        if number < counts[service]
    ]


def _environment(
    data: Path, servers: LogServers, service: str, name: str, port: int, token_file: Path
) -> dict[str, str]:
    """All that a service is told."""
    credentials = servers.users[service]
    folder = data / "nats"
    folder.mkdir(parents=True, exist_ok=True)
    password_file = folder / f"{service}.password"
    write_private(password_file, credentials.password + "\n")
    return {
        "SABOT_CELL": CELL,
        "SABOT_NAME": name,
        "SABOT_NATS_URL": ",".join(servers.client_urls),
        "SABOT_NATS_USER": credentials.user,
        "SABOT_NATS_PASSWORD_FILE": str(password_file),
        "SABOT_NATS_MONITOR_URLS": ",".join(servers.monitor_urls),
        "SABOT_LOG_REPLICAS": str(servers.replicas),
        "SABOT_DATA": str(data),
        "SABOT_TOKEN_FILE": str(token_file),
        "SABOT_PORT": str(port),
    }


def run_split(data: Path, port: int, replicas: int) -> int:
    """Run the split fleet until SIGINT or SIGTERM; the exit code."""
    try:
        return asyncio.run(_up(data, port, replicas))
    except asyncio.CancelledError:
        return 1  # a signal while it started


async def _up(data: Path, port: int, replicas: int) -> int:
    stop = asyncio.Event()
    event_loop.give_up_at_signals()
    async with split_fleet(data, port, replicas) as fleet:
        event_loop.at_signals(stop.set)
        for child in fleet.children:
            print(f"{child.name:14} process {child.pid:7}  127.0.0.1:{child.port}")
        print(f"partners call {fleet.address}; tokens in {data / 'tokens.json'}", flush=True)
        await stop.wait()
    return 0
