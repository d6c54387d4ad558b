"""Runs services in a process: the log, their cores, shells, projections and calls, start to drain.

A service says what it is made of in its `parts.py`; this puts parts together. One process may host
one service (`python -m services.wallet`) or all of them (`sabot up`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from google.protobuf.descriptor import ServiceDescriptor

from sabot.log.v1 import events_pb2
from services.kernel import telemetry
from services.kernel.accepted import Accepted, read_accepted, write_accepted
from services.kernel.alarms import Alarms as Alarms  # noqa: PLC0414 -- tests listen there
from services.kernel.attesting import Attesting
from services.kernel.call_witness import CallWitness
from services.kernel.database_witness import DatabaseWitness
from services.kernel.edge import NotTaken, OutcomeUnknown
from services.kernel.entry import EventTypes
from services.kernel.event import Core
from services.kernel.grpc_server import CallerSource, Server, Watch, tls_credentials
from services.kernel.health_port import HealthPort
from services.kernel.log import Log
from services.kernel.measures import Measure, measure_process
from services.kernel.new_log import ACTIVATES, begin_anew, is_young
from services.kernel.notices import Notices
from services.kernel.offered_snapshots import Offered
from services.kernel.outcomes import Alarm
from services.kernel.process import EntryListener, Process
from services.kernel.projection_places import projection_url, witness_url
from services.kernel.projection_store import Projection
from services.kernel.projections import Projector, ReadEvents
from services.kernel.schema import schema_by
from services.kernel.settings import ServiceSettings
from services.kernel.shared_snapshots import SharedSnapshots
from services.kernel.shells import Shell
from services.kernel.snapshot import SnapshotFolder
from services.kernel.strength import AskServers, Strength
from services.kernel.telemetry_names import (
    LOG_READ,
    LOG_READING,
    SHELL_PROBLEMS,
)
from services.kernel.witness import FileWitness, Witnessed, any_witness

PREFLIGHT_EVERY_S = 5.0
"""How often the servers are asked whether the log is still as durable as it must be."""
WEAK_EVERY_S = 0.5
"""How often while it is not, or nobody tells: no bets are taken until the next look."""
BACKGROUND_AGAIN_S = 5.0
"""Before background work that ended is begun anew."""
READY_EVERY_S = 0.1
"""How often health follows the process's readiness."""
MEASURE_EVERY_S = 1.0
"""How often gauges are set: more often than anybody scrapes them."""
READING_TOLD_EVERY_S = 5.0
"""How often a start that takes long says how far it has read the log."""
READINESS = "readiness"
"""The name of the task that does."""
OPEN_STILL_S = 0.3
"""How long a server that is not ready still answers at a drain: callers that watch health go
elsewhere, and calls that are on their way are told that nothing was done. A server that stops at
once cuts them off, and what became of them is unknown."""
ACCEPTS = "audit"
"""The service whose inputs tell of it: nobody else's process may append them."""
ACCEPTED = "accepted"
"""The name of the task that does."""
ACCEPTED_EVERY_S = 1.0
"""Between attempts to log what an operator has accepted."""
NOTED_WITHIN_S = 30.0
"""How long a start looks for what anybody has noted of a log that is not new."""
EVERY_SERVICE = "fleet"
"""In the database, whose witness a process of all services notes."""
NO_WITNESS = (
    "the log is not new, and nothing here remembers how far it was read: had it lost its end, "
    "nobody would know; from now on it is noted again"
)

Served = Sequence[tuple[ServiceDescriptor, object]]
"""Services of the protos with their servicers."""


class CaughtUp(EntryListener, Protocol):
    """An `EntryListener` with a memory of its own."""

    async def catch_up(self, read: ReadEvents) -> None:
        """Take what was appended since it last heard of an entry. Nothing is fed meanwhile."""
        ...

    def close(self) -> None:
        """Let go of what it holds; nothing is fed any more."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What a service is made of."""

    core: Core[Any]
    serve: Callable[[Process, Projector | None, telemetry.Metrics], Served]
    """Its servicers, over the process and its projection."""
    shells: Sequence[Shell] = ()
    projection: Projection | None = None
    observed: Sequence[Core[Any]] = ()
    """Cores that it decides again and compares: audit."""
    listeners: Sequence[CaughtUp] = ()
    """What hears every entry of the log, from its beginning on, before the process starts."""
    background: Sequence[Callable[[Process], Awaitable[None]]] = ()
    """Work of its own that runs until it is cancelled."""
    measure: Callable[[Process, telemetry.Metrics], Measure] | None = None
    """Makes what sets its own gauges."""
    rules: Callable[[Any], Iterable[tuple[str, bytes]]] | None = None
    """Of its state: which rule set, by hash, is in force at which table."""
    notices: Notices | None = None
    """Counts what it must tell of this process's calls; without them a shell of the kernel does."""


@dataclass(slots=True)
class Host:
    """A running process of one or more services."""

    process: Process
    server: Server
    projectors: dict[str, Projector]
    port: int
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    witness: FileWitness | None = None
    shared: DatabaseWitness | None = None
    listeners: Sequence[CaughtUp] = ()
    watch: Watch = field(default_factory=Watch)

    async def stop(self, drain_s: float) -> None:
        """Not ready, no new inputs, running calls finish, then everything ends."""
        loop = asyncio.get_running_loop()
        open_until = loop.time() + OPEN_STILL_S
        for task in self.tasks:
            if task.get_name() == READINESS:
                task.cancel()
        self.server.set_ready(False)
        await self.process.drain(drain_s)
        await asyncio.sleep(max(0.0, open_until - loop.time()))
        await self.server.stop(drain_s)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.process.stop()
        for projector in self.projectors.values():
            await projector.close()
        for listener in self.listeners:
            listener.close()
        if self.shared is not None:
            await self.shared.close()
        if self.witness is not None:
            self.witness.close()
        await asyncio.to_thread(self.watch.tracing.close)
        await asyncio.to_thread(self.watch.metrics.close)

    async def stopped(self) -> BaseException:
        """Wait until the process must not go on; why."""
        if self.process.stopped is None:
            raise RuntimeError("the process was not started")
        return await self.process.stopped


async def start(
    parts: Sequence[Parts],
    *,
    name: str,
    log: Log,
    types: EventTypes,
    settings: ServiceSettings,
    tokens: CallerSource,
    preflight: AskServers,
    build: str,
    log_advice: str = "",
    probed: HealthPort | None = None,
    snapshots: SharedSnapshots | None = None,
) -> Host:
    """Start services on a log. `name`: of this process, for its witness and in telemetry.
    `log_advice`: what an operator does about a log that takes no append. `probed`: is open already,
    and follows whether calls are taken. `snapshots`: where the cell's processes share them.

    Raises LogBroken, LogUnavailable, ProjectionAhead, AcceptedDamaged, and RuntimeError where the
    port is taken."""
    metrics = telemetry.Metrics()
    alarms, accepted = Alarms(metrics), read_accepted(settings.data)
    witness = FileWitness(settings.data / "witness" / name)
    notices, told = _told_by(parts)
    rules = parts[0].rules if parts else None
    subjects = [part.core.service for part in parts[:1]]
    attesting = Attesting(subjects, process=name, build=build, settings=settings, rules=rules)
    watch = Watch(
        metrics=metrics,
        notices=notices,
        tracing=telemetry.Tracing(
            service=name,
            ratio=settings.trace_ratio,
            exporter=(
                telemetry.otlp_exporter(settings.otlp_endpoint) if settings.otlp_endpoint else None
            ),
        ),
    )
    process = Process(
        log=log,
        types=types,
        cores=[part.core for part in parts],
        observed=[core for part in parts for core in part.observed],
        writer=f"{name}-{uuid4().hex[:12]}",
        build=build,
        clock=clock_us,
        alarm=alarms,
        witness=witness,
        shells=[*told, *await attesting.shells()],
        tracing=watch.tracing,
        accepted=accepted.entries,
        log_advice=log_advice,
        kept=SnapshotFolder(settings.data / "snapshots").older,
    )
    process.follow(attesting.hear)
    witnessed = await _is_noted(log, witness.path.parent)
    offered = _offered(parts, process, snapshots, types, settings, accepted, alarms)
    projectors = await _projectors(parts, name, process, offered.read, settings, alarms)
    listeners = [listener for part in parts for listener in part.listeners]
    shared = _shared_witness(parts, process, offered.read, settings, alarms)
    strength = Strength(preflight, alarms)
    process.weak = await strength.look()
    try:
        remembered = await _read_log(process, listeners, shared, settings, offered)
    except BaseException:
        await process.stop()
        for projector in projectors.values():
            await projector.close()
        for listener in listeners:
            listener.close()
        if shared is not None:
            await shared.close()
        raise
    if shared is not None:
        shared.start()
    if any(part.core.service == ACTIVATES for part in parts):
        begin_anew(process)
    # Where the database does not tell, it has said so already.
    if not witnessed and not remembered and remembered is not None and process.position.sequence:
        alarms("witness_missing", {"folder": str(witness.path.parent), "why": NO_WITNESS})
    server = Server(tokens, watch=watch, probed=probed)
    for part in parts:
        for descriptor, servicer in part.serve(process, projectors.get(part.core.service), metrics):
            server.add(descriptor, servicer)
    credentials = (
        tls_credentials(settings.tls_certificate, settings.tls_key)
        if settings.tls_certificate and settings.tls_key
        else None
    )
    port = server.listen(f"{settings.host}:{settings.port}", credentials)
    if settings.metrics_port is not None:
        metrics.serve(settings.host, settings.metrics_port)
    await server.start()
    host = Host(
        process,
        server,
        projectors,
        port,
        witness=witness,
        shared=shared,
        listeners=listeners,
        watch=watch,
    )
    loop = asyncio.get_running_loop()
    always: dict[str, Callable[[Process], Awaitable[None]]] = {
        READINESS: lambda process: _follow_readiness(process, server, metrics),
        "preflight": lambda process: _keep_preflight(process, strength),
        "code": lambda _process: attesting.keep_reading(),
    }
    for task, work in always.items():
        host.tasks.append(loop.create_task(_run(work, process, alarms), name=task))
    measures = [measure_process(process, projectors, metrics)]
    measures += [part.measure(process, metrics) for part in parts if part.measure is not None]
    host.tasks.append(loop.create_task(_keep_measuring(measures, alarms), name="measures"))
    if accepted.to_log and any(part.core.service == ACCEPTS for part in parts):
        host.tasks.append(
            loop.create_task(_log_accepted(process, settings.data, accepted), name=ACCEPTED)
        )
    for part in parts:
        host.tasks.extend(loop.create_task(_run(work, process, alarms)) for work in part.background)
    return host


async def _is_noted(log: Log, folder: Path) -> bool:
    """Whether a folder of witnesses knows of the log, or there is nothing to know. In this order:
    another process of a new cell may write the log's beginning just now, and note it. A log that
    had no more was new."""
    last = (await log.info(wait_s=PREFLIGHT_EVERY_S)).last_sequence
    return last <= 1 or any_witness(folder)


def _told_by(parts: Sequence[Parts]) -> tuple[Notices, list[Shell]]:
    """What counts what is noticed of calls, and all shells: also one that tells it, where no
    service here does. Without services there are no calls."""
    shells = [shell for part in parts for shell in part.shells]
    for part in parts:
        if part.notices is not None:
            return part.notices, shells
    notices = Notices(clock_us)
    return notices, [*shells, *(CallWitness(one.core.service, notices) for one in parts[:1])]


async def _read_log(
    process: Process,
    listeners: Sequence[CaughtUp],
    shared: DatabaseWitness | None,
    settings: ServiceSettings,
    offered: Offered,
) -> Sequence[Witnessed] | None:
    """Read the log to its end; what was remembered of it in the database, None where that does not
    tell, or the log was new when it was asked. Raises LogBroken and LogUnavailable."""
    log = process.log
    for listener in listeners:
        await listener.catch_up(offered.read)
        process.add_listener(listener)
    remembered: Sequence[Witnessed] | None = ()
    if shared is not None:
        stood = (await log.info(wait_s=PREFLIGHT_EVERY_S)).last_sequence
        remembered = await shared.remembered()
        witnessed = any_witness(settings.data / "witness")
        if remembered is None and (not stood or witnessed or await is_young(log, clock_us())):
            shared.expect_nothing()
        wait_s = 0.0 if witnessed else NOTED_WITHIN_S
        until = asyncio.get_running_loop().time() + wait_s
        # In a new cell others may have begun the log a moment ago, and note that in the next.
        while stood and remembered == [] and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(READY_EVERY_S)
            remembered = await shared.remembered()
        if not stood and not remembered:
            remembered = None  # The log was new: nothing there to remember.
        process.add_listener(shared)
    await offered.look()
    last = (await log.info(wait_s=PREFLIGHT_EVERY_S)).last_sequence
    telling = asyncio.create_task(_tell_reading(process, last))
    began = asyncio.get_running_loop().time()
    try:
        await process.start(offered.sets(), remembered or ())
    finally:
        telling.cancel()
    telemetry.logger().info(
        LOG_READ,
        began_from=process.started_from,
        snapshot=offered.origin(process.started_from),
        entry=process.position.sequence,
        seconds=round(asyncio.get_running_loop().time() - began, 3),
    )
    return remembered


async def _tell_reading(process: Process, last: int) -> None:
    """Say how far a long start has come, so that nobody takes it for one that hangs."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        await asyncio.sleep(READING_TOLD_EVERY_S)
        entry = process.folding.reader.state.sequence
        per_s = (entry - process.started_from) / (loop.time() - began)
        left_s = round((last - entry) / per_s) if per_s > 0 else None
        telemetry.logger().warning(LOG_READING, entry=entry, last=last, left_s=left_s)


async def _run(work: Callable[[Process], Awaitable[None]], process: Process, alarms: Alarm) -> None:
    """Background work, begun anew where it failed: nobody else would see that it ended."""
    while True:
        try:
            await work(process)
        except Exception as error:  # noqa: BLE001 - told, and tried again
            _tell_failed(alarms, error)
        await asyncio.sleep(BACKGROUND_AGAIN_S)


def _tell_failed(alarms: Alarm, error: Exception) -> None:
    alarms("background_failed", {"why": f"{type(error).__name__}: {error}"})


async def _log_accepted(process: Process, data: Path, accepted: Accepted) -> None:
    """Let the log tell what an operator accepted. After a crash it may tell it twice."""
    while accepted.to_log:
        one = accepted.to_log[0]
        try:
            await process.submit(
                ACCEPTS,
                one.body,
                partner="",
                actor=one.actor,
                until=frozenset({events_pb2.InputNoted}),
                wait_s=PREFLIGHT_EVERY_S,
            )
        except (NotTaken, OutcomeUnknown):
            await asyncio.sleep(ACCEPTED_EVERY_S)
        else:
            del accepted.to_log[0]
            write_accepted(data, accepted)


def _offered(
    parts: Sequence[Parts],
    process: Process,
    snapshots: SharedSnapshots | None,
    types: EventTypes,
    settings: ServiceSettings,
    accepted: Accepted,
    alarms: Alarms,
) -> Offered:
    """What the process may begin from. It is told where it may share its own."""
    process.shared = snapshots
    return Offered(
        SnapshotFolder(settings.data / "snapshots"),
        snapshots,
        [core for part in parts for core in (part.core, *part.observed)],
        log=process.log,
        types=types,
        accepted=accepted.entries,
        alarm=alarms,
    )


async def _projectors(
    parts: Sequence[Parts],
    name: str,
    process: Process,
    read_events: ReadEvents,
    settings: ServiceSettings,
    alarms: Alarms,
) -> dict[str, Projector]:
    projectors: dict[str, Projector] = {}
    for part in parts:
        if part.projection is None:
            continue
        service = part.core.service
        projector = Projector(
            part.projection,
            projection_url(settings, service, process=name),
            read_events,
            on_failure=partial(_projection_stopped, alarms, service),
            schema=schema_by(settings.schema_by),
        )
        projectors[service] = projector
        await projector.start()
        process.add_listener(projector)
    return projectors


def _shared_witness(
    parts: Sequence[Parts],
    process: Process,
    read_events: ReadEvents,
    settings: ServiceSettings,
    alarms: Alarms,
) -> DatabaseWitness | None:
    """What remembers in the database how far this service has read; None without a database."""
    url = witness_url(settings)
    if url is None:
        return None
    return DatabaseWitness(
        url,
        parts[0].core.service if len(parts) == 1 else EVERY_SERVICE,
        process.log,
        read_events,
        alarm=alarms,
        on_broken=process.halt,
        schema=schema_by(settings.schema_by),
    )


def _projection_stopped(alarms: Alarms, service: str, error: Exception) -> None:
    """Bets go on; what is asked of this projection is answered as unavailable."""
    alarms("projection_stopped", {"service": service, "why": str(error)})


async def _follow_readiness(process: Process, server: Server, metrics: telemetry.Metrics) -> None:
    """Health says whether calls are taken, and of each shell by its name whether it can act."""
    troubles = metrics.gauge(SHELL_PROBLEMS)
    while True:
        server.set_ready(process.ready)
        for shell, problems in process.shell_problems().items():
            troubles.labels(shell).set(problems)
            server.set_part(shell, not problems)
        await asyncio.sleep(READY_EVERY_S)


async def _keep_measuring(measures: Sequence[Measure], alarms: Alarm) -> None:
    """A measure that fails is told, and tried again later: its gauges stand still meanwhile, those
    of the others do not."""
    loop = asyncio.get_running_loop()
    again: dict[int, float] = {}
    while True:
        now = loop.time()
        for number, measure in enumerate(measures):
            if now < again.get(number, now):
                continue
            try:
                measure(now)
            except Exception as error:  # noqa: BLE001 - told, and tried again
                _tell_failed(alarms, error)
                again[number] = now + BACKGROUND_AGAIN_S
        await asyncio.sleep(MEASURE_EVERY_S)


async def _keep_preflight(process: Process, strength: Strength) -> None:
    while True:
        await asyncio.sleep(WEAK_EVERY_S if process.weak else PREFLIGHT_EVERY_S)
        process.weak = await strength.look()


def clock_us() -> int:
    """This machine's clock, microseconds since 1970 UTC."""
    return time.time_ns() // 1000
