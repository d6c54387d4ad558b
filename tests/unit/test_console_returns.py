"""What the console's page of returns says: exact returns by the rules, what was observed by the
log, nothing exact where seats decide, and of what the rules do not know that it is none of theirs.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlements
from services.console.returns_page import Row, rows_of
from services.odds.tally import Tallies, returns_of
from tests.unit.test_console_replay import FLOOR, RECORDED, followed

BY_PLAY = {"main", "double", "split", "insurance"}


async def rows(tallies: Tallies, digest: bytes) -> dict[str, Row]:
    visit: Any = SimpleNamespace(
        desk=SimpleNamespace(archive=SimpleNamespace(history=SimpleNamespace(tallies=tallies)))
    )
    return {row.bet: row for row in await rows_of(visit, digest)}


@pytest.mark.parametrize("recorded", [RECORDED, FLOOR])
async def test_every_games_bets_have_what_the_log_and_the_rules_say(recorded: Any) -> None:
    events, history = followed(recorded)
    tallies = history.tallies
    first: dict[tuple[bytes, str, str], settlements.SettledBet] = {}
    for event in events:
        body: Message = event.body
        if isinstance(body, settlements.BetsSettled):
            for bet in body.bets:
                name = f"{bet.bet}_{bet.position}" if bet.bet == "total" else bet.bet
                first.setdefault((body.rule_set_hash, name, body.round_id), bet)
    games = set[int]()
    for digest in tallies.tallies:
        rules = tallies.rule_sets[digest]
        games.add(rules.game)
        for name, row in (await rows(tallies, digest)).items():
            assert not row.unknown, name
            blackjack = rules.game == rule_set_pb2.GAME_BLACKJACK
            assert row.by_play == (blackjack and name in BY_PLAY), name
            assert (row.found is None) == row.by_play
            if row.found is None:
                continue
            samples = [one for key, one in first.items() if key[:2] == (digest, name)]
            paid = [bet.payout_minor / bet.stake_minor for bet in samples]
            assert row.found.observed == pytest.approx(sum(paid) / len(paid), abs=0.01), name
            assert row.found.low <= row.found.observed <= row.found.high
            if rules.game == rule_set_pb2.GAME_ROULETTE:
                assert row.exact is not None
                assert float(row.exact) == pytest.approx(36 / 37, abs=0.02)
    assert rule_set_pb2.GAME_BLACKJACK in games


async def test_what_the_rules_do_not_know_breaks_no_page_and_is_outside() -> None:
    known = followed(RECORDED)[1].tallies
    digest, rules = next(
        (digest, rules)
        for digest, rules in known.rule_sets.items()
        if rules.game == rule_set_pb2.GAME_BACCARAT
    )
    tallies = Tallies()
    tallies.know(rules)
    bets = [
        settlements.SettledBet(bet="player", stake_minor=1, outcome=settlements.OUTCOME_VOIDED),
        settlements.SettledBet(bet="banker", stake_minor=1, line="by_13"),
        settlements.SettledBet(bet="no_more_offered", outcome=settlements.OUTCOME_WON),
        settlements.SettledBet(bet="total", position="4", outcome=settlements.OUTCOME_WON),
        settlements.SettledBet(bet="tie", stake_minor=1, outcome=settlements.OUTCOME_LOST),
    ]
    tallies.settled(settlements.BetsSettled(round_id="t1-1", rule_set_hash=rules.hash, bets=bets))
    found = await rows(tallies, digest)
    assert {name for name, row in found.items() if row.unknown} == {
        "player", "banker", "no_more_offered", "total_4",
    }  # fmt: skip
    assert not any(row.inside for row in found.values() if row.unknown)
    assert found["tie"].inside
    assert found["tie"].found is not None
    assert "lost" in returns_of(rules, next(one for one in rules.bets if one.bet == "tie"))
