"""Every case of this folder, through the cores of the fleet; see README.md."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from services.conformance.blackjack import KINDS
from services.conformance.cases import (
    ActionCase,
    AnyCase,
    BlackjackCase,
    ExpectedBet,
    Money,
    RequestCase,
    RoundCase,
)
from services.conformance.runner import differences_of, read_cases, run
from services.games.catalogue import all_rule_sets

HERE = Path(__file__).parent
FILES = ("own_cases.jsonl", "restrictions.jsonl", "rounds.jsonl")
CASES = read_cases([HERE / name for name in FILES])
MOST_SECONDS = 10.0
"""For all files."""


def named(case: AnyCase) -> str:
    return case.case_id


def test_no_file_is_forgotten() -> None:
    assert sorted(path.name for path in HERE.glob("*.jsonl")) == list(FILES)


def test_no_case_has_the_id_of_another() -> None:
    twice = [case_id for case_id, count in Counter(map(named, CASES)).items() if count > 1]
    assert twice == []


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_case(case: AnyCase) -> None:
    assert [str(one) for one in differences_of(case)] == []


def test_all_cases_together_take_seconds() -> None:
    """Of work, not by the clock: other tests run beside this one."""
    started = time.process_time()
    assert run(CASES).failed == 0
    assert time.process_time() - started < MOST_SECONDS


@pytest.mark.parametrize(
    "case", [case for case in CASES if isinstance(case, RequestCase | ActionCase)], ids=named
)
def test_no_request_comes_out_both_ways(case: RequestCase | ActionCase) -> None:
    assert differences_of(replace(case, expected=not case.expected, reason=None))


# ---- the other roundings -----------------------------------------------------------------------

INEXACT = [
    case
    for case in CASES
    if isinstance(case, RoundCase) and any(bet.money.exact is not None for bet in case.bets)
]


def rounded(exact: Fraction, policy: str) -> int:
    """To the nearest whole minor unit; a half goes up, or to the even neighbour."""
    floor, rest = exact.__floor__(), exact - exact.__floor__()
    if rest == Fraction(1, 2):
        return floor + 1 if policy == "half_up" or floor % 2 else floor
    return floor + (rest > Fraction(1, 2))


def by_policy(bet: ExpectedBet, policy: str) -> ExpectedBet:
    money = bet.money
    if money.exact is None:
        return bet
    profit = rounded(money.exact, policy)
    return replace(bet, money=Money(money.result, money.stake, profit, money.stake + profit))


@pytest.mark.parametrize("policy", ["half_up", "half_even"])
@pytest.mark.parametrize("case", INEXACT, ids=named)
def test_mon_1_the_same_by_the_other_policies(case: RoundCase, policy: str) -> None:
    bets = tuple(by_policy(bet, policy) for bet in case.bets)
    profit = sum(bet.money.profit for bet in bets)
    other = replace(
        case,
        rules=replace(case.rules, rounding=policy),
        bets=bets,
        totals=Money("", case.totals.stake, profit, case.totals.stake + profit),
    )
    assert [str(one) for one in differences_of(other)] == []


# ---- what the cases reach ----------------------------------------------------------------------


def test_the_cases_reach_every_bet_of_every_rule_set() -> None:
    """But for what blackjack stakes by actions, which its cases name otherwise."""
    reached: dict[str, set[str]] = {}
    for case in CASES:
        if isinstance(case, RoundCase):
            bets = reached.setdefault(case.rules.rule_set_id, set())
            for bet in case.bets:
                bets.update(part.laid.bet for part in bet.parts or (bet,))
    missing = {
        rule_set.rule_set_id: sorted(
            {bet.bet for bet in rule_set.bets} - reached.get(rule_set.rule_set_id, set())
        )
        for rule_set in all_rule_sets()
        if rule_set.rule_set_id != "blackjack"
    }
    assert {name: bets for name, bets in missing.items() if bets} == {}


def test_the_cases_reach_every_way_of_blackjack() -> None:
    """Every bet, every fate of a hand and every kind of a side bet; each peek."""
    cases = [case for case in CASES if isinstance(case, BlackjackCase)]
    seats = [seat for case in cases for seat in case.seats]
    fates = {hand.money.result for seat in seats for hand in seat.hands}
    assert fates == {"win", "lose", "push", "blackjack", "bust", "void"}
    kinds = {side.kind for seat in seats for side in seat.sides.values()}
    assert kinds == {None, *KINDS.values()}
    insured = {seat.sides["insurance"].money.result for seat in seats if "insurance" in seat.sides}
    assert insured == {"win", "lose", "void"}
    acted = {
        action.partition(":")[0]
        for seat in seats
        for actions in (seat.actions, *seat.hand_actions)
        for action in actions
    }
    assert acted == {"hit", "stand", "double", "split"}
    assert {case.rules.peek for case in cases} == {"ace_only", "both", "none"}
