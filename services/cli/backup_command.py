"""The verbs `backup` and `restore`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.commands import DATA, EXIT_CODES, AsJson, Data, dump, opened, run

if TYPE_CHECKING:
    from services.cli.backup import LogOf
    from services.kernel.log import Log

NatsUrl = Annotated[
    str,
    typer.Option(
        "--nats-url", metavar="URL,…", help="A cluster's log instead: nats://host:port of each."
    ),
]
Cell = Annotated[str, typer.Option(metavar="NAME", help="With --nats-url: the cell.")]
Secrets = Annotated[
    Path | None,
    typer.Option(
        "--secrets",
        metavar="DIR",
        help="With --nats-url: what `sabot nats secrets` wrote; it has a password for each user.",
    ),
]
READER = "audit"
"""The user of a cluster who reads: it holds credentials for no tools of its own."""


def register(app: typer.Typer) -> None:
    """Add the verbs to the command."""
    app.command(epilog=EXIT_CODES)(backup)
    app.command(epilog=EXIT_CODES)(restore)


def backup(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to.")],
    data: Data = DATA,
    nats_url: NatsUrl = "",
    cell: Cell = "main",
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """The log as a file that `restore` takes and `verify-export` checks, and a manifest beside it.
    A file that is there already goes on from its end, if it is this log's."""
    run(_backup(out, data, nats_url, cell, secrets, as_json))


def restore(
    file: Annotated[Path, typer.Argument(help="What `sabot backup` or `sabot export` wrote.")],
    data: Data = DATA,
    nats_url: NatsUrl = "",
    cell: Cell = "main",
    secrets: Secrets = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="HEX", help="A public key that may sign seals; again for more."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fill a new data folder, or a cluster's empty stream, with a backup: the same log to the byte.
    Nothing else may run there. Cut off, it may be run again."""
    try:
        trusted = frozenset(bytes.fromhex(one) for one in key or [])
    except ValueError:
        raise typer.BadParameter("64 hexadecimal digits", param_hint="--key") from None
    run(_restore(file, data, nats_url, cell, secrets, trusted, as_json))


async def _backup(
    out: Path, data: Path, nats_url: str, cell: str, secrets: Path | None, as_json: bool
) -> None:
    from services.cli.backup import back_up, write_manifest
    from services.cli.progress import progress
    from services.kernel.build import BUILD
    from services.kernel.host import clock_us

    async with AsyncExitStack() as stack:
        if nats_url:
            log: Log = await stack.enter_async_context(_cluster(nats_url, cell, secrets, READER))
        else:
            log, _ = await stack.enter_async_context(opened(data))
        shown = stack.enter_context(progress("writing"))
        found = await back_up(log, out, shown)
    manifest = found.manifest(BUILD, clock_us())
    write_manifest(out, manifest)
    if as_json:
        dump(manifest | {"added": found.added})
        return
    print(
        f"{out}: {found.entries} entries, {found.added} of them new, head "
        f"{found.entries}:{found.head.hex()}"
    )


async def _restore(
    file: Path,
    data: Path,
    nats_url: str,
    cell: str,
    secrets: Path | None,
    trusted: frozenset[bytes],
    as_json: bool,
) -> None:
    from services.cli.backup import restore as restored
    from services.cli.progress import progress

    async with AsyncExitStack() as stack:
        if nats_url:
            log_of, reader = await _cluster_logs(stack, nats_url, cell, secrets)
        else:
            log_of, reader = await _folder_logs(stack, data)
        shown = stack.enter_context(progress("restoring"))
        found = await restored(file, log_of, reader, trusted, shown)
    if as_json:
        dump({"entries": found.entries, "added": found.added, "head": found.head.hex()})
        return
    print(
        f"restored: {found.entries} entries, {found.added} of them now, head "
        f"{found.entries}:{found.head.hex()}"
    )


async def _folder_logs(stack: AsyncExitStack, data: Path) -> tuple[LogOf, Log]:
    from services.cli.fleet import connect, embedded_log

    server = await stack.enter_async_context(embedded_log(data))
    log = await connect(server)
    stack.push_async_callback(log.close)

    async def log_of(_service: str) -> Log:
        return log

    return log_of, log


async def _cluster_logs(
    stack: AsyncExitStack, nats_url: str, cell: str, secrets: Path | None
) -> tuple[LogOf, Log]:
    """Each service's subjects take its own user's entries and nobody else's."""
    logs: dict[str, Log] = {}

    async def log_of(service: str) -> Log:
        if service not in logs:
            cluster = _cluster(nats_url, cell, secrets, service)
            logs[service] = await stack.enter_async_context(cluster)
        return logs[service]

    return log_of, await log_of(READER)


@asynccontextmanager
async def _cluster(nats_url: str, cell: str, secrets: Path | None, user: str) -> AsyncIterator[Log]:
    from services.kernel.jetstream import JetStreamLog
    from services.kernel.nats_users import NatsUser

    password = (secrets / f"{user}.password").read_text().strip() if secrets else None
    known = NatsUser(user)
    log = await JetStreamLog.connect(
        [url.strip() for url in nats_url.split(",")],
        cell,
        name="sabot-backup",
        consumer_prefix=known.consumer_prefix,
        user=user if secrets else None,
        password=password,
        inbox_prefix=known.inbox_prefix if secrets else "_INBOX",
    )
    try:
        yield log
    finally:
        await log.close()
