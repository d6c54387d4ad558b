"""The snapshots that a cell's processes share: what is there, whether the log bears it out, and new
ones of this release."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sabot.log.v1 import events_pb2
from services.cli.cluster_log import ClusterLog
from services.cli.cores import CORES
from services.events import event_types
from services.kernel.build import BUILD
from services.kernel.event import Core, Event
from services.kernel.host import clock_us
from services.kernel.jetstream import JetStreamLog
from services.kernel.log import LogUnavailable
from services.kernel.nats_users import NAMES_SNAPSHOTS
from services.kernel.object_store import ObjectBucket
from services.kernel.offered_snapshots import is_named
from services.kernel.process import Process
from services.kernel.shared_snapshots import (
    SharedSnapshot,
    SharedSnapshots,
    snapshot_bucket,
    whole_sets,
)
from services.kernel.snapshot import (
    SnapshotSet,
    SnapshotUnusable,
    StateCodec,
    decode_snapshot,
    digest,
    encode_snapshot,
    is_snapshot_of,
)
from services.kernel.telemetry_names import AlarmKind

LOG_WITHIN_S = 600.0
"""How long a build waits for a log that is not there yet: a new cell's is made by hand."""
LOG_AGAIN_S = 2.0
NAMED_WITHIN_S = 60.0
"""How long the log may take to name what was built."""
ACTOR = "system:snapshots"


class NotBuilt(Exception):
    """Snapshots could not be built, named or stored; why."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found of one that is there."""

    one: SharedSnapshot
    problem: str
    """In words; empty where it is right."""
    decoded: bool
    """Whether this release read it; another schema's it cannot."""


@dataclass(frozen=True, slots=True)
class Built:
    """What was built, or was there already."""

    sequence: int
    """The entry at which; 0: the log holds nothing to build of."""
    services: tuple[str, ...]
    bytes: int
    """Of all; 0 where nothing was built."""
    differences: int = 0
    """Answers of the log that this release decides otherwise, as audit would find too."""


@asynccontextmanager
async def connected(cluster: ClusterLog) -> AsyncIterator[tuple[JetStreamLog, SharedSnapshots]]:
    """A cluster's log and its bucket, by one connection. Raises LogUnavailable, OSError."""
    async with cluster.connected("sabot-snapshots") as log:
        if not isinstance(log, JetStreamLog):
            raise LogUnavailable("this log has no bucket")
        bucket = ObjectBucket(
            log.connection, snapshot_bucket(cluster.cell), consumer_prefix=cluster.user
        )
        yield log, SharedSnapshots(bucket)


def cores_of(services: Collection[str]) -> list[Core[Any]]:
    """The cores of these services; of none: all."""
    return [core for core in CORES if not services or core.service in services]


# ---- what is there -----------------------------------------------------------------------------


async def checked(
    log: JetStreamLog, shared: SharedSnapshots, services: Collection[str]
) -> list[Checked]:
    """Every one that is there, newest first, each held against the log. Raises StoreAway,
    LogUnavailable."""
    cores = {core.service: core for core in cores_of(services)}
    last = (await log.info(wait_s=5.0)).last_sequence
    found = []
    for one in await shared.listed(cores.keys()):
        problem, decoded = await _problem(log, shared, cores[one.service], one, last)
        if problem and not await _still_there(shared, one):
            continue  # replaced by a newer one meanwhile
        found.append(Checked(one, problem, decoded))
    return found


async def _still_there(shared: SharedSnapshots, one: SharedSnapshot) -> bool:
    return one in await shared.listed([one.service])


async def _problem(
    log: JetStreamLog, shared: SharedSnapshots, core: Core[Any], one: SharedSnapshot, last: int
) -> tuple[str, bool]:
    """What is wrong with one, and whether this release read it."""
    if one.sequence > last:
        return f"the log ends at entry {last}", False
    try:
        raw = await shared.load(one)
        if digest(raw) != one.digest:
            return "its bytes are not those that it is said to hold", False
        decoded = is_snapshot_of(core, raw)
        if decoded and decode_snapshot(StateCodec(), core, raw).sequence != one.sequence:
            return "it was taken at another entry", decoded
        made = SnapshotSet(one.sequence, {one.service: raw})
        named = await is_named(log, event_types(), made, [one.service])
    except SnapshotUnusable as error:
        return str(error), False
    return "" if named else "the log does not name it", decoded


# ---- new ones ----------------------------------------------------------------------------------


async def newest_right(
    log: JetStreamLog, shared: SharedSnapshots, cores: Sequence[Core[Any]]
) -> int:
    """At which entry the newest set stands that a start of these cores could use; 0: none does."""
    last = (await log.info(wait_s=5.0)).last_sequence
    for parts in whole_sets(await shared.listed([core.service for core in cores]), cores):
        found = [await _problem(log, shared, core, parts[core.service], last) for core in cores]
        if all(not problem and decoded for problem, decoded in found):
            return next(iter(parts.values())).sequence
    return 0


async def built(
    log: JetStreamLog, shared: SharedSnapshots, services: Collection[str], *, again: bool
) -> Built:
    """See to it that there are snapshots that this release can begin from, of these services or, of
    none, of all, which audit needs at one place. Where there are not, or `again`: fold the log,
    have it name what came of it, and store that.

    Raises NotBuilt, StoreAway and LogUnavailable."""
    cores = cores_of(services)
    names = tuple(core.service for core in cores)
    if (await _log_there(log)) == 0:
        return Built(0, names, 0)
    if not again:
        sequence = await newest_right(log, shared, cores)
        if sequence:
            return Built(sequence, names, 0)
    alarmed: list[str] = []

    def alarm(kind: AlarmKind, facts: Mapping[str, Any]) -> None:
        alarmed.append(f"{kind}: {facts}")

    process = Process(
        log=log,
        types=event_types(),
        cores=(),
        observed=cores,
        writer=f"snapshots-{uuid4().hex[:12]}",
        build=BUILD,
        clock=clock_us,
        alarm=alarm,
    )
    try:
        await process.start()
        lost = set(names) - process.folding.observers.keys()
        if lost:
            raise NotBuilt(f"the record of {', '.join(sorted(lost))} cannot be followed: {alarmed}")
        made = await _taken(process)
    finally:
        await process.stop()
    why: list[str] = []
    outcome = await shared.store(
        cores,
        made.sequence,
        made.raw,
        BUILD,
        lambda service, told: why.append(f"{service}: {told}"),
    )
    if outcome != "stored":
        raise NotBuilt(f"the bucket did not take it ({outcome}): {'; '.join(why)}")
    size = sum(map(len, made.raw.values()))
    return Built(made.sequence, names, size, process.folding.difference_count)


async def _log_there(log: JetStreamLog) -> int:
    """The log's last entry; a log that is not there yet is waited for."""
    loop = asyncio.get_running_loop()
    until = loop.time() + LOG_WITHIN_S
    while True:
        try:
            return (await log.info(wait_s=5.0)).last_sequence
        except LogUnavailable:
            if loop.time() > until:
                raise
            await asyncio.sleep(LOG_AGAIN_S)


async def _taken(process: Process) -> SnapshotSet:
    """All states as they stand at one entry, named by the log. Raises NotBuilt."""
    missing: set[tuple[str, int, bytes]] = set()
    named = asyncio.Event()

    def hear(events: list[Event]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, events_pb2.RecordSnapshot):
                missing.discard((body.service, body.sequence, body.digest))
        if not missing:
            named.set()

    while not process.between_entries:  # noqa: ASYNC110 -- an entry takes no time
        await asyncio.sleep(0)
    sequence, head, codec = process.position.sequence, process.head, StateCodec()
    process.hold()
    try:
        taken = process.snapshots()
        raw = await asyncio.to_thread(
            lambda: {core.service: encode_snapshot(codec, core, one) for core, one in taken}
        )
    finally:
        await process.let_go()
    made = SnapshotSet(sequence, raw)
    missing.update(made.name_of(service) for service in raw)
    process.follow(hear)
    for core, _ in taken:
        body = events_pb2.RecordSnapshot(
            service=core.service,
            schema=core.schema,
            sequence=sequence,
            head=head,
            digest=digest(raw[core.service]),
        )
        process.tell(NAMES_SNAPSHOTS, body, ACTOR)
    try:
        await asyncio.wait_for(named.wait(), NAMED_WITHIN_S)
    except TimeoutError:
        raise NotBuilt("the log has not named what was built") from None
    return made
