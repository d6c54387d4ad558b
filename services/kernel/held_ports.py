"""Loopback ports for servers that start later, or again and again, held until those are over.

A port that is only looked for is anybody's until the server listens on it, and once more whenever
that is started again: another fleet on the machine may be given it meanwhile. So each is held by a
socket that is bound and never listens. On Linux a server binds beside it, since both have
SO_REUSEADDR (gRPC's, Go's, PostgreSQL's and asyncio's servers have), nobody who asks for any free
port is given it, and nobody's call is taken by it. Elsewhere a second socket may not be bound
beside it: there a port is looked for and let go.
"""

from __future__ import annotations

import socket
import sys
from typing import Self

HOST = "127.0.0.1"
"""An embedded server is nobody else's business."""


class HeldPorts:
    """So many different ports of this machine, which nobody uses. Each fleet that runs here has its
    own."""

    def __init__(self, count: int) -> None:
        self._sockets: list[socket.socket] = []
        try:
            for _ in range(count):
                self._take(0)
        except OSError:
            self.release()
            raise
        self.numbers = [int(one.getsockname()[1]) for one in self._sockets]
        if sys.platform != "linux":
            self.release()

    def _take(self, port: int) -> None:
        one = socket.socket()
        self._sockets.append(one)
        one.bind((HOST, port))
        # Only now: two who asked for the same port by its number would both get it.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def release(self) -> None:
        """Let go of them; a server that listens on one goes on."""
        for one in self._sockets:
            one.close()
        self._sockets.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
