"""`sabot capacity`: what bets cost a cell in bytes and memory, measured on a fleet of the command's
own; and from that how long a log lasts.

Rounds of baccarat are played with few bets and with many, one bet a request, and what the log and
the databases of projections grow by is told apart: so much a round, so much a bet. Bets that come
one by one cost more than those that come together, since each of their four entries stands alone.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from services.cli.bench_fleet import Desk, bench_fleet
from services.cli.bench_load import ACCOUNTS, CALL_S, PLACE_BETS, BenchFailed, bets_request
from services.cli.log_source import through_server
from services.cli.split import split_fleet

AT_ONCE = 64
"""Bets that come together."""
INFO_S = 10.0
DAY_S = 86_400
_KIB = 1024


class Form(NamedTuple):
    """How much is played: rounds of each kind, bets of a small and of a big round, and accounts
    that are opened to see what they take."""

    rounds: int
    few: int
    many: int
    accounts: int


WHOLE = Form(rounds=8, few=10, many=1_000, accounts=5_000)
QUICK = Form(rounds=2, few=5, many=60, accounts=100)


class Cost(NamedTuple):
    """Bytes that something grew by."""

    a_round: float
    a_bet: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured."""

    log: Cost
    """Of the log, by what its server counts against the limit, where bets come one by one."""
    log_together_a_bet: float
    """Of the log, where they come together."""
    disk: float
    """What the server's folder holds, as a multiple of that."""
    database: Cost
    """Of the databases of all projections, in SQLite."""
    log_an_account: float
    memory_an_account: float
    """Bytes that an account takes in all processes together."""
    memory_mib: dict[str, float]
    """Of each process, at most, by its name."""

    def days(self, plan: Plan) -> float:
        """How long a log of the plan's room lasts, if bets come one by one."""
        return plan.room_bytes / self.a_day(plan)

    def a_day(self, plan: Plan) -> float:
        """Bytes that the log grows by in a day."""
        rounds = plan.bets_a_day / plan.bets_a_round
        return self.log.a_bet * plan.bets_a_day + self.log.a_round * rounds

    def told(self) -> dict[str, Any]:
        """For programs."""
        return {**asdict(self), "log": self.log._asdict(), "database": self.database._asdict()}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a cell is to bear, and the room of its log (`max_bytes` of the stream)."""

    bets_a_day: int
    bets_a_round: float
    room_bytes: int


class _Place(NamedTuple):
    """A running fleet."""

    data: Path
    desk: Desk
    pids: dict[str, int]


class _Sizes(NamedTuple):
    log: int
    database: int


async def measure(folder: Path, *, quick: bool) -> Measured:
    """Measure in an empty folder. `quick`: shortly, on a fleet in one process.

    Raises BenchFailed, and what a fleet's start raises."""
    form = QUICK if quick else WHOLE
    async with _one_process(folder) if quick else _own_processes(folder) as place:
        numbers = itertools.count()
        sizes = [await _sizes(place)]
        for bets, at_once in ((form.few, 1), (form.many, 1), (form.many, AT_ONCE)):
            for _ in range(form.rounds):
                await _play(place, numbers, bets, at_once)
            sizes.append(await _sizes(place))
        few, many, together = (
            _Sizes(after.log - before.log, after.database - before.database)
            for before, after in itertools.pairwise(sizes)
        )
        disk = _in_folder(place.data / "nats") / sizes[-1].log
        log = _cost(form, few.log, many.log)
        memory = sum(_memory(place, "VmRSS").values())
        await place.desk.open_accounts(range(ACCOUNTS, ACCOUNTS + form.accounts))
        opened = await _sizes(place)
        grown = sum(_memory(place, "VmRSS").values()) - memory
        most = _memory(place, "VmHWM")
    return Measured(
        log=log,
        log_together_a_bet=(together.log / form.rounds - log.a_round) / form.many,
        disk=disk,
        database=_cost(form, few.database, many.database),
        log_an_account=(opened.log - sizes[-1].log) / form.accounts,
        memory_an_account=grown / form.accounts,
        memory_mib={name: taken / _KIB / _KIB for name, taken in most.items()},
    )


def _cost(form: Form, few: int, many: int) -> Cost:
    """Two kinds of rounds, told apart."""
    a_bet = (many - few) / form.rounds / (form.many - form.few)
    return Cost(few / form.rounds - a_bet * form.few, a_bet)


# ---- the fleet ---------------------------------------------------------------------------------


@asynccontextmanager
async def _one_process(folder: Path) -> AsyncIterator[_Place]:
    async with bench_fleet(folder, folder / "data") as running:
        yield _Place(folder / "data", running.desk, {"fleet": running.child.pid})


@asynccontextmanager
async def _own_processes(folder: Path) -> AsyncIterator[_Place]:
    """Nothing of it is told what `SABOT_…` variables say of a cell."""
    data, logs = folder / "data", folder / "logs"
    logs.mkdir(parents=True)
    inherited = {name: is_ for name, is_ in os.environ.items() if not name.startswith("SABOT_")}
    async with (
        split_fleet(data, 0, logs=logs, inherited=inherited) as fleet,
        grpc.aio.insecure_channel(fleet.address) as channel,
    ):
        desk = Desk(channel, fleet.tokens)
        await desk.set_up()
        pids = {child.name: child.pid for child in fleet.children}
        server = None if fleet.embedded is None else fleet.embedded.server.pid
        yield _Place(data, desk, {**pids, **({"nats-server": server} if server else {})})


async def _play(place: _Place, numbers: itertools.count[int], bets: int, at_once: int) -> None:
    """One round. Raises BenchFailed where a bet is refused."""
    round_id = await place.desk.open_round()
    call: Any = place.desk.channel.unary_unary(PLACE_BETS)
    gate = asyncio.Semaphore(at_once)

    async def bet(request: bytes) -> None:
        async with gate:
            try:
                await call(request, metadata=place.desk.partner, timeout=CALL_S)
            except grpc.aio.AioRpcError as error:
                raise BenchFailed(f"{error.code().name}: {error.details()}") from error

    made = [bets_request(next(numbers), round_id) for _ in range(bets)]
    await asyncio.gather(*map(bet, made))
    await place.desk.settle()


# ---- what is weighed ---------------------------------------------------------------------------


async def _sizes(place: _Place) -> _Sizes:
    async with through_server(place.data) as log:
        taken = (await log.info(wait_s=INFO_S)).bytes_used
    return _Sizes(taken, sum(map(_pages, (place.data / "projections").glob("*.sqlite3"))))


def _pages(path: Path) -> int:
    """Bytes of a database, with what is not yet moved from its journal."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        count, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
        )
    return int(count) * int(size)


def _in_folder(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _memory(place: _Place, what: str) -> dict[str, int]:
    """Bytes by process: `VmRSS` now, `VmHWM` at most."""
    found: dict[str, int] = {}
    for name, pid in place.pids.items():
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{what}:"):
                found[name] = int(line.split()[1]) * _KIB
    return found


# ---- what is printed ---------------------------------------------------------------------------


def lines(found: Measured, plan: Plan) -> Sequence[str]:
    """For people."""
    log, database = found.log, found.database
    told = [
        f"log, a bet that comes alone            {log.a_bet:12,.0f} bytes",
        f"log, a bet of {AT_ONCE} that come at once      {found.log_together_a_bet:12,.0f} bytes",
        f"log, a round                           {log.a_round:12,.0f} bytes",
        f"log, an account and its first deposit  {found.log_an_account:12,.0f} bytes",
        f"disk, of the log's bytes               {found.disk:12.2f} times",
        f"databases, a bet                       {database.a_bet:12,.0f} bytes",
        f"databases, a round                     {database.a_round:12,.0f} bytes",
        f"memory, an account in all processes    {found.memory_an_account:12,.0f} bytes",
        *(
            f"memory, {name:30} {mib:12,.0f} MiB at most"
            for name, mib in sorted(found.memory_mib.items())
        ),
    ]
    told.append(
        f"at {plan.bets_a_day:,} bets a day, {plan.bets_a_round:g} a round, the log grows by "
        f"{found.a_day(plan) / 1e9:,.2f} GB a day; {plan.room_bytes / 1e9:,.1f} GB last "
        f"{found.days(plan):,.0f} days"
    )
    return told
