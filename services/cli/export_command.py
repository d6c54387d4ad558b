"""The verbs `export` and `verify-export`: the log as one file, and the check of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.commands import DATA, EXIT_CODES, Data, opened, plainly, run


def register(app: typer.Typer) -> None:
    """Add the verbs to the command."""
    app.command(epilog=EXIT_CODES)(export)
    app.command("verify-export", epilog=EXIT_CODES)(verify_export)


def export(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to.")],
    data: Data = DATA,
) -> None:
    """The whole log as one file that anyone can check without Sabot."""
    run(_export(data, out))


def verify_export(
    file: Annotated[Path, typer.Argument(help="What `sabot export` wrote.")],
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="HEX", help="A public key that may sign; again for more."),
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(metavar="SEQUENCE:HASH", help="A head that is known; again for more."),
    ] = None,
    checkpoint: Annotated[
        Path, typer.Option(metavar="FILE", help="Where Ctrl-C leaves how far it is.")
    ] = Path("verify-export.checkpoint"),
) -> None:
    """Check an export: chain, answers, seals and signatures. The same as running the file
    verify_export.py by itself, on any machine."""
    with plainly():
        from services.cli.verify_export import check_file

        code = check_file(str(file), key or [], head or [], str(checkpoint))
    raise typer.Exit(code)


async def _export(data: Path, out: Path) -> None:
    from services.cli.export import export_log
    from services.cli.progress import progress

    async with opened(data) as (log, _):
        with progress("writing") as shown:
            last, head = await export_log(log, out, lambda done: shown(done, None))
    print(f"{out}: {last} entries, head {last}:{head.hex()}")
