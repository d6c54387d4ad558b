"""How far `sabot state` has folded, in a file from which it goes on.

It holds the state of one service. It must be of this code, and of this log: that is read up to its
place, nothing folded, and must come to its chain hash (docs/adr/0038).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from services.cli.capsule_file import Part, read_parts, write_parts
from services.cli.prove_checkpoint import CheckpointUnusable, check_code
from services.cli.replay_checkpoint import UNREADABLE
from services.cli.skim import SkimReader, skim
from services.events import event_types
from services.kernel.attesting import installed_code
from services.kernel.build import BUILD
from services.kernel.event import Core
from services.kernel.log import Log
from services.kernel.reader import LogReader, ReaderState
from services.kernel.recovery import AnyReplica
from services.kernel.replica import ReplicaState
from services.kernel.snapshot import Snapshot, StateCodec, decode_snapshot, encode_snapshot

MAGIC = b"sabot-state-1\n"


class Folded(NamedTuple):
    """A service behind an entry, and a reader that goes on there."""

    replica: ReplicaState[Any]
    reader: LogReader


class StateCheckpoint:
    """See the module. `going_on(path, sequence)` is told where it goes on."""

    def __init__(
        self, path: Path, going_on: Callable[[Path, int], None] = lambda _path, _sequence: None
    ) -> None:
        self._path = path
        self._going_on = going_on

    async def begin(
        self,
        log: Log,
        core: Core[Any],
        reader: LogReader,
        until: int,
        accepted: Mapping[int, bytes] | None,
    ) -> Folded | None:
        """What an earlier call left; None where that is nothing, or no further than `reader`.
        `until`: an entry before which it must stand. Raises CheckpointUnusable, LogBroken."""
        taken = self._read(core)
        if taken is None or taken.sequence <= reader.state.sequence:
            return None
        if taken.sequence >= until:
            raise CheckpointUnusable(
                f"{self._path} reaches to entry {taken.sequence}: remove it, or name another one"
            )
        skimmed = SkimReader(log.cell, event_types(), reader.state, accepted)
        async for _ in skim(log, skimmed, taken.sequence):
            pass
        if (skimmed.state.sequence, skimmed.state.head) != (taken.sequence, taken.reader.head):
            raise CheckpointUnusable(
                f"{self._path} does not fit: the log has another entry {taken.sequence}, or "
                f"before it; remove it"
            )
        self._going_on(self._path, taken.sequence)
        going_on = LogReader(log.cell, event_types(), skimmed.state, accepted)
        return Folded(taken.replica, going_on)

    def _read(self, core: Core[Any]) -> Snapshot | None:
        try:
            with self._path.open("rb") as file:
                parts = {part.name: part.body for part in read_parts(file, MAGIC)}
            about = json.loads(parts["about"])
            check_code(self._path, about)
            if about["service"] != core.service:
                raise CheckpointUnusable(
                    f"{self._path} is of {about['service']}: remove it, or name another one"
                )
            return decode_snapshot(StateCodec(), core, parts["state"])
        except FileNotFoundError:
            return None
        except UNREADABLE as error:
            raise CheckpointUnusable(f"{self._path} cannot be read, remove it: {error}") from error

    def keep(self, replica: AnyReplica, sequence: int, head: bytes) -> None:
        """Keep a service that has folded all up to an entry, whole or not at all. Raises
        OSError."""
        write_parts(self._path, _parts(replica, ReaderState(sequence, head)), MAGIC)

    def remove(self) -> None:
        """All is done."""
        self._path.unlink(missing_ok=True)


def _parts(replica: AnyReplica, at: ReaderState) -> Iterator[Part]:
    core = replica.core
    about = {"build": BUILD, "code": installed_code().hex(), "service": core.service}
    yield Part("about", json.dumps(about).encode())
    # How the log was read up to there is read again.
    here = Snapshot(core.service, core.schema, at, replica.state)
    yield Part("state", encode_snapshot(StateCodec(), core, here))
