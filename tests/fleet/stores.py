"""Data folders with real logs, and ways to damage them: for the tests of damage."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from services.cli.fleet import CELL
from services.kernel.embedded import stream_folder
from tests.fleet.small_cell import SmallCell, real_cell

ACCOUNTS = ("ann", "ben")
HAS_HEADERS = 1 << 31

PLAYER = """
import asyncio, sys
from pathlib import Path
from tests.fleet.small_cell import real_cell
from tests.fleet.stores import play_on

async def main():
    async with real_cell(Path(sys.argv[1])) as cell:
        await play_on(cell, int(sys.argv[2]))
        print(cell.nats_pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


async def play_on(cell: SmallCell, rounds: int) -> None:
    """Open a table with two accounts where there is none, and play."""
    if not cell.process.state("table").tables:
        await cell.open_table()
        for account in ACCOUNTS:
            await cell.open_account(account, 1_000_000)
    await cell.play(rounds, ACCOUNTS)


def play(data: Path, rounds: int) -> None:
    """Play in a data folder, and stop cleanly."""

    async def main() -> None:
        async with real_cell(data) as cell:
            await play_on(cell, rounds)

    asyncio.run(main())


def play_and_kill(data: Path, rounds: int) -> None:
    """Play in a process of its own, and kill -9 it and its nats-server."""
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", PLAYER, str(data), str(rounds)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={"PYTHONPATH": f"{root}:{root / 'protos' / 'gen'}", "PATH": "/usr/bin:/bin"},
    )
    if process.stdout is None:
        raise RuntimeError("no output to read")
    with process:
        try:
            pid = int(process.stdout.readline())
            process.send_signal(signal.SIGSTOP)
            os.kill(pid, signal.SIGKILL)
        finally:
            process.kill()


@dataclass(frozen=True, slots=True)
class Record:
    """A stored entry's place in the files of a store."""

    sequence: int
    subject: str
    block: Path
    offset: int
    size: int
    parts: dict[str, tuple[int, int]]
    """Where in the block each part begins and ends."""


def msgs(data: Path) -> Path:
    """The folder of a stream's blocks."""
    return stream_folder(data, CELL) / "msgs"


def records(data: Path) -> list[Record]:
    """All records of a healthy store, by the format that nats-server has."""
    found = []
    for block in sorted(msgs(data).glob("*.blk"), key=lambda path: int(path.stem)):
        raw = block.read_bytes()
        offset = 0
        while offset < len(raw):
            length, sequence, _, subject_length = struct.unpack_from("<IQqH", raw, offset)
            size = length & ~HAS_HEADERS
            end = offset + size
            text = offset + 22
            body = text + subject_length
            parts = {
                "length": (offset, offset + 4),
                "sequence": (offset + 4, offset + 12),
                "time": (offset + 12, offset + 20),
                "subject length": (offset + 20, text),
                "subject": (text, body),
                "hash": (end - 8, end),
            }
            if length & HAS_HEADERS:
                (headers,) = struct.unpack_from("<I", raw, body)
                parts["headers length"] = (body, body + 4)
                parts["headers"] = (body + 4, body + 4 + headers)
                body += 4 + headers
            parts["payload"] = (body, end - 8)
            subject = raw[text : text + subject_length].decode()
            found.append(Record(sequence, subject, block, offset, size, parts))
            offset = end
    return found


def flip(block: Path, place: int, bit: int) -> None:
    """Flip one bit of a file."""
    raw = bytearray(block.read_bytes())
    raw[place] ^= 1 << bit
    block.write_bytes(raw)


def copied(data: Path, to: Path) -> Path:
    """A copy of a folder that nobody uses."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(data, to)
    return to


def contents(data: Path) -> dict[str, bytes]:
    """Every file of the server's store."""
    folder = data / "nats"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


Damage = Callable[[Path], int]
"""Damages a data folder; the first sequence that is bad or missing."""
