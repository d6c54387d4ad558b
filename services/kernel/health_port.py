"""A port of its own for health, in plain text: what an orchestrator's probes ask.

The port for calls may have TLS, and it opens when the log has been read. Probes know no
certificates of ours, and must tell a process that is reading the log from one that hangs: so this
port opens first and closes last, and says two things.

- `live`: the event loop answers. Reading a long log is no reason to be restarted.
- `ready`, and the name that is empty: calls are taken, the same as health says on their port.

Nothing else is served here and nobody needs a token: it tells nothing that is not public.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from grpc_health.v1 import health_pb2_grpc

from services.kernel.health_calls import Health
from services.kernel.settings import ServiceSettings

LIVE = "live"
"""The name under which health says that the process answers."""
READY = "ready"
"""The name under which health says that calls are taken."""
MAX_RUNNING = 32
"""Probes at once: an orchestrator sends one every few seconds, and whoever watches stays few."""
MAX_REQUEST_BYTES = 4096
"""Far above a name of a service."""

OPTIONS = (
    ("grpc.so_reuseport", 0),  # a second process on one port is a mistake, not a share
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
)


class HealthPort:
    """Serves health and nothing else. `open` it before anything that may take long."""

    def __init__(self) -> None:
        self.port = 0
        """Where it listens, once it is open."""
        self._health = Health()
        self._server: grpc.aio.Server | None = None

    async def open(self, address: str) -> None:
        """Listen on `host:port` (port 0: any free one), live and not ready. Raises RuntimeError
        where the port is taken."""
        server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=MAX_RUNNING)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        self._health.set(LIVE, True)
        self.set_ready(False)
        self.port = server.add_insecure_port(address)
        await server.start()
        self._server = server

    def set_ready(self, ready: bool) -> None:
        """Say whether calls are taken."""
        for name in ("", READY):
            self._health.set(name, ready)

    async def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            await self._server.stop(0)
            self._server = None


@asynccontextmanager
async def health_port(settings: ServiceSettings) -> AsyncIterator[HealthPort | None]:
    """The port that the settings name, open for as long as this lasts; None where they name none.
    Raises RuntimeError where the port is taken."""
    if settings.health_port is None:
        yield None
        return
    opened = HealthPort()
    await opened.open(f"{settings.host}:{settings.health_port}")
    try:
        yield opened
    finally:
        await opened.close()
