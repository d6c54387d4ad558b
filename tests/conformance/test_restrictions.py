"""Requests that must be accepted or refused, through the cores of the whole fleet: in each case the
answer, its reason, and that the dry run would have said the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from services.conformance.cases import RequestCase
from services.conformance.play import PARTNER, Play, Refusal
from services.conformance.restrictions import REASONS
from services.conformance.rules import TABLE_ID
from services.conformance.runner import differences_of, read_cases
from services.limits.domain.queries import Unbookable, check
from services.limits.domain.state import LimitsState

HERE = Path(__file__).parent
FILES = ("restrictions.jsonl", "own_restrictions.jsonl")
CASES = [
    case for case in read_cases([HERE / name for name in FILES]) if isinstance(case, RequestCase)
]
UNBOOKABLE = {
    Unbookable.NOT_OFFERED: table.REFUSAL_UNKNOWN_BET,
    Unbookable.NOT_ON_LAYOUT: table.REFUSAL_NOT_ON_LAYOUT,
    Unbookable.NOT_WHOLE_CHIPS: table.REFUSAL_NOT_WHOLE_CHIPS,
}


def names(case: RequestCase) -> str:
    return case.case_id


@pytest.mark.parametrize("case", CASES, ids=names)
def test_a_request(case: RequestCase, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[limits.Violation] | Unbookable | None, tuple[str, ...]]] = []
    place = Play.place

    def place_twice(play: Play, account: str, laid: Any) -> list[bet_pb2.Bet]:
        """Ask what limits would say, then place."""
        state: LimitsState = play.cell.states["limits"]
        wagers = [
            bet_pb2.Bet(bet=bet.bet, position=bet.position, stake_minor=bet.stake) for bet in laid
        ]
        told = check(state, PARTNER, account, TABLE_ID, wagers)
        try:
            found = place(play, account, laid)
        except Refusal as refusal:
            asked.append((told, refusal.reasons))
            raise
        asked.append((told, ()))
        return found

    monkeypatch.setattr(Play, "place", place_twice)
    assert differences_of(case) == []
    assert asked
    for told, reasons in asked:
        if isinstance(told, Unbookable):
            assert reasons == (table.Refusal.Name(UNBOOKABLE[told]),)
        else:
            assert told is not None
            assert tuple(limits.Limit.Name(one.limit) for one in told) == reasons


def test_every_reason_is_one_that_is_known() -> None:
    """Else a case with a slip in its reason would pass with any refusal."""
    assert {case.reason for case in CASES} - {None} <= set(REASONS)


def test_the_cases_reach_every_game_and_every_restriction() -> None:
    assert {case.rules.rule_set_id for case in CASES} == {
        "baccarat",
        "blackjack",
        "dragon_tiger",
        "football_studio",
        "roulette",
        "sicbo_atlantic_city",
    }
    told = {limit for case in CASES if case.reason for limit in REASONS[case.reason]}
    assert {name for name in told if name.startswith("LIMIT")} == {
        "LIMIT_ABOVE_MAXIMUM",
        "LIMIT_BELOW_MINIMUM",
        "LIMIT_COVERAGE",
        "LIMIT_DIFFERENCE",
        "LIMIT_NO_MAIN_BET",
        "LIMIT_OPPOSITE_SIDES",
        "LIMIT_SIDE_BET_CLOSED",
        "LIMIT_STAKE_STEP",
    }
    assert any(case.withdraw for case in CASES)
    assert {case.expected for case in CASES} == {True, False}
