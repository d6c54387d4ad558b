"""Debian's packages for tests, one at a time: apt refuses whoever comes while it is at work, and
several workers of the suite share the machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TIMEOUT_S = 300.0
"""Of each of apt's commands."""
LOCK_WAIT_S = 120
"""For whoever else installs something on this machine."""


@contextmanager
def _alone() -> Iterator[None]:
    """As long as no other worker is at it."""
    with (Path(tempfile.gettempdir()) / "sabot-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _apt(*words: str, folder: Path | None = None) -> bool:
    apt = shutil.which("apt-get")
    if apt is None:
        return False
    patient = f"DPkg::Lock::Timeout={LOCK_WAIT_S}"
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [apt, "-qq", "-o", patient, *words],
        cwd=folder,
        env=quiet,
        capture_output=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    return done.returncode == 0


def install(package: str, is_there: Callable[[], bool], *flags: str) -> None:
    """Install a package where what it brings is not there, and where this process may."""
    if is_there() or os.geteuid() != 0:
        return
    with _alone():
        if not is_there() and _apt("update"):
            _apt("install", "--yes", *flags, package)


def download(package: str, folder: Path) -> Path | None:
    """The file of a package, taken into a folder and not installed; None where it cannot be had."""
    with _alone():
        got = _apt("download", package, folder=folder)
        if not got and os.geteuid() == 0 and _apt("update"):
            _apt("download", package, folder=folder)
    return next(folder.glob(f"{package}_*.deb"), None)
