"""`python -m services.<name>`: one service in a process of its own, told everything by its
environment."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from services.kernel import event_loop, host, telemetry
from services.kernel.accepted import AcceptedDamaged
from services.kernel.build import BUILD
from services.kernel.entry import EventTypes
from services.kernel.health_port import HealthPort, health_port
from services.kernel.jetstream import JetStreamLog
from services.kernel.log import LogUnavailable
from services.kernel.object_store import ObjectBucket
from services.kernel.preflight import Preflight, check_log
from services.kernel.projections import ProjectionAhead
from services.kernel.reader import LogBroken
from services.kernel.replica import BehaviourUnknown, Diverged
from services.kernel.settings import BadSettings, ServiceSettings, load
from services.kernel.shared_snapshots import SharedSnapshots, snapshot_bucket
from services.kernel.tokens import BadTokenFile, Tokens
from services.kernel.witness import WitnessDamaged

EXPECTED = (
    AcceptedDamaged,
    BehaviourUnknown,
    Diverged,
    LogBroken,
    LogUnavailable,
    ProjectionAhead,
    WitnessDamaged,
    RuntimeError,
)
"""What a start may end with: told in one line."""
EXIT_STOPPED = 1
EXIT_USAGE = 2
CONNECT_WAIT_S = 60.0
"""How long a start waits for the log's servers: they may be starting too."""
LOG_ADVICE = (
    "look at the log's servers: one whose disk was full takes no append, even when there is room "
    "again, until it is restarted"
)


def main(service: str, parts_of: Callable[[ServiceSettings], host.Parts], types: EventTypes) -> int:
    """Run a service until SIGTERM; the exit code."""
    try:
        settings, tokens = _settings()
    except (BadSettings, BadTokenFile) as error:
        sys.stderr.write(f"{service}: {error}\n")
        return EXIT_USAGE
    telemetry.configure_logging(service=service, level=settings.log_level)
    stopped: BaseException | None
    try:
        stopped = event_loop.run(_probed(service, parts_of, types, settings, tokens))
    except EXPECTED as error:
        stopped = error
    except asyncio.CancelledError:
        return EXIT_STOPPED  # a signal while it started
    if stopped is not None:
        sys.stderr.write(f"{service}: {stopped}\n")
        return EXIT_STOPPED
    return 0


def _settings() -> tuple[ServiceSettings, Tokens]:
    settings = load(ServiceSettings)
    if settings.token_file is None:
        raise BadSettings("SABOT_TOKEN_FILE: needed to know callers by")
    if not settings.nats_monitor_urls:
        raise BadSettings("SABOT_NATS_MONITOR_URLS: needed to know how durable the log is")
    return settings, Tokens(settings.token_file)


async def _probed(
    service: str,
    parts_of: Callable[[ServiceSettings], host.Parts],
    types: EventTypes,
    settings: ServiceSettings,
    tokens: Tokens,
) -> BaseException | None:
    """Serve within the health port's life: it tells that the process lives while the log's servers
    are waited for and the log is read."""
    event_loop.give_up_at_signals()
    async with health_port(settings) as probed:
        return await _serve(service, parts_of, types, settings, tokens, probed)


async def _serve(
    service: str,
    parts_of: Callable[[ServiceSettings], host.Parts],
    types: EventTypes,
    settings: ServiceSettings,
    tokens: Tokens,
    probed: HealthPort | None,
) -> BaseException | None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    monitors = [url.strip() for url in settings.nats_monitor_urls.split(",")]
    log = await _connect(service, settings)

    async def preflight() -> Preflight:
        return await check_log(monitors, settings.cell, replicas=settings.log_replicas)

    try:
        name = settings.name if settings.name != "service" else service
        running = await host.start(
            [parts_of(settings)],
            name=name,
            log=log,
            types=types,
            settings=settings,
            tokens=tokens,
            preflight=preflight,
            build=BUILD,
            log_advice=LOG_ADVICE,
            probed=probed,
            snapshots=_shared(service, settings, log),
        )
        event_loop.at_signals(stop.set)
        stopped = loop.create_task(running.stopped())
        stopping = loop.create_task(stop.wait())
        done, _ = await asyncio.wait({stopped, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        stopped.cancel()
        await running.stop(settings.drain_s)
        return stopped.result() if stopped in done else None
    finally:
        await log.close()


def _shared(service: str, settings: ServiceSettings, log: JetStreamLog) -> SharedSnapshots | None:
    """Where the cell's processes share snapshots, if they do."""
    if settings.snapshots == "folder":
        return None
    bucket = snapshot_bucket(settings.cell)
    prefix = settings.nats_user or service
    return SharedSnapshots(ObjectBucket(log.connection, bucket, consumer_prefix=prefix))


async def _connect(service: str, settings: ServiceSettings) -> JetStreamLog:
    user = settings.nats_user or service
    password = (
        settings.nats_password_file.read_text().strip() if settings.nats_password_file else None
    )
    return await JetStreamLog.connect(
        [url.strip() for url in settings.nats_url.split(",")],
        settings.cell,
        name=settings.name,
        consumer_prefix=user,
        user=settings.nats_user or None,
        password=password,
        inbox_prefix=f"_INBOX_{user}" if settings.nats_user else "_INBOX",
        wait_s=CONNECT_WAIT_S,
    )
