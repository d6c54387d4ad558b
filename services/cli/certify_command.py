"""The verbs `certify-wallet` and `wallet-keys`: partners that keep their accounts' money."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from services.cli.commands import EXIT_CODES, RIGHT, WRONG, AsJson, plainly, run

KEYS = Path("data/call_keys.json")
Keys = Annotated[
    Path,
    typer.Option(
        "--keys",
        metavar="FILE",
        dir_okay=False,
        help="The keys that sign calls to partners' wallets; `wallet-keys` makes them.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command."""
    app.command("certify-wallet", epilog=EXIT_CODES)(certify_wallet)
    app.command("wallet-keys", epilog=EXIT_CODES)(wallet_keys)


def wallet_keys(keys: Keys = KEYS) -> None:
    """The public keys by which partners' wallets know a cell's calls: a JSON Web Key Set.

    Give it to the partner. It holds no secret.
    """
    with plainly():
        from services.kernel.call_tokens import load_or_create_call_keys, public_keys

        print(json.dumps(public_keys(load_or_create_call_keys(keys)), indent=2))


def certify_wallet(
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Where the wallet takes calls.")
    ] = "",
    partner: Annotated[
        str, typer.Option(metavar="NAME", help="The partner: whom the tokens are for.")
    ] = "",
    account: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID:CURRENCY",
            help="A test account; two or more. The first needs 1,000.00, all others 20.00; have "
            "one in JPY and one in KWD where the partner has those.",
        ),
    ] = None,
    blocked: Annotated[
        str, typer.Option(metavar="ID:CURRENCY", help="A blocked test account, with 20.00.")
    ] = "",
    cell: Annotated[str, typer.Option(metavar="NAME", help="The cell that signs.")] = "main",
    keys: Keys = KEYS,
    restart_command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Ends the wallet and starts it again, and then returns. Without it you are asked "
            "to do so, at a terminal.",
        ),
    ] = "",
    root_certificates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="PEM: who signed the wallet's certificate; else this machine's authorities. "
            "On this machine itself calls are in plain text without it.",
        ),
    ] = None,
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, max=10.0, help="Of each call.")
    ] = 5.0,
    case: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="This case only; again for more.")
    ] = None,
    list_cases: Annotated[bool, typer.Option("--list", help="List the cases; call nothing.")] = (
        False
    ),
    as_json: AsJson = False,
) -> None:
    """Try a partner's wallet: every case it must pass, its conventions, the profile to use.

    The money of the test accounts moves; none of it is anybody's. Exit code 0: certified.
    """
    from services.cli import certify_wallet as work

    if list_cases:
        work.print_cases(as_json)
        return
    if not address or not partner:
        raise typer.BadParameter("give HOST:PORT and --partner")
    try:
        asked = work.Asked(
            address=work.parse_address(address),
            partner=partner,
            cell=cell,
            accounts=[work.parse_account(one) for one in account or ()],
            blocked=work.parse_account(blocked) if blocked else None,
            restart_command=restart_command,
            root_certificates=root_certificates,
            deadline_s=deadline,
            cases=work.known_cases(case or ()),
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if len(asked.accounts) < 2:
        raise typer.BadParameter("give two accounts or more", param_hint="--account")
    report = run(work.certified(asked, keys, work.print_verdict if not as_json else None))
    work.print_report(report, as_json)
    raise typer.Exit(RIGHT if report.certified else WRONG)
