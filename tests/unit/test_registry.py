"""From a rule set to its game: places, announced bets, numbers covered, results that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2 as rs
from sabot.table.v1 import spec_pb2
from services.games import roulette, sicbo, two_cards
from services.games.bets import HALF_LOST, LOST, WON, Judged, ResultUnusable
from services.games.money import MAX_STAKE_MINOR
from services.games.registry import (
    NotExpanded,
    Part,
    announced,
    covered,
    judging,
    may_lose_half,
    on_layout,
    outcomes,
)
from services.games.rule_set_faults import table_warnings

ROULETTE = rs.RuleSet(game=rs.GAME_ROULETTE)
PARTAGE = rs.RuleSet(game=rs.GAME_ROULETTE, roulette=rs.RouletteOptions(la_partage=True))
SICBO = rs.RuleSet(game=rs.GAME_SICBO)
DRAGON_TIGER = rs.RuleSet(
    game=rs.GAME_DRAGON_TIGER, two_cards=rs.TwoCardOptions(ace=rs.ACE_RANK_LOW)
)
FOOTBALL_STUDIO = rs.RuleSet(
    game=rs.GAME_FOOTBALL_STUDIO, two_cards=rs.TwoCardOptions(ace=rs.ACE_RANK_HIGH)
)
BACCARAT = rs.RuleSet(game=rs.GAME_BACCARAT)


def spun(number: int) -> rules.Result:
    return rules.Result(roulette=rules.RouletteResult(number=number))


def rolled(*dice: int) -> rules.Result:
    return rules.Result(sicbo=rules.SicboResult(dice=dice))


def fought(dragon: str, tiger: str) -> rules.Result:
    return rules.Result(dragon_tiger=rules.DragonTigerResult(dragon_card=dragon, tiger_card=tiger))


def played(home: str, away: str) -> rules.Result:
    return rules.Result(football_studio=rules.FootballStudioResult(home_card=home, away_card=away))


# ---- places ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule_set", "bet", "position", "place"),
    [
        (ROULETTE, "split", "20-17", "17-20"),
        (ROULETTE, "split", "17-20", "17-20"),
        (ROULETTE, "split", "17-21", None),
        (ROULETTE, "red", "", ""),
        (ROULETTE, "voisins", "", None),
        (ROULETTE, "big", "", None),
        (SICBO, "combination", "5-2", "2-5"),
        (SICBO, "total", "18", None),
        (SICBO, "red", "", None),
        (DRAGON_TIGER, "dragon", "", ""),
        (DRAGON_TIGER, "suited_tie", "", ""),
        (DRAGON_TIGER, "dragon", "1", None),
        (DRAGON_TIGER, "home", "", None),
        (FOOTBALL_STUDIO, "draw", "", ""),
        (FOOTBALL_STUDIO, "draw", "1", None),
        (FOOTBALL_STUDIO, "tie", "", None),
        (BACCARAT, "tie", "", ""),
        (BACCARAT, "tie", "1", None),
        (BACCARAT, "draw", "", None),
        (rs.RuleSet(), "tie", "", None),
    ],
)
def test_the_place_of_a_bet_in_its_canonical_text(
    rule_set: rs.RuleSet, bet: str, position: str, place: str | None
) -> None:
    assert on_layout(rule_set, bet, position) == place


def test_lim_3_the_numbers_that_a_bet_covers() -> None:
    assert covered(ROULETTE, "split", "17-20") == (17, 20)
    assert covered(ROULETTE, "first_four", "") == (0, 1, 2, 3)
    assert covered(ROULETTE, "dozen", "2") == tuple(range(13, 25))
    assert covered(ROULETTE, "column", "1") == (1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34)
    assert covered(SICBO, "total", "4") == ()
    assert covered(BACCARAT, "tie", "") == ()


# ---- announced bets ----------------------------------------------------------------------------


def test_rou_4_an_announced_bet_is_expanded_by_its_chips() -> None:
    assert announced(ROULETTE, "jeu_zero", "", 400) == (
        Part("split", "0-3", 100),
        Part("split", "12-15", 100),
        Part("split", "32-35", 100),
        Part("straight", "26", 100),
    )
    voisins = announced(ROULETTE, "voisins", "", 9)
    assert isinstance(voisins, tuple)
    assert [part.stake_minor for part in voisins] == [2, 1, 1, 1, 1, 1, 2]
    assert announced(ROULETTE, "neighbours", "26-1", 303) == (
        Part("straight", "3", 101),
        Part("straight", "26", 101),
        Part("straight", "0", 101),
    )


CHIPS = {"voisins": 9, "tiers": 6, "orphelins": 5, "jeu_zero": 4}
EVERY_ANNOUNCED = [
    *((bet, "", chips) for bet, chips in CHIPS.items()),
    *(("neighbours", f"17-{reach}", 2 * reach + 1) for reach in range(1, 10)),
]


@pytest.mark.parametrize(("bet", "position", "chips"), EVERY_ANNOUNCED)
def test_rou_4_the_parts_add_up_and_lie_on_the_layout(bet: str, position: str, chips: int) -> None:
    for chip_minor in (1, 7, 10_000, MAX_STAKE_MINOR // chips):
        parts = announced(ROULETTE, bet, position, chips * chip_minor)
        assert isinstance(parts, tuple)
        assert sum(part.stake_minor for part in parts) == chips * chip_minor
        for part in parts:
            assert on_layout(ROULETTE, part.bet, part.position) == part.position
            assert part.stake_minor % chip_minor == 0
    for stake in (0, 1, chips - 1, chips + 1, 10 * chips - 1, -chips):
        assert announced(ROULETTE, bet, position, stake) is NotExpanded.NOT_WHOLE_CHIPS


@pytest.mark.parametrize(
    ("rule_set", "bet", "position", "why"),
    [
        (ROULETTE, "red", "", NotExpanded.ORDINARY),
        (ROULETTE, "split", "17-20", NotExpanded.ORDINARY),
        (ROULETTE, "finale", "", NotExpanded.ORDINARY),
        (SICBO, "voisins", "", NotExpanded.ORDINARY),
        (BACCARAT, "neighbours", "26-2", NotExpanded.ORDINARY),
        (ROULETTE, "voisins", "0", NotExpanded.NOT_ON_LAYOUT),
        (ROULETTE, "neighbours", "", NotExpanded.NOT_ON_LAYOUT),
        (ROULETTE, "neighbours", "26-10", NotExpanded.NOT_ON_LAYOUT),
        (ROULETTE, "neighbours", "37-1", NotExpanded.NOT_ON_LAYOUT),
    ],
)
def test_rou_4_what_is_not_expanded(
    rule_set: rs.RuleSet, bet: str, position: str, why: NotExpanded
) -> None:
    """The place is looked at before the stake: 1 is no whole number of chips of any of these."""
    assert announced(rule_set, bet, position, 1) is why


# ---- results -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule_set", "result"),
    [
        (ROULETTE, spun(37)),
        (ROULETTE, rolled(1, 2, 3)),
        (ROULETTE, rules.Result()),
        (SICBO, rolled(1, 2)),
        (SICBO, rolled(1, 2, 3, 4)),
        (SICBO, rolled(0, 1, 2)),
        (SICBO, rolled(1, 2, 7)),
        (SICBO, spun(3)),
        (SICBO, rules.Result()),
        (DRAGON_TIGER, fought("KS", "")),
        (DRAGON_TIGER, fought("10S", "KS")),
        (DRAGON_TIGER, fought("kS", "KS")),
        (DRAGON_TIGER, played("KS", "QS")),
        (FOOTBALL_STUDIO, played("", "KS")),
        (FOOTBALL_STUDIO, played("KS", "1S")),
        (FOOTBALL_STUDIO, fought("KS", "QS")),
        (rs.RuleSet(game=rs.GAME_DRAGON_TIGER), fought("KS", "QS")),
        (rs.RuleSet(), spun(1)),
    ],
)
def test_a_result_that_cannot_be_is_not_judged_by(
    rule_set: rs.RuleSet, result: rules.Result
) -> None:
    with pytest.raises(ResultUnusable):
        judging(rule_set, result)


def test_each_game_is_judged_by_its_rule_set() -> None:
    assert judging(ROULETTE, spun(17))("split", "17-20") == WON
    assert judging(ROULETTE, spun(0))("red", "") == LOST
    assert judging(PARTAGE, spun(0))("red", "") == HALF_LOST
    assert judging(PARTAGE, spun(0))("dozen", "1") == LOST
    assert judging(SICBO, rolled(2, 5, 2))("single", "2").line == "two_dice"
    assert judging(SICBO, rolled(2, 5, 2))("total", "9").line == "total_09"
    assert judging(DRAGON_TIGER, fought("AS", "2S"))("tiger", "") == WON
    assert judging(FOOTBALL_STUDIO, played("AS", "KS"))("home", "") == WON
    assert judging(FOOTBALL_STUDIO, played("4S", "4S"))("away", "") == HALF_LOST


def fates(rule_set: rs.RuleSet, bet: str, position: str) -> list[Judged]:
    """By each outcome, in their order."""
    return [judging(rule_set, result)(bet, position) for result in outcomes(rule_set)]


def test_the_outcomes_of_roulette_and_sic_bo_are_all() -> None:
    assert [one.roulette.number for one in outcomes(ROULETTE)] == list(range(37))
    assert outcomes(PARTAGE) == outcomes(ROULETTE)
    dice = [tuple(one.sicbo.dice) for one in outcomes(SICBO)]
    assert dice == sorted(frozenset(dice))
    assert len(dice) == 216
    assert fates(PARTAGE, "odd", "") == [HALF_LOST, *[WON, LOST] * 18]
    assert outcomes(BACCARAT) == ()


@pytest.mark.parametrize(
    ("rule_set", "bets", "way"),
    [
        (DRAGON_TIGER, two_cards.DRAGON_TIGER_PAYS, fought),
        (FOOTBALL_STUDIO, two_cards.FOOTBALL_STUDIO_PAYS, played),
    ],
)
def test_the_outcomes_of_two_cards_are_one_of_each_kind(
    rule_set: rs.RuleSet, bets: dict[str, object], way: Callable[[str, str], rules.Result]
) -> None:
    """Whatever cards are dealt, all bets together meet the fates that they meet in an outcome."""
    kinds = list(zip(*(fates(rule_set, bet, "") for bet in bets), strict=True))
    ranks = "A23456789TJQK"
    found: set[tuple[Judged, ...]] = set()
    for first in (rank + "S" for rank in ranks):
        for second in (rank + suit for rank in ranks for suit in "SD"):
            judge = judging(rule_set, way(first, second))
            found.add(tuple(judge(bet, "") for bet in bets))
    assert found == set(kinds)


GAMES = [
    (ROULETTE, roulette.PLACES),
    (PARTAGE, roulette.PLACES),
    (SICBO, sicbo.PLACES),
    (DRAGON_TIGER, dict.fromkeys(two_cards.DRAGON_TIGER_PAYS, ("",))),
    (FOOTBALL_STUDIO, dict.fromkeys(two_cards.FOOTBALL_STUDIO_PAYS, ("",))),
]


@pytest.mark.parametrize(("rule_set", "places"), GAMES)
def test_mon_4_which_bets_may_lose_half(
    rule_set: rs.RuleSet, places: Mapping[str, Iterable[str]]
) -> None:
    """As some outcome shows; their stakes are whole halves by a step of 2."""
    halved = [
        bet
        for bet, positions in places.items()
        if any(HALF_LOST in fates(rule_set, bet, position) for position in positions)
    ]
    assert [bet for bet in places if may_lose_half(rule_set, bet)] == halved
    spec = spec_pb2.TableSpec(
        rule_set=rule_set,
        limits=[spec_pb2.BetLimit(bet=bet, step_minor=1) for bet in places],
    )
    evens = rs.Odds(numerator=1, denominator=1)
    spec.rule_set.bets.extend(rs.BetOffer(bet=bet, pays=evens) for bet in places)
    assert [warning.split(":")[0] for warning in table_warnings(spec)] == halved
    assert all(warning.endswith("a step of 2 makes them whole") for warning in table_warnings(spec))
    for limit in spec.limits:
        limit.step_minor = 2
    assert table_warnings(spec) == []


def test_every_place_of_every_layout_is_judged() -> None:
    for bet, places in roulette.PLACES.items():
        for position in places:
            assert WON in fates(ROULETTE, bet, position)
    for bet, positions in sicbo.PLACES.items():
        for position in positions:
            assert LOST in fates(SICBO, bet, position)
