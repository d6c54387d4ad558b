"""Hot standby: two processes of every service at once, shells included, are as correct as one.

Killing, freezing or draining one of them leaves the other working: bets are confirmed within
seconds, rounds go on, and the log shows no card, timer or payout twice.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from services.events import SERVICES
from tests.fleet.load import Crowd, crowd
from tests.fleet.running import Running, on_one_server

WITHIN_S = 60.0
"""Bets are confirmed again by then: within some seconds, but other tests run beside this one. What
is frozen nobody starts again: only the other one can have confirmed them."""


async def lose_one(running: Running, playing: Crowd, service: str, by: signal.Signals) -> None:
    """Lose the process that leads a service: the other works on alone. Then it comes back."""
    leader = running.fleet.child(await running.leads(service))
    process = leader.process
    assert process is not None
    os.kill(leader.pid, by)
    confirmed = await playing.north.more_bets_on(1, WITHIN_S)
    await playing.rounds_go_on(1)
    print(f"{leader.name:13} lost by {by.name:8} next bet confirmed after {confirmed:4.1f} s")
    if by is signal.SIGSTOP:
        # It may have been stopped between deciding and sending: what it sends now loses its fence.
        process.send_signal(signal.SIGCONT)
    else:
        await process.wait()
    await running.until_ready([leader])


@pytest.mark.timeout(600)
async def test_two_of_every_service_and_either_may_be_killed(tmp_path: Path) -> None:
    async with on_one_server(tmp_path, replicas=2) as running, crowd(running, seed=5) as playing:
        for service in SERVICES:
            await lose_one(running, playing, service, signal.SIGKILL)
        await playing.rest()
        await running.proven(**playing.partners)
        assert running.alarms() == []


@pytest.mark.timeout(600)
async def test_k8s_03_a_leader_that_was_stopped_and_resumes_does_nothing_twice(
    tmp_path: Path,
) -> None:
    """It believes for seconds that it leads, and so does the other; the ledger of `proven` finds a
    round opened, a card dealt or a bet settled twice."""
    doubled = {"table": 2, "shoe": 2, "settlement": 2, "wallet": 2}
    async with on_one_server(tmp_path, doubled) as running, crowd(running, seed=6) as playing:
        for service in doubled:
            await lose_one(running, playing, service, signal.SIGSTOP)
        await playing.rounds_go_on(1)
        await playing.rest()
        await running.proven(**playing.partners)
        assert running.alarms() == []


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM], ids=str)
@pytest.mark.parametrize("service", SERVICES)
async def test_losing_either_of_two_again_and_again(
    tmp_path: Path, service: str, by: signal.Signals
) -> None:
    async with on_one_server(tmp_path, {service: 2}) as running, crowd(running, 7) as playing:
        for _ in range(3):
            await lose_one(running, playing, service, by)
        await playing.rest()
        await running.proven(**playing.partners)
        assert running.alarms() == []
