"""SIGTERM while something starts: it gives up at once and in order, instead of going on for a
minute or leaving a server behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.cli.commands import INTERRUPTED
from services.kernel import event_loop
from services.kernel.embedded import FolderLock
from services.kernel.tokens import create_demo_tokens
from tests.fleet.clients import AGAIN_S, PATIENCE_S

ROOT = Path(__file__).parents[2]
INFO = b'INFO {"server_id":"x","version":"2.15.1","proto":1,"max_payload":1048576}\r\n'
"""A NATS server's first words."""
TRIES = 5


def has_open(process: asyncio.subprocess.Process, path: Path) -> bool:
    """Whether a process has opened a file."""
    with contextlib.suppress(OSError):  # it closed one just now
        handles = Path(f"/proc/{process.pid}/fd").iterdir()
        return any(handle.readlink() == path for handle in handles)
    return False


@asynccontextmanager
async def started(*arguments: str, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *arguments,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'protos' / 'gen'}", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def terminated(process: asyncio.subprocess.Process) -> tuple[int, str]:
    """End it by SIGTERM; its exit code, and what it said: whatever it waits for in vain until its
    own time is over, it would complain of."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE_S):
        said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def until_it_waits(process: asyncio.subprocess.Process, lock: Path) -> None:
    """Wait until it looks at a lock, or has ended: it waits for five seconds only."""
    async with asyncio.timeout(PATIENCE_S):
        while process.returncode is None and not has_open(process, lock):  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(AGAIN_S)


@pytest.mark.parametrize("how", [["up"], ["up", "--split"], ["demo"]], ids=" ".join)
async def test_a_fleet_that_starts_gives_up_at_sigterm(tmp_path: Path, how: list[str]) -> None:
    """Somebody else has its folder just now: it waits for that when the signal comes."""
    data = tmp_path / "data"
    lock = FolderLock(data)
    await lock.acquire(wait_s=0.0)
    told = []
    for _ in range(TRIES):
        async with started("services.cli.main", *how, "--data", str(data)) as process:
            await until_it_waits(process, data / "lock")
            told.append(await terminated(process))
        if "is in use by process" not in told[-1][1]:
            break  # else it had waited in vain before the signal came: this machine is busy
    lock.release()
    assert told[-1] == (1, "")
    assert not (data / "nats").exists()


async def test_a_service_that_waits_for_its_log_gives_up_at_sigterm(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    create_demo_tokens(tokens, tmp_path / "clear.json")
    loop = asyncio.get_running_loop()
    with socket.socket() as server:
        server.setblocking(False)
        server.bind(("127.0.0.1", 0))
        server.listen()
        async with started(
            "services.wallet",
            SABOT_NATS_URL=f"nats://127.0.0.1:{server.getsockname()[1]}",
            SABOT_NATS_MONITOR_URLS="http://127.0.0.1:1",
            SABOT_TOKEN_FILE=str(tokens),
            SABOT_DATA=str(tmp_path / "data"),
        ) as process:
            async with asyncio.timeout(PATIENCE_S):
                caller, _ = await loop.sock_accept(server)
                with caller:
                    await loop.sock_sendall(caller, INFO)
                    assert await loop.sock_recv(caller, 8) == b"CONNECT "
                    code, said = await terminated(process)  # and it is never told a word more
    assert (code, said) == (1, "")


@pytest.mark.parametrize("verb", [["streams", "apply"], ["projections", "migrate"]], ids=" ".join)
async def test_a_job_that_waits_for_a_server_gives_up_at_sigterm(verb: list[str]) -> None:
    """As Ctrl-C, which a handler of its own takes: the first process of a container that has none
    does not hear of it."""
    loop = asyncio.get_running_loop()
    with socket.socket() as server:
        server.setblocking(False)
        server.bind(("127.0.0.1", 0))
        server.listen()
        at = f"127.0.0.1:{server.getsockname()[1]}"
        asks = [] if verb[0] == "projections" else ["--nats-url", f"nats://{at}"]
        database = {"SABOT_DATABASE_URL": f"postgresql://sabot@{at}/sabot"}
        async with started("services.cli", *verb, *asks, **database) as process:
            async with asyncio.timeout(PATIENCE_S):
                caller, _ = await loop.sock_accept(server)
                with caller:
                    code, said = await terminated(process)
    assert (code, said) == (INTERRUPTED, "")


async def test_what_a_start_has_begun_is_undone_at_a_signal() -> None:
    undone: list[str] = []

    async def main() -> None:
        event_loop.give_up_at_signals()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # such as to stop a server
            undone.append("all of it")

    starting = asyncio.create_task(main())
    await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert undone == ["all of it"]
    stop = asyncio.Event()
    event_loop.at_signals(stop.set)
    os.kill(os.getpid(), signal.SIGINT)
    async with asyncio.timeout(PATIENCE_S):
        await stop.wait()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().remove_signal_handler(number)
