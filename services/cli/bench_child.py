"""Processes that `sabot bench` starts: each says in one line of JSON that it is ready, and ends at
SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from services.cli.bench_load import BenchFailed
from services.kernel.nats_process import LAUNCHER

START_S = 60.0
"""For a child to say that it is ready: imports, a server, its set-up."""
STOP_S = 30.0
"""For a child to drain; what takes longer is killed."""
LOOK_S = 0.05
"""Between looks at whether a file is there."""
_MIB = 1024.0


class Child:
    """A running child. Its stdout is JSON, a line each; its stderr goes to a file."""

    def __init__(self, process: asyncio.subprocess.Process, errors: Path) -> None:
        self._process = process
        self._errors = errors

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def line(self, wait_s: float) -> dict[str, Any]:
        """The next line. Raises BenchFailed."""
        if self._process.stdout is None:
            raise BenchFailed("a child without stdout")
        try:
            async with asyncio.timeout(wait_s):
                raw = await self._process.stdout.readline()
        except TimeoutError as error:
            raise BenchFailed(f"process {self.pid} said nothing in {wait_s:.0f} s") from error
        if not raw:
            raise self.failed("ended")
        told: dict[str, Any] = json.loads(raw)
        return told

    async def file(self, path: Path, wait_s: float) -> str:
        """What a file says that it writes when it is ready. Raises BenchFailed."""
        deadline = asyncio.get_running_loop().time() + wait_s
        while (told := _content(path)) is None:
            if self._process.returncode is not None:
                raise self.failed("ended")
            if asyncio.get_running_loop().time() > deadline:
                raise self.failed(f"was not ready in {wait_s:.0f} s")
            await asyncio.sleep(LOOK_S)
        return told

    def failed(self, what: str) -> BenchFailed:
        """What it did, with the last that it said."""
        last = self._errors.read_text(errors="replace").strip().splitlines()[-1:]
        return BenchFailed(f"process {self.pid} {what}: {' '.join(last) or 'it said nothing'}")

    async def tell(self, facts: Mapping[str, Any]) -> None:
        """Send it a line of JSON."""
        if self._process.stdin is None:
            raise BenchFailed("a child without stdin")
        self._process.stdin.write(json.dumps(facts).encode() + b"\n")
        await self._process.stdin.drain()

    def peak_rss_mib(self) -> float:
        """The most memory that it has had so far (VmHWM); 0 where the system does not tell."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / _MIB, 1)
        return 0.0

    async def stop(self) -> None:
        """End it: SIGTERM, and SIGKILL where it does not end."""
        if self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def child(
    folder: Path, name: str, module: str, *told: str, speaks: bool = True
) -> AsyncIterator[Child]:
    """Run `python -m MODULE TOLD…` until the block ends. Unless it `speaks` JSON, what it says goes
    to the file as well."""
    errors = folder / f"{name}.err"
    with errors.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            "-c",
            LAUNCHER,  # it ends when this process is killed
            str(os.getpid()),
            sys.executable,
            "-m",
            module,
            *told,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE if speaks else sink,
            stderr=sink,
            # Where this process found its modules its children find them too.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,  # Ctrl-C is ours, we end them
        )
    one = Child(process, errors)
    try:
        yield one
    finally:
        await one.stop()


def _content(path: Path) -> str | None:
    """What a file says; None while there is none."""
    try:
        return path.read_text() or None
    except FileNotFoundError:
        return None


def say(**facts: Any) -> None:
    """In a child: a line to its parent."""
    print(json.dumps(facts), flush=True)


async def until_stopped() -> None:
    """In a child: wait for SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


def arguments(names: Sequence[str]) -> list[str]:
    """In a child: what it was told, one for each name. Exits where that is not so."""
    told = sys.argv[1:]
    if len(told) != len(names):
        sys.exit(f"needed: {' '.join(names)}")
    return told
