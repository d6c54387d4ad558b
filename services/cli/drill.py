"""`sabot drill`: a failure, brought about on purpose in a fleet of the drill's own, until the alert
that operators would be woken by holds; then it is repaired, and the log proves that nothing was
lost. Whatever is stopped or killed is a process that the drill started.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.partner.v1 import partner_service_pb2_grpc as partner_grpc
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import operator_service_pb2_grpc as operators_grpc
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from sabot.wallet.v1 import wallet_service_pb2_grpc as wallets_grpc
from services.cli.drill_rules import Rule, Samples, evaluate, read_rule
from services.cli.log_source import open_source
from services.cli.replay import verify
from services.cli.split import Child, SplitFleet, split_fleet
from services.cli.uuid7 import uuid7
from services.games.catalogue import baccarat_1
from services.kernel.nats_process import http_get

RULES = Path(__file__).parents[2] / "deploy/prometheus/alerts.yml"
WINDOW_MS, PAUSE_MS = 1_500, 300
CALL_S = 5.0
SCRAPE_S = 1.0
SCRAPE_WAIT_S = 5.0
"""For a process's metrics; then it counts as down. Prometheus waits ten seconds."""
PATIENCE_S = 180.0
"""For a fleet to start, an alert to hold, a fleet to recover; beyond the alert's own `for`."""
ROUNDS_AFTER = 2
"""Rounds that must be paid after the repair."""
ACCOUNT, TABLE, CURRENCY = "drill-1", "drill", "EUR"


class DrillFailed(Exception):
    """What should have come did not; what, in words."""


Failure = Callable[[SplitFleet], Callable[[], None]]
"""Brings the failure about; what it returns repairs it."""


@dataclass(frozen=True, slots=True)
class Drill:
    """A failure, and what operators are to see of it."""

    name: str
    what: str
    alert: str
    begin: Failure


def _paused(pid: int) -> Callable[[], None]:
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


def _pid(child: Child) -> int:
    try:
        return child.pid
    except RuntimeError as error:
        # It ended by itself, and its keeper has not started it again yet.
        raise DrillFailed(str(error)) from error


def _pause_wallet(fleet: SplitFleet) -> Callable[[], None]:
    return _paused(_pid(fleet.child("wallet")))


def _pause_log(fleet: SplitFleet) -> Callable[[], None]:
    if fleet.embedded is None or fleet.embedded.server.pid is None:
        raise DrillFailed("the log's server does not run")
    return _paused(fleet.embedded.server.pid)


def _kill_audit(fleet: SplitFleet) -> Callable[[], None]:
    """It is kept from coming back: a crash alone is over before anybody could see it."""
    child = fleet.child("audit")
    pid = _pid(child)
    if child.keeper is not None:
        child.keeper.cancel()
    os.kill(pid, signal.SIGKILL)

    def repair() -> None:
        child.keeper = asyncio.get_running_loop().create_task(child.keep(), name=child.name)

    return repair


DRILLS = {
    one.name: one
    for one in (
        Drill(
            "service-paused",
            "wallet stands still, as on a machine without processor time",
            "ProcessDown",
            _pause_wallet,
        ),
        Drill(
            "log-server-paused",
            "the log's server does not answer, as behind a broken network",
            "NotReady",
            _pause_log,
        ),
        Drill(
            "service-killed",
            "audit was killed, and does not come back",
            "ProcessDown",
            _kill_audit,
        ),
    )
}
"""By name."""


@dataclass(slots=True)
class Seen:
    """How a drill went."""

    drill: Drill
    rule: Rule
    steps: list[str] = field(default_factory=list[str])
    alert_after_s: float = 0.0
    verified: str = ""
    right: bool = False


async def run_drill(
    drill: Drill,
    data: Path,
    rules: Path = RULES,
    *,
    whole: bool = True,
    say: Callable[[str], None] = print,
) -> Seen:
    """Run one in an empty folder. `whole`: the failure lasts until the alert has held for as long
    as its rule wants; else until its expression holds once.

    Raises DrillFailed, CannotEvaluate, and what a fleet's start raises."""
    rule = read_rule(rules, drill.alert)
    seen = Seen(drill, rule)

    def step(text: str) -> None:
        seen.steps.append(text)
        say(text)

    async with split_fleet(data, 0, logs=_logs(data), metrics=True) as fleet:
        samples = Samples()
        async with _scraping(fleet, samples), _betting(fleet) as paid:

            def quiet() -> bool:
                return not evaluate(rule.expression, samples, time.monotonic())

            await _until(
                lambda: paid[0] >= 1 and quiet(),
                f"no round was paid before the failure, or {rule.alert} holds without it",
            )
            step(f"{drill.name}: {drill.what}")
            repair = drill.begin(fleet)
            began = time.monotonic()
            try:
                await _alarmed(rule, samples, rule.for_s if whole else 0.0)
            finally:
                repair()
            seen.alert_after_s = time.monotonic() - began
            step(
                f"alert {rule.alert} {'fires' if whole else 'is pending'} after "
                f"{seen.alert_after_s:.0f} s; runbook {rule.runbook}"
            )
            wanted = paid[0] + ROUNDS_AFTER
            await _until(
                lambda: paid[0] >= wanted and quiet(),
                f"no {ROUNDS_AFTER} rounds were paid after the repair, or {rule.alert} holds on",
            )
            step(f"repaired: {ROUNDS_AFTER} more rounds are paid, {rule.alert} is over")
    async with open_source(data, check=True) as log:
        found = await verify(log)
    seen.verified, seen.right = found.line(), found.right
    step(seen.verified)
    return seen


def _logs(data: Path) -> Path:
    folder = data.parent / f"{data.name}-logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def _until(seen: Callable[[], bool], otherwise: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not seen():  # noqa: ASYNC110 - figures that others tell, no event
                await asyncio.sleep(SCRAPE_S / 4)
    except TimeoutError:
        raise DrillFailed(otherwise) from None


async def _alarmed(rule: Rule, samples: Samples, for_s: float) -> None:
    """Wait until a rule's expression has held for so long."""
    end = time.monotonic() + PATIENCE_S + for_s
    since: float | None = None
    while since is None or time.monotonic() - since < for_s:
        now = time.monotonic()
        holds = bool(evaluate(rule.expression, samples, now))
        since = (since or now) if holds else None
        if now > end:
            raise DrillFailed(f"{rule.alert} did not hold: {' '.join(rule.expression.split())}")
        await asyncio.sleep(SCRAPE_S / 2)


@asynccontextmanager
async def _scraping(fleet: SplitFleet, samples: Samples) -> AsyncIterator[None]:
    """Scrape every process each second, as Prometheus does: `up` says who answers."""

    async def scrape(name: str, port: int) -> None:
        labels = {"job": "sabot", "instance": name}
        try:
            status, body = await http_get("127.0.0.1", port, "/metrics", wait_s=SCRAPE_WAIT_S)
        except (OSError, TimeoutError, EOFError, ValueError):
            status, body = 0, b""
        now = time.monotonic()
        samples.put("up", labels, now, float(status == 200))
        if status == 200:
            samples.add(body.decode(), now, **labels)

    async def loop() -> None:
        while True:
            ports = [
                (one.name, int(one.environment["SABOT_METRICS_PORT"])) for one in fleet.children
            ]
            await asyncio.gather(*(scrape(name, port) for name, port in ports))
            await asyncio.sleep(SCRAPE_S)

    async with _running(loop()):
        yield


@asynccontextmanager
async def _running(work: Any) -> AsyncIterator[None]:
    task = asyncio.get_running_loop().create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def _betting(fleet: SplitFleet) -> AsyncIterator[list[int]]:
    """A table that deals by itself, and an account that bets in each round; how many were paid."""
    dealer = (("authorization", f"Bearer {fleet.tokens['operator:sam']}"),)
    north = (("authorization", f"Bearer {fleet.tokens['partner:north']}"),)
    paid = [0]
    async with grpc.aio.insecure_channel(fleet.address) as channel:
        tables: operators_grpc.TableOperatorServiceAsyncStub
        tables = operators_grpc.TableOperatorServiceStub(channel)
        wallet: wallets_grpc.WalletServiceAsyncStub = wallets_grpc.WalletServiceStub(channel)
        bets: partner_grpc.PartnerServiceAsyncStub = partner_grpc.PartnerServiceStub(channel)
        opened = operators.OpenTableRequest(request_id=uuid7(), spec=_spec())
        await _known(lambda: tables.OpenTable(opened, metadata=dealer, timeout=CALL_S))
        account = wallets.OpenAccountRequest(
            request_id=uuid7(), account_id=ACCOUNT, currency_code=CURRENCY
        )
        await _known(lambda: wallet.OpenAccount(account, metadata=north, timeout=CALL_S))
        deposit = wallets.DepositRequest(
            request_id=uuid7(), account_id=ACCOUNT, amount=_money(1_000_000)
        )
        await _known(lambda: wallet.Deposit(deposit, metadata=north, timeout=CALL_S))

        async def play() -> None:
            seen = ""
            over = ""
            while True:
                await asyncio.sleep(SCRAPE_S / 4)
                with suppress(grpc.aio.AioRpcError):
                    told = await bets.GetTable(
                        partner.GetTableRequest(table_id=TABLE), metadata=north, timeout=CALL_S
                    )
                    one = told.table.round
                    if one.state == partner.ROUND_STATE_PAID and one.round_id not in {"", over}:
                        over = one.round_id
                        paid[0] += 1
                    if one.state == partner.ROUND_STATE_BETTING and one.round_id != seen:
                        seen = one.round_id
                        await bets.PlaceBets(_bet(one.round_id), metadata=north, timeout=CALL_S)

        async with _running(play()):
            yield paid


async def _known(call: Callable[[], Awaitable[Any]]) -> None:
    """Call until the outcome is known."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            await call()
        except grpc.aio.AioRpcError as error:
            if time.monotonic() > end:
                raise DrillFailed(f"the fleet does not come up: {error.details()}") from error
            await asyncio.sleep(SCRAPE_S / 2)
        else:
            return


def _spec() -> spec_pb2.TableSpec:
    limit = {"min_minor": 100, "max_minor": 100_000, "step_minor": 20}
    return spec_pb2.TableSpec(
        table_id=TABLE,
        currency_code=CURRENCY,
        rule_set=baccarat_1(),
        limits=[spec_pb2.BetLimit(bet=bet, **limit) for bet in ("banker", "player", "tie")],
        pacing=spec_pb2.Pacing(betting_window_ms=WINDOW_MS, pause_ms=PAUSE_MS),
    )


def _bet(round_id: str) -> partner.PlaceBetsRequest:
    return partner.PlaceBetsRequest(
        request_id=uuid7(),
        account_id=ACCOUNT,
        table_id=TABLE,
        round_id=round_id,
        bets=[bet_pb2.BetRequest(bet="player", stake=_money(100))],
    )


def _money(minor: int) -> Money:
    return Money(currency_code=CURRENCY, minor_units=minor)
