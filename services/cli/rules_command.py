"""The verbs `rules list` and `rules show`."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli.commands import EXIT_CODES, AsJson, dump, plainly

rules_app = typer.Typer(
    help="The rule sets that tables may be opened with.", epilog=EXIT_CODES, no_args_is_help=True
)


def register(app: typer.Typer) -> None:
    """Add the verbs to the command."""
    app.add_typer(rules_app, name="rules")


@rules_app.command("list", epilog=EXIT_CODES)
def list_rules() -> None:
    """All rule sets, with their hashes."""
    with plainly():
        from services.cli.rules_pages import listed

        for line in listed():
            print(line)


@rules_app.command("show", epilog=EXIT_CODES)
def show_rules(
    rule_set: Annotated[str, typer.Argument(metavar="RULESET", help="Such as baccarat.")],
    lang: Annotated[str, typer.Option(help="en or fr; English prevails.")] = "en",
    as_json: AsJson = False,
) -> None:
    """How a game goes, what may be staked on and what it pays."""
    with plainly():
        from services.cli import rules_pages

        if lang not in rules_pages.LANGUAGES:
            raise typer.BadParameter(
                f"give one of {', '.join(rules_pages.LANGUAGES)}", param_hint="--lang"
            )
        try:
            if as_json:
                dump(rules_pages.as_json(rule_set))
            else:
                print(rules_pages.page_of(rule_set, lang), end="")
        except rules_pages.UnknownRuleSet as error:
            raise typer.BadParameter(str(error), param_hint="RULESET") from None
