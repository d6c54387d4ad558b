"""What a process remembers of the log outside of the log.

No log can show that its own tail is gone. So before an acknowledgement leaves a process, the
process notes the highest entry it has read and the chain hash there. A log that is shorter, or
different at that place, is not the log that was acknowledged."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path
from typing import NamedTuple, Protocol

_RECORD = struct.Struct(">Q32s32s")
_WAY_OUT = (
    "; if the log is known to be whole, move the file away: the next start notes the log anew"
)


class Witnessed(NamedTuple):
    """An entry that was read."""

    sequence: int
    head: bytes


class WitnessDamaged(Exception):
    """A witness file is not as it was written."""


class Witness(Protocol):
    """Remembers the highest entry read."""

    def read(self) -> Witnessed | None:
        """What was noted last; None where nothing was. Raises WitnessDamaged."""
        ...

    def write(self, sequence: int, head: bytes) -> None:
        """Note that this entry was read. Must be done before an acknowledgement leaves."""
        ...


class MemoryWitness:
    """A witness that lives as long as its object: for simulations."""

    def __init__(self) -> None:
        self._noted: Witnessed | None = None

    def read(self) -> Witnessed | None:
        return self._noted

    def write(self, sequence: int, head: bytes) -> None:
        self._noted = Witnessed(sequence, head)


class FileWitness:
    """A witness in a small file, one for each process name of a data folder.

    It is written without fsync: it guards against a server that cuts a damaged log when it
    restarts, and against an older copy put in its place. A power cut takes file and log at the same
    instant, and the log is synced on every append, so the file is then behind, never ahead."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def read(self) -> Witnessed | None:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return None
        if not raw:
            return None
        if len(raw) != _RECORD.size:
            raise WitnessDamaged(
                f"the witness {self.path} has {len(raw)} bytes, not {_RECORD.size}{_WAY_OUT}"
            )
        sequence, head, check = _RECORD.unpack(raw)
        if check != _check(sequence, head):
            raise WitnessDamaged(
                f"the witness {self.path} does not match its own checksum{_WAY_OUT}"
            )
        return Witnessed(sequence, head)

    def write(self, sequence: int, head: bytes) -> None:
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        # One write of 72 bytes in one page: it is there whole or not at all.
        os.pwrite(self._file, _RECORD.pack(sequence, head, _check(sequence, head)), 0)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def any_witness(folder: Path) -> bool:
    """Whether any process has noted anything in a folder of witnesses."""
    return folder.is_dir() and any(path.stat().st_size for path in folder.iterdir())


def _check(sequence: int, head: bytes) -> bytes:
    return hashlib.sha256(b"witness" + sequence.to_bytes(8, "big") + head).digest()
