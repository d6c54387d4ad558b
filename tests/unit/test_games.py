"""The games' vocabulary: cards, odds, money, the draw, and what a bet is."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.games.baccarat import (
    FIRST_FOUR,
    MAX_CARDS,
    Side,
    Winner,
    banker_draws,
    burn_count,
    cut_at,
    is_natural,
    next_draw,
    total,
    value,
    winner,
)
from services.games.baccarat_bets import JUDGES, PAYS, dealt, judge
from services.games.bets import pays_of
from services.games.cards import CARDS, RANKS, SUITS, is_card, pack, rank_of, suit_of
from services.games.money import Rounding, Verdict, divided, settled
from services.games.odds import EVENS, NO_COMMISSION, Odds, after_commission, whole_step

FIVE_PER_CENT = Odds(1, 20)

# ---- cards -------------------------------------------------------------------------------------


def test_a_deck_has_52_cards_in_an_order_that_never_changes() -> None:
    assert len(frozenset(CARDS)) == 52
    assert CARDS[:3] == ("AS", "2S", "3S")
    assert CARDS[12:15] == ("KS", "AH", "2H")
    assert CARDS[-1] == "KC"
    assert pack(8) == CARDS * 8


def test_a_card_is_a_rank_and_a_suit() -> None:
    assert all(is_card(rank + suit) for rank in RANKS for suit in SUITS)
    assert not any(map(is_card, ("", "T", "10S", "1S", "AX", "as", "AS ", "SA")))
    assert (rank_of("TD"), suit_of("TD")) == ("T", "D")


# ---- money and odds ----------------------------------------------------------------------------


def test_mon_1_the_floor_of_a_loss_goes_to_the_house() -> None:
    assert settled(101, Verdict.HALF_LOST, EVENS, Rounding.DOWN) == (-51, 50, 0)
    assert settled(101, Verdict.HALF_LOST, EVENS, Rounding.HALF_UP) == (-50, 51, 0)
    assert settled(101, Verdict.HALF_LOST, EVENS, Rounding.HALF_EVEN) == (-50, 51, 0)
    assert settled(103, Verdict.HALF_LOST, EVENS, Rounding.HALF_EVEN) == (-52, 51, 0)


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**6))
def test_mon_1_each_policy_against_exact_fractions(numerator: int, denominator: int) -> None:
    exact = Fraction(numerator, denominator)
    assert divided(numerator, denominator, Rounding.DOWN) == floor(exact)
    assert divided(numerator, denominator, Rounding.HALF_EVEN) == round(exact)
    assert divided(numerator, denominator, Rounding.HALF_UP) == floor(exact + Fraction(1, 2))


@given(st.integers(1, 10**12), st.sampled_from(list(Rounding)), st.sampled_from(list(Verdict)))
def test_a_bets_money_adds_up(stake: int, rounding: Rounding, verdict: Verdict) -> None:
    money = settled(stake, verdict, EVENS, rounding, FIVE_PER_CENT)
    assert money.payout_minor == stake + money.profit_minor >= 0
    assert money.commission_minor >= 0
    if verdict is Verdict.WON:
        assert money.profit_minor + money.commission_minor == stake
    else:
        assert money.commission_minor == 0


BY_POLICY = [
    (Rounding.DOWN, [0, 9, 14, 28, 1900], 252, 28_000),
    (Rounding.HALF_UP, [1, 10, 14, 29, 1900], 253, 29_000),
    (Rounding.HALF_EVEN, [1, 10, 14, 28, 1900], 252, 28_000),
]


@pytest.mark.parametrize(("rounding", "profits", "half_pay", "thousand_wins"), BY_POLICY)
def test_bac_03_commission_and_half_pay_on_odd_stakes(
    rounding: Rounding, profits: list[int], half_pay: int, thousand_wins: int
) -> None:
    stakes = [1, 10, 15, 30, 2000]
    won = [settled(stake, Verdict.WON, EVENS, rounding, FIVE_PER_CENT) for stake in stakes]
    assert [money.profit_minor for money in won] == profits
    for money, stake in zip(won, stakes, strict=True):
        # The bettor's profit and what the house and the commission's leg keep of the winnings.
        assert money.profit_minor + money.commission_minor == stake
    assert won[-1].payout_minor == 3900
    half = Odds(1, 2)
    assert settled(505, Verdict.WON, half, rounding).profit_minor == half_pay
    six = judge("banker_no_commission", dealt(["TS", "2H"], ["6D", "KC"]))
    assert pays_of(PAYS["banker_no_commission"], six.line) == half
    assert settled(2000, six.verdict, half, rounding).payout_minor == 3000
    seven = judge("banker_ez", dealt(["2S", "TH", "TC"], ["2D", "KC", "5S"]))
    assert settled(2000, seven.verdict, EVENS, rounding).payout_minor == 2000
    each = settled(30, Verdict.WON, EVENS, rounding, FIVE_PER_CENT).profit_minor
    assert sum(each for _ in range(1000)) == thousand_wins


def test_mon_4_the_step_that_makes_every_profit_whole() -> None:
    assert whole_step(EVENS) == 1
    assert whole_step(EVENS, FIVE_PER_CENT) == 20
    assert whole_step(Odds(7, 2)) == 2
    assert whole_step(Odds(8, 1)) == 1
    assert after_commission(EVENS, FIVE_PER_CENT) == Odds(19, 20)
    assert after_commission(Odds(7, 2), NO_COMMISSION) == Odds(7, 2)
    assert str(Odds(7, 2)) == "7:2"


# ---- the draw ----------------------------------------------------------------------------------


def test_bac_1_values() -> None:
    assert [value(rank + "S") for rank in RANKS] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0]
    assert total(["9S", "7H"]) == 6
    assert total(["KS", "QH", "TC"]) == 0


@pytest.mark.parametrize(
    ("card", "burned"),
    [
        *((f"{n}C", n) for n in range(2, 10)),
        ("AD", 1),
        ("TS", 10),
        ("JH", 10),
        ("QC", 10),
        ("KD", 10),
    ],
)
def test_bac_2_the_shown_card_says_how_many_are_burned(card: str, burned: int) -> None:
    assert burn_count(card) == burned


def test_bac_3_the_cut_card_stands_behind_409_cards() -> None:
    assert cut_at(8, 7) == 409
    assert cut_at(6, 14) == 298


TABLE = """
    0 D D D D D D D D D D
    1 D D D D D D D D D D
    2 D D D D D D D D D D
    3 D D D D D D D D - D
    4 - - D D D D D D - -
    5 - - - - D D D D - -
    6 - - - - - - D D - -
    7 - - - - - - - - - -
"""
"""Banker's total down, the value of Player's third card across, 0 to 9."""


def cells() -> list[tuple[int, int, bool]]:
    rows = [line.split() for line in TABLE.strip().splitlines()]
    return [(int(row[0]), third, cell == "D") for row in rows for third, cell in enumerate(row[1:])]


def test_bac_8_exactly_51_of_80_draw() -> None:
    assert len(cells()) == 80
    assert sum(draws for _, _, draws in cells()) == 51


@pytest.mark.parametrize(("banker_total", "third", "draws"), cells())
def test_bac_8_every_cell_of_the_third_card_table(
    banker_total: int, third: int, draws: bool
) -> None:
    assert banker_draws(banker_total, third) is draws
    third_card = {0: "K", 1: "A"}.get(third, str(third)) + "D"
    player = ["KS", "2H", third_card]
    banker = ["TC", {0: "J", 1: "A"}.get(banker_total, str(banker_total)) + "C"]
    assert next_draw(player, banker) == ((Side.BANKER,) if draws else ())


def with_total(points: int) -> list[str]:
    return ["KS", {0: "J", 1: "A"}.get(points, str(points)) + "H"]


@pytest.mark.parametrize("player", range(10))
@pytest.mark.parametrize("banker", range(10))
def test_bac_5_6_7_after_four_cards(player: int, banker: int) -> None:
    expected: tuple[Side, ...]
    if player >= 8 or banker >= 8:
        expected = ()
    elif player <= 5:
        expected = (Side.PLAYER,)
    else:
        expected = (Side.BANKER,) if banker <= 5 else ()
    assert next_draw(with_total(player), with_total(banker)) == expected


def test_bac_4_first_four_cards() -> None:
    assert next_draw([], []) == FIRST_FOUR
    assert FIRST_FOUR == (Side.PLAYER, Side.BANKER, Side.PLAYER, Side.BANKER)


@given(st.lists(st.sampled_from(CARDS), min_size=6, max_size=6))
def test_every_round_ends_with_four_to_six_cards(cards: list[str]) -> None:
    player: list[str] = []
    banker: list[str] = []
    left = list(cards)
    while draw := next_draw(player, banker):
        for side in draw:
            (player if side is Side.PLAYER else banker).append(left.pop(0))
    assert 4 <= len(player) + len(banker) <= MAX_CARDS
    assert len(player) in {2, 3}
    assert len(banker) in {2, 3}
    hands = dealt(player, banker)
    assert (hands.player_total > hands.banker_total) is (hands.winner is Winner.PLAYER)
    for bet in JUDGES:
        judge(bet, hands)


def test_bac_9_the_higher_total_wins() -> None:
    assert winner(["9S", "KH"], ["8D", "KC"]) is Winner.PLAYER
    assert winner(["2S", "KH"], ["8D", "KC"]) is Winner.BANKER
    assert winner(["8S", "KH"], ["8D", "KC"]) is Winner.TIE
    assert is_natural(["9S", "KH"])
    assert not is_natural(["2S", "3H", "4D"])


# ---- bets --------------------------------------------------------------------------------------


def paid(bet: str, stake: int, player: str, banker: str, commission: Odds = NO_COMMISSION) -> int:
    """All that is paid back."""
    judged = judge(bet, dealt(player.split(), banker.split()))
    pays = pays_of(PAYS[bet], judged.line) if judged.verdict is Verdict.WON else EVENS
    return settled(stake, judged.verdict, pays, Rounding.DOWN, commission).payout_minor


def test_bac_02_a_tie_pushes_player_and_banker() -> None:
    tie = ("6H KS", "6D QC")
    assert paid("player", 2500, *tie) + paid("tie", 200, *tie) == 4300
    assert paid("banker", 2000, *tie, FIVE_PER_CENT) == 2000
    assert paid("banker_no_commission", 2000, *tie) == 2000


@pytest.mark.parametrize(
    ("player", "banker", "expected"),
    [
        ("7H 7H 2C", "KD KS 6D", 7800),
        ("7H 7D 2C", "KD KS 6D", 5200),
        ("7H 7H 2C", "KD KD 6D", 7800),
    ],
)
def test_bac_04_side_bets_settle_on_their_own_and_pairs_pay_once(
    player: str, banker: str, expected: int
) -> None:
    stakes = {
        "player": 1000,
        "player_pair": 200,
        "either_pair": 300,
        "perfect_pair": 100,
        "player_bonus": 400,
    }
    assert sum(paid(bet, stake, player, banker) for bet, stake in stakes.items()) == expected


def test_every_bet_has_a_judge_and_odds() -> None:
    assert list(JUDGES) == list(PAYS)
