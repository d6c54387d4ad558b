"""The verbs of `sabot` for whoever runs a cell on servers of their own: NATS and its stream."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.commands import EXIT_CODES, RIGHT, WRONG, AsJson, dump, plainly, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.cli.nats_watch import LogWatch
    from services.cli.streams import Plan, Servers

Cell = Annotated[str, typer.Option(metavar="NAME", help="The cell.")]
ROUTES = "nats-0.nats:6222,nats-1.nats:6222,nats-2.nats:6222"
"""Where the servers of k8s/base find one another."""

NatsUrl = Annotated[
    str, typer.Option("--nats-url", metavar="URL,…", help="The log's servers: nats://host:port.")
]
User = Annotated[str, typer.Option(metavar="NAME", help="Of NATS; empty: none.")]
PasswordFile = Annotated[
    Path | None, typer.Option("--password-file", metavar="FILE", help="Holds its password.")
]
Replicas = Annotated[int, typer.Option(min=1, max=5, help="On so many servers.")]
MaxBytes = Annotated[
    int | None, typer.Option("--max-bytes", min=1, help="Room for the log; else as it is.")
]
SnapshotBytes = Annotated[
    int | None,
    typer.Option("--snapshot-bytes", min=1, help="Room for snapshots; else as it is, or 2 GiB."),
]
Create = Annotated[
    bool, typer.Option("--create", help="These servers have never held it: make the stream.")
]
ONE_SERVER = "nats://127.0.0.1:4222"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    nats_app = typer.Typer(
        help="The log's servers: their configuration and secrets.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
    )
    nats_app.command("config", epilog=EXIT_CODES)(nats_config)
    nats_app.command("secrets", epilog=EXIT_CODES)(nats_secrets)
    nats_app.command("watch", epilog=EXIT_CODES)(nats_watch)
    app.add_typer(nats_app, name="nats")
    app.command(epilog=EXIT_CODES)(keys)
    app.command(epilog=EXIT_CODES)(token)
    streams_app = typer.Typer(
        help="The cell's stream: its definition is code, and is applied only where nothing that is "
        "written can be lost.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
    )
    for verb in (diff, plan, apply):
        streams_app.command(epilog=EXIT_CODES)(verb)
    app.add_typer(streams_app, name="streams")


def nats_config(
    cell: Cell = "main",
    tls: Annotated[
        bool, typer.Option("--tls", help="Clients and servers meet in TLS alone.")
    ] = False,
) -> None:
    """The configuration of every server of a cell's cluster: who may append, read and make what.
    It includes secrets.conf."""
    with plainly():
        from services.cli import nats_config as rendering

        print(rendering.config(cell, tls=tls), end="")


def nats_secrets(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to.")],
    routes: Annotated[
        str, typer.Option(metavar="HOST:PORT,…", help="Where the servers find one another.")
    ] = ROUTES,
) -> None:
    """Draw a cluster's passwords: secrets.conf for its servers, and a file for each user."""
    with plainly():
        from services.cli import nats_config as rendering

        for path in rendering.write_secrets(out, [route.strip() for route in routes.split(",")]):
            print(path)


def nats_watch(
    log: Annotated[
        Path, typer.Option(metavar="FILE", help="What the server writes, its log_file.")
    ],
    metrics_port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Where alarms are counted, for Prometheus; 0: off."),
    ] = 0,
    host: Annotated[str, typer.Option(help="With --metrics-port: where it listens.")] = "127.0.0.1",
) -> None:
    """Follow a server's log, pass it on, and raise the alarm `log_misused` whenever somebody tried
    what they may not: to append, to listen, to ask for something, or to connect."""
    from services.cli.nats_watch import LogWatch
    from services.kernel.alarms import Alarms
    from services.kernel.telemetry import Metrics, configure_logging

    configure_logging(service="nats-watch")
    metrics = Metrics()
    alarms = Alarms(metrics)
    if metrics_port:
        metrics.serve(host, metrics_port)
    with plainly(), contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_until_told_to_end(LogWatch(log, alarms, sys.stdout)))


async def _until_told_to_end(watch: LogWatch) -> None:
    following = asyncio.create_task(watch.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, following.cancel)
    try:
        await following
    finally:
        watch.look()  # its last words
        watch.close()


def keys(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to.")],
) -> None:
    """Draw the keys of a cell whose services run apart: shoe_keys.json for the custodian,
    seal_keys.json for audit and call_keys.json for the wallet's calls to partners. Files that are
    there already are only looked at."""
    with plainly():
        from services.audit.seal_keys import load_or_create_signer
        from services.kernel.call_tokens import load_or_create_call_keys
        from services.kernel.key_file import load_or_create_keys
        from services.shoe.custodian import system_generator

        shoe = out / "shoe_keys.json"
        print(f"{shoe}: key {load_or_create_keys(shoe, system_generator().draw).current}")
        seal = out / "seal_keys.json"
        signer = load_or_create_signer(seal)
        print(f"{seal}: key {signer.key_id}, public {signer.public_key.hex()}")
        calls = out / "call_keys.json"
        print(f"{calls}: key {load_or_create_call_keys(calls).current}")


def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The operator, or the device.")],
    roles: Annotated[list[str], typer.Option("--role", metavar="ROLE", help="What it may do.")],
    tables: Annotated[
        list[str], typer.Option("--table", metavar="ID", help="Only there; else at every table.")
    ] = [],  # noqa: B006 - typer copies it, and takes no tuple
    devices: Annotated[
        list[str],
        typer.Option("--device", metavar="ID", help="That it speaks for; else the one named NAME."),
    ] = [],  # noqa: B006 - the same
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The token file; else its line is shown."),
    ] = None,
) -> None:
    """Draw an operator's or a device's token, and put it into the token file: the services read it
    anew. The token is shown this once; the file has only its digest."""
    with plainly():
        import json

        from services.kernel.tokens import add_token, digest_of, made_caller, new_token

        facts = {"operator": name, "roles": roles}
        facts |= {key: ids for key, ids in (("devices", devices), ("tables", tables)) if ids}
        caller, drawn = made_caller(facts), new_token()
        if file is None:
            print(json.dumps({digest_of(drawn): facts})[1:-1], file=sys.stderr)
        else:
            add_token(file, drawn, caller)
        print(drawn)


def diff(
    nats_url: NatsUrl = ONE_SERVER,
    cell: Cell = "main",
    user: User = "admin",
    password_file: PasswordFile = None,
    replicas: Replicas = 3,
    max_bytes: MaxBytes = None,
    snapshot_bytes: SnapshotBytes = None,
    as_json: AsJson = False,
) -> None:
    """How the stream, and the bucket of snapshots beside it, differ from their definitions; exit
    code 1 where one does."""
    from services.cli.streams import What

    servers = _servers(nats_url, user, password_file)
    found = run(_planned(servers, cell, replicas, max_bytes, snapshot_bytes, create=False))
    _show(found, as_json)
    differs = any(one.what is not What.NOTHING for one in found)
    raise typer.Exit(WRONG if differs else RIGHT)


def plan(
    nats_url: NatsUrl = ONE_SERVER,
    cell: Cell = "main",
    user: User = "admin",
    password_file: PasswordFile = None,
    replicas: Replicas = 3,
    max_bytes: MaxBytes = None,
    snapshot_bytes: SnapshotBytes = None,
    create: Create = False,
    as_json: AsJson = False,
) -> None:
    """What `apply` would do; exit code 1 where it would refuse."""
    servers = _servers(nats_url, user, password_file)
    found = run(_planned(servers, cell, replicas, max_bytes, snapshot_bytes, create=create))
    _show(found, as_json)
    raise typer.Exit(_refused(found))


def apply(
    nats_url: NatsUrl = ONE_SERVER,
    cell: Cell = "main",
    user: User = "admin",
    password_file: PasswordFile = None,
    replicas: Replicas = 3,
    max_bytes: MaxBytes = None,
    snapshot_bytes: SnapshotBytes = None,
    create: Create = False,
    as_json: AsJson = False,
) -> None:
    """Make the stream, or change what may be changed: more replicas, more room, stricter flags.

    Whatever could take away what is written is refused, and then nothing is done at all. The bucket
    of snapshots is a cache: it is made where it is not there, and made to be as it must be.
    """
    servers = _servers(nats_url, user, password_file)
    found = run(_applied(servers, cell, replicas, max_bytes, snapshot_bytes, create=create))
    _show(found, as_json)
    raise typer.Exit(_refused(found))


async def _planned(
    servers: Servers,
    cell: str,
    replicas: int,
    max_bytes: int | None,
    snapshot_bytes: int | None,
    *,
    create: bool,
) -> tuple[Plan, ...]:
    """Of the stream and of the bucket."""
    from services.cli import streams

    return (
        await streams.planned(
            servers, cell, replicas=replicas, max_bytes=max_bytes, may_create=create
        ),
        await streams.bucket_planned(servers, cell, replicas=replicas, max_bytes=snapshot_bytes),
    )


async def _applied(
    servers: Servers,
    cell: str,
    replicas: int,
    max_bytes: int | None,
    snapshot_bytes: int | None,
    *,
    create: bool,
) -> tuple[Plan, ...]:
    """The bucket's after the stream's, where nothing stood in the way of that."""
    from services.cli import streams

    found = await streams.applied(
        servers, cell, replicas=replicas, max_bytes=max_bytes, may_create=create
    )
    if found.what is streams.What.REFUSE:
        return (found,)
    bucket = await streams.bucket_applied(
        servers, cell, replicas=replicas, max_bytes=snapshot_bytes
    )
    return found, bucket


def _refused(found: Sequence[Plan]) -> int:
    from services.cli.streams import What

    return WRONG if any(one.what is What.REFUSE for one in found) else RIGHT


def _servers(nats_url: str, user: str, password_file: Path | None) -> Servers:
    from services.cli.streams import Servers

    return Servers([url.strip() for url in nats_url.split(",")], user, password_file)


def _show(found: Sequence[Plan], as_json: bool) -> None:
    from services.cli import streams

    if as_json:
        log, *bucket = map(streams.as_json, found)
        dump(log | ({"snapshots": bucket[0]} if bucket else {}))
        return
    for one in found:
        for line in streams.lines(one):
            print(line)
