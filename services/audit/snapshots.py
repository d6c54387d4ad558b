"""Audit's shell that takes snapshots: only audit folds every core, so it alone writes them.

They go into the folder of the process and, where there is one, into the cell's bucket, for all
others. A snapshot is a cache. It counts once the log names it (`RecordSnapshot`): a start that
finds it unnamed, or not as it was named, folds the log instead.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sabot.log.v1 import events_pb2
from services.kernel import telemetry
from services.kernel.build import BUILD
from services.kernel.event import Core, Event
from services.kernel.object_store import StoreAway
from services.kernel.process import Process
from services.kernel.shared_snapshots import Outcome, SharedSnapshots, whole_sets
from services.kernel.snapshot import (
    Snapshot,
    SnapshotFolder,
    SnapshotSet,
    StateCodec,
    digest,
    encode_snapshot,
)
from services.kernel.telemetry_names import SNAPSHOT_NOT_SHARED

EVERY_ENTRIES = 20_000
"""Entries between two snapshots: folding so many takes a few seconds at a start."""
NAMED_KEPT = 100
"""So many names of snapshots are remembered: some sets of each replica."""
EVERY_ANSWERS = 50_000
"""Or so many answers decided again: under load an entry holds tens of them."""
NAMED_WITHIN_S = 30.0
"""How long the log may take to name a set before it is shared: what others find is named."""
SHARE_AGAIN_S = 60.0
"""Before a set that the bucket did not take is offered again."""
LOOK_EVERY_S = 1.0
"""How often it looks whether one is due."""

Taken = Sequence[tuple[Core[Any], Snapshot]]


class Snapshots:
    """Takes a set of snapshots now and then; background work of the audit service."""

    def __init__(self, folder: SnapshotFolder, every_entries: int = EVERY_ENTRIES) -> None:
        self._folder = folder
        self._every = every_entries
        self._codec = StateCodec()
        self._named: dict[tuple[str, int], bytes] = {}
        """Digests that the log named of late, by service and entry."""
        self.outcomes: Counter[Outcome] = Counter()
        """What came of each set that was due in the bucket."""

    async def run(self, process: Process) -> None:
        """Until cancelled."""
        unfollow = process.follow(self._hear)
        try:
            await self._run(process)
        finally:
            unfollow()

    async def _run(self, process: Process) -> None:
        last, answers = process.started_from, 0
        unshared, again_s = 0, 0.0
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            decided = process.folding.answers_compared
            due = (
                process.position.sequence - last >= self._every
                or decided - answers >= EVERY_ANSWERS
            )
            if due and process.ready and process.between_entries:
                last, answers = await self.take_aside(process), decided
                unshared, again_s = last, 0.0
            if process.shared is not None and unshared and loop.time() >= again_s:
                if await self._share(process, process.shared, unshared):
                    unshared = 0
                again_s = loop.time() + SHARE_AGAIN_S

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

    # ---- sharing -------------------------------------------------------------------------------

    def _hear(self, events: list[Event]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, events_pb2.RecordSnapshot):
                self._named[body.service, body.sequence] = body.digest
        while len(self._named) > NAMED_KEPT:
            del self._named[next(iter(self._named))]

    async def _share(self, process: Process, shared: SharedSnapshots, sequence: int) -> bool:
        """Put a set of the folder into the bucket, once the log names it, unless another replica's
        is there of about the same place; whether there is no more to do."""
        made = await asyncio.to_thread(lambda: next(self._folder.at([sequence]), None))
        if made is None:
            return True
        cores = [core for core, _ in process.snapshots() if core.service in made.raw]
        if not await self._are_named(made):
            return False
        outcome = await self._stored(shared, cores, made)
        self.outcomes[outcome] += 1
        return outcome in ("stored", "present")

    async def _stored(
        self, shared: SharedSnapshots, cores: Sequence[Core[Any]], made: SnapshotSet
    ) -> Outcome:
        def tell(service: str, why: str) -> None:
            facts = {"sequence": made.sequence, "snapshot_of": service, "why": why}
            telemetry.logger().warning(SNAPSHOT_NOT_SHARED, **facts)

        try:
            there = await shared.listed([core.service for core in cores])
        except StoreAway as error:
            tell("", str(error))
            return "away"
        for one in whole_sets(there, cores):
            is_named = all(
                self._named.get((part.service, part.sequence)) == part.digest
                for part in one.values()
            )
            taken_at = next(iter(one.values())).sequence
            if is_named and abs(taken_at - made.sequence) < self._every / 2:
                return "present"
        return await shared.store(cores, made.sequence, made.raw, BUILD, tell)

    async def _are_named(self, made: SnapshotSet) -> bool:
        wanted = {(service, made.sequence): digest(raw) for service, raw in made.raw.items()}
        until = asyncio.get_running_loop().time() + NAMED_WITHIN_S
        while any(self._named.get(key) != named for key, named in wanted.items()):
            if asyncio.get_running_loop().time() > until:
                return False
            await asyncio.sleep(LOOK_EVERY_S / 10)
        return True

    # ---- taking --------------------------------------------------------------------------------

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
