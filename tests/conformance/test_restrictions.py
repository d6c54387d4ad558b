"""Requests for bets through the cores of the whole fleet: what the dry run says is what placing
then says, in every case; and the cases leave no restriction out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from services.conformance.cases import Laid, RequestCase
from services.conformance.play import PARTNER, STAKE_RANGE, Play, Refusal
from services.conformance.restrictions import REASONS
from services.conformance.rules import TABLE_ID
from services.conformance.runner import differences_of, read_cases
from services.games.catalogue import all_rule_sets
from services.limits.domain.queries import Unbookable, check
from services.limits.domain.state import LimitsState

HERE = Path(__file__).parent
FILES = ("restrictions.jsonl", "own_cases.jsonl")
CASES = [
    case for case in read_cases([HERE / name for name in FILES]) if isinstance(case, RequestCase)
]
UNBOOKABLE = {
    Unbookable.NOT_OFFERED: table.REFUSAL_UNKNOWN_BET,
    Unbookable.NOT_ON_LAYOUT: table.REFUSAL_NOT_ON_LAYOUT,
    Unbookable.NOT_WHOLE_CHIPS: table.REFUSAL_NOT_WHOLE_CHIPS,
}
NOT_OF_LIMITS = {"REFUSAL_SEAT_TAKEN", STAKE_RANGE}
"""What limits have no say in: seats are the table's, and no server takes a stake out of range."""


def named(case: RequestCase) -> str:
    return case.case_id


@pytest.mark.parametrize("case", CASES, ids=named)
def test_lim_6_the_dry_run_says_what_placing_says(
    case: RequestCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[limits.Violation] | Unbookable | None, tuple[str, ...]]] = []
    place = Play.place

    def place_after_a_dry_run(play: Play, account: str, laid: Sequence[Laid]) -> list[bet_pb2.Bet]:
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

    monkeypatch.setattr(Play, "place", place_after_a_dry_run)
    assert differences_of(case) == []
    assert asked
    for told, reasons in asked:
        assert told is not None
        if not NOT_OF_LIMITS.isdisjoint(reasons):
            continue
        if isinstance(told, Unbookable):
            assert reasons == (table.Refusal.Name(UNBOOKABLE[told]),)
        else:
            # What all accounts come to together, a dry run does not tell (rule VIS-1).
            judged = tuple(reason for reason in reasons if reason != "LIMIT_EXPOSURE")
            assert tuple(limits.Limit.Name(one.limit) for one in told) == judged


def test_every_reason_is_one_that_is_known() -> None:
    """Else a case with a slip in its reason would pass with any refusal."""
    assert {case.reason for case in CASES} - {None} <= set(REASONS)


def test_the_cases_reach_every_restriction_and_every_game() -> None:
    games = {one.game for one in all_rule_sets()}
    reached = {case.rules.rule_set_id for case in CASES}
    assert {one.game for one in all_rule_sets() if one.rule_set_id in reached} == games
    told = {limit for case in CASES if case.reason for limit in REASONS[case.reason]}
    without_a_round = {"LIMIT_UNSPECIFIED", "LIMIT_BOOK_CLOSED", "LIMIT_FAILED"}
    by_live_odds = {"LIMIT_BET_CLOSED"}  # An operator's line closes bets, no rule of a case.
    of_accounts = set(limits.Limit.keys()[limits.LIMIT_STAKE_WINDOW :])  # Cases know no accounts.
    assert {name for name in told if name.startswith("LIMIT")} == (
        set(limits.Limit.keys()) - without_a_round - by_live_odds - of_accounts
    )
    assert {(bool(case.withdraw), case.expected) for case in CASES} == {
        (False, True),
        (False, False),
        (True, True),
        (True, False),
    }
