"""The verbs `sabot behaviour show` and `activate`: by which behaviour every service decides."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli.commands import DATA, EXIT_CODES, Data, plainly, run
from services.cli.switch_command import AT, Address, Operator, TokenFile


def register(app: typer.Typer) -> None:
    """Add the verb."""
    behaviour = typer.Typer(
        help="What services decide by, where a release decides something otherwise than the one "
        "before.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
    )
    behaviour.command(epilog=EXIT_CODES)(show)
    behaviour.command(epilog=EXIT_CODES)(activate)
    app.add_typer(behaviour, name="behaviour")


def show(
    address: Address = AT,
    token_file: TokenFile = None,
    operator: Operator = "sam",
    data: Data = DATA,
) -> None:
    """By which behaviour services decide, and the newest that could be activated."""
    with plainly():
        from services.cli import switches
        from services.cli.odds_live import token_of

        token = token_of(token_file or data / "tokens.json", operator)

        async def ask() -> tuple[int, int]:
            async with switches.client(address, token) as client:
                return await client.behaviours()

        in_force, known = run(ask())
        print(f"behaviour {in_force} is in force; this release knows behaviours 1 to {known}")


def activate(
    number: Annotated[
        int, typer.Argument(metavar="N", min=1, max=(1 << 32) - 1, help="The behaviour.")
    ],
    address: Address = AT,
    token_file: TokenFile = None,
    operator: Operator = "sam",
    data: Data = DATA,
) -> None:
    """Let every service decide by behaviour N from here on.

    First let every process of the cell run a release that knows it: one that does not stops. It
    cannot be taken back.
    """
    with plainly():
        from services.cli import switches
        from services.cli.odds_live import token_of

        token = token_of(token_file or data / "tokens.json", operator)

        async def ask() -> str:
            async with switches.client(address, token) as client:
                return await client.activate(number)

        print(f"behaviour {number} is in force from {run(ask())} on")
