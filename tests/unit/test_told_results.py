"""Results as a person tells them: what follows from cards is worked out, and what cannot be is no
result (BAC-4 to BAC-9, ROU-1, SIC-1, DT-2, FS-1)."""

from __future__ import annotations

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from services.games.told_results import completed, game_of


def baccarat(player: str, banker: str) -> rules.Result:
    told = rules.BaccaratResult(player_cards=player.split(), banker_cards=banker.split())
    told.player_total, told.winner = 3, rules.BACCARAT_WINNER_TIE  # Never believed.
    return rules.Result(baccarat=told)


@pytest.mark.parametrize(
    ("player", "banker", "totals", "winner"),
    [
        ("8S KD", "7H TC", (8, 7), rules.BACCARAT_WINNER_PLAYER),
        ("6S KD", "6H TC", (6, 6), rules.BACCARAT_WINNER_TIE),
        ("2S 3D 5C", "3H TC 4D", (0, 7), rules.BACCARAT_WINNER_BANKER),
        ("6S KD", "5H TC 2D", (6, 7), rules.BACCARAT_WINNER_BANKER),
    ],
)
def test_totals_and_winner_come_from_the_cards(
    player: str, banker: str, totals: tuple[int, int], winner: int
) -> None:
    result = completed(baccarat(player, banker))
    assert result is not None
    told = result.baccarat
    assert (told.player_total, told.banker_total, told.winner) == (*totals, winner)


@pytest.mark.parametrize(
    ("player", "banker"),
    [
        ("2S KD", "7H TC"),  # Player must draw.
        ("8S KD 2D", "7H TC"),  # A natural draws nothing.
        ("8S KD", "5H TC 2D"),
        ("6S KD", "7H TC 2D"),  # Banker stands on 7.
        ("2S 3D 5C", "3H TC"),  # Banker must draw.
        ("8S", "7H TC"),
        ("8S KD", "7H TX"),
        ("", ""),
    ],
)
def test_hands_that_the_rules_cannot_deal_are_no_result(player: str, banker: str) -> None:
    assert completed(baccarat(player, banker)) is None


def test_numbers_dice_and_cards_must_exist() -> None:
    for number, is_one in ((0, True), (36, True), (37, False)):
        spin = rules.Result(roulette=rules.RouletteResult(number=number))
        assert (completed(spin) is not None) is is_one
    for dice, is_one in (([1, 1, 6], True), ([1, 1], False), ([0, 1, 2], False)):
        roll = rules.Result(sicbo=rules.SicboResult(dice=dice))
        assert (completed(roll) is not None) is is_one
    two = rules.DragonTigerResult(dragon_card="AS", tiger_card="AS")
    assert completed(rules.Result(dragon_tiger=two)) is not None
    assert completed(rules.Result(dragon_tiger=rules.DragonTigerResult())) is None
    away = rules.FootballStudioResult(home_card="AS", away_card="1S")
    assert completed(rules.Result(football_studio=away)) is None
    assert completed(rules.Result()) is None


def test_a_result_says_its_game() -> None:
    assert game_of(rules.Result()) == rule_set_pb2.GAME_UNSPECIFIED
    assert game_of(rules.Result(sicbo=rules.SicboResult())) == rule_set_pb2.GAME_SICBO
    assert game_of(baccarat("8S KD", "7H TC")) == rule_set_pb2.GAME_BACCARAT
