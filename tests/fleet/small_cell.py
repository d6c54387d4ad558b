"""A whole cell without its gRPC surface: every core in one process on a log, timers and custodian,
and a few accounts that bet. On the memory log under virtual time it does the same steps every time.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.cores import CORES
from services.cli.fleet import CELL, connect, embedded_log
from services.events import event_types
from services.games.catalogue import baccarat_1
from services.kernel.edge import Outcome
from services.kernel.event import Core, Event
from services.kernel.host import clock_us
from services.kernel.key_file import KEY_BYTES, KeyRing
from services.kernel.log import Log
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.process import Process
from services.kernel.shells import Shell
from services.kernel.snapshot import StateCodec, state_digest
from services.kernel.witness import FileWitness, Witness
from services.shoe.custodian import Custodian
from services.shoe.generator import START_DRAWS, Generator
from services.simulator.inline import Inline
from services.table.risk import Risk
from services.table.timers import Timers
from services.wallet.debit_timers import DebitTimers

EPOCH_US = 1_700_000_000_000_000
"""Virtual time begins here."""
DEALER = "operator:dealer1"
SUPERVISOR = "operator:super1"
PARTNER = "acme"
WAIT_S = 30.0

PLACED = frozenset(
    (wallet.StakeReserved, wallet.StakeDeclined, limits.BetsRefused, table.BetsRejected)
)
WITHDRAWN = frozenset((wallet.StakeReturned, limits.WithdrawalRefused, table.WithdrawalRejected))
ORDERED = frozenset(
    (
        table.TableOpened,
        table.TableClosed,
        table.RoundOpened,
        table.BettingClosed,
        table.RoundSuspended,
        table.RoundResumed,
        table.RoundVoided,
        table.OrderRejected,
    )
)
ACCOUNTED = frozenset(
    (
        wallet.AccountOpened,
        wallet.FundsDeposited,
        wallet.FundsWithdrawn,
        wallet.AccountRequestDeclined,
    )
)


def virtual_clock() -> int:
    """Virtual time, microseconds since 1970."""
    return EPOCH_US + round(asyncio.get_running_loop().time() * 1e6)


def spec(table_id: str = "t1", window_ms: int = 0, pause_ms: int = 0) -> spec_pb2.TableSpec:
    """A baccarat table in euro; without a window an operator closes betting."""
    limit = {"min_minor": 100, "max_minor": 100_000, "step_minor": 100}
    return spec_pb2.TableSpec(
        table_id=table_id,
        currency_code="EUR",
        rule_set=baccarat_1(),
        limits=[spec_pb2.BetLimit(bet=bet, **limit) for bet in ("banker", "player", "tie")],
        pacing=spec_pb2.Pacing(betting_window_ms=window_ms, pause_ms=pause_ms),
    )


def seeded_generator(seed: int) -> Generator:
    """The generator of a cell's shoes. Its first sample is of another stream: what is dealt must
    not depend on how much is tested."""
    shoes, sample = random.Random(seed + 1), random.Random(seed + 2)
    sources = itertools.chain(
        itertools.repeat(sample.randbytes, START_DRAWS), itertools.repeat(shoes.randbytes)
    )

    def source(size: int) -> bytes:
        draw = next(sources)
        return draw(size)

    return Generator(source)


class SmallCell:
    """See the module. `seed`: of the shoes and the random bets; `generator`: of other shoes;
    `shells`: further ones."""

    def __init__(
        self,
        log: Log,
        clock: Callable[[], int],
        *,
        seed: int = 1,
        witness: Witness | None = None,
        writer: str = "small-cell",
        cores: Sequence[Core[Any]] = CORES,
        observed: Sequence[Core[Any]] = (),
        generator: Generator | None = None,
        shells: Sequence[Shell] = (),
    ) -> None:
        self.alarms: list[tuple[str, dict[str, Any]]] = []
        self.clock = clock
        self.random = random.Random(seed)
        keys = KeyRing({"k1": bytes(range(KEY_BYTES))}, "k1")
        self.process = Process(
            log=log,
            types=event_types(),
            cores=cores,
            observed=observed,
            writer=writer,
            build="test",
            clock=clock,
            alarm=lambda kind, facts: self.alarms.append((kind, facts)),
            witness=witness,
            shells=[
                Timers(),
                Risk(Inline()),
                Custodian(log.cell, keys, generator or seeded_generator(seed)),
                DebitTimers(),
                *shells,
            ],
        )
        self.nats_pid = 0
        """Of the nats-server, where it is a real one."""
        self.cores = cores
        self._requests = 0
        self._writer = writer

    async def start(self, **options: Any) -> None:
        """Fold the log and wait until inputs are taken."""
        await self.process.start(**options)
        await self.until(lambda: self.process.ready, "the process is ready")

    async def stop(self) -> None:
        await self.process.drain(WAIT_S)
        await self.process.stop()

    async def until(self, true: Callable[[], bool], what: str) -> None:
        """Wait for a condition that the log brings about."""
        deadline = asyncio.get_running_loop().time() + WAIT_S
        while not true():
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"still waiting until {what}; alarms: {self.alarms}")
            await asyncio.sleep(0.005)

    async def event(
        self, wanted: Callable[[Event], bool], act: Callable[[], Awaitable[Any]]
    ) -> Event:
        """Do something, and wait for an event."""
        found: list[Event] = []
        unfollow = self.process.follow(lambda events: found.extend(filter(wanted, events)))
        try:
            await act()
            await self.until(lambda: bool(found), "an event comes")
        finally:
            unfollow()
        return found[0]

    async def submit(
        self, service: str, body: Any, until: frozenset[type[Message]], actor: str = DEALER
    ) -> Outcome:
        """Put an input, with a request id and hash of its own where it has none."""
        if "request_id" in body.DESCRIPTOR.fields_by_name and not body.request_id:
            body.request_id = self.request_id()
        if "request_hash" in body.DESCRIPTOR.fields_by_name:
            body.request_hash = hashlib.sha256(body.SerializeToString(deterministic=True)).digest()
        kind, _, name = actor.partition(":")
        return await self.process.submit(
            service,
            body,
            partner=name if kind == "partner" else "",
            actor=actor,
            until=until,
            wait_s=WAIT_S,
        )

    def request_id(self) -> str:
        """A UUIDv7 of this moment; the rest of it counts."""
        self._requests += 1
        salt = hashlib.sha256(self._writer.encode()).hexdigest()[:4]
        stamp = f"{self.clock() // 1000:012x}"
        return f"{stamp[:8]}-{stamp[8:]}-7000-8000-{salt}{self._requests:08x}"

    def digests(self) -> dict[str, tuple[int, str]]:
        """By service: schema and digest of the live state."""
        codec = StateCodec()
        return {
            core.service: (
                core.schema,
                state_digest(codec, core, self.process.state(core.service)),
            )
            for core in self.cores
        }

    # ---- what happens at a table ---------------------------------------------------------------

    async def open_table(self, of: spec_pb2.TableSpec | None = None) -> None:
        """Open a table and wait for its shoe."""
        of = of or spec()
        await self.order(table.OpenTable(spec=of), SUPERVISOR)
        await self.until(
            lambda: bool(self.process.state("table").tables[of.table_id].shoe_ready),
            "the shoe is ready",
        )

    async def open_account(self, account_id: str, minor: int, partner: str = PARTNER) -> None:
        """Open an account and pay in."""
        actor = f"partner:{partner}"
        opened = wallet.OpenAccount(account_id=account_id, currency_code="EUR")
        await self.submit("wallet", opened, ACCOUNTED, actor)
        deposit = wallet.Deposit(account_id=account_id, currency_code="EUR", amount_minor=minor)
        await self.submit("wallet", deposit, ACCOUNTED, actor)

    async def order(self, body: Any, actor: str = DEALER) -> Message:
        """An operator's order; its answer."""
        return (await self.submit("table", body, ORDERED, actor)).event.body

    async def open_round(self, table_id: str = "t1") -> str:
        """Open a round; its id."""
        one = self.process.state("table").tables[table_id]
        await self.until(lambda: one.running is None and one.shoe_ready, "a round may open")
        opened = await self.order(table.OpenRound(table_id=table_id, source=table.SOURCE_OPERATOR))
        if not isinstance(opened, table.RoundOpened):
            raise TypeError(f"no round opens: {opened}")
        return opened.round_id

    async def bet(
        self,
        round_id: str,
        account_id: str,
        *bets: tuple[str, int],
        partner: str = PARTNER,
        request_id: str = "",
    ) -> Message:
        """Place bets; the outcome."""
        body = table.PlaceBets(
            request_id=request_id,
            account_id=account_id,
            table_id=round_id.rpartition("-")[0],
            round_id=round_id,
            currency_code="EUR",
            bets=[bet_pb2.Bet(bet=bet, stake_minor=minor) for bet, minor in bets],
        )
        return (await self.submit("table", body, PLACED, f"partner:{partner}")).event.body

    async def withdraw(self, round_id: str, account_id: str, *bet_ids: str) -> Message:
        """Take bets back; the outcome."""
        body = table.WithdrawBets(
            account_id=account_id,
            table_id=round_id.rpartition("-")[0],
            round_id=round_id,
            bet_ids=bet_ids,
        )
        return (await self.submit("table", body, WITHDRAWN, f"partner:{PARTNER}")).event.body

    async def bet_at(
        self, round_id: str, account_id: str, *bets: tuple[str, int, int], partner: str = PARTNER
    ) -> Message:
        """Place bets, each (kind, seat, stake); the outcome."""
        body = table.PlaceBets(
            account_id=account_id,
            table_id=round_id.rpartition("-")[0],
            round_id=round_id,
            currency_code="EUR",
            bets=[
                bet_pb2.Bet(bet=bet, position=str(seat), stake_minor=minor)
                for bet, seat, minor in bets
            ],
        )
        return (await self.submit("table", body, PLACED, f"partner:{partner}")).event.body

    async def act(
        self,
        round_id: str,
        account_id: str,
        seat: int,
        action: rules.Action.ValueType,
        extra_minor: int = 0,
        *,
        turn: int = 0,
    ) -> Message:
        """Act at a seat, once it has the turn or an offer; the outcome. `turn`: another one."""
        body = table.Act(
            account_id=account_id,
            table_id=round_id.rpartition("-")[0],
            round_id=round_id,
            seat=seat,
            turn=turn or await self.turn_of(round_id, seat),
            action=action,
            extra_minor=extra_minor,
        )
        staked = action in {rules.ACTION_DOUBLE, rules.ACTION_SPLIT, rules.ACTION_INSURE}
        until = PLACED if staked else frozenset((table.ActionTaken,))
        ended = until | {table.ActionRejected}
        return (await self.submit("table", body, ended, f"partner:{PARTNER}")).event.body

    async def turn_of(self, round_id: str, seat: int, hand: int = 0) -> int:
        """Wait until a seat, or one of its hands, has the turn or an offer; the turn's number."""
        one = self.process.state("table").tables[round_id.rpartition("-")[0]]

        def asked() -> bool:
            found = one.running.turn
            if found is None or hand not in {0, found.hand}:
                return False
            return seat == found.seat or seat in found.offered

        await self.until(asked, f"seat {seat} is asked")
        number: int = one.running.turn.number
        return number

    async def close_betting(self, round_id: str) -> None:
        """No more bets; wait until the round is over."""
        await self.over(
            round_id,
            lambda: self.order(
                table.CloseBetting(
                    table_id=round_id.rpartition("-")[0],
                    round_id=round_id,
                    source=table.SOURCE_OPERATOR,
                )
            ),
        )

    async def over(self, round_id: str, act: Callable[[], Awaitable[Any]]) -> None:
        """Do something, and wait until a round is over by it."""
        await self.event(
            lambda event: (
                isinstance(event.body, table.RoundClosed) and event.body.round_id == round_id
            ),
            act,
        )

    async def play(self, rounds: int, accounts: Sequence[str], table_id: str = "t1") -> None:
        """Rounds with random bets of these accounts."""
        for _ in range(rounds):
            round_id = await self.open_round(table_id)
            for account in accounts:
                bet = self.random.choice(("banker", "player", "tie"))
                await self.bet(round_id, account, (bet, 100 * self.random.randint(1, 20)))
            await self.close_betting(round_id)


@asynccontextmanager
async def memory_cell(
    seed: int = 1, **options: Any
) -> AsyncIterator[tuple[SmallCell, MemoryStore]]:
    """A cell on a memory log; run it under virtual time."""
    store = MemoryStore(CELL, virtual_clock)
    cell = SmallCell(MemoryLog(store), virtual_clock, seed=seed, **options)
    await cell.start()
    try:
        yield cell, store
    finally:
        await cell.stop()


@asynccontextmanager
async def real_cell(data: Path, seed: int = 1) -> AsyncIterator[SmallCell]:
    """A cell on an embedded nats-server in a data folder, with a witness, as a fleet has it."""
    async with embedded_log(data) as server:
        log = await connect(server)
        witness = FileWitness(data / "witness" / "fleet")
        cell = SmallCell(log, clock_us, seed=seed, witness=witness, writer=f"fleet-{clock_us()}")
        try:
            cell.nats_pid = server.server.pid or 0
            await cell.start()
            yield cell
        finally:
            await cell.stop()
            witness.close()
            await log.close()
