"""All cores of a cell as they stood just behind an entry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.cli.cores import CORES
from services.cli.starts import reader_at, start_with
from services.events import event_types
from services.kernel.entry import EventTypes, position_of
from services.kernel.event import Core, Event, Position
from services.kernel.log import Log
from services.kernel.reader import LogReader
from services.kernel.recovery import AnyReplica, Window, entries_until
from services.kernel.replica import Replica
from services.kernel.snapshot import SnapshotSet

Progress = Callable[[int, int, int], None]


@dataclass(slots=True)
class CellStates:
    """See the module."""

    replicas: list[AnyReplica]
    """In the order of CORES; of a snapshot only what was asked for."""
    reader: LogReader
    """It goes on behind them."""
    snapshots: SnapshotSet | None = None
    """What they were taken from, as it stands; None: they were folded further, or from nothing."""


async def states_near(
    log: Log,
    before: int,
    data: Path | None,
    accepted: Mapping[int, bytes] | None,
    progress: Progress,
    services: Collection[str],
) -> CellStates:
    """As the newest snapshot that stands before an entry and that the log names has them, or, where
    there is none, folded up to that entry. `data`: the folder with the snapshots; `services`: all
    that is made of a snapshot: a large state takes a second.

    Raises LogBroken, LogUnavailable."""
    cores = [core for core in CORES if core.service in services]
    states = await _begun(log, before, data, accepted, cores)
    if states.snapshots is None:
        await fold(log, states, before - 1, progress)
    return states


async def states_before(
    log: Log,
    before: int,
    data: Path | None,
    accepted: Mapping[int, bytes] | None,
    progress: Progress,
) -> CellStates:
    """Just before an entry. Raises LogBroken, LogUnavailable."""
    states = await _begun(log, before, data, accepted, CORES)
    await fold(log, states, before - 1, progress)
    states.snapshots = None
    return states


async def _begun(
    log: Log,
    before: int,
    data: Path | None,
    accepted: Mapping[int, bytes] | None,
    cores: Sequence[Core[Any]],
) -> CellStates:
    found = None
    if data is not None:
        last = (await log.info(wait_s=5.0)).last_sequence
        folder = data / "snapshots"
        found = await start_with(log, folder, cores, lambda _: True, last, accepted, before)
    if found is None:
        replicas: list[AnyReplica] = [Replica(core, writer="states") for core in CORES]
        return CellStates(replicas, reader_at(log, None, accepted))
    start, parts = found
    replicas = [Replica(core, writer="states", state=parts[core.service].replica) for core in cores]
    return CellStates(replicas, reader_at(log, start, accepted), start)


async def fold(log: Log, states: CellStates, until: int, progress: Progress) -> None:
    """Fold on up to an entry, recorded answers as they stand. What is answered behind it is
    decided."""
    window = Window(states.replicas)
    async for entries in entries_until(log, states.reader, until):
        for entry in entries:
            window.push(entry, 0.0)
        progress(states.reader.state.sequence, until, 0)
        await asyncio.sleep(0)
    window.drain(0.0)


def core_states(replicas: Sequence[AnyReplica]) -> dict[str, object]:
    """What the cores keep, by service."""
    return {one.core.service: one.state.core for one in replicas}


def pending_answers(replicas: Sequence[AnyReplica], behaviour: int) -> list[tuple[Event, bool]]:
    """Answers that were decided before the states' place and stand behind it in the log, in order;
    with each whether it ends an unfinished step. `behaviour`: the one in force there."""
    types = event_types()
    found = [
        (position_of(one.proto.cause), place, index, replica.core.service, one.proto)
        for place, replica in enumerate(replicas)
        for index, one in enumerate(replica.state.pending)
    ]
    found.sort(key=lambda one: one[:3])
    return [
        (_answer(types, service, proto, behaviour), proto.continues)
        for _, _, _, service, proto in found
    ]


def _answer(types: EventTypes, service: str, proto: Any, behaviour: int) -> Event:
    cause = position_of(proto.cause)
    return Event(
        Position(cause.segment, cause.sequence, cause.index),
        service,
        False,
        types.decode(proto.type, proto.body),
        cause,
        proto.partner,
        proto.actor,
        proto.time_us,
        behaviour,
    )
