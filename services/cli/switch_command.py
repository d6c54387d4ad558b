"""The verbs `sabot switch …`: what takes no new bets and opens no new rounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.commands import DATA, EXIT_CODES, AsJson, Data, dump, plainly, run

if TYPE_CHECKING:
    from sabot.table.v1.operator_service_pb2 import SwitchedOff

Target = Annotated[
    str,
    typer.Argument(
        metavar="WHAT",
        help="all, game:baccarat, rules:HASH, partner:NAME or account:PARTNER/ACCOUNT.",
    ),
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept in the log.")]
Address = Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the fleet takes calls.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        dir_okay=False,
        help="An operator's token, or several by actor; else tokens.json of the data folder.",
    ),
]
Operator = Annotated[str, typer.Option(help="Whose token of several; a supervisor.")]
AT = "127.0.0.1:7400"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    switch = typer.Typer(
        help="What takes no new bets and opens no new rounds; rounds that run are played out.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
    )
    switch.command(epilog=EXIT_CODES)(off)
    switch.command(epilog=EXIT_CODES)(on)
    switch.command("list", epilog=EXIT_CODES)(list_)
    app.add_typer(switch, name="switch")


def off(
    target: Target,
    reason: Reason,
    address: Address = AT,
    token_file: TokenFile = None,
    operator: Operator = "sam",
    data: Data = DATA,
) -> None:
    """Switch something off."""
    _turn(target, reason, address, token_file or data / "tokens.json", operator, off=True)


def on(
    target: Target,
    reason: Reason,
    address: Address = AT,
    token_file: TokenFile = None,
    operator: Operator = "sam",
    data: Data = DATA,
) -> None:
    """Switch it on again."""
    _turn(target, reason, address, token_file or data / "tokens.json", operator, off=False)


def list_(
    address: Address = AT,
    token_file: TokenFile = None,
    operator: Annotated[str, typer.Option(help="Whose token of several.")] = "sam",
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """What is off, by whom, since when and why."""
    with plainly():
        from services.cli import switches
        from services.cli.odds_live import token_of

        token = token_of(token_file or data / "tokens.json", operator)

        async def ask() -> list[SwitchedOff]:
            async with switches.client(address, token) as client:
                return await client.off()

        found = run(ask())
        if as_json:
            dump(
                [
                    {
                        "what": switches.target_of(one.switch),
                        "reason": one.reason,
                        "actor": one.actor,
                        "since": one.since.ToJsonString(),
                    }
                    for one in found
                ]
            )
            return
        for one in found:
            print(switches.line_of(one))
        if not found:
            print("nothing is off")


def _turn(
    target: str, reason: str, address: str, token_file: Path, operator: str, *, off: bool
) -> None:
    with plainly():
        from services.cli import switches
        from services.cli.odds_live import token_of

        try:
            switch = switches.switch_of(target)
        except switches.BadTarget as error:
            raise typer.BadParameter(str(error)) from error
        token = token_of(token_file, operator)

        async def ask() -> None:
            async with switches.client(address, token) as client:
                await client.turn(switch, reason, off=off)

        run(ask())
        print(f"{target} is {'off' if off else 'on'}")
