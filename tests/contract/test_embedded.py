"""The embedded server: its folder's lock, its users, what it leaves behind, how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from services.kernel.embedded import (
    EmbeddedServer,
    FolderInUse,
    find_running,
)
from services.kernel.jetstream import JetStreamLog
from services.kernel.log import AppendRefused, LogUnavailable
from services.kernel.nats_connection import Forbidden, NatsConnection
from services.kernel.nats_process import ServerNotStarted
from services.kernel.nats_users import ADMIN, FLEET, TOOLS
from services.kernel.streams import require_stream, stream_name
from tests.contract.places import PATIENCE_S, reading

pytestmark = pytest.mark.asyncio(loop_scope="session")

CELL = "main"


async def make_stream(server: EmbeddedServer) -> bool:
    admin = server.users[ADMIN]
    connection = NatsConnection(
        [server.client_url],
        name="admin",
        user=admin.user,
        password=admin.password,
        inbox_prefix=admin.inbox_prefix,
    )
    await connection.open(wait_s=PATIENCE_S)
    try:
        created = await require_stream(
            connection, CELL, replicas=1, may_create=not server.held_stream
        )
    finally:
        await connection.close()
    server.remember_stream()
    return created


async def log_of(server: EmbeddedServer, user: str) -> JetStreamLog:
    credentials = server.users[user]
    return await JetStreamLog.connect(
        [server.client_url],
        CELL,
        name=user,
        consumer_prefix=credentials.consumer_prefix,
        user=credentials.user,
        password=credentials.password,
        inbox_prefix=credentials.inbox_prefix,
    )


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path) -> AsyncGenerator[EmbeddedServer, None]:
    server = EmbeddedServer(tmp_path / "data", CELL, services=("alpha", "beta"))
    await server.acquire()
    await server.start()
    yield server
    await server.stop()


async def test_a_folder_holds_one_fleet_at_a_time(server: EmbeddedServer) -> None:
    second = EmbeddedServer(server.data, CELL)
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"):
        await second.acquire(wait_s=0.1)
    with pytest.raises(FolderInUse):
        await second.start()
    await server.stop()
    await second.acquire(wait_s=0.1)
    await second.start()
    await second.stop()


async def test_the_lock_is_held_as_long_as_the_server_lives_although_we_let_go(
    server: EmbeddedServer,
) -> None:
    server.lock.release()
    with pytest.raises(FolderInUse):
        await EmbeddedServer(server.data, CELL).acquire(wait_s=0.1)
    await server.server.kill()
    second = EmbeddedServer(server.data, CELL)
    await second.acquire(wait_s=PATIENCE_S)
    await second.stop()


async def test_a_stream_is_made_once_and_never_again_in_the_same_folder(
    server: EmbeddedServer,
) -> None:
    held_before = server.held_stream
    assert await make_stream(server)
    assert (held_before, server.held_stream) == (False, True)
    assert not await make_stream(server)
    await server.stop()
    with pytest.raises(FolderInUse, match="belongs to the cell main"):
        await EmbeddedServer(server.data, "other").acquire(wait_s=0.1)
    again = EmbeddedServer(server.data, CELL)
    await again.acquire()
    assert again.held_stream
    await again.stop()


async def test_each_user_may_do_what_it_is_for_and_nothing_else(server: EmbeddedServer) -> None:
    await make_stream(server)
    fleet, alpha, tools = [await log_of(server, user) for user in (FLEET, "alpha", TOOLS)]
    subject = f"sabot.{CELL}.alpha.in"
    assert await fleet.append(subject, b"1", expected=None, wait_s=PATIENCE_S) == 1
    assert await alpha.append(subject, b"2", expected=None, wait_s=PATIENCE_S) == 2
    begun = time.monotonic()
    for log, foreign in ((alpha, f"sabot.{CELL}.beta.in"), (tools, subject)):
        with pytest.raises(AppendRefused, match="may not publish"):
            await log.append(foreign, b"x", expected=None, wait_s=PATIENCE_S)
    assert time.monotonic() - begun < PATIENCE_S / 2, "a refusal is no time-out"
    for log in (fleet, alpha, tools):
        assert (await log.info(wait_s=PATIENCE_S)).last_sequence == 2
        async with reading(log, 0) as entries:
            assert (await anext(entries)).payload == b"1"
    for log in (fleet, alpha, tools):
        for verb in ("DELETE", "PURGE", "UPDATE"):
            with pytest.raises(Forbidden):
                await log.connection.request(
                    f"$JS.API.STREAM.{verb}.{stream_name(CELL)}", b"{}", wait_s=PATIENCE_S
                )
    for other in ("fleet_1", "alpha_1"):
        with pytest.raises(Forbidden):
            await tools.connection.request(
                f"$JS.API.CONSUMER.DELETE.{stream_name(CELL)}.{other}", b"", wait_s=PATIENCE_S
            )
    for log in (fleet, alpha, tools):
        await log.close()


async def test_a_wrong_password_is_no_connection(server: EmbeddedServer) -> None:
    connection = NatsConnection([server.client_url], name="x", user=FLEET, password="wrong")  # noqa: S106 -- it is none
    with pytest.raises(LogUnavailable):
        await connection.open(wait_s=0.5)
    await connection.close()


async def test_tools_find_the_running_server_and_nobody_else_reads_how(
    server: EmbeddedServer,
) -> None:
    await make_stream(server)
    for name in ("server.json", "nats.conf"):
        assert stat.S_IMODE((server.data / name).stat().st_mode) == 0o600
    found = find_running(server.data)
    assert found is not None
    assert (found.cell, found.client_url) == (CELL, server.client_url)
    assert found.tools == server.users[TOOLS]
    assert server.users[FLEET].password not in (server.data / "server.json").read_text()
    await server.stop()
    assert find_running(server.data) is None


async def test_a_killed_server_comes_back_at_the_same_address_with_everything(
    server: EmbeddedServer,
) -> None:
    await make_stream(server)
    log = await log_of(server, FLEET)
    for number in range(10):
        await log.append(f"sabot.{CELL}.alpha.in", b"%d" % number, expected=None, wait_s=PATIENCE_S)
    await server.server.kill()
    assert await server.server.wait_exit() == -signal.SIGKILL
    await server.restart()
    assert (await log.info(wait_s=PATIENCE_S)).last_sequence == 10
    await log.close()


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "data", CELL)
    await server.acquire()
    (tmp_path / "data" / "nats").write_text("in the way")
    with pytest.raises(ServerNotStarted, match="nats-server ended at once"):
        await server.start()
    await server.stop()


def is_running(pid: int) -> bool:
    """Whether the process lives; one that waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_the_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    code = (
        "import asyncio, pathlib, sys\n"
        "from services.kernel.embedded import EmbeddedServer\n"
        "async def main():\n"
        "    server = EmbeddedServer(pathlib.Path(sys.argv[1]), 'main')\n"
        "    await server.acquire()\n"
        "    await server.start()\n"
        "    print(server.server.pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    root = Path(__file__).parents[2]
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        str(tmp_path / "data"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'protos' / 'gen'}"},
    )
    assert parent.stdout is not None
    pid = int(await asyncio.wait_for(parent.stdout.readline(), PATIENCE_S))
    parent.kill()
    await parent.wait()
    # The next fleet gets the folder as soon as the orphan has ended.
    following = EmbeddedServer(tmp_path / "data", CELL)
    await following.acquire(wait_s=PATIENCE_S)
    assert not is_running(pid), "the server outlived its parent"
    await following.stop()
