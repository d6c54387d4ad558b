"""The verbs `movements list` and `movements resolve`: what seamless partners have not confirmed."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from services.cli.commands import EXIT_CODES, RIGHT, WRONG, AsJson, dump, plainly, run

TOKEN = "SABOT_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with an operator's token, so that it stands in no list of processes."""


class Action(Enum):
    """What is done about a movement."""

    RETRY = "retry"
    MARK_DONE = "mark-done"
    WRITE_OFF = "write-off"


Address = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Where the wallet service takes calls.")
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        dir_okay=False,
        help=f"Holds an operator's token; else the variable {TOKEN} does.",
    ),
]
Roots = Annotated[
    Path | None,
    typer.Option(
        "--root-certificates",
        metavar="FILE",
        dir_okay=False,
        help="PEM: who signed the service's certificate; else calls are in plain text.",
    ),
]
HERE = "127.0.0.1:7400"


def register(app: typer.Typer) -> None:
    """Add the verbs to the command."""
    movements = typer.Typer(
        help="Money that seamless partners' wallets have not confirmed.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
    )
    movements.command("list", epilog=EXIT_CODES)(list_movements)
    movements.command("resolve", epilog=EXIT_CODES)(resolve_movement)
    app.add_typer(movements, name="movements")


def list_movements(
    address: Address = HERE,
    partner: Annotated[str, typer.Option(metavar="ID", help="Of this partner only.")] = "",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Also those that are simply under way.")
    ] = False,
    token_file: TokenFile = None,
    root_certificates: Roots = None,
    as_json: AsJson = False,
) -> None:
    """What is known of each, what the partner last answered, and what is safe to do about it.

    The exit code is 0 where there are none."""
    told = run(
        _list(address, token_of(token_file), root_certificates, partner=partner, fresh=fresh)
    )
    for lines in told:
        if as_json:
            dump(lines[1])
        else:
            print(lines[0])
    raise typer.Exit(WRONG if told else RIGHT)


def resolve_movement(
    transaction_id: Annotated[str, typer.Argument(metavar="ID", help="The movement.")],
    action: Annotated[Action, typer.Argument(help="What is done about it.")],
    partner: Annotated[str, typer.Option(metavar="ID", help="Whose it is.")],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why, with what the partner said; for the log.")
    ],
    address: Address = HERE,
    token_file: TokenFile = None,
    root_certificates: Roots = None,
) -> None:
    """Call the partner again at once, count a movement as done as the partner has confirmed, or
    write off what it refused. What is not safe is refused."""
    position = run(
        _resolve(
            address,
            token_of(token_file),
            root_certificates,
            transaction_id,
            action,
            partner,
            reason,
        )
    )
    print(f"{action.value} {transaction_id}: in the log at {position}")


def token_of(token_file: Path | None) -> str:
    """An operator's token, of a file or the environment."""
    from services.cli.secret_files import secret_in, sendable

    token = os.environ.get(TOKEN, "")
    if token_file is None and not token:
        raise typer.BadParameter(f"give it, or set {TOKEN}", param_hint="--token-file")
    with plainly():
        return secret_in(token_file) if token_file is not None else sendable(token, TOKEN)
    raise typer.Exit(WRONG)  # never reached: plainly ends otherwise


async def _list(
    address: str, token: str, roots: Path | None, *, partner: str, fresh: bool
) -> list[tuple[str, dict[str, object]]]:
    from google.protobuf.json_format import MessageToDict

    from sabot.wallet.v1 import wallet_operator_service_pb2 as operators
    from services.cli import movements

    async with movements.service(address, token, roots) as (stub, call):
        found: list[tuple[str, dict[str, object]]] = []
        page_token = ""
        while True:
            request = operators.ListUnresolvedRequest(
                partner_id=partner, fresh=fresh, page_token=page_token
            )
            page = await stub.ListUnresolved(request, **call)
            found += [
                (
                    movements.told(one),
                    MessageToDict(one, preserving_proto_field_name=True),
                )
                for one in page.movements
            ]
            page_token = page.next_page_token
            if not page_token:
                return found


async def _resolve(
    address: str,
    token: str,
    roots: Path | None,
    transaction_id: str,
    action: Action,
    partner: str,
    reason: str,
) -> str:
    from sabot.wallet.v1 import seamless_events_pb2 as seamless
    from sabot.wallet.v1 import wallet_operator_service_pb2 as operators
    from services.cli import movements
    from services.cli.uuid7 import uuid7

    actions = {
        Action.RETRY: seamless.MOVEMENT_ACTION_RETRY,
        Action.MARK_DONE: seamless.MOVEMENT_ACTION_MARK_DONE,
        Action.WRITE_OFF: seamless.MOVEMENT_ACTION_WRITE_OFF,
    }
    request = operators.ResolveMovementRequest(
        request_id=uuid7(),
        partner_id=partner,
        transaction_id=transaction_id,
        action=actions[action],
        reason=reason,
    )
    async with movements.service(address, token, roots) as (stub, call):
        position = (await stub.ResolveMovement(request, **call)).position
    return f"{position.segment}/{position.sequence}/{position.index}"
