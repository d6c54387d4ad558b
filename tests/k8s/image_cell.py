"""A cell whose every process runs in the image: its root is the image's and cannot be written, its
user the image's, it has no rights, and of this machine it sees the cell's folder and the network.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import Process
from dataclasses import dataclass, field
from pathlib import Path

from services.kernel.nats_process import LAUNCHER, server_binary
from tests.k8s.local_cell import LocalCell

IN_THE_IMAGE = """
set -e
root=$1 folder=$2 user=$3
shift 3
mount --bind "$root" "$root"
mkdir -p "$root$folder"
mount -o remount,bind,ro "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root$folder"
mount --bind "$folder" "$root$folder"
exec /usr/sbin/chroot "$root" setpriv --reuid="$user" --regid="$user" --clear-groups \
  --no-new-privs --inh-caps=-all --bounding-set=-all --pdeathsig=TERM "$@"
"""
"""What a container's runtime does, as far as it matters here. The process keeps its id."""


@dataclass
class Image:
    """One that was built, unpacked."""

    root: Path
    user: int
    env: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class ImageCell(LocalCell):
    """See the module."""

    image: Image = field(default_factory=lambda: Image(Path("/"), 0))

    async def _spawn(self, command: list[str], told: dict[str, str], log: Path) -> Process:
        binary, *rest = command
        binary = {sys.executable: "python", server_binary(): "nats-server"}.get(binary, binary)
        self._hand_over()
        with contextlib.ExitStack() as files:
            out = files.enter_context(log.open("ab"))
            launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid())]
            inside = ["unshare", "--mount", "--propagation=private", "sh", "-c", IN_THE_IMAGE]
            where = ["sh", str(self.image.root), str(self.folder), str(self.image.user)]
            return await asyncio.create_subprocess_exec(
                *launcher,
                *["/usr/bin/env", *inside, *where, binary, *rest],
                env=self.image.env | told,
                stdout=out,
                stderr=out,
            )

    def _hand_over(self) -> None:
        """What the cluster mounts belongs to the group of the pod."""
        for path in (self.folder, *self.folder.rglob("*")):
            with contextlib.suppress(FileNotFoundError):  # a file of a running server
                os.chown(path, self.image.user, self.image.user)
