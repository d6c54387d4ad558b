"""`sabot backup --keep N`: a folder with the last backups, each whole by itself.

A new one begins as a copy of the newest, whose chain is checked again on the way: so of the log
only what is new is read, and a file that has gone bad is noticed the next night and not on the day
when it is needed.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from services.cli.backup import BackedUp, BackupRefused, Progress, back_up, write_manifest
from services.kernel.log import Log

END = ".backup"
MICROSECONDS = 1_000_000


async def back_up_anew(
    log: Log, folder: Path, keep: int, now_us: int, build: str, progress: Progress
) -> tuple[Path, BackedUp]:
    """Write a new backup of the log into the folder, then remove the oldest of more than `keep`.
    What a crash left unfinished is gone on with. Nothing is removed where anything goes wrong.

    Raises BackupRefused, LogUnavailable, OSError."""
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - as in back_up: nobody waits
    made = datetime.fromtimestamp(now_us / MICROSECONDS, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    whole = folder / f"{log.cell}-{made}{END}"
    unfinished = folder / f"{log.cell}.unfinished"
    there = kept(folder, log.cell)
    if there and whole <= there[-1]:
        raise BackupRefused(f"{there[-1].name} is of a later time than now: set the clock right")
    if there and not unfinished.exists():
        shutil.copyfile(there[-1], unfinished)
    try:
        found = await back_up(log, unfinished, progress)
    except BackupRefused as refused:
        unfinished.unlink()
        newest = f"{there[-1].name} or what was left unfinished" if there else "what was left"
        raise BackupRefused(f"{newest} cannot be gone on with: {refused}") from None
    unfinished.replace(whole)
    write_manifest(whole, found.manifest(build, now_us))
    _sync(folder)
    for old in kept(folder, log.cell)[:-keep]:
        old.with_name(f"{old.name}.json").unlink(missing_ok=True)
        old.unlink()
    return whole, found


def kept(folder: Path, cell: str) -> list[Path]:
    """The whole backups of a cell in a folder, the oldest first."""
    length = len(f"{cell}-20260101T000000.000000Z{END}")
    return sorted(one for one in folder.glob(f"{cell}-*{END}") if len(one.name) == length)


def _sync(folder: Path) -> None:
    """Have the new name on the disk before an old file goes."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
