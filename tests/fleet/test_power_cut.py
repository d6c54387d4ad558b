"""A power cut takes what was not synced. What was acknowledged is on the disk (invariant 10).

The fleet's data folder lies on a disk of its own, an image that is mounted by loop. At the cut the
nats-server is killed and the image copied while this process, fleet and clients in it, stands
still: the copy holds what had reached the disk and nothing that was only in memory. A fleet that
starts on the copy must know every bet that was acknowledged, and bring it to its end.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.fleet.clients import AGAIN_S, ENDED, PATIENCE_S
from tests.fleet.load import TABLE, crowd
from tests.fleet.running import inside

IMAGE_BYTES = 96 * 1024 * 1024
CANNOT = "this machine mounts no loop image"
CONTROL = "written and not synced"
"""If this survived the cut, nothing was cut."""


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@asynccontextmanager
async def mounted(image: Path, at: Path) -> AsyncIterator[Path]:
    """A disk of its own. Skips where this machine does not let us."""
    try:
        run("mkdir", str(at))
        run("mount", "-o", "loop", str(image), str(at))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"{CANNOT}: {error}")
    try:
        yield at
    finally:
        await unmount(at)


async def unmount(at: Path) -> None:
    """As soon as everything on it is closed: a database may take a moment to be."""
    until = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        try:
            run("umount", str(at))
        except subprocess.CalledProcessError as error:
            if asyncio.get_running_loop().time() > until:
                told = f"{error.stderr.decode()}; open there: {open_below(at)}"
                raise AssertionError(told) from error
            await asyncio.sleep(AGAIN_S)
        else:
            return


def open_below(at: Path) -> list[str]:
    """The files of a folder that a process holds open, or stands in, with the process's id."""
    found = []
    for link in [*Path("/proc").glob("[0-9]*/fd/*"), *Path("/proc").glob("[0-9]*/cwd")]:
        with suppress(OSError):  # It has been closed, or is somebody else's.
            if (file := link.readlink()).is_relative_to(at):
                found.append(f"{link.parts[2]}: {file}")
    return found


def make_disk(image: Path) -> None:
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    mkfs = shutil.which("mkfs.ext4", path=path)
    if mkfs is None:
        pytest.skip(f"{CANNOT}: no mkfs.ext4")
    run(mkfs, "-q", str(image))


async def cut_and_go_on(folder: Path, seed: int) -> None:
    image, copy = folder / "disk.img", folder / "copy.img"
    make_disk(image)
    async with (
        mounted(image, folder / "disk") as disk,
        inside(disk / "data") as running,
        crowd(running, seed) as playing,
    ):
        chance = random.Random(seed)
        await playing.rounds_go_on(1)
        await playing.north.more_bets_on(chance.randint(1, 6))
        pid = running.fleet.server.server.pid
        assert pid is not None
        # From here to the end of the copy this process does nothing else.
        (disk / "control").write_text(CONTROL)
        os.kill(pid, signal.SIGKILL)
        shutil.copyfile(image, copy)
        told = {name: dict(one.told.on) for name, one in playing.partners.items()}
        deposits = {name: set(one.told.deposits) for name, one in playing.partners.items()}
    assert all(told.values())

    async with mounted(copy, folder / "after") as disk:
        control = disk / "control"
        assert not control.exists() or control.read_text() != CONTROL
        async with inside(disk / "data") as running:
            await running.operator().close_table(TABLE)
            await running.partner("north").round_in(TABLE, *ENDED)
            ledger = await running.ledger()
        wrong = ledger.at_rest()
        for name, bets in told.items():
            wrong += ledger.denies(name, bets)
            wrong += [
                f"10: the deposit {request_id} of {name} is gone"
                for request_id in deposits[name]
                if not ledger.moved["deposit", name, request_id]
            ]
        assert wrong == []
    print(f"{sum(map(len, told.values()))} bets had been acknowledged, all are there")


async def test_nothing_acknowledged_is_lost_by_a_power_cut(tmp_path: Path) -> None:
    await cut_and_go_on(tmp_path, seed=1)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_nothing_acknowledged_is_lost_by_ten_power_cuts(tmp_path: Path) -> None:
    for seed in range(2, 12):
        folder = tmp_path / str(seed)
        await asyncio.to_thread(folder.mkdir)
        await cut_and_go_on(folder, seed)
