"""Audit's shell that takes snapshots: only audit folds every core, so it alone writes them.

A snapshot is a cache. It counts once the log names it (`RecordSnapshot`): a start that finds it
unnamed, or not as it was named, folds the log instead.
"""

from __future__ import annotations

import asyncio

from sabot.log.v1 import events_pb2
from services.kernel.process import Process
from services.kernel.snapshot import (
    SnapshotFolder,
    SnapshotSet,
    StateCodec,
    digest,
    encode_snapshot,
)

EVERY_ENTRIES = 20_000
"""Entries between two snapshots: folding so many takes a few seconds at a start."""
LOOK_EVERY_S = 1.0
"""How often it looks whether one is due."""


class Snapshots:
    """Takes a set of snapshots now and then; background work of the audit service."""

    def __init__(self, folder: SnapshotFolder, every_entries: int = EVERY_ENTRIES) -> None:
        self._folder = folder
        self._every = every_entries
        self._codec = StateCodec()

    async def run(self, process: Process) -> None:
        """Until cancelled."""
        last = process.started_from
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            behind = process.position.sequence - last
            if process.ready and process.between_entries and behind >= self._every:
                last = self.take(process)

    def take(self, process: Process) -> int:
        """Take a set now and have it named in the log; the entry it stands at."""
        taken = process.snapshots()
        sequence, head = process.position.sequence, process.head
        raw = {core.service: encode_snapshot(self._codec, core, one) for core, one in taken}
        self._folder.save(SnapshotSet(sequence, raw))
        for core, _ in taken:
            named = events_pb2.RecordSnapshot(
                service=core.service,
                schema=core.schema,
                sequence=sequence,
                head=head,
                digest=digest(raw[core.service]),
            )
            process.tell("audit", named, "system:audit")
        return sequence
