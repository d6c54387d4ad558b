"""Audit's shell that takes snapshots: only audit folds every core, so it alone writes them.

A snapshot is a cache. It counts once the log names it (`RecordSnapshot`): a start that finds it
unnamed, or not as it was named, folds the log instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from sabot.log.v1 import events_pb2
from services.kernel.event import Core
from services.kernel.process import Process
from services.kernel.snapshot import (
    Snapshot,
    SnapshotFolder,
    SnapshotSet,
    StateCodec,
    digest,
    encode_snapshot,
)

EVERY_ENTRIES = 20_000
"""Entries between two snapshots: folding so many takes a few seconds at a start."""
EVERY_ANSWERS = 50_000
"""Or so many answers decided again: under load an entry holds tens of them."""
LOOK_EVERY_S = 1.0
"""How often it looks whether one is due."""

Taken = Sequence[tuple[Core[Any], Snapshot]]


class Snapshots:
    """Takes a set of snapshots now and then; background work of the audit service."""

    def __init__(self, folder: SnapshotFolder, every_entries: int = EVERY_ENTRIES) -> None:
        self._folder = folder
        self._every = every_entries
        self._codec = StateCodec()

    async def run(self, process: Process) -> None:
        """Until cancelled."""
        last, answers = process.started_from, 0
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            decided = process.folding.answers_compared
            due = (
                process.position.sequence - last >= self._every
                or decided - answers >= EVERY_ANSWERS
            )
            if due and process.ready and process.between_entries:
                last, answers = await self.take_aside(process), decided

    def take(self, process: Process) -> int:
        """Take a set now and have it named in the log; the entry it stands at."""
        sequence, head = process.position.sequence, process.head
        taken = process.snapshots()
        made = SnapshotSet(sequence, self._encoded(taken))
        self._folder.save(made)
        self._name(process, taken, made, head)
        return sequence

    async def take_aside(self, process: Process) -> int:
        """The same by another thread, since a large state takes seconds: the observers stand still
        meanwhile and then catch up, and all that answers callers goes on."""
        sequence, head = process.position.sequence, process.head
        still = process.hold()
        try:
            taken = process.snapshots()
            # What goes on is small here: audit's own. It must be encoded before it changes.
            raw = self._encoded([each for each in taken if each[0].service not in still])
            large = [each for each in taken if each[0].service in still]
            raw |= await asyncio.to_thread(self._encoded, large)
        finally:
            await process.let_go()
        made = SnapshotSet(sequence, raw)
        await asyncio.to_thread(self._folder.save, made)
        self._name(process, taken, made, head)
        return sequence

    def _encoded(self, taken: Taken) -> dict[str, bytes]:
        return {core.service: encode_snapshot(self._codec, core, one) for core, one in taken}

    def _name(self, process: Process, taken: Taken, made: SnapshotSet, head: bytes) -> None:
        """Have the log say what was taken, so that a start may use it."""
        for core, _ in taken:
            named = events_pb2.RecordSnapshot(
                service=core.service,
                schema=core.schema,
                sequence=made.sequence,
                head=head,
                digest=digest(made.raw[core.service]),
            )
            process.tell("audit", named, "system:audit")
