"""`sabot demo`, the main job of `make run`: a fleet, tables, and 30 accounts of three partners that
bet through the public calls; a line for each round, and at the end the proof from the log."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import grpc

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.partner.v1 import partner_service_pb2_grpc as partner_grpc
from sabot.table.v1 import bet_pb2, operator_service_pb2, operator_service_pb2_grpc, spec_pb2
from sabot.wallet.v1 import wallet_service_pb2, wallet_service_pb2_grpc
from services.cli import console_child, demo_floor, demo_seamless
from services.cli.demo_games import CURRENCY, DemoTable, Wager
from services.cli.demo_seats import Seats
from services.cli.fleet import CELL, DEFAULT_PORT, Fleet, fleet
from services.cli.log_source import open_source
from services.cli.replay import verify
from services.cli.uuid7 import uuid7
from services.kernel import event_loop, telemetry
from services.kernel.tokens import DEMO_CALLERS

T = TypeVar("T")

PARTNERS = ("north", "south", demo_seamless.PARTNER)
ACCOUNTS_EACH = 10
DEPOSIT_MINOR = 1_000_000
LOW_MINOR = 50_000
CALL_S = 5.0
"""Deadline of every call."""
TRIES = 20
"""How often a call whose outcome is unknown is sent again, with the same request id."""
RETRY_PAUSE_S = 0.2
SPEC_TRIES = 300
"""How often a table is offered its new rules while a round runs there."""
SPEC_PAUSE_S = 0.1


@dataclass(slots=True)
class Desk:
    """One partner's calls."""

    partner_id: str
    bets: partner_grpc.PartnerServiceAsyncStub
    wallet: wallet_service_pb2_grpc.WalletServiceAsyncStub
    metadata: tuple[tuple[str, str], ...]
    accounts: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class RoundTally:
    """What the clients saw of a round's betting."""

    confirmations_s: list[float] = field(default_factory=list[float])
    began: float = 0.0
    ended: float = 0.0
    refused: int = 0


def run_demo(
    data: Path,
    rounds: int | None,
    tables: Sequence[DemoTable],
    *,
    port: int | None = None,
    pages: bool = True,
) -> int:
    """Run until `rounds` rounds are over (None: until Ctrl-C), with the console unless without
    `pages`; the exit code. `port`: for calls; None: the usual one if it is free, and for the
    console the same."""
    telemetry.configure_logging(service="demo", level="WARNING")
    try:
        return event_loop.run(_demo(data, rounds, tables, port, pages))
    except asyncio.CancelledError:
        return 1  # a signal while it started


async def _demo(
    data: Path, rounds: int | None, tables: Sequence[DemoTable], port: int | None, pages: bool
) -> int:
    stop = asyncio.Event()
    event_loop.give_up_at_signals()
    async with AsyncExitStack() as stack:
        # Before the fleet, and so ended after it: what is due is paid while the fleet drains.
        at = _free_or(demo_seamless.DEFAULT_PORT) if port is None else 0
        west = accounts_of(demo_seamless.PARTNER)
        wallet = await stack.enter_async_context(
            demo_seamless.wallet(data, CELL, at, west, CURRENCY)
        )
        at = _free_or(DEFAULT_PORT) if port is None else port
        running = await stack.enter_async_context(fleet(data, at))
        print(f"sabot takes calls at {running.address}; tokens in {data / 'tokens.json'}")
        if missing := [one for one in PARTNERS if f"partner:{one}" not in running.tokens]:
            # Somebody has changed the tokens of an earlier demonstration: nobody else comes in.
            told = f"{data / 'tokens.json'} has no token of {', '.join(missing)}"
            print(f"sabot: {told}: take another folder", file=sys.stderr)
            return 1
        if pages and console_child.is_installed():
            at = _free_or(console_child.DEFAULT_PORT) if port is None else 0
            await _open_console(stack, running, at)
        print(f"partner {demo_seamless.PARTNER} keeps its accounts' money itself, at {wallet}")
        event_loop.at_signals(stop.set)
        error = await _play(running, rounds, tables, stop, wallet)
    if error is not None:
        print(f"stopped: {error}", file=sys.stderr)
        return 1
    event_loop.give_up_at_signals()
    print(demo_seamless.books_line(data))
    print("stopped; every answer is decided again (Ctrl-C leaves that out)", flush=True)
    async with open_source(data, check=True) as log:
        found = await verify(log)
    print(found.line())
    return 0 if found.right else 1


async def _open_console(stack: AsyncExitStack, running: Fleet, port: int) -> None:
    """Operators' pages, and who may sign in there."""
    console = await stack.enter_async_context(
        console_child.console(running.data, running.address, running.tokens, port, CELL)
    )
    print(f"console at {console.address}; names and passwords of the demonstration:")
    roles = {caller.operator: caller.roles for caller in DEMO_CALLERS}
    for name, password in console.passwords.items():
        told = ", ".join(sorted(role.value for role in roles.get(name, ())))
        print(f"  {name:6} {password}  {told}", flush=True)


def _free_or(port: int) -> int:
    """A port if it is free, else 0: any other."""
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port


async def _play(
    running: Fleet,
    rounds: int | None,
    tables: Sequence[DemoTable],
    stop: asyncio.Event,
    wallet: str,
) -> BaseException | None:
    """Play until the rounds are over or somebody stops it; why the fleet stopped, if it did."""
    async with grpc.aio.insecure_channel(running.address) as channel:
        await _open_tables(channel, running, tables)
        await demo_seamless.set_profile(channel, running.tokens["operator:sam"], wallet)
        desks = [await _desk(channel, running, name) for name in PARTNERS]
        left = [rounds]
        tasks = [asyncio.create_task(_follow(desks, table, left, stop)) for table in tables]
        on_floor = [one for one in tables if one.origin == spec_pb2.OUTCOME_ORIGIN_FLOOR]
        if on_floor:
            names = ", ".join(table.table_id for table in on_floor)
            print(f"told by a simulator of a floor, not by devices: {names}")
        hands = demo_floor.Hands(channel, running.tokens, _until_known)
        tasks += [asyncio.create_task(_simulate(hands, table)) for table in on_floor]
        stopped = asyncio.create_task(running.stopped())
        stopping = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait(
            [*tasks, stopped, stopping], return_when=asyncio.FIRST_COMPLETED
        )
        for task in (*tasks, stopped, stopping):
            task.cancel()
        await asyncio.gather(*tasks, stopped, stopping, return_exceptions=True)
        if stopped in done:
            return stopped.result()
        for task in tasks:
            if task in done and (error := task.exception()) is not None:
                return error
        await demo_seamless.all_confirmed(channel, running.tokens["operator:sam"])
        return None


async def _simulate(hands: demo_floor.Hands, table: DemoTable) -> None:
    """What a table on the floor awaits comes from a simulator."""
    if table.rule_set.decks:
        await demo_floor.simulate_shoe(hands, table.table_id, table.rule_set.decks)
    else:
        await demo_floor.simulate_wheel(hands, table.table_id)


async def _open_tables(
    channel: grpc.aio.Channel, running: Fleet, tables: Sequence[DemoTable]
) -> None:
    """Open the tables; one that was open already gets its new rules between two rounds."""
    stub: operator_service_pb2_grpc.TableOperatorServiceAsyncStub
    stub = operator_service_pb2_grpc.TableOperatorServiceStub(channel)
    metadata = (("authorization", f"Bearer {running.tokens['operator:sam']}"),)
    known: partner_grpc.PartnerServiceAsyncStub = partner_grpc.PartnerServiceStub(channel)
    for table in tables:
        spec = table.spec()
        with suppress(grpc.aio.AioRpcError):
            found = await known.GetTable(
                partner.GetTableRequest(table_id=table.table_id), metadata=metadata, timeout=CALL_S
            )
            if found.table.open and found.table.spec == spec:
                continue
        for left in reversed(range(SPEC_TRIES)):
            request = operator_service_pb2.OpenTableRequest(request_id=uuid7(), spec=spec)
            try:
                await _until_known(
                    lambda: stub.OpenTable(request, metadata=metadata, timeout=CALL_S)  # noqa: B023 - called before the loop goes on
                )
                break
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.FAILED_PRECONDITION or not left:
                    raise
            await asyncio.sleep(SPEC_PAUSE_S)


def accounts_of(partner_id: str) -> list[str]:
    """A partner's accounts."""
    return [f"{partner_id}-{number:02}" for number in range(1, ACCOUNTS_EACH + 1)]


async def _desk(channel: grpc.aio.Channel, running: Fleet, name: str) -> Desk:
    desk = Desk(
        name,
        partner_grpc.PartnerServiceStub(channel),
        wallet_service_pb2_grpc.WalletServiceStub(channel),
        (("authorization", f"Bearer {running.tokens[f'partner:{name}']}"),),
        accounts_of(name),
    )
    for account in desk.accounts:
        request = wallet_service_pb2.OpenAccountRequest(
            request_id=uuid7(), account_id=account, currency_code=CURRENCY
        )
        try:
            await _until_known(
                lambda: desk.wallet.OpenAccount(request, metadata=desk.metadata, timeout=CALL_S)  # noqa: B023 - called before the loop goes on
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
                raise
        await _fund(desk, account)
    return desk


async def _fund(desk: Desk, account: str) -> None:
    """Pay in where little is left. A seamless partner's accounts have nothing here."""
    if desk.partner_id == demo_seamless.PARTNER:
        return
    balance = await desk.wallet.GetBalance(
        wallet_service_pb2.GetBalanceRequest(account_id=account),
        metadata=desk.metadata, timeout=CALL_S,
    )  # fmt: skip
    if balance.available.minor_units >= LOW_MINOR:
        return
    request = wallet_service_pb2.DepositRequest(
        request_id=uuid7(),
        account_id=account,
        amount=Money(currency_code=CURRENCY, minor_units=DEPOSIT_MINOR),
    )
    await _until_known(lambda: desk.wallet.Deposit(request, metadata=desk.metadata, timeout=CALL_S))


async def _follow(
    desks: Sequence[Desk], table: DemoTable, left: list[int | None], stop: asyncio.Event
) -> None:
    """Bet in every round of a table and tell of it when it is over."""
    bettors: dict[str, asyncio.Task[RoundTally]] = {}
    told: set[str] = set()
    seats = Seats(desks, _until_known, CALL_S)
    async for update in _watch(desks[0], table.table_id):
        seen = update.state.round if update.HasField("state") else update.round
        if not seen.round_id:
            continue
        seats.look(seen)
        if seen.state == partner.ROUND_STATE_BETTING and seen.round_id not in bettors:
            if not seen.suspended:
                bettors[seen.round_id] = asyncio.create_task(_bet(desks, table, seen))
        elif seen.state in (partner.ROUND_STATE_PAID, partner.ROUND_STATE_RETURNED):
            task = bettors.pop(seen.round_id, None)
            if task is None or seen.round_id in told:
                continue
            told.add(seen.round_id)
            print(await _line(desks, table, seen, await task, update), flush=True)
            for desk in desks:
                await asyncio.gather(*(_fund(desk, account) for account in desk.accounts))
            if left[0] is not None:
                left[0] -= 1
                if left[0] <= 0:
                    stop.set()
                    return


async def _watch(desk: Desk, table_id: str) -> AsyncIterator[partner.WatchTableResponse]:
    """The table's changes, across broken streams."""
    token = ""
    while True:
        try:
            async for update in desk.bets.WatchTable(
                partner.WatchTableRequest(table_id=table_id, resume_token=token),
                metadata=desk.metadata,
            ):
                token = update.resume_token
                if not update.HasField("heartbeat"):
                    yield update
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
        await asyncio.sleep(RETRY_PAUSE_S)


async def _bet(desks: Sequence[Desk], table: DemoTable, opened: partner.Round) -> RoundTally:
    """Every account bets."""
    loop = asyncio.get_running_loop()
    tally = RoundTally(began=loop.time())
    bettors = [(desk, account) for desk in desks for account in desk.accounts]
    await asyncio.gather(
        *(
            _bet_one(desk, account, table.wagers(number, opened), opened, tally)
            for number, (desk, account) in enumerate(bettors)
        )
    )
    tally.ended = loop.time()
    return tally


async def _bet_one(
    desk: Desk, account: str, wagers: Sequence[Wager], opened: partner.Round, tally: RoundTally
) -> None:
    if not wagers:
        return
    request = partner.PlaceBetsRequest(
        request_id=uuid7(),
        account_id=account,
        table_id=opened.table_id,
        round_id=opened.round_id,
        bets=[
            bet_pb2.BetRequest(
                bet=wager.bet,
                position=wager.position,
                stake=Money(currency_code=CURRENCY, minor_units=wager.stake_minor),
            )
            for wager in wagers
        ],
    )
    request.client_send_time.GetCurrentTime()
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        placed = await _until_known(
            lambda: desk.bets.PlaceBets(request, metadata=desk.metadata, timeout=CALL_S)
        )
    except grpc.aio.AioRpcError:
        tally.refused += 1
        return
    tally.confirmations_s.extend([loop.time() - began] * len(placed.bets))


async def _until_known(call: Callable[[], Awaitable[T]]) -> T:
    """Call, and call again with the same request while the outcome is unknown."""
    for attempt in range(TRIES):
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            again = error.code() in (
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.DEADLINE_EXCEEDED,
                grpc.StatusCode.RESOURCE_EXHAUSTED,
            )
            if not again or attempt + 1 == TRIES:
                raise
        await asyncio.sleep(RETRY_PAUSE_S)
    raise AssertionError


async def _line(
    desks: Sequence[Desk],
    table: DemoTable,
    seen: partner.Round,
    tally: RoundTally,
    update: partner.WatchTableResponse,
) -> str:
    """One readable line of a round that is over."""
    stakes = payouts = count = 0
    for desk in desks:
        token = ""
        while True:
            page = await desk.bets.ListBets(
                partner.ListBetsRequest(
                    round_id=seen.round_id, at_least=update.position, page_token=token,
                    page_size=500,
                ),
                metadata=desk.metadata, timeout=CALL_S,
            )  # fmt: skip
            for bet in page.bets:
                if bet.state in (partner.BET_STATE_SETTLED, partner.BET_STATE_VOIDED):
                    count += 1
                    stakes += bet.stake.minor_units
                    payouts += bet.payout.minor_units
            token = page.next_page_token
            if not token:
                break
    shown = table.shown(seen.result) if seen.HasField("result") else "voided"
    slow = sorted(tally.confirmations_s)
    p99_ms = slow[min(len(slow) - 1, int(len(slow) * 0.99))] * 1000 if slow else 0.0
    rate = len(slow) / (tally.ended - tally.began) if tally.ended > tally.began else 0.0
    return (
        f"{seen.round_id:17} {_shoe(seen):12} {shown:40}"
        f"  {count:3} bets  stakes {_shown(stakes):>10}  payouts {_shown(payouts):>10}  "
        f"{rate:6.0f} bets/s  p99 {p99_ms:5.1f} ms"
        + (f"  {tally.refused} refused" if tally.refused else "")
        + ("  spun again" if any(toss.invalid for toss in seen.tosses) else "")
    )


def _shoe(seen: partner.Round) -> str:
    """Which round of which shoe, where there is one."""
    if not seen.shoe_id:
        return ""
    return f"shoe {seen.shoe_id.rpartition('-s')[2]} #{seen.round_in_shoe}"


def _shown(minor: int) -> str:
    """Minor units as `1,234.00` (rule MON-3)."""
    major, cents = divmod(minor, 100)
    return f"{major:,}.{cents:02}"
