"""The verbs `sabot correct …`: corrections of paid rounds, by two supervisors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.commands import DATA, EXIT_CODES, RIGHT, WRONG, AsJson, Data, dump, plainly, run

if TYPE_CHECKING:
    from services.cli.correct import Told

RoundId = Annotated[str, typer.Argument(metavar="ROUND", help="Such as t1-17; it is paid.")]
Baccarat = Annotated[
    str, typer.Option(metavar="P/B", help="Player's and Banker's cards: 6S,KD/7H,TC.")
]
Roulette = Annotated[int | None, typer.Option(metavar="N", min=0, max=36, help="The number.")]
Sicbo = Annotated[str, typer.Option(metavar="A,B,C", help="The dice.")]
DragonTiger = Annotated[str, typer.Option(metavar="D/T", help="Dragon's and Tiger's card: 7S/8H.")]
FootballStudio = Annotated[str, typer.Option(metavar="H/A", help="Home's and Away's card.")]
Void = Annotated[bool, typer.Option("--void", help="It does not count: stakes go back.")]
Address = Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the fleet takes calls.")]
Settlement = Annotated[
    str,
    typer.Option(metavar="HOST:PORT", help="Where settlement does, if it runs apart."),
]
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
    correct = typer.Typer(
        help="Corrections of paid rounds: one supervisor proposes, another approves.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
    )
    correct.command(epilog=EXIT_CODES)(preview)
    correct.command(epilog=EXIT_CODES)(propose)
    correct.command(epilog=EXIT_CODES)(approve)
    correct.command("list", epilog=EXIT_CODES)(list_)
    app.add_typer(correct, name="correct")


def preview(
    round_id: RoundId,
    baccarat: Baccarat = "",
    roulette: Roulette = None,
    sicbo: Sicbo = "",
    dragon_tiger: DragonTiger = "",
    football_studio: FootballStudio = "",
    void: Void = False,
    address: Address = AT,
    settlement_address: Settlement = "",
    token_file: TokenFile = None,
    operator: Operator = "sam",
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """What a correction would change for every account; nothing is changed."""
    with plainly():
        from services.cli import correct
        from services.cli.odds_live import token_of

        outcome = _outcome(
            correct.Told(baccarat, roulette, sicbo, dragon_tiger, football_studio, void)
        )
        token = token_of(token_file or data / "tokens.json", operator)

        async def ask() -> Any:
            async with correct.client(settlement_address or address, token) as client:
                return await client.preview(round_id, outcome)

        _show_preview(round_id, run(ask()), as_json)


def propose(
    round_id: RoundId,
    reason: Annotated[
        str, typer.Option(metavar="REASON", help="Partners are told it: misread, equipment, …")
    ],
    reference: Annotated[
        str, typer.Option(metavar="TEXT", help="Your own, such as an incident's number.")
    ],
    baccarat: Baccarat = "",
    roulette: Roulette = None,
    sicbo: Sicbo = "",
    dragon_tiger: DragonTiger = "",
    football_studio: FootballStudio = "",
    void: Void = False,
    dry_run: Annotated[
        str,
        typer.Option(metavar="DIGEST", help="Only if the dry run is still this one."),
    ] = "",
    address: Address = AT,
    settlement_address: Settlement = "",
    token_file: TokenFile = None,
    operator: Operator = "sam",
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Make a dry run, and propose what it shows. Nothing moves before another supervisor
    approves."""
    with plainly():
        from services.cli import correct
        from services.cli.odds_live import NotTold, token_of

        outcome = _outcome(
            correct.Told(baccarat, roulette, sicbo, dragon_tiger, football_studio, void)
        )
        if reason not in correct.REASONS:
            raise typer.BadParameter(f"the reasons are {', '.join(correct.REASONS)}")
        token = token_of(token_file or data / "tokens.json", operator)

        async def ask() -> tuple[Any, Any]:
            async with correct.client(settlement_address or address, token) as client:
                dry = await client.preview(round_id, outcome)
            if dry_run and dry.dry_run.hex() != dry_run:
                raise NotTold(f"the dry run is {dry.dry_run.hex()} by now: look at it again")
            async with correct.client(address, token) as client:
                told = await client.propose(dry, round_id, correct.REASONS[reason], reference)
            return dry, told

        dry, told = run(ask())
        if as_json:
            dump(
                {
                    "correction": told.correction_id,
                    "version": told.version,
                    "dry_run": dry.dry_run.hex(),
                    "accounts": dry.accounts,
                    "payout_delta_minor": dry.payout_delta_minor,
                }
            )
            return
        _show_preview(round_id, dry, as_json=False)
        print(
            f"{told.correction_id} is proposed; another supervisor approves it within a day:\n"
            f"  sabot correct approve {told.correction_id} --operator NAME"
        )


def approve(
    correction_id: Annotated[str, typer.Argument(metavar="CORRECTION", help="correction-17")],
    address: Address = AT,
    token_file: TokenFile = None,
    operator: Operator = "rosa",
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Approve what another supervisor proposed, and wait until it is posted."""
    with plainly():
        from services.cli import correct
        from services.cli.odds_live import token_of

        token = token_of(token_file or data / "tokens.json", operator)

        async def ask() -> Any:
            async with correct.client(address, token) as client:
                return await client.approve(correction_id)

        found = run(ask())
        if as_json:
            dump(_as_json(found))
        else:
            print(correct.correction_line(found))
        raise typer.Exit(RIGHT if found.state == correct.POSTED else WRONG)


def list_(
    round_id: Annotated[str, typer.Option("--round", metavar="ROUND", help="Of it only.")] = "",
    most: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 50,
    address: Address = AT,
    token_file: TokenFile = None,
    operator: Annotated[str, typer.Option(help="Whose token of several.")] = "sam",
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Corrections, newest first: how each stands, who proposed and approved it."""
    with plainly():
        from services.cli import correct
        from services.cli.odds_live import token_of

        token = token_of(token_file or data / "tokens.json", operator)

        async def ask() -> Any:
            async with correct.client(address, token) as client:
                return await client.listed(round_id, most)

        found = run(ask())
        if as_json:
            dump([_as_json(one) for one in found])
            return
        for one in found:
            print(correct.correction_line(one))
        if not found:
            print("no corrections")


def _outcome(told: Told) -> Any:
    from services.cli.correct import BadOutcome, outcome_of

    try:
        return outcome_of(told)
    except BadOutcome as error:
        raise typer.BadParameter(str(error)) from None


def _show_preview(round_id: str, dry: Any, as_json: bool) -> None:
    from services.cli import correct

    if as_json:
        dump(
            {
                "round": round_id,
                "table": dry.table_id,
                "version": dry.version,
                "dry_run": dry.dry_run.hex(),
                "currency": dry.currency_code,
                "accounts": dry.accounts,
                "payout_delta_minor": dry.payout_delta_minor,
                "commission_delta_minor": dry.commission_delta_minor,
                "differences": [
                    {
                        "partner": one.partner_id,
                        "account": one.account_id,
                        "payout_delta_minor": one.payout_delta_minor,
                        "commission_delta_minor": one.commission_delta_minor,
                    }
                    for one in dry.differences
                ],
            }
        )
        return
    for line in correct.preview_lines(round_id, dry):
        print(line)


def _as_json(one: Any) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict

    told: dict[str, Any] = MessageToDict(one, preserving_proto_field_name=True)
    return told
