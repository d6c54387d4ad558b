"""What drills bring about, and what operators are promised to see of it. Whatever is stopped or
killed is a process that the drill started.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from services.cli.drill_stage import OF_A_FLEET, DrillFailed, Needs, Stage
from services.cli.split import Child
from services.kernel.nats_process import NatsProcess

Repair = Callable[[], Awaitable[None]]
Failure = Callable[[Stage], Awaitable[Repair]]
"""Brings the failure about; what it returns repairs it."""


@dataclass(frozen=True, slots=True)
class Drill:
    """A failure, and what operators are to see of it."""

    name: str
    what: str
    alert: str
    begin: Failure
    goes_on: bool = False
    """Whether rounds are paid while it lasts."""
    needs: Needs = OF_A_FLEET


def _pid(child: Child) -> int:
    try:
        return child.pid
    except RuntimeError as error:
        # It ended by itself, and its keeper has not started it again yet.
        raise DrillFailed(str(error)) from error


def _server(stage: Stage) -> tuple[NatsProcess, int]:
    """The log's only server, and its process."""
    embedded = stage.fleet.embedded
    pid = None if embedded is None else embedded.server.pid
    if embedded is None or pid is None:
        raise DrillFailed("the log's server does not run")
    return embedded.server, pid


def _signalled(pid: int, first: int, then: int) -> Repair:
    os.kill(pid, first)

    async def repair() -> None:
        os.kill(pid, then)

    return repair


async def _pause_wallet(stage: Stage) -> Repair:
    return _signalled(_pid(stage.fleet.child("wallet")), signal.SIGSTOP, signal.SIGCONT)


async def _pause_log(stage: Stage) -> Repair:
    return _signalled(_server(stage)[1], signal.SIGSTOP, signal.SIGCONT)


async def _kill_audit(stage: Stage) -> Repair:
    """It is kept from coming back: a crash alone is over before anybody could see it."""
    child = stage.fleet.child("audit")
    pid = _pid(child)
    if child.keeper is not None:
        child.keeper.cancel()
    os.kill(pid, signal.SIGKILL)

    async def repair() -> None:
        child.keeper = asyncio.get_running_loop().create_task(child.keep(), name=child.name)

    return repair


async def _kill_leader(stage: Stage) -> Repair:
    if stage.cluster is None:
        raise DrillFailed("the log has one server")
    server = stage.cluster.servers[await stage.leader()]
    await server.kill()
    return server.start


async def _stop_database(stage: Stage) -> Repair:
    database = stage.database
    if database is None:
        raise DrillFailed("there is no database")
    database.kill()

    async def repair() -> None:
        database.start()

    return repair


async def _kill_partner_wallet(stage: Stage) -> Repair:
    wallet = stage.wallet
    if wallet is None:
        raise DrillFailed("no partner has a wallet of its own")
    await wallet.kill()

    async def repair() -> None:
        await wallet.start()

    return repair


async def _fill_disk(stage: Stage) -> Repair:
    """The server may let no file grow: each of its writes fails, as on a disk without room, and it
    behaves the same. To fill a real disk needs a disk of one's own, and the rights to mount it."""
    if sys.platform != "linux":
        raise DrillFailed("only Linux can take the room from a process that runs")
    from resource import RLIM_INFINITY, RLIMIT_FSIZE, prlimit

    server, pid = _server(stage)
    _, most = prlimit(pid, RLIMIT_FSIZE)
    prlimit(pid, RLIMIT_FSIZE, (0, most))

    async def repair() -> None:
        # Room first; then the restart that it takes nothing without. Its keeper starts it again.
        prlimit(pid, RLIMIT_FSIZE, (RLIM_INFINITY, most))
        server.send_signal(signal.SIGTERM)

    return repair


async def _step_clock(stage: Stage) -> Repair:
    return _signalled(_pid(stage.fleet.child("table")), signal.SIGUSR1, signal.SIGUSR2)


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
            "service-killed",
            "audit was killed, and does not come back",
            "ProcessDown",
            _kill_audit,
            goes_on=True,
        ),
        Drill(
            "log-server-paused",
            "the log's server does not answer, as behind a broken network",
            "NotReady",
            _pause_log,
        ),
        Drill(
            "leader-killed",
            "of the log's three servers the leader was killed, and does not come back",
            "AlarmLogStrained",
            _kill_leader,
            goes_on=True,
            needs=Needs(three_servers=True),
        ),
        Drill(
            "disk-full",
            "the log's server finds no room for what it writes",
            "AlarmLogDoesNotAnswer",
            _fill_disk,
        ),
        Drill(
            "database-away",
            "the database of projections and witnesses was stopped",
            "AlarmWitnessAway",
            _stop_database,
            goes_on=True,
            needs=Needs(database=True),
        ),
        Drill(
            "partner-wallet-down",
            "the wallet of a partner that keeps its accounts' money itself was killed",
            "PartnerHeldBack",
            _kill_partner_wallet,
            goes_on=True,
            needs=Needs(partner_wallet=True),
        ),
        Drill(
            "clock-stepped",
            "the clock under table stepped three seconds ahead",
            "ClockOff",
            _step_clock,
            needs=Needs(stepping_clock=True),
        ),
    )
}
"""By name."""
