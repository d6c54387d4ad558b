"""What became of bets at blackjack (rules BJ-3, BJ-8 to BJ-10), and results that cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from services.games.bets import LOST, PUSHED, Judged, ResultUnusable, won
from services.games.blackjack import Options, Peek
from services.games.blackjack_bets import (
    JUDGES,
    PAYS,
    judged_hand,
    perfect_pairs,
    seat_of,
    twenty_one_plus_3,
)
from services.games.blackjack_result import decided_of
from services.games.cards import CARDS, RANKS
from services.games.money import Rounding, settled
from services.games.odds import Odds
from services.games.registry import judging, on_layout

BLACKJACK = won(True, "blackjack")
WIN = won(True, "win")
DECKS = 8
CARDS_IN_ALL = 52 * DECKS
RULE_SET = rule_set_pb2.RuleSet(
    game=rule_set_pb2.GAME_BLACKJACK,
    blackjack=rule_set_pb2.BlackjackOptions(
        peek=rule_set_pb2.PEEK_ACE_ONLY, doubles=True, one_card_on_split_aces=True
    ),
)


def cards(text: str) -> tuple[str, ...]:
    """`A-T-9` as cards of changing suits."""
    return tuple(
        rank + "SHDC"[place % 4] for place, rank in enumerate(text.replace("10", "T").split("-"))
    )


def edge(chances: dict[str, int], pays: dict[str, Odds]) -> Fraction:
    """What the house keeps of a stake; `chances` by line, lost under the empty one."""
    whole = sum(chances.values())
    back = sum(
        (
            Fraction(count, whole) * (1 + Fraction(*pays[line]))
            for line, count in chances.items()
            if line
        ),
        Fraction(0),
    )
    return 1 - back


def percent(value: Fraction) -> str:
    """Four digits, as reference figures are given."""
    return f"{round(value * 1_000_000) / 10_000:.4f}"


def lines_of(bet: str) -> dict[str, Odds]:
    pays = PAYS[bet]
    assert isinstance(pays, dict)
    return pays


# ---- hands -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hand", "dealer", "credit"),
    [
        ("A-K", "10-9", 2500),
        ("A-K", "A-Q", 1000),
        ("7-7-7", "A-K", 0),
        ("7-7-7", "5-6-10", 1000),
        ("10-Q", "K-J", 1000),
        ("10-6-6", "10-6-7", 0),
    ],
)
def test_bj_01_credits_of_the_scenario(hand: str, dealer: str, credit: int) -> None:
    judged = judged_hand(cards(hand), cards(dealer), split=False)
    pays = lines_of("main").get(judged.line, Odds(1, 1))
    assert settled(1000, judged.verdict, pays, Rounding.DOWN).payout_minor == credit


def test_bj_8_every_total_against_every_total() -> None:
    """Hands of each kind against the dealer's of each kind."""
    by_total = {
        points: cards(f"{min(points - 2, 10)}-{points - min(points - 2, 10)}")
        for points in range(4, 21)
    }
    finished = {points: (*by_total[points - 2], "2C") for points in range(6, 23)}
    hands = {**by_total, 21: cards("7-7-7"), 22: cards("10-10-2")}
    dealers = {points: finished[points] for points in range(17, 22)} | {22: cards("10-6-6")}
    for (points, hand), (against, dealer) in product(hands.items(), dealers.items()):
        judged = judged_hand(hand, dealer, split=False)
        if points > 21:
            assert judged == LOST
        elif against > 21 or points > against:
            assert judged == WIN
        else:
            assert judged == (PUSHED if points == against else LOST)
    natural = cards("A-K")
    for against, dealer in dealers.items():
        assert judged_hand(natural, dealer, split=False) == BLACKJACK
        expected = PUSHED if against == 21 else WIN
        assert judged_hand(natural, dealer, split=True) == expected
    for hand in hands.values():
        assert judged_hand(hand, natural, split=False) == LOST
    assert judged_hand(natural, natural, split=True) == LOST
    assert judged_hand(natural, natural, split=False) == PUSHED


# ---- side bets ---------------------------------------------------------------------------------


def pair_by_hand(first: str, second: str) -> str:
    """Which pair two cards are, said in another way."""
    if first[0] != second[0]:
        return ""
    if first == second:
        return "perfect"
    return "coloured" if {first[1], second[1]} in ({"S", "C"}, {"H", "D"}) else "mixed"


def test_bj_9_every_two_cards_of_eight_decks() -> None:
    counts: Counter[str] = Counter()
    for first, second in product(CARDS, CARDS):
        judged = perfect_pairs(first, second)
        line = pair_by_hand(first, second)
        assert judged == won(bool(line), line)
        counts[line] += DECKS * (DECKS - (first == second))
    whole = CARDS_IN_ALL * (CARDS_IN_ALL - 1)
    assert sum(counts.values()) == whole
    assert counts["perfect"] == CARDS_IN_ALL * 7
    assert counts["coloured"] == CARDS_IN_ALL * 8
    assert counts["mixed"] == CARDS_IN_ALL * 16
    assert percent(edge(counts, lines_of("perfect_pairs"))) == "4.0964"


IN_A_ROW = {"".join(sorted(three)) for three in ("A23", "QKA")} | {
    "".join(sorted(RANKS[low : low + 3])) for low in range(11)
}
"""Three ranks in a row, as the text of them in order of letters."""


def three_by_hand(three: tuple[str, str, str]) -> str:
    """What three cards are, said in another way."""
    ranks = "".join(sorted(card[0] for card in three))
    one_suit = three[0][1] == three[1][1] == three[2][1]
    if ranks[0] == ranks[2]:
        return "suited_trips" if one_suit else "trips"
    if ranks in IN_A_ROW:
        return "straight_flush" if one_suit else "straight"
    return "flush" if one_suit else ""


def test_bj_10_every_three_cards_of_eight_decks() -> None:
    """In every order, with all copies, ending at the known edge."""
    counts: Counter[str] = Counter()
    for three in combinations_with_replacement(CARDS, 3):
        line = three_by_hand(three)
        expected = won(bool(line), line)
        for seat, other, up in ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0)):
            assert twenty_one_plus_3(three[seat], three[other], three[up]) == expected
        ways = 1
        for copies in Counter(three).values():
            ways *= comb(DECKS, copies)
        counts[line] += ways
    assert sum(counts.values()) == comb(CARDS_IN_ALL, 3)
    assert percent(edge(counts, lines_of("21_plus_3"))) == "3.7039"


@pytest.mark.parametrize(
    ("three", "line"),
    [
        (("AS", "2H", "3D"), "straight"),
        (("QS", "KH", "AD"), "straight"),
        (("KS", "AH", "2D"), ""),
        (("TS", "JH", "QD"), "straight"),
        (("7S", "7S", "7H"), "trips"),
        (("7S", "7S", "7S"), "suited_trips"),
        (("4H", "5H", "6H"), "straight_flush"),
        (("AS", "2S", "AS"), "flush"),
    ],
)
def test_bj_10_the_ace_is_low_or_high_and_the_best_line_counts(
    three: tuple[str, str, str], line: str
) -> None:
    assert twenty_one_plus_3(*three) == won(bool(line), line)


def test_bj_3_the_edge_of_insurance() -> None:
    """At the dealer's ace, the rest of the shoe unseen."""
    tens, unseen = 16 * DECKS, CARDS_IN_ALL - 1
    chances = {"ten": tens, "": unseen - tens}
    pays = PAYS["insurance"]
    assert isinstance(pays, Odds)
    assert percent(edge(chances, {"ten": pays})) == "7.4699"


# ---- by the registry ---------------------------------------------------------------------------


def hand(text: str, *, split: bool = False, doubled: bool = False) -> rules.BlackjackHand:
    return rules.BlackjackHand(cards=text.split(), split=split, doubled=doubled)


def result(dealer: str, *seats: tuple[int, list[rules.BlackjackHand]]) -> rules.Result:
    return rules.Result(
        blackjack=rules.BlackjackResult(
            seats=[rules.BlackjackSeat(seat=seat, hands=hands) for seat, hands in seats],
            dealer_cards=dealer.split(),
        )
    )


def judge(told: rules.Result) -> Callable[[str, str], Judged]:
    return judging(RULE_SET, told)


def test_a_split_and_a_double_are_judged_by_their_own_hand() -> None:
    fate = judge(
        result(
            "6C KC 5D",
            (2, [hand("8S 3D KS", split=True), hand("8H TH", split=True)]),
            (4, [hand("5S 6S 9D", doubled=True)]),
        )
    )
    assert fate("main", "2") == PUSHED
    assert fate("split", "2") == LOST
    assert fate("main", "4") == LOST
    assert fate("double", "4") == LOST
    assert fate("perfect_pairs", "2") == won(True, "mixed")  # Of the cards as they were dealt.
    assert fate("21_plus_3", "4") == LOST
    with pytest.raises(ResultUnusable):
        fate("double", "2")
    with pytest.raises(ResultUnusable):
        fate("split", "4")
    with pytest.raises(ResultUnusable):
        fate("insurance", "4")
    with pytest.raises(ResultUnusable):
        fate("main", "1")
    won_double = judge(result("6C KC 7D", (4, [hand("5S 6S 9D", doubled=True)])))
    assert won_double("double", "4") == won(True)
    assert won_double("main", "4") == WIN


def test_insurance_wins_with_the_dealers_blackjack_alone() -> None:
    lost = judge(result("AC 6C", (1, [hand("TS 9S")])))
    assert lost("insurance", "1") == LOST
    drawn = judge(result("AC 5C 5D", (1, [hand("TS 9S")])))
    assert drawn("insurance", "1") == LOST
    made = judge(result("AC KC", (1, [hand("AS KS")])))
    assert made("insurance", "1") == won(True)
    assert made("main", "1") == PUSHED


SEAT = (1, [hand("TS 9S")])
CANNOT_BE = {
    "a card that is none": result("AC 6C", (1, [hand("TS 1S")])),
    "one card": result("AC 6C", (1, [hand("TS")])),
    "no hand": result("AC 6C", (1, [])),
    "three hands": result("9C 8C", (1, [hand("8S 2S", split=True)] * 3)),
    "seat 0": result("AC 6C", (0, [hand("TS 9S")])),
    "seat 8": result("AC 6C", (8, [hand("TS 9S")])),
    "a seat twice": result("AC 6C", SEAT, SEAT),
    "seats out of order": result("AC 6C", (2, [hand("TS 9S")]), SEAT),
    "two hands that do not say so": result("9C 8C", (1, [hand("8S 2S"), hand("8H 3S")])),
    "one hand that says it is split": result("9C 8C", (1, [hand("8S 2S", split=True)])),
    "a split of different values": result(
        "9C 8C", (1, [hand("8S 2S", split=True), hand("9H 3S", split=True)])
    ),
    "a card after 21": result("9C 8C", (1, [hand("AS TS 5S 4S")])),
    "a card after bust": result("9C 8C", (1, [hand("TS 9S 5S 4S")])),
    "two cards to a split ace": result(
        "9C 8C", (1, [hand("AS 2S 3S", split=True), hand("AH 3S", split=True)])
    ),
    "a double of four cards": result("9C 8C", (1, [hand("2S 3S 4S 5S", doubled=True)])),
    "a double of two cards": result("9C 8C", (1, [hand("2S 3S", doubled=True)])),
    "a double after a split": result(
        "9C 8C", (1, [hand("8S 2S 3S", split=True, doubled=True), hand("8H 3S", split=True)])
    ),
    "a dealer without a hole card": result("9C", SEAT),
    "a dealer who should draw": result("9C 7C", SEAT),
    "a dealer who drew on 17": result("9C 8C 2C", SEAT),
    "a dealer who drew against nobody": result("9C 7C 2C", (1, [hand("TS 6S KS")])),
    "a dealer who drew against a blackjack": result("9C 7C 2C", (1, [hand("AS KS")])),
    "play against a blackjack that was looked at": result("AC KC", (1, [hand("TS 2S 3S")])),
    "a dealer without anybody": result("9C 8C"),
    "another game": rules.Result(baccarat=rules.BaccaratResult()),
}


@pytest.mark.parametrize("told", CANNOT_BE.values(), ids=CANNOT_BE.keys())
def test_a_result_that_contradicts_itself_pays_nothing(told: rules.Result) -> None:
    with pytest.raises(ResultUnusable):
        judge(told)


def test_what_the_options_allow_is_no_contradiction() -> None:
    """Two cards to a split ace, and play against a blackjack that nobody looked at."""
    aces = result("9C 8C", (1, [hand("AS 2S 3S", split=True), hand("AH 3S", split=True)]))
    decided_of(aces.blackjack, Options(one_card_on_split_aces=False))
    played = result("KC AC", (1, [hand("TS 2S 3S")]))
    decided_of(played.blackjack, Options(Peek.ACE_ONLY))
    with pytest.raises(ResultUnusable):
        decided_of(played.blackjack, Options(Peek.BOTH))
    doubled = result("9C 8C", (1, [hand("2S 3S 4S", doubled=True)]))
    decided_of(doubled.blackjack, Options())
    with pytest.raises(ResultUnusable):
        decided_of(doubled.blackjack, Options(doubles=False))


def test_a_round_without_bets_has_a_result_too() -> None:
    assert decided_of(rules.BlackjackResult(), Options()).seats == {}


def test_bj_11_bets_lie_at_the_seats_1_to_7() -> None:
    for bet in ("main", "perfect_pairs", "21_plus_3"):
        for seat in range(1, 8):
            assert on_layout(RULE_SET, bet, str(seat)) == str(seat)
        for nowhere in ("", "0", "8", "1-2", "01", "10"):
            assert on_layout(RULE_SET, bet, nowhere) is None
    for bet in ("double", "split", "insurance", "player"):
        assert on_layout(RULE_SET, bet, "1") is None
    assert seat_of("٣") is None


def test_lines_stand_in_order() -> None:
    assert PAYS.keys() == JUDGES.keys()
    for bet, pays in PAYS.items():
        if isinstance(pays, dict):
            assert list(pays) == sorted(pays), bet
