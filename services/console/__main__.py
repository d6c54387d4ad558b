"""`python -m services.console`: pages for operators, over a fleet that runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from services.cli.log_source import through_server
from services.console.app import application
from services.console.archive import Archive
from services.console.calls import Fleet
from services.console.desk import Desk, templates
from services.console.people import BadPeopleFile, People
from services.console.sessions import Sessions
from services.console.settings import ConsoleSettings
from services.console.telling import BadTokenOfConsole, Telling, read_token
from services.kernel import event_loop, telemetry
from services.kernel.embedded import find_running
from services.kernel.jetstream import JetStreamLog
from services.kernel.log import Log
from services.kernel.settings import BadSettings, ServiceSettings, load

EXIT_USAGE = 2
CONNECT_WAIT_S = 10.0
GRACE_S = 1
"""For pages that are being sent at the end; live ones are cut off."""
SMALL_HEADERS = 32 * 1024
"""Of a request: cookies and what proxies add."""


def main() -> int:
    """Serve until SIGINT or SIGTERM; the exit code."""
    try:
        settings, services = load(ConsoleSettings), load(ServiceSettings)
        desk = _desk(settings, services)
    except (BadSettings, BadPeopleFile, BadTokenOfConsole, OSError) as error:
        sys.stderr.write(f"console: {error}\n")
        return EXIT_USAGE
    telemetry.configure_logging(service="console", level=services.log_level)
    return event_loop.run(_serve(desk))


def _desk(settings: ConsoleSettings, services: ServiceSettings) -> Desk:
    ca = settings.ca_file.read_bytes() if settings.ca_file else None
    fleet = Fleet(settings.fleet, settings.addresses, ca, settings.tls_name)
    return Desk(
        settings,
        fleet,
        People(settings.people_file or services.data / "console_people.json"),
        Sessions(settings.idle_s),
        Archive(services.cell, services.data, lambda: _log(services)),
        Telling(fleet, read_token(settings.token_file)),
        templates(),
    )


@asynccontextmanager
async def _log(services: ServiceSettings) -> AsyncIterator[Log]:
    """The log: through the embedded server of the data folder, else of the servers named."""
    if find_running(services.data) is not None:
        async with through_server(services.data, "console") as log:
            yield log
        return
    user = services.nats_user
    password = (
        services.nats_password_file.read_text().strip() if services.nats_password_file else None
    )
    log = await JetStreamLog.connect(
        [url.strip() for url in services.nats_url.split(",")],
        services.cell,
        name=services.name,
        consumer_prefix=user or "console",
        user=user or None,
        password=password,
        inbox_prefix=f"_INBOX_{user}" if user else "_INBOX",
        wait_s=CONNECT_WAIT_S,
    )
    try:
        yield log
    finally:
        await log.close()


async def _serve(desk: Desk) -> int:
    config = uvicorn.Config(
        application(desk),
        host=desk.settings.host,
        port=desk.settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        timeout_graceful_shutdown=GRACE_S,
        h11_max_incomplete_event_size=SMALL_HEADERS,
    )
    server = uvicorn.Server(config)
    serving = asyncio.get_running_loop().create_task(server.serve())
    while not server.started and not serving.done():  # noqa: ASYNC110 - it has no event for it
        await asyncio.sleep(0.02)
    if server.started:
        port = server.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(json.dumps({"console": f"http://{desk.settings.host}:{port}"}) + "\n")
        sys.stdout.flush()
    await serving
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
