"""The verbs `log head` and `log accept`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.commands import DATA, EXIT_CODES, AsJson, Data, dump, run

if TYPE_CHECKING:
    from services.kernel.event import Position

log_app = typer.Typer(
    help="The log itself: its head, and what an operator accepts of it.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    """Add the verbs to the command."""
    app.add_typer(log_app, name="log")


@log_app.command(epilog=EXIT_CODES)
def head(
    data: Data = DATA,
    at: Annotated[
        int | None, typer.Option(min=0, metavar="SEQUENCE", help="At this entry, not the last.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The chain hash at the end of the log, SEQUENCE:HASH: it stands for every bit before it."""
    run(_print_head(data, at, as_json))


@log_app.command(epilog=EXIT_CODES)
def accept(
    head: Annotated[
        str, typer.Argument(metavar="[HEAD]", help="SEQUENCE:HASH, as `sabot log head` says.")
    ] = "",
    data: Data = DATA,
    reason: Annotated[str, typer.Option(help="Why. It goes into the log.")] = "",
    operator: Annotated[str, typer.Option(help="Who decides; else the login name.")] = "",
    entry: Annotated[
        bool, typer.Option("--entry", help="Let one entry pass that cannot be understood.")
    ] = False,
    difference: Annotated[
        str,
        typer.Option(metavar="POSITION", help="Let one answer stand that does not follow."),
    ] = "",
    address: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="With --difference: a running fleet is told."),
    ] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="With --address: a supervisor's token, or several by actor; else tokens.json of "
            "the data folder.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a log that is shorter than, or differs from, what was witnessed.

    The fleet must be stopped. Without HEAD it only says what would be lost. With HEAD, which must
    be the end of the log as it stands, and a reason, processes may start from there; the log tells
    of it at the next start. What the lost entries held is gone for good: look for a copy first.

    With --difference, proofs count the answer at that position apart from now on. Accept it once it
    is known why it does not follow, and what it did is made good. With --address a running fleet
    has its log say so at once; --operator is then whose token of several is used.
    """
    if (address or token_file is not None) and not (address and difference):
        raise typer.BadParameter("goes with --difference", param_hint="--address")
    if difference:
        if head or entry:
            raise typer.BadParameter("goes by itself", param_hint="--difference")
        if not reason.strip():
            raise typer.BadParameter("give a reason: it goes into the log", param_hint="--reason")
        at = _answer(difference)
        if address:
            tokens = token_file or data / "tokens.json"
            run(_ask_to_accept(address, tokens, operator or "sam", at, reason, as_json))
        else:
            run(_accept_difference(data, at, reason, operator, as_json))
        return
    if head and not reason.strip():
        raise typer.BadParameter("give a reason: it goes into the log", param_hint="--reason")
    if entry and not head:
        raise typer.BadParameter("name the entry as SEQUENCE:HASH", param_hint="HEAD")
    run(_accept(data, head, reason, operator, entry=entry, as_json=as_json))


async def _print_head(data: Path, at: int | None, as_json: bool) -> None:
    from services.cli.acceptance import head_at
    from services.cli.log_source import open_source

    # Unchecked: this is what one looks at when a check has failed.
    async with open_source(data) as log:
        found = await head_at(log, at)
    if as_json:
        dump({"sequence": found.sequence, "head": found.head.hex()})
    else:
        print(found)


def _answer(text: str) -> Position:
    from services.cli.moments import parse_position
    from services.kernel.reader import END_OF_ENTRY

    try:
        at = parse_position(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--difference") from None
    if at.index == END_OF_ENTRY:
        raise typer.BadParameter("name one answer, such as 1/123/0", param_hint="--difference")
    return at


async def _accept_difference(
    data: Path, at: Position, reason: str, operator: str, as_json: bool
) -> None:
    from services.cli.acceptance import accept_difference

    head = await accept_difference(data, at, reason, operator)
    if as_json:
        dump({"difference": str(at), "head": str(head), "accepted": True})
    else:
        print(f"accepted: the answer at {at} stands; the log tells of it at the next start")


async def _ask_to_accept(
    address: str, tokens: Path, operator: str, at: Position, reason: str, as_json: bool
) -> None:
    from services.cli.odds_live import token_of
    from services.cli.significant import Client

    told = await Client(address, token_of(tokens, operator)).accept_difference(at, reason)
    if as_json:
        dump({"difference": str(at), "told_at": str(told), "accepted": True})
    else:
        print(f"accepted: the answer at {at} stands, as the log tells at {told}")


async def _accept(
    data: Path, text: str, reason: str, operator: str, *, entry: bool, as_json: bool
) -> None:
    from services.cli.acceptance import accept_entry, accept_head, examine, parse_head

    if not text:
        loss = await examine(data)
    else:
        try:
            wanted = parse_head(text)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="HEAD") from None
        if entry:
            await accept_entry(data, wanted, reason, operator)
            print(f"accepted: entry {wanted} is read over; the log tells of it at the next start")
            return
        loss = await accept_head(data, wanted, reason, operator)
    if as_json:
        dump({**loss.json(), "accepted": bool(text)})
        return
    for line in loss.lines():
        print(line)
    if text:
        print("accepted; the log tells of it at the next start")
        print("projections may have seen what is lost: sabot projections rebuild")
    elif loss.witnessed:
        print(f"to go on without it: sabot log accept {loss.head} --reason … --data {data}")
    else:
        print("nothing is lost")
