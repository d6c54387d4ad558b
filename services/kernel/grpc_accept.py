"""More calls at a time into a grpc.aio server.

grpc.aio takes one call, gives it to a task, and only then asks its core for the next one; each of
these is a turn of the event loop. A loop that does other work between two turns, as a fleet's does,
then takes a few hundred calls a second, whatever the calls cost (measured in ADR 12). Asking for
several calls of one method at once needs what grpcio does not promise to keep, so this module holds
it all, tries nothing where a name has gone, and the server works without it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
from grpc._cython import cygrpc  # type: ignore[attr-defined]  # compiled, and not in the stubs

CALLS_AT_ONCE = 32
"""Calls of a busy method that may wait to be taken: about what arrives during one turn of a busy
loop."""


class Accepting:
    """Takes calls of busy methods of one server. `may_run`: whether one more may run now."""

    def __init__(self, server: grpc.aio.Server, max_running: int) -> None:
        self._server = server
        self._aio: Any = getattr(server, "_server", None)
        self._max_running = max_running
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._running: set[asyncio.Task[None]] = set()

    @property
    def possible(self) -> bool:
        """Whether this grpcio can do it."""
        needed = ((self._aio, "_request_registered_call"), (cygrpc, "_handle_rpc"))
        return all(hasattr(*one) for one in (*needed, (cygrpc, "_schedule_rpc_coro")))

    def register(self, path: str, handler: grpc.RpcMethodHandler[Any, Any]) -> None:
        """Take many calls of a method at once, `/package.Service/Method`. Before the server
        starts."""
        service, _, method = path[1:].partition("/")
        self._server.add_registered_method_handlers(service, {method: handler})
        self._handlers[path] = handler

    def start(self) -> None:
        """Begin, once the server has started."""
        if not self.possible:
            return
        loop = asyncio.get_running_loop()
        for path, handler in self._handlers.items():
            for _ in range(CALLS_AT_ONCE):
                self._tasks.append(loop.create_task(self._take(path, _Resolver(handler))))

    def stop(self) -> None:
        """Ask for no more calls; those that run are grpc's to end."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    async def _take(self, path: str, resolver: _Resolver) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                state = await self._aio._request_registered_call(path.encode())  # noqa: SLF001 - see the module
            except Exception:  # noqa: BLE001 - grpc's own, private: the server is stopping
                return
            too_many = len(self._running) >= self._max_running
            call = cygrpc._handle_rpc(path, resolver, (), state, loop, too_many)  # noqa: SLF001 - see the module
            task = loop.create_task(cygrpc._schedule_rpc_coro(call, state, loop, path))  # noqa: SLF001 - see the module
            self._running.add(task)
            task.add_done_callback(self._running.discard)


class _Resolver:
    """Finds the one handler that there is."""

    def __init__(self, handler: grpc.RpcMethodHandler[Any, Any]) -> None:
        self.resolve_handler: Callable[[object], grpc.RpcMethodHandler[Any, Any]] = (
            lambda _details: handler
        )
