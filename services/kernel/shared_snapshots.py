"""Snapshots that all processes of a cell share: in a bucket of the log's servers.

Audit writes them, and a release's Job before it rolls; every service reads its own. A bucket is a
cache like a folder of snapshots: what stands in it counts once the log names it, and losing it
loses nothing. Of each service there are so many places, and no more: what a service may read is a
closed list, and the bucket does not grow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from services.kernel.event import Core
from services.kernel.object_store import (
    ObjectBucket,
    ObjectDamaged,
    StoreAway,
    StoredObject,
    StoreFull,
    StoreRaced,
    chunk_subject,
    meta_subject,
)
from services.kernel.snapshot import SnapshotUnusable, digest

KEPT_SHARED = 3
"""Newest ones of a service and schema that are kept: one may be damaged, another not be named."""
PLACES = 2 * KEPT_SHARED
"""For two schemas: while a release rolls, and until it is certain that it stays, both are there."""
ROOM_LEFT = 4 * 1024 * 1024
"""Bytes that stay free when one is written: so a bucket is never so full that the next one, in the
place of an older, could not begin."""
BUCKET_BYTES = 2 * 1024 * 1024 * 1024
"""A bucket's bound where nobody says another: six sets of some 70,000 accounts, at the 4.4 KB that
one was measured to take in all services' states."""

Outcome = Literal["stored", "present", "full", "away", "raced"]
"""What came of storing a set."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def snapshot_bucket(cell: str) -> str:
    """The bucket of a cell."""
    return f"sabot-{cell}-snapshots"


def snapshot_names(service: str) -> list[str]:
    """What the objects of a service may be called."""
    return [f"{service}.{place}" for place in range(PLACES)]


def snapshot_subjects(cell: str, service: str) -> list[str]:
    """Where a service's are said to be, in the bucket's stream."""
    return [meta_subject(snapshot_bucket(cell), name) for name in snapshot_names(service)]


def snapshot_chunks(cell: str, service: str) -> str:
    """Where their pieces are; one token stands for the place."""
    return chunk_subject(snapshot_bucket(cell), f"{service}.*")


@dataclass(frozen=True, slots=True)
class SharedSnapshot:
    """One of a service's, as its writer told of it: believed as far as the log bears it out."""

    service: str
    schema: int
    sequence: int
    """All entries up to this one are folded in."""
    digest: bytes
    """What the log names it by."""
    build: str
    """Which one wrote it."""
    stored: StoredObject

    def fits(self, core: Core[Any]) -> bool:
        """Whether it is said to be of this shape of a core's state."""
        return self.schema == core.schema and self.service == core.service


class SharedSnapshots:
    """See the module."""

    def __init__(self, bucket: ObjectBucket) -> None:
        self._bucket = bucket

    async def listed(self, services: Collection[str]) -> list[SharedSnapshot]:
        """What is said to be there of these services, newest first. Raises StoreAway."""
        names = [name for service in services for name in snapshot_names(service)]
        found = await asyncio.gather(*(self._bucket.find(name) for name in names))
        told = [one for one in map(_told, names, found) if one is not None]
        return sorted(told, key=lambda one: (-one.sequence, one.service))

    async def load(self, one: SharedSnapshot) -> bytes:
        """A snapshot as bytes: those that the log names, or none. Raises SnapshotUnusable and
        StoreAway."""
        try:
            raw = await self._bucket.get(one.stored)
        except ObjectDamaged as damaged:
            raise SnapshotUnusable(str(damaged)) from damaged
        return raw

    async def store(
        self,
        cores: Iterable[Core[Any]],
        sequence: int,
        raw: Mapping[str, bytes],
        build: str,
        tell: Callable[[str, str], None],
    ) -> Outcome:
        """Store a set that was taken at an entry, each service's in its oldest place. `tell`: the
        service and why its own could not be stored. Never raises for want of a store."""
        for core in cores:
            try:
                await self._store(core, sequence, raw[core.service], build)
            except StoreAway as error:
                tell(core.service, str(error))
                return "away"
            except StoreFull as error:
                tell(core.service, str(error))
                return "full"
            except StoreRaced as error:
                tell(core.service, str(error))
                return "raced"
        return "stored"

    async def _store(self, core: Core[Any], sequence: int, raw: bytes, build: str) -> None:
        there = await self.listed([core.service])
        name, old = place_for(core, sequence, there)
        room = await self._bucket.room() + (old.stored.size if old is not None else 0)
        if room < len(raw) + ROOM_LEFT:
            left = max(0, room - ROOM_LEFT)
            raise StoreFull(f"{len(raw)} bytes do not fit into {left}")
        facts = {
            "service": core.service,
            "schema": str(core.schema),
            "sequence": str(sequence),
            "digest": digest(raw).hex(),
            "build": build,
        }
        await self._bucket.put(name, raw, facts)


def place_for(
    core: Core[Any], sequence: int, there: Sequence[SharedSnapshot]
) -> tuple[str, SharedSnapshot | None]:
    """Where a snapshot of a core that was taken at an entry is to go, and what stands there: an
    empty place, else the oldest of the others. Before that one of this schema: one of a log that
    went on otherwise (taken behind this entry), else its oldest where it has its share."""
    taken = {one.stored.name for one in there}
    free = [name for name in snapshot_names(core.service) if name not in taken]
    own = [one for one in there if one.fits(core)]
    # Another release's may be newer: it goes on while one is built for the release to come.
    ahead = [one for one in own if one.sequence > sequence]
    if ahead:
        old = ahead[0]
    elif len(own) >= KEPT_SHARED:
        old = min(own, key=lambda one: one.sequence)
    elif free:
        return free[0], None
    else:
        old = min((one for one in there if not one.fits(core)), key=lambda one: one.sequence)
    return old.stored.name, old


def whole_sets(
    there: Sequence[SharedSnapshot], cores: Sequence[Core[Any]]
) -> list[Mapping[str, SharedSnapshot]]:
    """Of what is there: at which entries every one of these cores has one of its schema, newest
    first."""
    sets: dict[int, dict[str, SharedSnapshot]] = {}
    for one in there:
        if any(one.fits(core) for core in cores):
            sets.setdefault(one.sequence, {}).setdefault(one.service, one)
    return [
        sets[sequence]
        for sequence in sorted(sets, reverse=True)
        if len(sets[sequence]) == len(cores)
    ]


def _told(name: str, stored: StoredObject | None) -> SharedSnapshot | None:
    """What an object is said to hold; None: nothing of ours."""
    if stored is None or stored.name != name or stored.place != name:
        return None
    facts = stored.facts
    try:
        return SharedSnapshot(
            service=facts["service"],
            schema=int(facts["schema"]),
            sequence=int(facts["sequence"]),
            digest=bytes.fromhex(facts["digest"]),
            build=facts["build"],
            stored=stored,
        )
    except (KeyError, ValueError):
        return None
