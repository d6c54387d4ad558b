"""The verbs `backup` and `restore`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.cluster_log import Cell, ClusterLog, NatsUrl, PasswordFile, urls_of
from services.cli.commands import DATA, EXIT_CODES, AsJson, Data, dump, opened, run

if TYPE_CHECKING:
    from services.cli.backup import LogOf
    from services.kernel.log import Log

Secrets = Annotated[
    Path | None,
    typer.Option(
        "--secrets",
        metavar="DIR",
        help="With --nats-url: what `sabot nats secrets` wrote; it has a password for each user.",
    ),
]
READER = "audit"
"""The user of a cluster who reads, where nobody else is named: every cluster has it."""
KEEP_MOST = 366
"""A year of nights: more is a mistake."""


def register(app: typer.Typer) -> None:
    """Add the verbs to the command."""
    app.command(epilog=EXIT_CODES)(backup)
    app.command(epilog=EXIT_CODES)(restore)


def backup(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to; with --keep a folder.")
    ],
    data: Data = DATA,
    nats_url: NatsUrl = "",
    cell: Cell = "main",
    secrets: Secrets = None,
    user: Annotated[
        str, typer.Option(metavar="NAME", help="With --nats-url: who reads there.")
    ] = READER,
    password_file: PasswordFile = None,
    keep: Annotated[
        int,
        typer.Option(
            min=0, max=KEEP_MOST, help="A new file in a folder, of which so many are kept; 0: off."
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """The log as a file that `restore` takes and `verify-export` checks, and a manifest beside it.
    A file that is there already goes on from its end, if it is this log's. With --keep each run
    adds a file that is named for its time, and removes the oldest once the new one is whole."""
    cluster = None
    if nats_url:
        file = password_file or (secrets / f"{user}.password" if secrets else None)
        cluster = ClusterLog(urls_of(nats_url), cell, user, file)
    run(_backup(out, data, cluster, keep, as_json))


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
    cut: Annotated[
        bool, typer.Option("--cut", help="The file may have lost its end: what it holds whole.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fill a new data folder, or a cluster's empty stream, with a backup: the same log to the byte.
    Nothing else may run there. Cut off, it may be run again."""
    try:
        trusted = frozenset(bytes.fromhex(one) for one in key or [])
    except ValueError:
        raise typer.BadParameter("64 hexadecimal digits", param_hint="--key") from None
    run(_restore(file, data, nats_url, cell, secrets, trusted, cut=cut, as_json=as_json))


async def _backup(
    out: Path, data: Path, cluster: ClusterLog | None, keep: int, as_json: bool
) -> None:
    from services.cli.backup import back_up, write_manifest
    from services.cli.backup_kept import back_up_anew
    from services.cli.progress import progress
    from services.kernel.build import BUILD
    from services.kernel.host import clock_us

    async with AsyncExitStack() as stack:
        if cluster is not None:
            log: Log = await stack.enter_async_context(cluster.connected("sabot-backup"))
        else:
            log, _ = await stack.enter_async_context(opened(data))
        shown = stack.enter_context(progress("writing"))
        now_us = clock_us()
        if keep:
            out, found = await back_up_anew(log, out, keep, now_us, BUILD, shown)
            manifest = found.manifest(BUILD, now_us)
        else:
            found = await back_up(log, out, shown)
            manifest = found.manifest(BUILD, clock_us())
            write_manifest(out, manifest)
    if as_json:
        dump(manifest | {"added": found.added, "file": str(out)})
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
    *,
    cut: bool,
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
        found = await restored(file, log_of, reader, trusted, shown, cut=cut)
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
            file = secrets / f"{service}.password" if secrets else None
            cluster = ClusterLog(urls_of(nats_url), cell, service, file)
            logs[service] = await stack.enter_async_context(cluster.connected("sabot-backup"))
        return logs[service]

    return log_of, await log_of(READER)
