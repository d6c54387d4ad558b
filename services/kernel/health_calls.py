"""The standard health service, grpc.health.v1.

Not the library's: there a watch lasts until its caller ends it, so that a single one keeps a
process that drains from ending, until what still runs is cut; and what is told waits until every
watcher has taken what was told before.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


class Health(health_pb2_grpc.HealthServicer):
    """What is well by its name; the empty name is the process."""

    def __init__(self) -> None:
        self._status: dict[str, Any] = {}
        self._changed = asyncio.Event()
        self._over = False

    def set(self, name: str, serving: bool) -> None:
        """Say whether something is well. After `end` that nothing is stays so."""
        if self._over:
            return
        response = health_pb2.HealthCheckResponse
        status = response.SERVING if serving else response.NOT_SERVING
        if self._status.get(name) != status:  # Each change wakes everybody who watches anything.
            self._status[name] = status
            self._tell()

    def end(self) -> None:
        """Nothing is well any more, and whoever watches is told so at last."""
        for name in self._status:
            self.set(name, False)
        self._over = True
        self._tell()

    async def Check(  # noqa: N802 - as the proto calls it
        self,
        request: health_pb2.HealthCheckRequest,
        context: grpc.aio.ServicerContext[Any, health_pb2.HealthCheckResponse],
    ) -> health_pb2.HealthCheckResponse:
        status = self._status.get(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return health_pb2.HealthCheckResponse(status=status)

    async def Watch(  # noqa: N802 - the same
        self,
        request: health_pb2.HealthCheckRequest,
        context: grpc.aio.ServicerContext[Any, health_pb2.HealthCheckResponse],
    ) -> None:
        told: Any = None
        while True:
            changed = self._changed  # before the look: what changes behind it is not missed
            unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
            status = self._status.get(request.service, unknown)
            if status != told:
                await context.write(health_pb2.HealthCheckResponse(status=status))
                told = status
            elif self._over:
                return
            else:
                await changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
