"""Whole rounds of roulette, sic bo, dragon tiger and football studio, worked out by hand and by
independent calculators: every bet of every case against the pure functions.
"""

from __future__ import annotations

from typing import Any

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2 as rs
from services.games import roulette, sicbo, two_cards
from services.games.bets import Pays, pays_of
from services.games.money import Rounding, Verdict, settled
from services.games.odds import EVENS, Odds
from services.games.registry import judging, on_layout
from tests.conformance.case_files import cases, named

GAMES = ("roulette", "sicbo", "dragon_tiger", "football_studio")
FILES = {game: cases(f"{game}_rounds.jsonl") for game in GAMES}
VOIDED = [case for game in GAMES for case in FILES[game] if case.get("void")]
"""They are settled by nobody: a void returns the stakes whatever came (rule INC-2)."""
ROUNDS = [case for game in GAMES for case in FILES[game] if not case.get("void")]
ACES = {"low": rs.ACE_RANK_LOW, "high": rs.ACE_RANK_HIGH}
RESULTS = {
    Verdict.WON: "win",
    Verdict.LOST: "lose",
    Verdict.PUSHED: "push",
    Verdict.HALF_LOST: "half_lose",
}


def terms_of(case: dict[str, Any]) -> tuple[rs.RuleSet, rules.Result, dict[str, Pays]]:
    """The rule set, the result and the paytable of a case."""
    match case["game"]:
        case "roulette":
            result = rules.Result(roulette=rules.RouletteResult(number=case["number"]))
            return rs.RuleSet(game=rs.GAME_ROULETTE), result, roulette.PAYS
        case "sicbo":
            result = rules.Result(sicbo=rules.SicboResult(dice=case["dice"]))
            return rs.RuleSet(game=rs.GAME_SICBO), result, sicbo.PAYTABLES[case["paytable"]]
        case "dragon_tiger":
            dragon, tiger = case["cards"]
            options = rs.TwoCardOptions(ace=rs.ACE_RANK_LOW)
            return (
                rs.RuleSet(game=rs.GAME_DRAGON_TIGER, two_cards=options),
                rules.Result(
                    dragon_tiger=rules.DragonTigerResult(dragon_card=dragon, tiger_card=tiger)
                ),
                two_cards.DRAGON_TIGER_PAYS | {"tie": Odds(case["tie_pays"], 1)},
            )
        case _:
            home, away = case["cards"]
            options = rs.TwoCardOptions(ace=ACES[case["ace"]])
            return (
                rs.RuleSet(game=rs.GAME_FOOTBALL_STUDIO, two_cards=options),
                rules.Result(
                    football_studio=rules.FootballStudioResult(home_card=home, away_card=away)
                ),
                two_cards.FOOTBALL_STUDIO_PAYS,
            )


def asked(bet: dict[str, Any]) -> str:
    """The position as a request would name it."""
    if "numbers" in bet or "values" in bet:
        return "-".join(map(str, reversed(bet.get("numbers") or bet["values"])))
    return str(bet.get("index", bet.get("value", "")))


@pytest.mark.parametrize("case", ROUNDS, ids=named)
def test_every_bet_of_a_round(case: dict[str, Any]) -> None:
    rule_set, result, paytable = terms_of(case)
    judge = judging(rule_set, result)
    returned = 0
    for bet in case["bets"]:
        kind, what = bet["bet"], f"{case['id']} {bet}"
        position = on_layout(rule_set, kind, asked(bet))
        assert position is not None, what
        judged = judge(kind, position)
        assert RESULTS[judged.verdict] == bet["result"], what
        pays = pays_of(paytable[kind], judged.line) if judged.verdict is Verdict.WON else EVENS
        for rounding in Rounding:
            money = settled(bet["stake"], judged.verdict, pays, rounding)
            assert money.payout_minor == bet["stake"] + money.profit_minor, what
            if rounding is Rounding.DOWN or not bet.get("inexact"):
                assert (money.profit_minor, money.payout_minor) == (bet["profit"], bet["return"]), (
                    what
                )
            else:
                assert bet["profit"] <= money.profit_minor <= bet["profit_max"], what
        returned += settled(bet["stake"], judged.verdict, pays, Rounding.DOWN).payout_minor
    assert returned == case["total_return"]


@pytest.mark.parametrize("case", FILES["roulette"], ids=named)
def test_rou_2_the_colour_of_a_number(case: dict[str, Any]) -> None:
    assert roulette.colour(case["number"]) == case["expected_outcome"]["colour"]


SIDES = {
    "dragon_tiger": ("dragon", "tiger", "tie"),
    "football_studio": ("home", "away", "draw"),
}
TWO_CARDS = [case for case in ROUNDS if case["game"] in SIDES]


@pytest.mark.parametrize("case", TWO_CARDS, ids=named)
def test_dt_1_fs_1_who_won(case: dict[str, Any]) -> None:
    ace = two_cards.Ace.HIGH if case.get("ace") == "high" else two_cards.Ace.LOW
    first, second = case["cards"]
    cards = two_cards.dealt(first, second, ace)
    expected = case["expected_outcome"]
    assert SIDES[case["game"]][cards.winner.value - 1] == expected["winner"]
    assert cards.suited == expected.get("suited", cards.suited)


@pytest.mark.parametrize("table", sicbo.PAYTABLES)
def test_sic_2_the_paytables_are_those_of_the_cases(table: str) -> None:
    told_by = [case["paytable_values"] for case in ROUNDS if case.get("paytable") == table]
    values = told_by[0]
    assert all(one == values for one in told_by)
    pays = sicbo.PAYTABLES[table]
    assert pays.keys() == values.keys()
    for bet, told in values.items():
        match told:
            case int():
                assert pays[bet] == Odds(told, 1)
            case list():
                lines = ("one_die", "two_dice", "three_dice")
                assert pays[bet] == {
                    line: Odds(profit, 1) for line, profit in zip(lines, told, strict=True)
                }
            case _:
                assert pays[bet] == {
                    f"total_{int(total):02}": Odds(profit, 1) for total, profit in told.items()
                }


def test_the_cases_reach_every_bet() -> None:
    bets = {game: {bet["bet"] for case in FILES[game] for bet in case["bets"]} for game in GAMES}
    assert bets == {
        "roulette": roulette.PAYS.keys(),
        "sicbo": sicbo.PAYS.keys(),
        "dragon_tiger": two_cards.DRAGON_TIGER_PAYS.keys(),
        "football_studio": two_cards.FOOTBALL_STUDIO_PAYS.keys(),
    }
    assert len(VOIDED) == 2
