"""The three logs that one contract holds for: in memory, on one server, on a cluster of three."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any, Protocol

from services.kernel.embedded import Cluster
from services.kernel.jetstream import JetStreamLog
from services.kernel.log import Log, LogMessage
from services.kernel.memory_log import NO_FAULTS, Faults, MemoryLog, MemoryStore
from services.kernel.nats_connection import NatsConnection, NotAnswered, NotSent
from services.kernel.nats_process import NatsProcess
from services.kernel.streams import require_stream, stream_definition, stream_name
from tests.contract.proxy import Proxy

PATIENCE_S = 30.0
"""What must happen has happened by then, on a slow machine too."""


class FlakyLink(Protocol):
    """A client whose way to the server can be disturbed."""

    @property
    def log(self) -> Log: ...

    def lose_answers(self) -> None: ...
    def cut(self) -> None: ...
    def cut_off(self) -> None: ...
    def heal(self) -> None: ...


class Place(Protocol):
    """A fresh, empty log of its own for one test."""

    cell: str

    async def client(self) -> Log: ...
    async def flaky_client(self) -> FlakyLink: ...
    async def crash(self) -> None:
        """End the server that stores, without warning, and let it come back."""

    async def punch(self, sequence: int) -> None:
        """Make a hole."""

    async def close(self) -> None: ...


class _MemoryLink:
    def __init__(self, log: MemoryLog) -> None:
        self.log = log

    def lose_answers(self) -> None:
        self.log.faults = Faults(lost_reply=1.0)

    def cut(self) -> None:
        self.log.cut_off(0.05)

    def cut_off(self) -> None:
        self.log.cut_off(PATIENCE_S)

    def heal(self) -> None:
        self.log.faults = NO_FAULTS
        self.log._cut_off_until = 0.0


class MemoryPlace:
    def __init__(self, cell: str, *, bytes_max: int = -1) -> None:
        self.cell = cell
        self.store = MemoryStore(cell, lambda: time.time_ns() // 1000, bytes_max=bytes_max)
        self._logs: list[MemoryLog] = []

    async def client(self) -> MemoryLog:
        log = MemoryLog(self.store, NO_FAULTS, random.Random(len(self._logs)))
        self._logs.append(log)
        return log

    async def flaky_client(self) -> FlakyLink:
        return _MemoryLink(await self.client())

    async def crash(self) -> None:
        for log in self._logs:
            log.cut_off(0.1)
        await asyncio.sleep(0)

    async def punch(self, sequence: int) -> None:
        self.store.punch(sequence)

    async def close(self) -> None:
        for log in self._logs:
            await log.close()


class _JetStreamLink:
    def __init__(self, log: JetStreamLog, proxy: Proxy) -> None:
        self.log = log
        self._proxy = proxy
        self.lose_answers = proxy.lose_answers
        self.cut = proxy.cut
        self.cut_off = proxy.cut_off
        self.heal = proxy.heal


class JetStreamPlace:
    _names = itertools.count(1)

    def __init__(self, cluster: Cluster, cell: str) -> None:
        self.cluster = cluster
        self.cell = cell
        self._logs: list[JetStreamLog] = []
        self._proxies: list[Proxy] = []

    async def make(self, *, max_bytes: int = -1, deny: bool = True) -> None:
        admin = await self.connect()
        if deny:
            assert await require_stream(
                admin, self.cell, replicas=self.cluster.size, max_bytes=max_bytes, may_create=True
            )
        else:
            config = stream_definition(
                self.cell, replicas=self.cluster.size, max_bytes=max_bytes
            ) | {"deny_delete": False, "deny_purge": False}
            answer = await ask(admin, f"STREAM.CREATE.{stream_name(self.cell)}", config)
            assert "error" not in answer
        await admin.close()

    async def connect(self, *urls: str) -> NatsConnection:
        admin = self.cluster.admin
        connection = NatsConnection(
            urls or self.cluster.client_urls,
            name=f"test-{next(self._names)}",
            user=admin.user,
            password=admin.password,
            inbox_prefix=admin.inbox_prefix,
        )
        await connection.open(wait_s=PATIENCE_S)
        return connection

    async def client(self, *urls: str) -> JetStreamLog:
        log = JetStreamLog(await self.connect(*urls), self.cell, consumer_prefix="test")
        self._logs.append(log)
        return log

    async def flaky_client(self) -> FlakyLink:
        proxy = Proxy(self.cluster.client_urls[0])
        await proxy.start()
        self._proxies.append(proxy)
        return _JetStreamLink(await self.client(proxy.url), proxy)

    async def leader(self) -> NatsProcess:
        """The server that stores for this cell just now."""
        if self.cluster.size == 1:
            return self.cluster.servers[0]
        admin = await self.connect()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                answer = await ask(admin, f"STREAM.INFO.{stream_name(self.cell)}", None)
                name = answer.get("cluster", {}).get("leader")
                if name:
                    break
                await asyncio.sleep(0.1)
        await admin.close()
        return self.cluster.servers[int(name.removeprefix("server")) - 1]

    async def crash(self) -> None:
        leader = await self.leader()
        await leader.kill()
        await leader.start()

    async def punch(self, sequence: int) -> None:
        admin = await self.connect()
        answer = await ask(admin, f"STREAM.MSG.DELETE.{stream_name(self.cell)}", {"seq": sequence})
        assert answer.get("success"), answer
        await admin.close()

    def store_folder(self, server: int = 0) -> Path:
        store = self.cluster.servers[server].folder / "nats" / "jetstream"
        return store / "$G" / "streams" / stream_name(self.cell)

    def copy_store(self, to: Path) -> None:
        shutil.copytree(self.store_folder(), to)

    def restore_store(self, copy: Path) -> None:
        shutil.rmtree(self.store_folder())
        shutil.copytree(copy, self.store_folder())

    async def close(self) -> None:
        for log in self._logs:
            await log.close()
        for proxy in self._proxies:
            await proxy.stop()


async def ask(connection: NatsConnection, what: str, body: object) -> Any:
    """Ask JetStream's API; a cluster that has no leader just now is asked again."""
    payload = b"" if body is None else json.dumps(body).encode()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            reply = await connection.request(f"$JS.API.{what}", payload, wait_s=2.0)
            return json.loads(reply.data)
        except (NotAnswered, NotSent, ValueError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def reading(log: Log, after: int) -> AsyncIterator[AsyncGenerator[LogMessage, None]]:
    """The entries behind `after`, one by one; each must come within `PATIENCE_S`."""

    async def one_by_one() -> AsyncGenerator[LogMessage, None]:
        batches = log.read(after)
        try:
            while True:
                for entry in await asyncio.wait_for(anext(batches), PATIENCE_S):
                    yield entry
        finally:
            await batches.aclose()  # type: ignore[attr-defined] # every log's is a generator

    async with contextlib.aclosing(one_by_one()) as entries:
        yield entries


async def take(entries: AsyncGenerator[LogMessage, None], count: int) -> list[LogMessage]:
    """The next `count` entries."""
    return [await anext(entries) for _ in range(count)]
