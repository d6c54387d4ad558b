"""The verbs `sabot events list` and `sabot events thresholds`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.commands import DATA, EXIT_CODES, AsJson, Data, dump, plainly, run

Address = Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the fleet takes calls.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        dir_okay=False,
        help="An operator's token, or several by actor; else tokens.json of the data folder.",
    ),
]
Minor = typer.Option(min=0, metavar="MINOR", help="In minor units; 0: never.")
AT = "127.0.0.1:7400"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    events = typer.Typer(
        help="Significant events: failed sign-ins, large amounts, voids, changes, reads.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
    )
    events.command("list", epilog=EXIT_CODES)(list_)
    events.command(epilog=EXIT_CODES)(thresholds)
    app.add_typer(events, name="events")


def list_(
    kind: Annotated[str, typer.Option(metavar="KIND", help="Such as void; else all.")] = "",
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Log time with its zone.")
    ] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="Before it.")] = "",
    address: Address = AT,
    token_file: TokenFile = None,
    operator: Annotated[str, typer.Option(help="Whose token of several; an auditor.")] = "ada",
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """List them, oldest first (docs/significant-events.md)."""
    with plainly():
        from services.cli.moments import parse_time
        from services.cli.odds_live import token_of
        from services.cli.significant import KINDS, Client, event_json, line_of

        if kind and kind not in KINDS:
            raise typer.BadParameter(f"the kinds are {', '.join(KINDS)}")
        try:
            times = [parse_time(one).time_us if one else None for one in (since, until)]
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        client = Client(address, token_of(token_file or data / "tokens.json", operator))

        async def ask() -> None:
            found = client.events(kind, *times)
            if as_json:
                dump([event_json(one) async for one in found])
                return
            async for one in found:
                print(line_of(one))

        run(ask())


def thresholds(
    currency: Annotated[str, typer.Argument(metavar="CURRENCY", help="Such as EUR.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept in the log.")],
    table: Annotated[str, typer.Option(metavar="ID", help="Of one table; else of all.")] = "",
    bet_win: Annotated[int, Minor] = 0,
    round_win: Annotated[int, Minor] = 0,
    day_win: Annotated[int, Minor] = 0,
    bet_stake: Annotated[int, Minor] = 0,
    round_stake: Annotated[int, Minor] = 0,
    day_stake: Annotated[int, Minor] = 0,
    address: Address = AT,
    token_file: TokenFile = None,
    operator: Annotated[str, typer.Option(help="Whose token of several; a supervisor.")] = "sam",
    data: Data = DATA,
) -> None:
    """Set from where on wins and stakes are large, in place of what was set before."""
    with plainly():
        from sabot.audit.v1.significant_events_pb2 import Thresholds
        from services.cli.odds_live import token_of
        from services.cli.significant import Client

        client = Client(address, token_of(token_file or data / "tokens.json", operator))
        wanted = Thresholds(
            table_id=table,
            currency_code=currency,
            bet_win_minor=bet_win,
            round_win_minor=round_win,
            day_win_minor=day_win,
            bet_stake_minor=bet_stake,
            round_stake_minor=round_stake,
            day_stake_minor=day_stake,
        )
        run(client.set_thresholds(wanted, reason))
        print(f"thresholds of {table or 'all tables'} in {currency} are set")
