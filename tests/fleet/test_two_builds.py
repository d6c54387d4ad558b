"""Two releases in one cell, under load: rolled out, rolled back and rolled out again, and then a
behaviour that only the newer one knows. No bet fails beyond a request that is sent once more."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from services.cli.fleet import CELL
from services.events import SERVICES
from services.kernel.build import BUILD
from services.kernel.entry import decode_entry
from services.kernel.event import NEWEST_BEHAVIOUR
from tests.fleet import older_build
from tests.fleet.clients import PATIENCE_S
from tests.fleet.load import Crowd, crowd
from tests.fleet.running import Running, on_one_server
from tests.fleet.test_behaviours import sabot

WITHIN_S = 60.0
"""Bets are confirmed again by then, whatever was replaced, on a busy machine too."""
BY_THE_RULES = {"", "OPPOSITE_SIDES", "BETTING_CLOSED", "REQUEST_NOT_FOUND", "rejected"}
"""What may become of a crowd's request whichever builds there are: it is on, it is on the side
opposite to another of the account's, or it came as betting closed."""
CANNOT = f"decides by behaviours up to 1; {NEWEST_BEHAVIOUR} is in force at entry"


async def replaced(running: Running, name: str, *, older: bool = False, ready: bool = True) -> None:
    """A process ends in order, and one of another build takes its place."""
    child = running.fleet.child(name)
    await child.stop()
    assert child.process is not None
    child.program = older_build.older(child.service) if older else ()
    await child.start()
    child.keeper = asyncio.create_task(child.keep(), name=name)
    if ready:
        await running.until_ready([child])


async def rolled(running: Running, playing: Crowd, *names: str, older: bool = False) -> None:
    """One after the other, while bets go on."""
    for name in names:
        await replaced(running, name, older=older)
        await playing.north.more_bets_on(1, WITHIN_S)


async def activated(running: Running) -> tuple[int, str]:
    """What `sabot behaviour activate` says of the newest behaviour."""
    at = ("--address", running.fleet.address, "--data", str(running.data))
    code, told = await sabot("behaviour", "activate", str(NEWEST_BEHAVIOUR), *at)
    return code, " ".join(told.split())


async def gives_up(running: Running, name: str) -> None:
    """Wait until a process has said in one line why it does not go on."""
    service = running.fleet.child(name).service
    log = running.folder / "logs" / f"{name}.log"
    async with asyncio.timeout(PATIENCE_S):
        while not any(  # noqa: ASYNC110 - a log's lines
            line.startswith(f"{service}: {service} {CANNOT}")
            for line in log.read_text().splitlines()
        ):
            await asyncio.sleep(0.1)


async def decided_by(running: Running) -> dict[str, list[str]]:
    """Builds that wrote answers, in order, by service: each as often as it took turns."""
    found: dict[str, list[str]] = {}
    async with running.log() as log:
        last = (await log.info(wait_s=PATIENCE_S)).last_sequence
        async for batch in log.read(0):
            for message in batch:
                _, cell, service, kind = message.subject.split(".")
                assert cell == CELL
                turns = found.setdefault(service, [])
                for event in decode_entry(message.payload).events:
                    if kind == "out" and turns[-1:] != [event.note.build]:
                        turns.append(event.note.build)
            if batch[-1].sequence >= last:
                break
    return found


@pytest.mark.long
@pytest.mark.timeout(1200)
async def test_two_builds_serve_one_cell_until_the_newer_one_s_behaviour_is_in_force(
    tmp_path: Path,
) -> None:
    firsts, seconds = list(SERVICES), [f"{service}-2" for service in SERVICES]
    everyone = {name: older_build.older(name.partition("-")[0]) for name in firsts + seconds}
    async with (
        on_one_server(tmp_path, 2, everyone) as running,
        crowd(running, seed=17) as playing,
    ):
        await playing.rounds_go_on(1)
        code, told = await activated(running)
        assert (code, told.endswith("this build knows behaviours up to 1.")) == (1, True), told

        await rolled(running, playing, *seconds)
        await playing.rounds_go_on(1)
        await rolled(running, playing, *seconds, older=True)
        await playing.rounds_go_on(1)

        # Too early: one process of the older release still runs.
        await rolled(running, playing, *seconds, *(one for one in firsts if one != "wallet"))
        code, told = await activated(running)
        began = told.startswith(f"behaviour {NEWEST_BEHAVIOUR} is in force from ")
        assert (code, began) == (0, True), told
        await gives_up(running, "wallet")
        await playing.rounds_go_on(2)
        await rolled(running, playing, "wallet")

        # Too late for a way back: what the older release would do is nothing.
        await replaced(running, "limits-2", older=True, ready=False)
        await gives_up(running, "limits-2")
        await playing.rounds_go_on(1)
        await rolled(running, playing, "limits-2")
        await playing.rest()
        partners = playing.partners
        await running.proven(**partners)
        alarms = running.alarms()
        builds = await decided_by(running)
    assert {alarm["kind"] for alarm in alarms} == {"process_stopped"}, alarms
    assert all(CANNOT in str(alarm["why"]) for alarm in alarms), alarms
    for service in ("table", "limits", "wallet", "shoe", "rules", "settlement"):
        assert set(builds[service]) == {older_build.BUILD, BUILD}, builds
        assert builds[service][-1] == BUILD, builds
    outcomes = [one for partner in partners.values() for one in partner.told.requests.values()]
    assert {one.refused for one in outcomes} <= BY_THE_RULES, Counter(
        one.refused for one in outcomes
    )
    again = sum(one.sent > 1 for one in outcomes)
    print(f"{len(outcomes)} requests for bets, {again} were sent again; {builds}")
