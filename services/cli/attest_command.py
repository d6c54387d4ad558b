"""The verb `sabot attest`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.commands import (
    DATA,
    EXIT_CODES,
    RIGHT,
    WRONG,
    AsJson,
    Data,
    dump,
    opened,
    plainly,
    run,
)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog=EXIT_CODES)(attest)


def attest(
    data: Data = DATA,
    check: Annotated[
        bool,
        typer.Option("--check", help="Fail where processes differ, or run other code than this."),
    ] = False,
    ask: Annotated[
        str,
        typer.Option("--ask", metavar="REASON", help="Have all processes attest now, and end."),
    ] = "",
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="With --ask: where audit takes calls.")
    ] = "127.0.0.1:7400",
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="With --ask: an auditor's token."),
    ] = None,
    operator: Annotated[str, typer.Option(help="Whose token of several; an auditor.")] = "ada",
    as_json: AsJson = False,
) -> None:
    """What every process is made of, as it attested last: code, settings, callers, rules.

    Processes attest at a start, when something changes, every day, and when asked. `--check` holds
    them against one another and against the code that this command runs from."""
    if ask:
        with plainly():
            from services.cli.odds_live import token_of
            from services.cli.significant import Client

            client = Client(address, token_of(token_file or data / "tokens.json", operator))
        asked = run(client.ask_attestation(ask))
        print(f"asked at {asked}; what they attest stands behind it")
        return
    raise typer.Exit(run(_show(data, check, as_json)))


async def _show(data: Path, check: bool, as_json: bool) -> int:
    from services.cli.attested import differences, last_attested, lines_of

    async with opened(data, check=False) as (log, accepted):
        found = await last_attested(log, accepted)
    wrong = differences(found) if check else []
    if as_json:
        dump({"processes": [one.told() for one in found.values()], "differences": wrong})
    else:
        for line in (*lines_of(found), *wrong):
            print(line)
        if check:
            print(f"{len(found)} processes, {len(wrong)} differences")
    return WRONG if wrong or (check and not found) else RIGHT
