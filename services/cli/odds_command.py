"""The verb `odds`: exact odds, of the rules or of a live shoe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.commands import DATA, EXIT_CODES, AsJson, Data, dump, plainly, run


def register(app: typer.Typer) -> None:
    """Add the verb to the command."""
    app.command(epilog=EXIT_CODES)(odds)


def odds(
    game: Annotated[
        str,
        typer.Argument(
            metavar="GAME",
            help="baccarat, blackjack, roulette, sicbo, dragon_tiger or football_studio.",
        ),
    ],
    rules: Annotated[
        str,
        typer.Option(
            metavar="RULESET",
            help="Other rules than the usual ones: ez; ace_only, both or none; la_partage; "
            "atlantic_city or macau; tie_8, ace_high, ace_low, decks_6; several with commas.",
        ),
    ] = "",
    seen: Annotated[
        str | None,
        typer.Option(metavar="CARDS", help="Cards that have left a fresh shoe, such as AS,TD."),
    ] = None,
    shoe: Annotated[
        str,
        typer.Option(
            metavar="ID", help="A shoe that stands at a table of a running fleet. Operators only."
        ),
    ] = "",
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="With --shoe: where the fleet takes calls.")
    ] = "127.0.0.1:7400",
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="With --shoe: an operator's token, or several by actor; else tokens.json of the "
            "data folder.",
        ),
    ] = None,
    operator: Annotated[
        str, typer.Option(help="With --shoe: whose token of several; a supervisor or auditor.")
    ] = "ada",
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """The exact odds of every bet: each outcome's pay and probability, the return, the edge.

    By enumeration, as fractions; in the first round of a fresh shoe unless --seen says what has
    left it, or --shoe asks a running fleet.
    """
    if shoe and (rules or seen is not None):
        raise typer.BadParameter("a live shoe has its rules, and says itself what was seen")
    with plainly():
        from services.cli import odds as cli_odds
        from services.odds.compositions import CardImpossible, TooFewCards

        cards_left: int | None
        try:
            if shoe:
                from services.cli import odds_live

                token = odds_live.token_of(token_file or data / "tokens.json", operator)
                live = run(odds_live.live(game, shoe, address, token))
                name, cards_left, told = live.rules, live.unseen_cards, live.odds
            else:
                name, left, told = cli_odds.exact(game, rules, seen)
                cards_left = None if left is None else left.total
        except (cli_odds.OddsRefused, CardImpossible, TooFewCards) as error:
            raise typer.BadParameter(str(error)) from None
        if as_json:
            dump(cli_odds.as_json(game, name, told))
        else:
            for line in cli_odds.lines(name, cards_left, told):
                print(line)
