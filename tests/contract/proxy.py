"""A TCP proxy on loopback that loses what a network may lose."""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlsplit


class Proxy:
    """Stands between one client and one server."""

    def __init__(self, target_url: str) -> None:
        parts = urlsplit(target_url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = (parts.hostname, parts.port)
        self._listener: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._pumps: set[asyncio.Task[None]] = set()
        self._answers = True
        self._reachable = True

    @property
    def url(self) -> str:
        assert self._listener is not None
        port = self._listener.sockets[0].getsockname()[1]
        return f"nats://127.0.0.1:{port}"

    async def start(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    def lose_answers(self) -> None:
        """From now on nothing comes back from the server; what is sent still arrives."""
        self._answers = False

    def heal(self) -> None:
        """Work again, over new connections: the old ones have lost bytes."""
        self._answers = self._reachable = True
        self.cut()

    def cut(self) -> None:
        """Break every connection; new ones may be made."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def cut_off(self) -> None:
        """Break every connection and let nobody in until `heal`."""
        self._reachable = False
        self.cut()

    async def stop(self) -> None:
        assert self._listener is not None
        self._listener.close()
        self.cut()
        for pump in list(self._pumps):
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._reachable:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers += [writer, server_writer]
        for source, sink, is_answer in (
            (reader, server_writer, False),
            (server_reader, writer, True),
        ):
            pump = asyncio.create_task(self._pump(source, sink, is_answer=is_answer))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if is_answer and not self._answers:
                    continue
                sink.write(data)
                await sink.drain()
        sink.transport.abort()
