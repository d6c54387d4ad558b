"""Dragon tiger and football studio as pure functions: all pairs of cards (DT-1, FS-1)."""

from __future__ import annotations

import pytest

from services.games.bets import HALF_LOST, LOST, WON, Judged
from services.games.cards import CARDS
from services.games.two_cards import (
    DRAGON_TIGER_PAYS,
    FOOTBALL_STUDIO_PAYS,
    JUDGES,
    Ace,
    Winner,
    dealt,
    judge,
)

HEIGHT = {
    "2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "7": 7, "8": 8, "9": 9,
    "T": 10, "J": 11, "Q": 12, "K": 13,
}  # fmt: skip
ACE_HEIGHT = {Ace.LOW: 1, Ace.HIGH: 14}
FIRST_SIDES, SECOND_SIDES, TIES = ("dragon", "home"), ("tiger", "away"), ("tie", "draw")


def height(card: str, ace: Ace) -> int:
    return HEIGHT.get(card[0], ACE_HEIGHT[ace])


def expected(bet: str, first: str, second: str, ace: Ace) -> Judged:
    ahead = height(first, ace) - height(second, ace)
    if bet in FIRST_SIDES:
        return HALF_LOST if ahead == 0 else WON if ahead > 0 else LOST
    if bet in SECOND_SIDES:
        return HALF_LOST if ahead == 0 else WON if ahead < 0 else LOST
    if bet in TIES:
        return WON if ahead == 0 else LOST
    return WON if first == second else LOST


@pytest.mark.parametrize("ace", Ace)
def test_dt_1_fs_1_every_pair_of_cards_with_every_bet(ace: Ace) -> None:
    seen = 0
    for first in CARDS:
        for second in CARDS:
            cards = dealt(first, second, ace)
            for bet in JUDGES:
                assert judge(bet, cards) == expected(bet, first, second, ace), (bet, first, second)
            seen += 1
    assert seen == 52 * 52


@pytest.mark.parametrize(("ace", "over_king"), [(Ace.LOW, False), (Ace.HIGH, True)])
def test_dt_1_fs_1_the_ace_is_low_or_high(ace: Ace, over_king: bool) -> None:
    for other in CARDS:
        if other[0] == "A":
            assert dealt("AS", other, ace).winner is Winner.TIE
            continue
        assert dealt("AS", other, ace).winner is (Winner.FIRST if over_king else Winner.SECOND)
        assert dealt(other, "AS", ace).winner is (Winner.SECOND if over_king else Winner.FIRST)


def test_dt_1_fs_1_how_often_each_way_comes() -> None:
    """Of 52 x 52 pairs: a side wins 1248 times, ranks tie 208 times, in one suit 52 times."""
    for ace in Ace:
        ways = [dealt(first, second, ace) for first in CARDS for second in CARDS]
        assert sum(cards.winner is Winner.FIRST for cards in ways) == 1248
        assert sum(cards.winner is Winner.SECOND for cards in ways) == 1248
        assert sum(cards.winner is Winner.TIE for cards in ways) == 208
        assert sum(cards.suited for cards in ways) == 52


def test_dt_1_a_suited_tie_wins_both() -> None:
    suited = dealt("7S", "7S", Ace.LOW)
    assert [judge(bet, suited) for bet in DRAGON_TIGER_PAYS] == [HALF_LOST, HALF_LOST, WON, WON]
    mixed = dealt("7S", "7H", Ace.LOW)
    assert [judge(bet, mixed) for bet in DRAGON_TIGER_PAYS] == [HALF_LOST, HALF_LOST, WON, LOST]


def test_dt_1_suits_do_not_decide() -> None:
    assert dealt("KS", "KC", Ace.LOW).winner is Winner.TIE
    assert not dealt("KS", "QS", Ace.LOW).suited


def test_dt_1_fs_1_the_paytables_are_those_of_the_rules() -> None:
    assert {bet: str(pays) for bet, pays in DRAGON_TIGER_PAYS.items()} == {
        "dragon": "1:1",
        "tiger": "1:1",
        "tie": "11:1",
        "suited_tie": "50:1",
    }
    assert {bet: str(pays) for bet, pays in FOOTBALL_STUDIO_PAYS.items()} == {
        "home": "1:1",
        "away": "1:1",
        "draw": "11:1",
    }
    assert list(JUDGES) == [*DRAGON_TIGER_PAYS, *FOOTBALL_STUDIO_PAYS]
