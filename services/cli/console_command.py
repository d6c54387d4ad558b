"""`sabot console-person`: who may sign in to the operators' web console."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from services.cli.commands import EXIT_CODES, plainly

LEAST_PASSWORD = 12
"""Signs of a password."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("console-person", epilog=EXIT_CODES)(console_person)


def console_person(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The operator's id, as in its token.")
    ],
    roles: Annotated[
        list[str],
        typer.Option("--role", metavar="ROLE", help="What pages offer; again for more."),
    ],
    file: Annotated[
        Path, typer.Option("--file", metavar="FILE", help="The console's file of people.")
    ],
) -> None:
    """Let an operator sign in to the console, or give a new password. Asks for the operator's
    bearer token (`sabot token`) and a password, without showing them; or reads both from standard
    input, a line each. The file holds the token sealed by the password, and of the password only
    what it takes to check it."""
    known = {"viewer", "dealer", "supervisor", "auditor"}
    if not set(roles) <= known:
        raise typer.BadParameter(f"roles are {', '.join(sorted(known))}", param_hint="--role")
    token, password = _asked()
    if len(password) < LEAST_PASSWORD:
        raise typer.BadParameter(f"a password has {LEAST_PASSWORD} signs or more")
    if not token:
        raise typer.BadParameter("without a token the console could call nobody")
    with plainly():
        from services.console.people import add_person
        from services.kernel.tokens import Role

        add_person(file, name, frozenset(map(Role, roles)), password, token)
        print(f"{file}: {name} may sign in as {', '.join(sorted(roles))}")


def _asked() -> tuple[str, str]:
    """The token and the password."""
    if not sys.stdin.isatty():
        lines = [sys.stdin.readline().rstrip("\r\n") for _ in range(2)]
        return lines[0], lines[1]
    token = str(typer.prompt("Token", hide_input=True))
    password = str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
    return token, password
