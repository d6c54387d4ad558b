"""Services and log servers are killed at random moments under load, and nothing is lost or doubled.

After every kill the fleet must go on: a bet sent after it is confirmed, a round opened after it is
paid. At the end the log must prove the invariants of the architecture (§7), and bear out everything
that partners were told.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from services.events import SERVICES
from tests.fleet.load import Crowd, crowd
from tests.fleet.running import Running, kill, on_one_server, on_three_servers

SERVER = "nats-server"
LEADER = "leading nats-server"
FOLLOWER = "following nats-server"
SHORT = (("table", SERVER), ("wallet", LEADER))
"""What is killed on one server and on three in `make test`."""


def campaign(seed: int, *servers: str) -> list[str]:
    """Each service once, and servers of the log in between."""
    victims = [*SERVICES, *servers]
    random.Random(seed).shuffle(victims)
    return victims


async def kill_one(running: Running, victim: str) -> None:
    """Kill and let come back: services by the fleet, one server by the fleet, three by us."""
    if victim in SERVICES:
        child = running.fleet.child(victim)
        kill(child.pid)
        assert child.process is not None
        await child.process.wait()
        return
    if victim == SERVER:
        kill(running.server().pid or 0)
        return
    leader = await running.leader()
    others = sorted({"server1", "server2", "server3"} - {leader})
    server = running.server(leader if victim == LEADER else others[0])
    await server.kill()
    await server.start()


async def survive(running: Running, playing: Crowd, victims: list[str], seed: int) -> None:
    """Kill one after the other at moments of chance; tell how long each took to recover from."""
    chance = random.Random(seed)
    loop = asyncio.get_running_loop()
    for victim in victims:
        await playing.north.more_bets_on(chance.randint(1, 4))
        await asyncio.sleep(chance.random() * 0.4)  # The moment is a matter of chance.
        began = loop.time()
        await kill_one(running, victim)
        confirmed = await playing.north.more_bets_on(1)
        await playing.rounds_go_on(2)  # The second of them was opened after the kill.
        paid = loop.time() - began
        await running.until_ready()
        ready = loop.time() - began
        print(
            f"killed {victim:22} next bet confirmed after {confirmed:4.1f} s, "
            f"next whole round over after {paid:4.1f} s, all ready after {ready:4.1f} s"
        )
    await playing.rest()
    await running.proven(**playing.partners)
    assert running.alarms() == []


async def test_kill_9_on_one_server(tmp_path: Path) -> None:
    async with on_one_server(tmp_path) as running, crowd(running, seed=1) as playing:
        await survive(running, playing, list(SHORT[0]), seed=1)


async def test_kill_9_on_three_servers(tmp_path: Path) -> None:
    async with on_three_servers(tmp_path) as running, crowd(running, seed=2) as playing:
        await survive(running, playing, list(SHORT[1]), seed=2)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_10_kills_on_one_server(tmp_path: Path) -> None:
    async with on_one_server(tmp_path) as running, crowd(running, seed=3) as playing:
        await survive(running, playing, campaign(3, SERVER, SERVER, SERVER), seed=3)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_10_kills_on_three_servers(tmp_path: Path) -> None:
    async with on_three_servers(tmp_path) as running, crowd(running, seed=4) as playing:
        await survive(running, playing, campaign(4, LEADER, LEADER, FOLLOWER), seed=4)
