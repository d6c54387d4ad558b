"""The embedded log: a real nats-server in a locked data folder, durable on every append.

<data>/lock         held by whoever uses the folder, and by the server itself
<data>/cell.json    says that this folder has held a stream: another is never made in it
<data>/server.json  where the running server is and how tools may read it (mode 0600)
<data>/nats/        the server's store, configuration and log file is <data>/nats.log
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from services.kernel.held_ports import HOST, HeldPorts
from services.kernel.nats_process import (
    POLL_S,
    NatsProcess,
    ServerNotStarted,
    http_get,
    write_private,
)
from services.kernel.nats_users import (
    MAKER,
    READER,
    TOOLS,
    WHOLE_FLEET,
    NatsUser,
    permissions,
    service_users,
)
from services.kernel.streams import stream_name

LOCK_WAIT_S = 5.0
"""How long a server whose fleet was just killed may take to end and let go of its folder."""

PORT_TRIES = 5
"""A free port may be taken by somebody else before the server has it."""

CLUSTER_WAIT_S = 60.0
"""For three servers on one machine to find each other and agree on a leader."""


class FolderInUse(Exception):
    """Another fleet, or its server, uses the data folder."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a user of the server needs beside its address."""

    user: str
    password: str
    inbox_prefix: str
    """Where it may subscribe."""
    consumer_prefix: str
    """What its consumers are called."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """What a running server left for tools in its folder."""

    cell: str
    client_url: str
    monitor_url: str
    tools: Credentials


class NoteDamaged(Exception):
    """What stands in a data folder about its cell or its server cannot be read."""


def noted_cell(data: Path) -> str | None:
    """The cell whose log a folder holds or has held; None where it never did. Raises
    NoteDamaged."""
    try:
        return str(json.loads((data / "cell.json").read_text())["cell"])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise NoteDamaged(f"{data / 'cell.json'} cannot be read: {error}") from error


class FolderLock:
    """The lock on a data folder. The server inherits it, so it is held while either of us lives."""

    def __init__(self, data: Path) -> None:
        """Name the folder; nothing is locked yet."""
        self._path = data / "lock"
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """The open lock file. Raises FolderInUse when it is not held."""
        if self._descriptor is None:
            raise FolderInUse(f"{self._path} is not locked")
        return self._descriptor

    async def acquire(self, *, wait_s: float) -> None:
        """Take the lock. Raises FolderInUse when another has it for `wait_s` seconds."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    os.close(descriptor)
                    raise
                if loop.time() >= deadline:
                    holder = os.read(descriptor, 100).decode(errors="replace").strip()
                    os.close(descriptor)
                    raise FolderInUse(
                        f"{self._path.parent} is in use by process {holder or '(unknown)'}; "
                        "stop that fleet first, or give another folder"
                    ) from error
            await asyncio.sleep(POLL_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let go of it; the server, if it still runs, keeps it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class EmbeddedServer:
    """A nats-server that belongs to this process, for one cell."""

    def __init__(self, data: Path, cell: str, *, services: Sequence[str] = ()) -> None:
        """Use the folder `data`. For each name in `services` there is a user of its own, who may
        append to that service's subjects only.
        """
        self.data = data
        self.cell = cell
        self.stream = stream_name(cell)
        self.lock = FolderLock(data)
        self._table = (MAKER, WHOLE_FLEET, READER, *service_users(services))
        self.users = {user.name: _credentials(user) for user in self._table}
        self._server: NatsProcess | None = None
        self._ports = HeldPorts(0)
        self.keeper: asyncio.Task[None] | None = None
        """Whoever starts the server again when it ends; done only where it may not be started."""

    async def given_up(self) -> BaseException:
        """Wait until nobody will start the server again; why."""
        if self.keeper is None:
            raise ServerNotStarted("nobody keeps the embedded server running")
        await asyncio.wait([self.keeper])
        if self.keeper.cancelled():
            return ServerNotStarted("the embedded server is being stopped")
        return self.keeper.exception() or ServerNotStarted("the embedded server is not kept")

    @property
    def server(self) -> NatsProcess:
        """The process. Raises ServerNotStarted before `start`."""
        if self._server is None:
            raise ServerNotStarted("the embedded server was not started")
        return self._server

    @property
    def client_url(self) -> str:
        """Where clients connect."""
        return self.server.client_url

    @property
    def monitor_url(self) -> str:
        """Where the server tells about itself."""
        return self.server.monitor_url

    @property
    def stream_folder(self) -> Path:
        """Where the server keeps the stream's files."""
        return stream_folder(self.data, self.cell)

    @property
    def held_stream(self) -> bool:
        """Whether this folder holds or has ever held a stream of any cell."""
        return (self.data / "cell.json").exists() or self.stream_folder.exists()

    def remember_stream(self) -> None:
        """Note that this folder holds a stream now, so that none is ever made in it again."""
        if not (self.data / "cell.json").exists():
            note = {"cell": self.cell, "stream": self.stream}
            write_private(self.data / "cell.json", json.dumps(note))

    async def acquire(self, *, wait_s: float = LOCK_WAIT_S) -> None:
        """Lock the folder, to look at its store before the server does. Raises FolderInUse."""
        await self.lock.acquire(wait_s=wait_s)
        try:
            self._check_cell()
        except BaseException:
            self.lock.release()
            raise

    def _check_cell(self) -> None:
        cell = noted_cell(self.data)
        if cell not in {None, self.cell}:
            raise FolderInUse(f"{self.data} belongs to the cell {cell}, not {self.cell}")

    async def start(self) -> None:
        """Start the server in the folder, which `acquire` has locked. Raises ServerNotStarted."""
        descriptor = self.lock.descriptor
        for attempt in range(PORT_TRIES):
            self._ports.release()
            self._ports = HeldPorts(2)
            client_port, monitor_port = self._ports.numbers
            self._server = NatsProcess(
                self.data,
                _server_config(self.data / "nats", self._users()),
                client_port=client_port,
                monitor_port=monitor_port,
                keep_fds=(descriptor,),
            )
            try:
                await self._server.start()
                break
            except ServerNotStarted as error:
                if "address already in use" not in str(error) or attempt + 1 == PORT_TRIES:
                    raise
        tools = self.users[TOOLS]
        note = {
            "cell": self.cell,
            "client_url": self.client_url,
            "monitor_url": self.monitor_url,
            "user": tools.user,
            "password": tools.password,
            "inbox_prefix": tools.inbox_prefix,
            "consumer_prefix": tools.consumer_prefix,
        }
        write_private(self.data / "server.json", json.dumps(note))

    async def restart(self) -> None:
        """Start the server again where it was, after it ended. Raises ServerNotStarted.

        Clients find it at the same address. Look at the store first: the server "repairs" it.
        """
        await self.server.start()

    async def stop(self) -> None:
        """Stop the server cleanly and let go of the folder."""
        if self._server is not None:
            await self._server.stop()
        self._ports.release()
        with contextlib.suppress(FileNotFoundError):
            (self.data / "server.json").unlink()
        self.lock.release()

    def _users(self) -> list[dict[str, Any]]:
        return [
            {
                "user": user.name,
                "password": self.users[user.name].password,
                "permissions": permissions(user, self.cell),
            }
            for user in self._table
        ]


def stream_folder(data: Path, cell: str) -> Path:
    """Where the embedded server of a data folder keeps a cell's stream."""
    return data / "nats" / "jetstream" / "$G" / "streams" / stream_name(cell)


def find_running(data: Path) -> RunningServer | None:
    """What a server that runs in this folder left for tools; None where none is said to run.

    A server that was killed leaves its note behind: the address then answers no more. Raises
    NoteDamaged.
    """
    try:
        note = json.loads((data / "server.json").read_text())
        tools = Credentials(
            note["user"], note["password"], note["inbox_prefix"], note["consumer_prefix"]
        )
        return RunningServer(note["cell"], note["client_url"], note["monitor_url"], tools)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise NoteDamaged(f"{data / 'server.json'} cannot be read: {error}") from error


class Cluster:
    """Servers on this machine for tests: one alone, or three that keep each stream three times."""

    def __init__(self, folder: Path, size: int = 3) -> None:
        """Keep everything below `folder`; one user with every right."""
        self.folder = folder
        self.size = size
        self.admin = _credentials(MAKER)
        self.servers: list[NatsProcess] = []
        self._ports = HeldPorts(0)

    @property
    def client_urls(self) -> list[str]:
        """Where clients connect."""
        return [server.client_url for server in self.servers]

    @property
    def monitor_urls(self) -> list[str]:
        """Where the servers tell about themselves."""
        return [server.monitor_url for server in self.servers]

    async def start(self) -> None:
        """Start all servers and wait until they agree on a leader. Raises ServerNotStarted."""
        for attempt in range(PORT_TRIES):
            self._configure()
            for server in self.servers:
                await server.spawn()
            try:
                await asyncio.gather(*(server.wait_up() for server in self.servers))
                await self._wait_leader()
            except ServerNotStarted as error:
                await self.stop()
                if "address already in use" not in str(error) or attempt + 1 == PORT_TRIES:
                    raise
            else:
                return

    async def stop(self) -> None:
        """Stop all servers."""
        await asyncio.gather(*(server.stop() for server in self.servers))
        self._ports.release()

    def _configure(self) -> None:
        self._ports = HeldPorts(3 * self.size)
        ports = self._ports.numbers
        routes = [f"nats://{HOST}:{ports[3 * index + 2]}" for index in range(self.size)]
        self.servers = []
        for index in range(self.size):
            folder = self.folder / f"server{index + 1}"
            folder.mkdir(parents=True, exist_ok=True)
            user = {"user": self.admin.user, "password": self.admin.password}
            config = _server_config(folder / "nats", [user])
            config["server_name"] = f"server{index + 1}"
            if self.size > 1:
                config["cluster"] = {
                    "name": "sabot",
                    "listen": f"{HOST}:{ports[3 * index + 2]}",
                    "routes": routes,
                    # A client that a test cuts off from one server shall not find the others.
                    "no_advertise": True,
                }
            self.servers.append(
                NatsProcess(
                    folder,
                    config,
                    client_port=ports[3 * index],
                    monitor_port=ports[3 * index + 1],
                )
            )

    async def _wait_leader(self) -> None:
        if self.size == 1:
            return
        async with asyncio.timeout(CLUSTER_WAIT_S):
            while True:
                for server in self.servers:
                    port = int(server.monitor_url.rpartition(":")[2])
                    _, body = await http_get(HOST, port, "/jsz", wait_s=5.0)
                    meta = json.loads(body).get("meta_cluster", {})
                    others = meta.get("replicas") or []  # the leader lists them
                    if len([peer for peer in others if peer.get("current")]) == self.size - 1:
                        return
                await asyncio.sleep(POLL_S)


def _credentials(user: NatsUser) -> Credentials:
    password = uuid4().hex + uuid4().hex
    return Credentials(user.name, password, user.inbox_prefix, user.consumer_prefix)


def _server_config(store: Path, users: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        # Quoted: every append is on the disk before it is acknowledged.
        "jetstream": {"store_dir": str(store), "sync_interval": "always"},
        "authorization": {"users": users},
    }
