"""The command `sabot`. Everything heavy is imported when a verb needs it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from services.cli import (
    attest_command,
    backup_command,
    behaviour_command,
    capacity_command,
    certify_command,
    console_command,
    correct_command,
    drill_command,
    export_command,
    incidents,
    ledger_command,
    log_command,
    movements_command,
    odds_command,
    operating,
    partner_money_command,
    rules_command,
    significant_command,
    snapshots_command,
    switch_command,
)
from services.cli.commands import (
    DATA,
    EXIT_CODES,
    RIGHT,
    WRONG,
    AsJson,
    Data,
)
from services.cli.commands import dump as _dump
from services.cli.commands import opened as _opened
from services.cli.commands import plainly as _plainly
from services.cli.commands import run as _run

if TYPE_CHECKING:
    from services.cli.replay import Verified

MAX_DEMO_TABLES = 100


class TextOnly(TyperGroup):
    """Refuses arguments that are no UTF-8: ids and names are looked for, and written, as such."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As click has it."""
        for one in args:
            try:
                one.encode()
            except UnicodeEncodeError:
                raise typer.BadParameter(f"{one!a} is no UTF-8") from None
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=TextOnly,
    help="The back end of live table games: a fleet, its log, and the proof.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
projections = typer.Typer(
    help="What may be asked of a log, kept in SQL.", epilog=EXIT_CODES, no_args_is_help=True
)
app.add_typer(projections, name="projections")


incidents.register(app)
ledger_command.register(app)
movements_command.register(app)
partner_money_command.register(app)
operating.register(app)
snapshots_command.register(app)
console_command.register(app)
odds_command.register(app)
export_command.register(app)
backup_command.register(app)
log_command.register(app)
rules_command.register(app)
certify_command.register(app)
correct_command.register(app)
behaviour_command.register(app)
switch_command.register(app)
significant_command.register(app)
attest_command.register(app)
capacity_command.register(app)
drill_command.register(app)


# ---- the fleet ---------------------------------------------------------------------------------


@app.command(epilog=EXIT_CODES)
def up(
    data: Data = DATA,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where it takes calls; 0: any free port.")
    ] = 7400,
    split: Annotated[
        bool, typer.Option("--split", help="Each service in a process of its own.")
    ] = False,
    replicas: Annotated[
        int, typer.Option(min=1, max=9, help="With --split: so many processes a service.")
    ] = 1,
) -> None:
    """Run a fleet with its own nats-server, until Ctrl-C or SIGTERM, which drain it."""
    with _plainly():
        if split:
            from services.cli.split import run_split

            code = run_split(data, port, replicas)
        else:
            from services.cli.fleet import run_up

            code = run_up(data, port)
    raise typer.Exit(code)


@app.command(epilog=EXIT_CODES)
def demo(
    data: Data = DATA,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="End after so many rounds; else at Ctrl-C.")
    ] = None,
    tables: Annotated[
        str,
        typer.Option(
            metavar="N|all|ID,…",
            help="So many tables of baccarat, 1 to 100, all games, or tables of all games by id.",
        ),
    ] = "1",
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Where it takes calls; 0: any free ports."),
    ] = None,
    pages: Annotated[
        bool, typer.Option("--console/--no-console", help="With the operators' web console.")
    ] = True,
) -> None:
    """A fleet, tables and accounts that bet; a line for each round, and the proof at the end."""
    # The console is started beside a running server. gRPC reads this as it is imported, and says of
    # every process that it cannot fork with it.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    with _plainly():
        from services.cli.demo import run_demo
        from services.cli.demo_games import baccarat_table, every_table

        if tables == "all":
            chosen = every_table()
        elif tables.isdecimal() and 1 <= int(tables) <= MAX_DEMO_TABLES:
            chosen = [baccarat_table(f"demo-{number + 1}") for number in range(int(tables))]
        else:
            asked = tables.split(",")
            chosen = [table for table in every_table() if table.table_id in asked]
            if len(chosen) != len(asked):
                known = ", ".join(table.table_id for table in every_table())
                raise typer.BadParameter(
                    f"give 1 to {MAX_DEMO_TABLES}, all, or some of {known}", param_hint="--tables"
                )
        code = run_demo(data, rounds, chosen, port=port, pages=pages)
    raise typer.Exit(code)


@app.command(epilog=EXIT_CODES)
def simulate(
    seeds: Annotated[int, typer.Option(min=1, help="How many runs.")] = 200,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="At least so many rounds a seed.")] = 20,
    game: Annotated[
        str, typer.Option(metavar="GAME", help="The only game of all tables; else each draws one.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """The whole fleet in one process on a log that fails on demand, seed after seed."""
    with _plainly():
        from services.cli.simulate import GAMES, run_simulation

        if game and game not in GAMES:
            raise typer.BadParameter(f"the games are {', '.join(GAMES)}", param_hint="--game")
        code = run_simulation(seeds=seeds, first=first, rounds=rounds, as_json=as_json, game=game)
    raise typer.Exit(code)


@app.command(epilog=EXIT_CODES)
def bench(
    seconds: Annotated[float, typer.Option(min=0.1, help="Of each figure.")] = 5.0,
    only: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="This part only; may be repeated.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="On which disk; else ./build.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the fleet against a bare echo and against one SQL transaction a bet."""
    with _plainly():
        from services.cli.bench import run_bench

        code = run_bench(as_json, seconds, only or None, folder)
    raise typer.Exit(code)


@app.command("rng-report", epilog=EXIT_CODES)
def rng_report(
    shoes: Annotated[int, typer.Option(min=100, help="How many shoes are drawn.")] = 20_000,
    spins: Annotated[int, typer.Option(min=5_000, help="How many spins of a wheel.")] = 500_000,
    dice: Annotated[int, typer.Option(min=5_000, help="How many rolls of three dice.")] = 300_000,
    seed: Annotated[
        int | None,
        typer.Option(help="A seeded generator instead of the system's: shows the tests only."),
    ] = None,
    raw: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all that is drawn, for other batteries."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw a picture of it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw shoes, spins and dice as the custodian does, and test that they are chance.

    All tests are judged together at 99 %: of a perfect generator one report in a hundred fails.
    """
    with _plainly():
        from services.cli.rng_report import Sizes, run_rng_report

        code = run_rng_report(
            Sizes(shoes, spins, dice), seed=seed, as_json=as_json, raw=raw, plot=plot
        )
    raise typer.Exit(code)


# ---- the log and what it proves ----------------------------------------------------------------


@app.command(epilog=EXIT_CODES)
def replay(
    data: Data = DATA,
    verify: Annotated[
        bool, typer.Option("--verify", help="Decide everything again and compare byte for byte.")
    ] = False,
    round_id: Annotated[
        str, typer.Option("--round", metavar="ID", help="Print the playthrough of a round.")
    ] = "",
    checkpoint: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Where --verify keeps how far it is, if interrupted."),
    ] = Path("replay.checkpoint"),
    as_json: AsJson = False,
) -> None:
    """Replay the log of a data folder: through its running server, or raw where none runs.

    --verify ends with one line that sums up the whole log; 0 differences and accounts that sum to
    0 are right. A log that is damaged names the first bad or missing entry. Differences that an
    operator accepted (`sabot log accept --difference`) are counted apart. Interrupted, it goes on
    from its checkpoint when it is called again.
    """
    if verify == bool(round_id):
        raise typer.BadParameter("say either --verify or --round ID")
    if round_id:
        _run(_print_round(data, round_id, as_json))
    else:
        raise typer.Exit(_run(_verify(data, checkpoint, as_json)))


@app.command(epilog=EXIT_CODES)
def rounds(data: Data = DATA, as_json: AsJson = False) -> None:
    """Every round of the log: its table, where it opened, and how far it is.

    States: betting, dealing, paying, returning; paid and returned are over.
    """
    _run(_print_rounds(data, as_json))


@app.command(epilog=EXIT_CODES)
def state(
    service: Annotated[str, typer.Argument(help="table, limits, wallet, shoe, rules, …")],
    data: Data = DATA,
    at: Annotated[
        str,
        typer.Option(
            metavar="POSITION|TIME",
            help="1/123/0, or 123 for all of an entry; or a log time with its zone, such as "
            "2026-05-01T20:15:00Z.",
        ),
    ] = "",
    checkpoint: Annotated[
        Path, typer.Option(metavar="FILE", help="Where Ctrl-C leaves how far it is.")
    ] = Path("state.checkpoint"),
    as_json: AsJson = False,
) -> None:
    """What a service knew at a position of the log or at a time, or knows at its end, and the
    digest of that. A snapshot that the log names saves the folding of what stands before it."""
    _run(_print_state(service, data, at, checkpoint, as_json))


@app.command(epilog=EXIT_CODES)
def conformance(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Case files, JSON lines.")],
    as_json: AsJson = False,
) -> None:
    """Play case files through the fleet's cores: every difference, then `N passed, N failed`.

    A case of a game or option that there is none of fails. A file that cannot be understood is
    named with its line, and nothing is played.
    """
    with _plainly():
        from services.cli.conformance import run_conformance

        code = run_conformance(files, as_json=as_json)
    raise typer.Exit(code)


@projections.command(epilog=EXIT_CODES)
def rebuild(
    data: Data = DATA,
    service: Annotated[
        str, typer.Option(help="One service's only: table, wallet or settlement.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Empty the projections and fold the log into them anew. A running fleet's go on by
    themselves afterwards. They are where SABOT_DATABASE_URL says, or in the data folder."""
    _run(_rebuild(data, service, as_json))


@projections.command(epilog=EXIT_CODES)
def migrate(as_json: AsJson = False) -> None:
    """Make the tables of a cell in the database, and bring them up to date: of projections and of
    what services have read. Before a release; services wait for it where SABOT_SCHEMA_BY is `job`.
    Told by the services' own variables: SABOT_CELL, SABOT_DATABASE_URL and
    SABOT_DATABASE_PASSWORD_FILE."""
    from services.cli.migrate import migrated

    _run(migrated(as_json=as_json))


# ---- how they do it ----------------------------------------------------------------------------


def _apart(found: Verified) -> str:
    """What the verdict does not cover, where there is any."""
    apart = ""
    if found.accepted:
        apart += f"; {found.accepted} entries passed over, as an operator accepted"
    if found.heads_unchecked:
        apart += f"; {found.heads_unchecked} heads too far from their cause to be checked"
    return apart


async def _verify(data: Path, checkpoint: Path, as_json: bool) -> int:
    from services.cli.differences import difference_line
    from services.cli.progress import going_on, progress
    from services.cli.replay import verify
    from services.cli.replay_checkpoint import ReplayCheckpoint

    kept = ReplayCheckpoint(checkpoint, going_on)
    async with _opened(data, hash_all=True) as (log, accepted):
        with progress("deciding again") as shown:
            found = await verify(log, shown, accepted, kept)
    if as_json:
        _dump(_verified_json(found))
        return RIGHT if found.right else WRONG
    for difference in found.let_stand:
        print(f"accepted {difference_line(difference)}")
    for difference in found.differences:
        print(difference_line(difference))
    for service, position in found.lost.items():
        print(f"{service} could not be decided again behind {position}")
    rate = found.events / found.seconds if found.seconds else 0.0
    print(
        f"read {found.events:,} events in {found.last_sequence:,} entries, {found.seconds:.2f} s, "
        f"{rate:,.0f} events/s, head {found.last_sequence}:{found.head.hex()}"
        f"{_apart(found)}"
    )
    print(found.line())
    return RIGHT if found.right else WRONG


def _verified_json(found: Verified) -> dict[str, Any]:
    from services.cli.differences import difference_json

    return {
        "right": found.right,
        "rounds": found.rounds,
        "bets": found.bets,
        "answers": found.answers,
        "differences": [difference_json(one) for one in found.differences],
        "accepted_differences": [difference_json(one) for one in found.let_stand],
        "lost": {service: str(position) for service, position in found.lost.items()},
        "sums": found.sums,
        "events": found.events,
        "last_sequence": found.last_sequence,
        "head": found.head.hex(),
        "seconds": round(found.seconds, 3),
        "line": found.line(),
    }


async def _print_round(data: Path, round_id: str, as_json: bool) -> None:
    from services.cli.playthrough import playthrough
    from services.cli.progress import progress

    async with _opened(data) as (log, accepted):
        with progress("reading") as shown:
            found = await playthrough(log, round_id, accepted, shown)
    if as_json:
        _dump(found.json())
    else:
        print(found.text(), end="")


async def _print_rounds(data: Path, as_json: bool) -> None:
    from services.cli.progress import progress
    from services.cli.rounds import list_rounds, table_text

    async with _opened(data) as (log, accepted):
        with progress("reading") as shown:
            found = await list_rounds(log, accepted, shown)
    if as_json:
        _dump({"rounds": [one.json() for one in found]})
    else:
        print(table_text(found))


async def _print_state(service: str, data: Path, at: str, checkpoint: Path, as_json: bool) -> None:
    from services.cli.inspect_state import state_at
    from services.cli.moments import parse_at, place, written
    from services.cli.progress import going_on, progress
    from services.cli.state_checkpoint import StateCheckpoint
    from services.events import SERVICES

    if service not in SERVICES:
        raise typer.BadParameter(f"the services are {', '.join(SERVICES)}", param_hint="SERVICE")
    try:
        wanted = parse_at(at) if at else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--at") from None
    async with _opened(data) as (log, accepted):
        with progress("folding") as shown:
            kept = StateCheckpoint(checkpoint, going_on)
            found = await state_at(log, service, wanted, accepted, shown, data / "snapshots", kept)
    if as_json:
        _dump(found.json())
        return
    print(json.dumps(found.state, indent=2, ensure_ascii=False))
    when = f", log time {written(found.log_time_us)}" if found.log_time_us else ""
    print(f"{service} at {place(found.position)}{when}: digest {found.digest}")


async def _rebuild(data: Path, service: str, as_json: bool) -> None:
    from services.cli.fleet import CELL
    from services.cli.progress import progress
    from services.cli.rebuild import PROJECTIONS, rebuild_projection
    from services.kernel.settings import ServiceSettings

    if service and service not in PROJECTIONS:
        raise typer.BadParameter(
            f"{', '.join(PROJECTIONS)} have projections", param_hint="--service"
        )
    done: list[dict[str, Any]] = []
    async with _opened(data) as (log, accepted):
        settings = ServiceSettings(cell=CELL, data=data)
        for name in [service] if service else list(PROJECTIONS):
            with progress(f"projection {name}") as shown:
                found = await rebuild_projection(settings, name, log, accepted, shown)
            done.append(found.json())
            if not as_json:
                print(found.line())
    if as_json:
        _dump({"projections": done})


if __name__ == "__main__":
    app()
