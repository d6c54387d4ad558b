"""The verb `sabot drill`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.commands import EXIT_CODES, RIGHT, WRONG, AsJson, dump, plainly, run


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog=EXIT_CODES)(drill)


def drill(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Which; see --list.")] = "",
    show: Annotated[bool, typer.Option("--list", help="List the drills, and end.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="A new folder for it; else a temporary."),
    ] = None,
    pending: Annotated[
        bool,
        typer.Option("--pending", help="Repair as soon as the alert's expression holds."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring a failure about in a fleet of the drill's own, on this machine alone.

    It shows which alert fires, by its own expression over the processes' own metrics, and which
    runbook holds; repairs it, and ends with the proof from the log."""
    with plainly():
        from services.cli.drill_failures import DRILLS

    if show or not name:
        for one in DRILLS.values():
            print(f"{one.name:20} {one.alert:20} {one.what}")
        return
    if name not in DRILLS:
        raise typer.BadParameter(f"the drills are {', '.join(DRILLS)}", param_hint="NAME")
    if folder is not None and folder.exists():
        raise typer.BadParameter(f"{folder} is there already", param_hint="--folder")
    raise typer.Exit(run(_drill(name, folder, pending=pending, as_json=as_json)))


async def _drill(name: str, folder: Path | None, *, pending: bool, as_json: bool) -> int:
    from services.cli.drill import run_drill
    from services.cli.drill_failures import DRILLS
    from services.cli.new_folder import new_folder
    from services.kernel import telemetry

    telemetry.configure_logging(service="drill", level="ERROR")
    with new_folder(folder, "drill", keep=True) as place:
        seen = await run_drill(
            DRILLS[name],
            place / "data",
            whole=not pending,
            say=(lambda _: None) if as_json else print,
        )
    if as_json:
        dump(
            {
                "drill": name,
                "alert": seen.rule.alert,
                "runbook": seen.rule.runbook,
                "alert_after_s": round(seen.alert_after_s, 1),
                "verified": seen.verified,
            }
        )
    return RIGHT if seen.right else WRONG
