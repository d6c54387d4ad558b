"""The verbs `sabot snapshots`: of a cluster, whose processes share them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.cluster_log import ClusterLog, PasswordFile, urls_of
from services.cli.commands import EXIT_CODES, RIGHT, WRONG, AsJson, dump, run
from services.cli.operating import ONE_SERVER, Cell, NatsUrl

if TYPE_CHECKING:
    from services.cli.snapshots import Built, Checked
    from services.kernel.shared_snapshots import SharedSnapshot

Services = Annotated[
    list[str] | None,
    typer.Argument(metavar="SERVICE…", help="Of these services alone; else of all."),
]
User = Annotated[
    str, typer.Option(metavar="NAME", help="Of NATS: one who may write snapshots; empty: none.")
]
USER = "snapshots"


def register(app: typer.Typer) -> None:
    """Add the verbs to the command."""
    snapshots = typer.Typer(
        help="Snapshots that a cluster's processes share: a start begins from one, and not at the "
        "log's first entry.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
    )
    snapshots.command("list", epilog=EXIT_CODES)(list_)
    snapshots.command(epilog=EXIT_CODES)(build)
    snapshots.command(epilog=EXIT_CODES)(verify)
    app.add_typer(snapshots, name="snapshots")


def list_(
    services: Services = None,
    nats_url: NatsUrl = ONE_SERVER,
    cell: Cell = "main",
    user: User = USER,
    password_file: PasswordFile = None,
    as_json: AsJson = False,
) -> None:
    """What is there, newest first: service, schema, entry, bytes, when it was stored, by what."""
    found = run(_listed(_cluster(nats_url, cell, user, password_file), _known(services)))
    if as_json:
        dump([_facts(one) for one in found])
        return
    for one in found:
        print(_line(one))


def build(
    services: Services = None,
    nats_url: NatsUrl = ONE_SERVER,
    cell: Cell = "main",
    user: User = USER,
    password_file: PasswordFile = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also where there are some to begin from.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Snapshots of this release, for a roll: where there are none that it can begin from, the log
    is folded, and what came of it is stored and named in the log. Bets go on meanwhile."""
    found = run(_built(_cluster(nats_url, cell, user, password_file), _known(services), again))
    if as_json:
        dump(
            {
                "sequence": found.sequence,
                "services": list(found.services),
                "bytes": found.bytes,
                "differences": found.differences,
            }
        )
        return
    print(_told(found))


def verify(
    services: Services = None,
    nats_url: NatsUrl = ONE_SERVER,
    cell: Cell = "main",
    user: User = USER,
    password_file: PasswordFile = None,
    as_json: AsJson = False,
) -> None:
    """Whether each is what it is said to be, and the log names it; exit code 1 where one is not. A
    start passes over such a one and raises an alarm."""
    found = run(_checked(_cluster(nats_url, cell, user, password_file), _known(services)))
    if as_json:
        dump([_facts(each.one) | {"problem": each.problem, "read": each.decoded} for each in found])
    for each in [] if as_json else found:
        right = "right" if each.decoded else "right; another release's, only its digest was held"
        print(f"{_line(each.one)}: {each.problem or right}")
    raise typer.Exit(WRONG if any(each.problem for each in found) else RIGHT)


def _known(services: list[str] | None) -> list[str]:
    from services.events import SERVICES

    for one in services or []:
        if one not in SERVICES:
            raise typer.BadParameter(f"{one} is none of {', '.join(SERVICES)}")
    return services or []


def _cluster(nats_url: str, cell: str, user: str, password_file: Path | None) -> ClusterLog:
    return ClusterLog(urls_of(nats_url), cell, user, password_file)


async def _listed(cluster: ClusterLog, services: list[str]) -> list[SharedSnapshot]:
    from services.cli.snapshots import connected, cores_of

    async with connected(cluster) as (_, shared):
        return await shared.listed([core.service for core in cores_of(services)])


async def _checked(cluster: ClusterLog, services: list[str]) -> list[Checked]:
    from services.cli.snapshots import checked, connected

    async with connected(cluster) as (log, shared):
        return await checked(log, shared, services)


async def _built(cluster: ClusterLog, services: list[str], again: bool) -> Built:
    from services.cli.snapshots import built, connected

    async with connected(cluster) as (log, shared):
        return await built(log, shared, services, again=again)


def _facts(one: SharedSnapshot) -> dict[str, Any]:
    return {
        "service": one.service,
        "schema": one.schema,
        "sequence": one.sequence,
        "bytes": one.stored.size,
        "stored_us": one.stored.stored_us,
        "digest": one.digest.hex(),
        "build": one.build,
    }


def _line(one: SharedSnapshot) -> str:
    from services.cli.moments import written

    return (
        f"{one.service} schema {one.schema} at entry {one.sequence}, {one.stored.size} bytes, "
        f"stored {written(one.stored.stored_us)} by {one.build}"
    )


def _told(found: Built) -> str:
    names = ", ".join(found.services)
    if not found.sequence:
        return "the log is empty: nothing to build"
    if not found.bytes:
        return f"nothing to build: {names} can begin at entry {found.sequence}"
    told = f"built at entry {found.sequence}: {names}; {found.bytes} bytes"
    if found.differences:
        told += f"; this release decides {found.differences} recorded answers otherwise"
    return told
