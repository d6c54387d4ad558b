"""The verbs of `sabot` for incidents: what is asked of a log when something went wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.commands import DATA, EXIT_CODES, AsJson, Data, dump, opened, run

if TYPE_CHECKING:
    from services.cli.find import Sought
    from services.cli.moments import Moment

TRACE_ID = re.compile(r"[0-9a-f]{32}")


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command(epilog=EXIT_CODES)(find)


def find(
    data: Data = DATA,
    round_id: Annotated[str, typer.Option("--round", metavar="ID")] = "",
    account: Annotated[str, typer.Option(metavar="ID")] = "",
    bet: Annotated[str, typer.Option(metavar="ID")] = "",
    request: Annotated[str, typer.Option(metavar="ID", help="Of a bet, an order, …")] = "",
    trace: Annotated[str, typer.Option(metavar="ID", help="32 hexadecimal digits.")] = "",
    table: Annotated[str, typer.Option(metavar="ID")] = "",
    partner: Annotated[
        str, typer.Option(metavar="ID", help="Only what this partner may see.")
    ] = "",
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Log time with its zone.")
    ] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="This one included.")] = "",
    as_json: AsJson = False,
) -> None:
    """Every event that concerns a round, an account, a bet, a request, a trace or a table, in
    order. Of several ids an event must concern all."""
    asked = {
        "round": round_id,
        "account": account,
        "bet": bet,
        "request": request,
        "trace": trace,
        "table": table,
    }
    ids = {kind: value for kind, value in asked.items() if value}
    if not ids and not (since or until or partner):
        raise typer.BadParameter("say what is looked for, such as --round ID")
    if trace and TRACE_ID.fullmatch(trace) is None:
        raise typer.BadParameter("a trace id is 32 hexadecimal digits", param_hint="--trace")
    first, last = moment(since, "--from"), moment(until, "--to")
    if first is not None and last is not None and first.time_us > last.time_us:
        raise typer.BadParameter("--from is later than --to")
    from services.cli.find import Sought

    run(_find(data, Sought(ids, partner, first, last), as_json))


def moment(text: str, option: str) -> Moment | None:
    """A time of the command line; none where it is empty."""
    from services.cli.moments import parse_time

    try:
        return parse_time(text) if text else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


async def _find(data: Data, sought: Sought, as_json: bool) -> None:
    from services.cli.find import event_json, event_lines
    from services.cli.find import find as search
    from services.cli.progress import progress

    async with opened(data, check=False) as (log, accepted):
        with progress("searching") as shown:
            found = await search(log, sought, accepted, shown)
    if as_json:
        dump({"events": [event_json(event) for event in found]})
        return
    for line in event_lines(found):
        print(line)
