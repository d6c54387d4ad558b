"""The verbs of `sabot` for incidents: what is asked of a log when something went wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.cluster_log import Cell, ClusterLog, NatsUrl, PasswordFile, urls_of
from services.cli.commands import (
    DATA,
    EXIT_CODES,
    RIGHT,
    WRONG,
    AsJson,
    Data,
    dump,
    opened,
    plainly,
    run,
)

if TYPE_CHECKING:
    from services.cli.find import Sought
    from services.cli.incident_span import Wanted
    from services.cli.moments import Moment
    from services.cli.what_if import Change
    from services.kernel.event import Position
    from services.kernel.log import Log

capsules = typer.Typer(
    help="An incident as one file that replays on any machine.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
)
TRACE_ID = re.compile(r"[0-9a-f]{32}")


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command(epilog=EXIT_CODES)(find)
    app.add_typer(capsules, name="capsule")
    app.command("what-if", epilog=EXIT_CODES)(what_if)
    app.command(epilog=EXIT_CODES)(prove)


def find(
    data: Data = DATA,
    round_id: Annotated[str, typer.Option("--round", metavar="ID")] = "",
    account: Annotated[str, typer.Option(metavar="ID")] = "",
    bet: Annotated[str, typer.Option(metavar="ID")] = "",
    request: Annotated[str, typer.Option(metavar="ID", help="Of a bet, an order, …")] = "",
    trace: Annotated[str, typer.Option(metavar="ID", help="32 hexadecimal digits.")] = "",
    table: Annotated[str, typer.Option(metavar="ID")] = "",
    partner: Annotated[
        str, typer.Option(metavar="ID", help="Only what this partner may see.")
    ] = "",
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Log time with its zone.")
    ] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="This one included.")] = "",
    as_json: AsJson = False,
) -> None:
    """Every event that concerns a round, an account, a bet, a request, a trace or a table, in
    order. Of several ids an event must concern all."""
    asked = {
        "round": round_id,
        "account": account,
        "bet": bet,
        "request": request,
        "trace": trace,
        "table": table,
    }
    ids = {kind: value for kind, value in asked.items() if value}
    if not ids and not (since or until or partner):
        raise typer.BadParameter("say what is looked for, such as --round ID")
    if trace and TRACE_ID.fullmatch(trace) is None:
        raise typer.BadParameter("a trace id is 32 hexadecimal digits", param_hint="--trace")
    first, last = moment(since, "--from"), moment(until, "--to")
    if first is not None and last is not None and first.time_us > last.time_us:
        raise typer.BadParameter("--from is later than --to")
    from services.cli.find import Sought

    run(_find(data, Sought(ids, partner, first, last), as_json))


def moment(text: str, option: str) -> Moment | None:
    """A time of the command line; none where it is empty."""
    from services.cli.moments import parse_time

    try:
        return parse_time(text) if text else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


async def _find(data: Data, sought: Sought, as_json: bool) -> None:
    from services.cli.find import event_json, event_lines
    from services.cli.find import find as search
    from services.cli.progress import progress

    async with opened(data, check=False) as (log, accepted):
        with progress("searching") as shown:
            found = await search(log, sought, accepted, shown, data)
    if as_json:
        dump({"events": [event_json(event) for event in found]})
        return
    for line in event_lines(found):
        print(line)


# ---- capsules ----------------------------------------------------------------------------------


@capsules.command(epilog=EXIT_CODES)
def make(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to.")],
    data: Data = DATA,
    round_id: Annotated[str, typer.Option("--round", metavar="ID")] = "",
    table: Annotated[str, typer.Option(metavar="ID", help="With --from and --to.")] = "",
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Log time with its zone.")
    ] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="This one included.")] = "",
    partner: Annotated[
        str, typer.Option(metavar="ID", help="With nothing of other partners' accounts in it.")
    ] = "",
) -> None:
    """Pack a round, or a table's doings within a time: the states before, the entries, proofs
    under a seal, rules, and the statements of the accounts concerned."""
    if bool(round_id) == bool(table):
        raise typer.BadParameter("say either --round ID, or --table ID with --from and --to")
    if bool(table) != bool(since and until) or (round_id and (since or until)):
        raise typer.BadParameter("--from and --to go with --table")
    first, last = moment(since, "--from"), moment(until, "--to")
    if first is not None and last is not None and first.time_us > last.time_us:
        raise typer.BadParameter("--from is later than --to")
    from services.cli.incident_span import Wanted

    run(_make(data, Wanted(round_id, table, first, last, partner), out))


async def _make(data: Path, wanted: Wanted, out: Path) -> None:
    from services.cli.capsule import make_capsule
    from services.cli.progress import progress

    async with opened(data, check=False) as (log, accepted):
        with progress("packing") as shown:
            made = await make_capsule(log, wanted, out, data, accepted, shown)
    hidden = f", {made.entries - made.shown} of them by their hashes" if wanted.partner else ""
    under = "under a seal" if made.sealed else "under no seal yet"
    print(f"{out}: {made.entries} entries{hidden}, {under}, {made.size:,} bytes")


@capsules.command("open", epilog=EXIT_CODES)
def open_(
    file: Annotated[Path, typer.Argument(help="What `sabot capsule make` wrote.")],
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="HEX", help="A public key that may sign; again for more."),
    ] = None,
    cell: Annotated[str, typer.Option(metavar="NAME", help="The cell it must be of.")] = "",
    as_json: AsJson = False,
) -> None:
    """Check a capsule, decide its entries again and show what happened. Needs no data folder."""
    try:
        trusted = frozenset(bytes.fromhex(one) for one in key or [])
    except ValueError:
        raise typer.BadParameter(
            "a public key is 64 hexadecimal digits", param_hint="--key"
        ) from None
    with plainly():
        from services.cli.capsule_open import lines, open_capsule, opened_json
        from services.cli.capsule_read import read_capsule

        found = open_capsule(read_capsule(file), trusted, cell)
        if as_json:
            dump(opened_json(found))
        else:
            print("\n".join(lines(found)))
    raise typer.Exit(RIGHT if found.right else WRONG)


# ---- what if -----------------------------------------------------------------------------------


def what_if(
    round_id: Annotated[str, typer.Option("--round", metavar="ID")],
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPTION=VALUE]…", help="With --rule-set: such as tie_pays=9."),
    ] = None,
    data: Data = DATA,
    rule_set: Annotated[
        str, typer.Option("--rule-set", metavar="ID", help="Other rules (`sabot rules list`).")
    ] = "",
    card: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INDEX=CARD", help="Another card at this place of the shoe; again for more."
        ),
    ] = None,
    closing: Annotated[
        str, typer.Option(metavar="POSITION", help="Betting closes behind this event.")
    ] = "",
    spin: Annotated[int | None, typer.Option(min=0, max=36, help="What the wheel shows.")] = None,
    dice: Annotated[str, typer.Option(metavar="A,B,C", help="What the dice show.")] = "",
    as_json: AsJson = False,
) -> None:
    """Play a round's inputs again with something changed: who would have got what.

    Nothing is written. The differences of all accounts and of the house sum to zero."""
    chosen = [bool(rule_set), bool(card), bool(closing), spin is not None, bool(dice)]
    if sum(chosen) != 1:
        raise typer.BadParameter("say one of --rule-set, --card, --closing, --spin and --dice")
    if options and not rule_set:
        raise typer.BadParameter("options go with --rule-set", param_hint="OPTION=VALUE")
    from services.cli.rule_change import changed_spec
    from services.cli.what_if import Change

    change = Change(
        spec=(lambda spec: changed_spec(spec, rule_set, options or [])) if rule_set else None,
        cards=dict(_card(one) for one in card or []),
        closing=_position(closing) if closing else None,
        number=spin,
        dice=_dice(dice) if dice else (),
    )
    run(_what_if(data, round_id, change, as_json))


def _card(text: str) -> tuple[int, str]:
    from services.cli.moments import is_number
    from services.games.cards import is_card

    index, _, card = text.partition("=")
    if not (is_number(index) and is_card(card)):
        raise typer.BadParameter(f"{text!r} is not such as 17=TD", param_hint="--card")
    return int(index), card


def _position(text: str) -> Position:
    from services.cli.moments import parse_position

    try:
        return parse_position(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--closing") from None


def _dice(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) != 3 or not all(part in set("123456") for part in parts):
        raise typer.BadParameter(f"{text!r} is not such as 1,2,3", param_hint="--dice")
    return tuple(map(int, parts))


async def _what_if(data: Path, round_id: str, change: Change, as_json: bool) -> None:
    from services.cli.outcome import difference_lines
    from services.cli.progress import progress
    from services.cli.what_if import what_if as play_again

    async with opened(data) as (log, accepted):
        with progress("folding") as shown:
            found = await play_again(log, round_id, change, data, accepted, shown)
    if as_json:
        dump(found.json())
        return
    print(f"round {round_id}, recorded: {found.recorded.result} ({found.recorded.end})")
    print(f"round {round_id}, would be: {found.would_be.result} ({found.would_be.end})")
    for line in (*difference_lines(found.differences), *found.notes):
        print(line)
    if found.correction:
        print(
            f"to have it corrected so, which another supervisor must approve:\n  {found.correction}"
        )


# ---- the whole history -------------------------------------------------------------------------


def prove(
    data: Data = DATA,
    nats_url: NatsUrl = "",
    cell: Cell = "main",
    user: Annotated[
        str, typer.Option(metavar="NAME", help="With --nats-url: who reads there.")
    ] = "prove",
    password_file: PasswordFile = None,
    processes: Annotated[
        int, typer.Option(min=0, max=256, help="So many at once; 0: one a processor.")
    ] = 0,
    checkpoint: Annotated[
        Path, typer.Option(metavar="FILE", help="Where Ctrl-C leaves how far it is.")
    ] = Path("prove.checkpoint"),
    publish: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add the outcome, with its time, as a line of JSON."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decide the whole history again, in parallel from snapshot to snapshot and by services.

    It ends with `N rounds, N answers, 0 differences, head H`; exit code 1 where a recorded answer
    does not follow, or a snapshot is not what the answers before it come to. Differences that an
    operator accepted (`sabot log accept --difference`) are counted apart. Interrupted, it goes on
    from its checkpoint when it is called again."""
    cluster = ClusterLog(urls_of(nats_url), cell, user, password_file) if nats_url else None
    proving = _prove(data, cluster, processes or processors(), checkpoint, publish, as_json)
    raise typer.Exit(run(proving))


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


async def _prove(
    data: Path,
    cluster: ClusterLog | None,
    processes: int,
    checkpoint: Path,
    publish: Path | None,
    as_json: bool,
) -> int:
    from services.cli.progress import going_on, progress
    from services.cli.prove import prove as prove_all
    from services.cli.proving import publish_outcome
    from services.kernel.build import BUILD
    from services.kernel.host import clock_us

    async with AsyncExitStack() as stack:
        accepted: Mapping[int, bytes] = {}
        if cluster is not None:
            log: Log = await stack.enter_async_context(cluster.connected("sabot-prove"))
        else:
            log, accepted = await stack.enter_async_context(opened(data))
        shown = stack.enter_context(progress("deciding again"))
        found = await prove_all(
            data, log, processes, checkpoint, accepted, shown, cluster=cluster, going_on=going_on
        )
    if publish is not None:
        publish_outcome(publish, found, BUILD, clock_us())
    if as_json:
        dump(found.json())
    else:
        for difference in found.let_stand:
            print(f"accepted {difference}")
        for difference in found.differences:
            print(difference)
        for service in found.lost:
            print(f"{service} could not be decided again to the end")
        print(found.line())
    return RIGHT if found.right else WRONG
