"""Whole baccarat rounds whose settlement was worked out by hand and by independent calculators.

Every bet of every case runs against the pure functions; the bets that tables offer also run through
the cores of rules and settlement.
"""

from __future__ import annotations

from typing import Any

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.baccarat import Side, burn_count, is_natural, next_draw
from services.games.baccarat_bets import PAYS, Dealt, dealt, judge
from services.games.bets import pays_of
from services.games.catalogue import baccarat_1
from services.games.money import Rounding, Verdict, settled
from services.games.odds import EVENS, NO_COMMISSION, Odds
from services.rules.domain.core import CORE as RULES
from services.settlement.domain.core import CORE as SETTLEMENT
from tests.conformance.case_files import cases, named
from tests.unit.deciding import Deciding, by

ROUNDS = cases("baccarat_rounds.jsonl", game="baccarat")
STARTS = cases("baccarat_rounds.jsonl", game="baccarat_shoe_start")
OFFERED = ("player", "banker", "tie")
MODES = {"ez": "banker_ez", "no_commission": "banker_no_commission", "commission": "banker"}
COMMISSION = Odds(1, 20)
RESULTS = {
    Verdict.WON: "win",
    Verdict.LOST: "lose",
    Verdict.PUSHED: "push",
    Verdict.HALF_LOST: "half_lose",
}
OUTCOMES = {
    settlement.OUTCOME_WON: "win",
    settlement.OUTCOME_LOST: "lose",
    settlement.OUTCOME_PUSHED: "push",
}


def hands_of(case: dict[str, Any]) -> Dealt:
    """The cards dealt by the rules, which must take exactly those of the case."""
    left = list(case["cards"])
    player: list[str] = []
    banker: list[str] = []
    while draw := next_draw(player, banker):
        for side in draw:
            (player if side is Side.PLAYER else banker).append(left.pop(0))
    assert not left, f"cards left over: {left}"
    return dealt(player, banker)


def kind_of(bet: str, mode: str) -> str:
    """The bet by the name of its rule."""
    return MODES[mode] if bet == "banker" else bet


def check(case: dict[str, Any], bet: dict[str, Any], rounding: Rounding) -> None:
    """One bet by one policy: the case's profit, or one of its two neighbours where it is exact
    only as a fraction."""
    kind = kind_of(bet["bet"], case["mode"])
    judged = judge(kind, hands_of(case))
    commission = COMMISSION if kind == "banker" else NO_COMMISSION
    pays = pays_of(PAYS[kind], judged.line) if judged.verdict is Verdict.WON else EVENS
    money = settled(bet["stake"], judged.verdict, pays, rounding, commission)
    what = f"{case['id']} {kind} {rounding}"
    assert RESULTS[judged.verdict] == bet["result"], what
    assert money.payout_minor == bet["stake"] + money.profit_minor, what
    if rounding is Rounding.DOWN:
        assert (money.profit_minor, money.payout_minor) == (bet["profit"], bet["return"]), what
    elif bet.get("inexact"):
        assert bet["profit"] <= money.profit_minor <= bet["profit_max"], what
    else:
        assert money.profit_minor == bet["profit"], what


@pytest.mark.parametrize("case", ROUNDS, ids=named)
def test_every_bet_of_a_round(case: dict[str, Any]) -> None:
    hands, expected = hands_of(case), case["expected_outcome"]
    assert list(hands.player) == expected["player_cards"]
    assert list(hands.banker) == expected["banker_cards"]
    assert hands.player_total == expected["player_total"]
    assert hands.banker_total == expected["banker_total"]
    assert hands.winner.name.lower() == expected["winner"]
    assert is_natural(hands.player) == expected["player_natural"]
    assert is_natural(hands.banker) == expected["banker_natural"]
    for bet in case["bets"]:
        for rounding in Rounding:
            check(case, bet, rounding)


@pytest.mark.parametrize("case", STARTS, ids=named)
def test_bac_2_the_burn_at_a_shoes_start(case: dict[str, Any]) -> None:
    assert burn_count(case["first_card"]) == case["expected_burn"]


def test_the_cases_reach_every_bet() -> None:
    bets = {kind_of(bet["bet"], case["mode"]) for case in ROUNDS for bet in case["bets"]}
    assert bets == PAYS.keys()


# ---- through the cores -------------------------------------------------------------------------

T, R, S = "t1", "t1-1", "t1-s1"
ROUND: dict[str, Any] = {"table_id": T, "round_id": R}
OPENED = (
    table.TableOpened(
        spec=spec_pb2.TableSpec(table_id=T, currency_code="EUR", rule_set=baccarat_1()), revision=1
    ),
    table.RoundOpened(table_id=T, round_id=R, number=1, shoe_id=S, round_in_shoe=1, revision=1),
)


def result_by_rules(cards: list[str]) -> rules.Result:
    """What the core of rules makes of a shoe that begins with these cards."""
    left = list(enumerate(cards))
    log = Deciding(RULES).given(*OPENED).when(wallet.StakesSealed(**ROUND))
    while True:
        [answer] = log.answers
        if isinstance(answer, rules.RoundResolved):
            assert not left
            return answer.result
        assert isinstance(answer, rules.DrawCalled)
        assert answer.called_before == len(cards) - len(left)
        drawn = [(left.pop(0), hand) for hand in answer.hands]
        log.when(
            shoe.CardsDealt(
                table_id=T,
                round_id=R,
                shoe_id=S,
                cards=[
                    shoe.DealtCard(index=index, card=card, hand=hand)
                    for (index, card), hand in drawn
                ],
            )
        )


@pytest.mark.parametrize("case", ROUNDS, ids=named)
def test_a_round_through_the_cores(case: dict[str, Any]) -> None:
    result = result_by_rules(case["cards"])
    assert list(result.baccarat.player_cards) == case["expected_outcome"]["player_cards"]
    log = Deciding(SETTLEMENT).given(*OPENED)
    expected: dict[str, dict[str, Any]] = {}
    for place, bet in enumerate(case["bets"]):
        if bet["bet"] not in OFFERED or (bet["bet"] == "banker" and case["mode"] != "commission"):
            continue
        bet_id = f"{R}.{place + 1}"
        expected[bet_id] = bet
        log.given(
            by(
                wallet.StakeReserved(
                    account_id=bet["account"],
                    bets=[bet_pb2.Bet(bet_id=bet_id, bet=bet["bet"], stake_minor=bet["stake"])],
                    **ROUND,
                )
            )
        )
    log.when(table.ResultAccepted(result=result, **ROUND))
    paid = [
        bet
        for answer in log.answers
        if isinstance(answer, settlement.BetsSettled)
        for bet in answer.bets
    ]
    assert sorted(bet.bet_id for bet in paid) == sorted(expected)
    for bet in paid:
        case_bet = expected[bet.bet_id]
        assert OUTCOMES[bet.outcome] == case_bet["result"]
        assert bet.profit_minor == case_bet["profit"]
        assert bet.payout_minor == case_bet["return"]
