"""Tables on the floor in the simulation: nothing is violated, the ways it goes are all known by
name, and what a campaign has to reach names nothing that is not there.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest
from typer.testing import CliRunner

from sabot.table.v1 import events_pb2 as table
from services.cli.main import app
from services.events import event_types
from services.simulator.asking import hashed
from services.simulator.campaign import injected, missing
from services.simulator.coverage import ELSEWHERE, EVENT, EVENTS, FLOOR_PATHS, FLOOR_REFUSALS
from services.simulator.releases import BASE
from services.simulator.simulation import Simulation, run_seed
from services.simulator.tables import FLOOR_GAMES, GAME_NUMBERS, GAMES, kind_of, named
from services.simulator.virtual_time import run_virtual

FOUND: tuple[tuple[int, tuple[str, ...]], ...] = (
    (304, ("floor_baccarat", "floor_roulette")),  # A card of an old round swept away a held one.
    (92, ()),  # Dice told at a wheel are called for nowhere, and the auditor thought they were.
)
"""Seeds that showed a fault once, of the product or of its auditor."""


def test_floors_violate_nothing_and_go_ways_that_are_known() -> None:
    reached: Counter[str] = Counter()
    for name in FLOOR_GAMES:
        result = run_seed(2, rounds=6, games=[f"floor_{name}"])
        assert not result.violations, result.violations
        reached.update(result.counts)
    ways = {path for path in FLOOR_PATHS if reached[path]}
    assert len(ways) > len(FLOOR_PATHS) // 2
    assert "round of told tosses" in ways
    assert "round of cards on the floor" in ways


@pytest.mark.parametrize(("seed", "games"), FOUND)
def test_a_seed_that_found_a_fault_violates_nothing_any_more(
    seed: int, games: tuple[str, ...]
) -> None:
    result = run_seed(seed, games=games)
    assert not result.violations, result.violations


def test_a_way_that_was_never_gone_is_missing() -> None:
    counts = injected([])
    assert set(missing(counts)) >= {*EVENTS, *FLOOR_PATHS, *FLOOR_REFUSALS}
    counts[FLOOR_PATHS[0]] += 1
    assert FLOOR_PATHS[0] not in missing(counts)


def test_what_is_tried_elsewhere_is_no_more_than_there_is() -> None:
    known = {str(kind.DESCRIPTOR.full_name) for core in BASE.values() for kind in core.folds}
    known |= {str(kind.DESCRIPTOR.full_name) for core in BASE.values() for kind in core.answers}
    assert known >= ELSEWHERE.keys()
    assert {EVENT + name for name in known - ELSEWHERE.keys()} == set(EVENTS)
    assert all(event_types().decode(name, b"") is not None for name in known)


def test_each_game_has_tables_of_its_own_names() -> None:
    for game in GAME_NUMBERS:
        assert {kind_of(name).game for name in named(game)} == {GAME_NUMBERS[game]}
        assert any(kind_of(name).floor for name in named(game)) is (game in FLOOR_GAMES)
    assert {name for game in GAME_NUMBERS for name in named(game)} == set(GAMES)


def test_a_request_without_bets_may_be_repeated_and_its_id_used_again() -> None:
    simulation = Simulation(3, 1, BASE, ["roulette"])
    empty = table.PlaceBets(table_id="t1", account_id="account-0", round_id="t1-1")

    async def reuse() -> Counter[str]:
        simulation.fleet.deploy()
        player = simulation.players[0]
        empty.request_id = simulation.callers.new_id()
        player._bets = [hashed(empty)]
        for _ in range(8):
            await player._reuse()
        await simulation.fleet.stop()
        return simulation.callers.asked

    asked = run_virtual(asyncio.wait_for(reuse(), 300))
    assert asked["id reused with another body"]
    assert asked["request repeated"]


def test_one_game_may_be_simulated() -> None:
    run = CliRunner().invoke(
        app, ["simulate", "--seeds", "1", "--rounds", "2", "--game", "sicbo", "--json"]
    )
    assert run.exit_code == 0, run.output
    report = json.loads(run.stdout)
    assert report["violated"] == []
    assert report["reached"]["event: sabot.table.v1.RoundClosed"] >= 2
    assert not report["reached"]["event: sabot.rules.v1.SpinCalled"]


@pytest.mark.parametrize("game", ["ludo", "floor_", "cat"])
def test_a_game_that_is_none_is_not_simulated(game: str) -> None:
    run = CliRunner().invoke(app, ["simulate", "--seeds", "1", "--game", game])
    assert run.exit_code == 2
    assert "baccarat" in run.output
