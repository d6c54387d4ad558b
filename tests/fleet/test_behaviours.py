"""A cell from before a behaviour: it goes on as it was, until a supervisor says otherwise."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sabot.partner.v1 import partner_service_pb2 as partner
from services.cli import fleet as fleets
from services.cli.failures import in_one_line
from services.cli.fleet import all_parts
from services.cli.main import app
from services.kernel import host
from services.kernel.event import NEWEST_BEHAVIOUR
from services.kernel.replica import BehaviourUnknown
from services.kernel.settings import ServiceSettings
from tests.fleet.clients import table_spec
from tests.fleet.running import Inside, inside


async def sabot(*words: str) -> tuple[int, str]:
    done = await asyncio.to_thread(CliRunner().invoke, app, list(words))
    return done.exit_code, str(done.output)


def older_parts(settings: ServiceSettings) -> Sequence[host.Parts]:
    """The seven services of a release that knows the first behaviour alone."""
    return [
        dataclasses.replace(
            part,
            core=dataclasses.replace(part.core, behaviour=1),
            observed=[dataclasses.replace(one, behaviour=1) for one in part.observed],
        )
        for part in all_parts(settings)
    ]


async def play(here: Inside, round_of: str = "t1") -> None:
    north, boss = here.partner("north"), here.operator()
    round_id = await boss.open_round(round_of)
    assert (await north.place("a1", round_id, ("player", 100))).refused == ""
    await boss.close_betting(round_id)
    await north.round_in(round_of, partner.ROUND_STATE_PAID)


async def test_an_older_cell_changes_its_behaviour_when_a_supervisor_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        # As the releases before behaviour 2 began a log: without a word.
        before.setattr(host, "begin_anew", lambda process: process)
        async with inside(tmp_path) as here:
            await here.operator().open_table(table_spec())
            await here.partner("north").open_account("a1", 1_000)
    async with inside(tmp_path) as here:
        process = here.fleet.host.process
        await play(here)
        assert process.behaviour == 1
        at = ("--address", here.fleet.address, "--data", str(tmp_path))
        newest = str(NEWEST_BEHAVIOUR)
        code, told = await sabot("behaviour", "activate", str(NEWEST_BEHAVIOUR + 1), *at)
        assert (code, "in force, and this build knows" in " ".join(told.split())) == (1, True)
        code, told = await sabot("behaviour", "activate", newest, "--operator", "dana", *at)
        assert (code, "PERMISSION_DENIED" in told) == (1, True)
        code, told = await sabot("behaviour", "activate", newest, *at)
        assert (code, told.startswith(f"behaviour {newest} is in force from 1/")) == (0, True)
        assert process.behaviour == NEWEST_BEHAVIOUR
        code, told = await sabot("behaviour", "activate", newest, *at)
        assert (code, "cannot be activated" in " ".join(told.split())) == (1, True)
        await play(here)
        await here.ledger()
    with monkeypatch.context() as before:
        before.setattr(fleets, "all_parts", older_parts)
        with pytest.raises(BehaviourUnknown) as unknown:
            async with inside(tmp_path):
                pass
    (line,) = str(in_one_line(unknown.value)).splitlines()
    assert f"by behaviours up to 1; {NEWEST_BEHAVIOUR} is in force at entry " in line
    assert line.endswith(": run a release that knows it")
