"""Whole rounds of blackjack whose settlement was worked out by hand and by independent calculators.

Each is played by the pure machine from the case's shoe and actions, and every bet is judged from
the result's message, as settlement does it. Then each is played and paid by the cores themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from services.games import blackjack, catalogue
from services.games.bets import Judged, pays_of
from services.games.blackjack import (
    HOLE,
    Action,
    Draw,
    LookAtHole,
    OfferInsurance,
    Options,
    Over,
    Peek,
    RevealHole,
    Round,
    Seat,
    Turn,
    insurance_minor,
    is_blackjack,
    legal_actions,
    next_step,
    total,
)
from services.games.blackjack_bets import PAYS, SIDE_BETS
from services.games.blackjack_result import result_of
from services.games.money import Rounding, Settled, Verdict, settled
from services.games.odds import EVENS
from services.games.registry import judging
from services.rules.domain.core import CORE as RULES
from services.rules.domain.state import RulesState
from services.settlement.domain.core import CORE as SETTLEMENT
from tests.conformance.case_files import cases, named
from tests.unit.blackjack_facts import (
    PLACE,
    dealt,
    hole_checked,
    opened,
    reserved,
    round_opened,
    sealed,
)
from tests.unit.blackjack_facts import (
    bet as bet_of,
)
from tests.unit.deciding import Deciding, Fact

ROUNDS = cases("blackjack_rounds.jsonl", game="blackjack")
ACTIONS = cases("blackjack_restrictions.jsonl", rule="blackjack_action")
PEEKS = {
    "ace_only": (Peek.ACE_ONLY, rule_set_pb2.PEEK_ACE_ONLY),
    "both": (Peek.BOTH, rule_set_pb2.PEEK_BOTH),
    "none": (Peek.NONE, rule_set_pb2.PEEK_NONE),
}
RESULTS = {Verdict.WON: "win", Verdict.LOST: "lose", Verdict.PUSHED: "push"}
KINDS = {
    "perfect_pair": "perfect",
    "coloured_pair": "coloured",
    "mixed_pair": "mixed",
    "suited_trips": "suited_trips",
    "straight_flush": "straight_flush",
    "three_of_a_kind": "trips",
    "straight": "straight",
    "flush": "flush",
}
"""The pay line of each kind that the cases name."""


@dataclass
class Played:
    """A round by the machine."""

    one: Round
    looked: bool = False
    doubled_minor: dict[int, int] = field(default_factory=dict[int, int])
    offered: tuple[int, ...] = ()


def told_actions(case: dict[str, Any]) -> dict[tuple[int, int], Iterator[str]]:
    """What each hand is told to do, by seat and hand."""
    told: dict[tuple[int, int], Iterator[str]] = {}
    for seat in case["seats"]:
        hands = seat.get("hands")
        told[seat["seat"], 1] = iter([*seat["actions"], *(hands[0] if hands else [])])
        told[seat["seat"], 2] = iter(hands[1] if hands else [])
    return told


def play(case: dict[str, Any]) -> Played:
    """Deal the case's shoe by the machine; it must ask for exactly the case's cards and actions."""
    left, told = list(case["shoe"]), told_actions(case)
    one = Round(
        Options(PEEKS[case["rules"]["peek"]][0]),
        {seat["seat"]: Seat(seat["main"]) for seat in case["seats"]},
    )
    played, hole = Played(one), ""
    while True:
        step = next_step(one)
        match step:
            case Draw():
                for spot in step.spots:
                    card = left.pop(0)
                    hole = card if spot == HOLE else hole
                    blackjack.take_card(one, spot, card)
            case OfferInsurance():
                played.offered = step.seats
                one.insurance_over = True
            case LookAtHole():
                one.peeked = is_blackjack((one.dealer[0], hole))
                played.looked = True
            case RevealHole():
                blackjack.open_hole(one, hole)
            case Turn():
                name, _, amount = next(told[step.spot]).partition(":")
                action = Action[name.upper()]
                assert action in step.actions
                if action is Action.DOUBLE:
                    extra = int(amount) if amount else step.max_double_minor
                    assert 1 <= extra <= step.max_double_minor
                    played.doubled_minor[step.spot.seat] = extra
                blackjack.act(one, step.spot, action)
            case Over():
                break
    assert not left, f"cards left over: {left}"
    assert not [spot for spot, actions in told.items() if list(actions)], "actions left over"
    return played


def judge_of(case: dict[str, Any], one: Round) -> Any:
    """How settlement judges this round."""
    options = rule_set_pb2.BlackjackOptions(
        peek=PEEKS[case["rules"]["peek"]][1], doubles=True, one_card_on_split_aces=True
    )
    rule_set = rule_set_pb2.RuleSet(game=rule_set_pb2.GAME_BLACKJACK, blackjack=options)
    return judging(rule_set, rules.Result(blackjack=result_of(one)))


def money(bet: str, stake_minor: int, judged: Judged, rounding: Rounding) -> Settled:
    pays = pays_of(PAYS[bet], judged.line) if judged.verdict is Verdict.WON else EVENS
    return settled(stake_minor, judged.verdict, pays, rounding)


def check(expected: dict[str, Any], parts: list[Settled], rounding: Rounding, what: str) -> None:
    """A bet of a case, which may be several of ours, by one policy."""
    profit = sum(part.profit_minor for part in parts)
    assert sum(part.payout_minor for part in parts) == expected["stake"] + profit, what
    if expected.get("inexact") and rounding is not Rounding.DOWN:
        assert expected["profit"] <= profit <= expected["profit_max"], what
    else:
        assert profit == expected["profit"], what


def result_name(judged: Judged, cards: list[str]) -> set[str]:
    """What a case may call the fate of a hand."""
    if judged.line == "blackjack":
        return {"blackjack"}
    bust = total(cards).points > blackjack.BEST
    return {"bust"} if bust else {RESULTS[judged.verdict]}


@pytest.mark.parametrize("case", ROUNDS, ids=named)
def test_a_round_by_the_machine(case: dict[str, Any]) -> None:
    played, expected = play(case), case["expected_outcome"]
    one = played.one
    assert one.dealer == expected["dealer_cards"]
    assert total(one.dealer).points == expected["dealer_total"]
    assert is_blackjack(one.dealer) == expected["dealer_blackjack"]
    assert bool(played.looked and one.peeked) == expected["stopped_by_peek"]
    judge = judge_of(case, one)
    for seat, wanted in zip(case["seats"], case["expected_seats"], strict=True):
        number, place = seat["seat"], str(seat["seat"])
        hands = one.seats[number].hands
        assert [hand.cards for hand in hands] == [hand["cards"] for hand in wanted["hands"]]
        assert [total(hand.cards).points for hand in hands] == [
            hand["total"] for hand in wanted["hands"]
        ]
        for rounding in Rounding:
            main = judge("main", place)
            first = [money("main", seat["main"], main, rounding)]
            if number in played.doubled_minor:
                doubled = judge("double", place)
                first.append(money("double", played.doubled_minor[number], doubled, rounding))
            check(wanted["hands"][0], first, rounding, f"{case['id']} seat {number}")
            assert wanted["hands"][0]["result"] in result_name(main, hands[0].cards)
            if len(hands) > 1:
                split = judge("split", place)
                second = [money("split", seat["main"], split, rounding)]
                check(wanted["hands"][1], second, rounding, f"{case['id']} seat {number} split")
                assert wanted["hands"][1]["result"] in result_name(split, hands[1].cards)
            for bet in ("insurance", *SIDE_BETS):
                if bet not in seat:
                    assert bet not in wanted
                    continue
                judged = judge(bet, place)
                assert RESULTS[judged.verdict] == wanted[bet]["result"]
                if bet in SIDE_BETS:
                    kind = wanted[bet]["kind"]
                    assert judged.line == (KINDS[kind] if kind else "")
                check(wanted[bet], [money(bet, seat[bet], judged, rounding)], rounding, case["id"])
        if "insurance" in seat:
            assert number in played.offered
            assert seat["insurance"] == insurance_minor(seat["main"])


def test_the_cases_reach_every_bet_and_line() -> None:
    kinds = {
        wanted[bet]["kind"]
        for case in ROUNDS
        for wanted in case["expected_seats"]
        for bet in SIDE_BETS
        if bet in wanted and wanted[bet]["kind"]
    }
    assert kinds <= KINDS.keys()
    assert {"perfect_pair", "mixed_pair", "suited_trips", "straight_flush"} <= kinds


@pytest.mark.parametrize("case", ACTIONS, ids=named)
def test_an_action_is_allowed_or_not(case: dict[str, Any]) -> None:
    """BJ-3, BJ-6, BJ-7: by the same functions that list what a turn allows."""
    state = case["state"]
    one = Round(Options(), {1: Seat(state["main"])})
    one.dealer.append(state["dealer_up"])
    one.hole_dealt, one.hole_open = True, False
    hand = one.seats[1].hands[0]
    hand.cards, hand.split = list(state["cards"]), state["from_split"]
    name, _, amount = case["action"].partition(":")
    if name == "insurance":
        offered = 1 in blackjack.insurable_seats(one)
        allowed = offered and int(amount) == insurance_minor(state["main"])
    else:
        action = Action[name.upper()]
        allowed = action in legal_actions(one.options, hand)
        if action is Action.DOUBLE and amount:
            one.insurance_over, one.peeked = True, False
            step = next_step(one)
            assert isinstance(step, Turn)
            allowed = allowed and 1 <= int(amount) <= step.max_double_minor
    assert allowed == (case["expect"] == "accept"), case["why"]


# ---- through the cores -------------------------------------------------------------------------


class Fleet:
    """Rules over a log that a case writes: what table, shoe and wallet would add to it."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.rule_set = catalogue.blackjack(peek=PEEKS[case["rules"]["peek"]][0])
        self.left, self.gone = list(case["shoe"]), 0
        self.hole = (0, "")
        self.told = told_actions(case)
        self.seats = {seat["seat"]: seat for seat in case["seats"]}
        self.stakes: list[Fact] = []
        """Every reservation, for settlement."""
        self.expected: dict[str, tuple[int, str]] = {}
        """By bet id: seat and bet."""
        self.rules: Deciding[RulesState] = Deciding(RULES).given(
            opened(self.rule_set), round_opened()
        )
        for number, seat in self.seats.items():
            for bet in ("main", *SIDE_BETS):
                if bet in seat:
                    self.stake(number, bet, seat[bet], bet_pb2.STAGE_UNSPECIFIED)
        self.rules.when(sealed())

    def stake(self, seat: int, bet: str, minor: int, stage: bet_pb2.Stage.ValueType) -> None:
        """A stake is reserved."""
        bet_id = f"b{len(self.stakes) + 1}"
        self.expected[bet_id] = (seat, bet)
        fact = reserved(self.seats[seat]["account"], bet_of(bet_id, bet, minor, seat), stage=stage)
        self.stakes.append(fact)
        self.rules.when(fact)

    def result(self) -> rules.Result:
        """Play until there is one."""
        while True:
            answer = self.rules.answers[-1]
            match answer:
                case rules.RoundResolved():
                    assert not self.left
                    return answer.result
                case rules.DrawCalled():
                    self._deal(answer)
                case rules.InsuranceOffered():
                    for number in answer.seats:
                        if "insurance" in self.seats[number]:
                            minor = self.seats[number]["insurance"]
                            self.stake(number, "insurance", minor, bet_pb2.STAGE_INSURANCE)
                    self.rules.when(sealed(bet_pb2.STAGE_INSURANCE))
                case rules.HoleCalled(purpose=rules.HOLE_PURPOSE_PEEK):
                    self.rules.when(hole_checked(is_blackjack((answer.up_card, self.hole[1]))))
                case rules.HoleCalled():
                    self.rules.when(dealt(self.hole[0], (self.hole[1], rules.HAND_HOLE)))
                case rules.ActionCalled():
                    self._act(answer)
                case _:
                    raise AssertionError(answer)

    def _deal(self, call: rules.DrawCalled) -> None:
        assert call.called_before == self.gone
        cards: list[tuple[str, int]] = []
        for place, hand in enumerate(call.hands):
            card = self.left.pop(0)
            if hand == rules.HAND_HOLE:
                self.hole = (self.gone + place, card)
            cards.append(("" if hand == rules.HAND_HOLE else card, hand))
        first = self.gone
        self.gone += len(cards)
        self.rules.when(dealt(first, *cards))

    def _act(self, call: rules.ActionCalled) -> None:
        name, _, amount = next(self.told[call.seat, call.hand]).partition(":")
        match name:
            case "double":
                minor = int(amount) if amount else call.max_double_minor
                self.stake(call.seat, "double", minor, bet_pb2.STAGE_PLAY)
            case "split":
                self.stake(call.seat, "split", call.split_minor, bet_pb2.STAGE_PLAY)
            case _:
                self.rules.when(
                    table.ActionTaken(
                        seat=call.seat,
                        hand=call.hand,
                        turn=call.turn,
                        action=rules.Action.Value(f"ACTION_{name.upper()}"),
                        **PLACE,
                    )
                )


@pytest.mark.parametrize("case", ROUNDS, ids=named)
def test_a_round_through_the_cores(case: dict[str, Any]) -> None:
    fleet = Fleet(case)
    result = fleet.result()
    log = Deciding(SETTLEMENT).given(opened(fleet.rule_set), round_opened(), *fleet.stakes)
    log.when(table.ResultAccepted(result=result, **PLACE))
    paid: dict[tuple[int, str], int] = {}
    for answer in log.answers:
        if isinstance(answer, settlement.BetsSettled):
            for settled_bet in answer.bets:
                paid[fleet.expected[settled_bet.bet_id]] = settled_bet.payout_minor
    assert len(paid) == len(fleet.expected)
    for wanted in case["expected_seats"]:
        seat = wanted["seat"]
        first = paid[seat, "main"] + paid.get((seat, "double"), 0)
        assert first == wanted["hands"][0]["return"]
        if len(wanted["hands"]) > 1:
            assert paid[seat, "split"] == wanted["hands"][1]["return"]
        for bet in ("insurance", *SIDE_BETS):
            if bet in wanted:
                assert paid[seat, bet] == wanted[bet]["return"]
    assert sum(paid.values()) == case["total_return"]
