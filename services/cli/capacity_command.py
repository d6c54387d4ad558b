"""The verb `sabot capacity`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from services.cli.commands import EXIT_CODES, RIGHT, AsJson, dump, run

GIB = 1 << 30


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog=EXIT_CODES)(capacity)


def capacity(
    bets_a_day: Annotated[
        int, typer.Option(metavar="N", min=1, help="What the cell is to bear.")
    ] = 1_000_000,
    bets_a_round: Annotated[
        float, typer.Option(metavar="N", min=0.01, help="How many of them a round has.")
    ] = 50,
    room: Annotated[
        float, typer.Option(metavar="GIB", min=0.001, help="The log's limit, as max_bytes.")
    ] = 100,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure shortly, and not by process.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="A new folder for it; else a temporary."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What bets cost in bytes and memory, measured here, and how long a log lasts.

    A fleet of the command's own plays rounds of baccarat in a new folder, which is removed."""
    for name, given in (("--bets-a-round", bets_a_round), ("--room", room)):
        if not math.isfinite(given):
            raise typer.BadParameter("a number is wanted", param_hint=name)
    if folder is not None and folder.exists():
        raise typer.BadParameter(f"{folder} is there already", param_hint="--folder")
    run(_capacity(bets_a_day, bets_a_round, room, folder, quick=quick, as_json=as_json))
    raise typer.Exit(RIGHT)


async def _capacity(
    bets_a_day: int,
    bets_a_round: float,
    room: float,
    folder: Path | None,
    *,
    quick: bool,
    as_json: bool,
) -> None:
    from services.cli.capacity import Plan, lines, measure
    from services.cli.new_folder import new_folder

    plan = Plan(bets_a_day, bets_a_round, int(room * GIB))
    with new_folder(folder, "capacity", keep=False) as place:
        found = await measure(place, quick=quick)
    if as_json:
        dump({**found.told(), "bytes_a_day": found.a_day(plan), "days": found.days(plan)})
    else:
        print("\n".join(lines(found, plan)))
