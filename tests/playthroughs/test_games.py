"""Whole rounds of every game as text, compared exactly with what lies beside this file. (Those of
blackjack are in `test_blackjack`.)

A change of a text is a change of what the fleet does or says: look at it, and if it is meant, write
them anew with `python -m tests.playthroughs.test_games`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as table
from services.cli.playthrough import Playthrough, playthrough
from services.kernel.memory_log import MemoryLog
from services.simulator.audit_judge import due
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import memory_cell
from tests.fleet.stacked_shoe import stacked_generator
from tests.playthroughs.card_stories import BACCARAT, DRAGON_TIGER, EZ, FOOTBALL_STUDIO
from tests.playthroughs.stories import Story, tell
from tests.playthroughs.wheel_stories import ROULETTE, SICBO

HERE = Path(__file__).parent
GAMES = {
    "roulette": ROULETTE,
    "sicbo": SICBO,
    "dragon-tiger": DRAGON_TIGER,
    "football-studio": FOOTBALL_STUDIO,
    "baccarat": BACCARAT,
    "ez": EZ,
}
STORIES: dict[str, Story] = {
    f"{game}-{name}": story for game, stories in GAMES.items() for name, story in stories.items()
}
"""By file."""
MONEY = {"ann": 50_000, "ben": 20_000, "cid": 10_000}
"""What each account has at first, in minor units."""


def play() -> dict[str, Playthrough]:
    """All rounds, one after the other, on one log."""

    async def main() -> dict[str, Playthrough]:
        generator = stacked_generator(
            [story.cards for story in STORIES.values() if story.rule_set.decks],
            tosses=[toss for story in STORIES.values() for toss in story.tosses()],
        )
        async with memory_cell(seed=3, generator=generator) as (cell, store):
            for account, minor in MONEY.items():
                await cell.open_account(account, minor)
            rounds = {
                f"{game}-{name}": await tell(cell, f"{game}-{number}", story)
                for game, stories in GAMES.items()
                for number, (name, story) in enumerate(stories.items(), start=1)
            }
            if cell.alarms:
                raise RuntimeError(f"alarms: {cell.alarms}")
        log = MemoryLog(store)
        return {name: await playthrough(log, round_id) for name, round_id in rounds.items()}

    return run_virtual(main())


@pytest.fixture(scope="module")
def played() -> dict[str, Playthrough]:
    return play()


def test_every_game_has_five_rounds_at_least() -> None:
    assert all(len(stories) >= 5 for game, stories in GAMES.items() if game != "ez")
    assert {story.rule_set.rule_set_id for story in STORIES.values()} == {
        "baccarat",
        "baccarat_ez",
        "dragon_tiger",
        "football_studio",
        "roulette",
        "sicbo_atlantic_city",
        "sicbo_macau",
    }


@pytest.mark.parametrize("name", STORIES)
def test_a_round_is_told_as_it_was_written(played: dict[str, Playthrough], name: str) -> None:
    assert played[name].text() == (HERE / f"{name}.txt").read_text()


def test_a_second_judge_pays_the_same(played: dict[str, Playthrough]) -> None:
    """The auditor of simulations shares no code with settlement."""
    settled = 0
    for told in played.values():
        opened = told.governed_by
        assert opened is not None
        for one in told.shown:
            match one.event.body:
                case table.ResultAccepted() as accepted:
                    result = accepted.result
                case settlement.BetsSettled() as body:
                    for bet in body.bets:
                        own = due(
                            opened.spec.rule_set, result, bet.bet, bet.position, bet.stake_minor
                        )
                        assert own == (
                            bet.outcome, bet.profit_minor, bet.payout_minor, bet.commission_minor
                        ), f"{told.round_id}: {bet}"  # fmt: skip
                        settled += 1
                case _:
                    pass
    assert settled > 100


def test_stakes_are_home_when_a_round_is_over(played: dict[str, Playthrough]) -> None:
    """Each journal entry sums to zero, and nothing stays reserved."""
    last: dict[str, int] = {}
    for name in STORIES:
        for one in played[name].json():
            moved = 0
            for leg in one["balances"]:
                last[leg["ledger_account"]] = leg["after_minor"]
                moved += leg["after_minor"] - leg["before_minor"]
            assert moved == 0
        assert not any(minor for account, minor in last.items() if account.startswith("reserved"))


if __name__ == "__main__":
    for told, one in play().items():
        (HERE / f"{told}.txt").write_text(one.text())
