"""The console beside a fleet on one machine: a process of its own, that ends with this one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from services.kernel.nats_process import LAUNCHER, write_private
from services.kernel.nats_users import TOOLS
from services.kernel.tokens import DEMO_CALLERS, Role

PEOPLE, PASSWORDS = "console_people.json", "console_passwords.json"
"""In the data folder: who may sign in, and the demonstration's passwords."""
OWN_TOKEN = "console_token"  # noqa: S105 - the name of a file
"""In the data folder: the console's own."""
DEFAULT_PORT = 7480
START_S = 30.0
"""For it to come up, on a machine that is busy with a fleet."""
STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class Console:
    """A running console."""

    address: str
    passwords: Mapping[str, str]
    """Of the demonstration's people, by name; empty where an operator made the people."""


class ConsoleNotStarted(Exception):
    """The console did not come up; its own lines say why."""


def is_installed() -> bool:
    """Whether what the console needs is there (the optional dependencies `console`)."""
    return all(find_spec(name) is not None for name in ("starlette", "uvicorn", "jinja2"))


def demo_people(data: Path, tokens: Mapping[str, str]) -> Mapping[str, str]:
    """The demonstration's people, made at its first run; their passwords by name."""
    from services.console.people import create_demo_people

    roles = {
        caller.operator: caller.roles
        for caller in DEMO_CALLERS
        if caller.operator and not caller.roles & {Role.DEVICE, Role.CONSOLE}
    }
    return create_demo_people(data / PEOPLE, data / PASSWORDS, roles, tokens)


@asynccontextmanager
async def console(
    data: Path, fleet: str, tokens: Mapping[str, str], port: int, cell: str
) -> AsyncIterator[Console]:
    """A console for the fleet of a data folder, until the end. Raises ConsoleNotStarted."""
    passwords = demo_people(data, tokens)
    environment = {
        **os.environ,
        "SABOT_CELL": cell,
        "SABOT_DATA": str(data),
        "SABOT_NATS_USER": TOOLS,
        "SABOT_LOG_LEVEL": "WARNING",
        "SABOT_CONSOLE_FLEET": fleet,
        "SABOT_CONSOLE_PORT": str(port),
    }
    own = tokens.get("operator:console")
    if own is not None:
        write_private(data / OWN_TOKEN, own + "\n")
        environment["SABOT_CONSOLE_TOKEN_FILE"] = str(data / OWN_TOKEN)
    with (data / "console.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid())),
            *(sys.executable, "-m", "services.console"),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C reaches this process, which ends it
        )
    try:
        yield Console(await _address(process, data), passwords)
    finally:
        await _stop(process)


async def _address(process: asyncio.subprocess.Process, data: Path) -> str:
    line = b""
    if process.stdout is not None:
        with suppress(TimeoutError):
            line = await asyncio.wait_for(process.stdout.readline(), START_S)
    if not line:
        raise ConsoleNotStarted(f"the console did not start: see {data / 'console.log'}")
    return str(json.loads(line)["console"])


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()
