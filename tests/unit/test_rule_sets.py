"""Rule sets as data: named by their hash, and refused in words where something does not fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import spec_pb2
from services.games.catalogue import (
    all_rule_sets,
    baccarat,
    baccarat_1,
    baccarat_ez,
    blackjack,
    dragon_tiger,
    football_studio,
)
from services.games.currencies import EXPONENTS
from services.games.money import MAX_STAKE_MINOR, Rounding
from services.games.rule_set_faults import rule_set_faults, table_faults, table_warnings
from services.games.rule_sets import hash_of, rounding_of
from tests.unit.table_facts import spec


def test_the_rule_set_of_baccarat() -> None:
    rule_set = baccarat_1()
    assert [
        (one.bet, one.pays.numerator, one.pays.denominator, one.HasField("commission"))
        for one in rule_set.bets
    ] == [("banker", 1, 1, True), ("player", 1, 1, False), ("tie", 8, 1, False)]
    assert (rule_set.decks, rule_set.cut_depth, rule_set.rounds_after_cut) == (8, 7, 0)
    assert rule_set.hash == hash_of(rule_set)
    assert rule_set_faults(rule_set) == []
    assert rule_set not in all_rule_sets()  # There is a newer version.


def test_every_published_rule_set_is_right_and_named_by_what_it_holds() -> None:
    ids = [one.rule_set_id for one in all_rule_sets()]
    assert ids == sorted(set(ids))
    for one in all_rule_sets():
        assert rule_set_faults(one) == []
        assert one.hash == hash_of(one)


def test_bac_41_a_table_may_offer_only_some_of_the_bets() -> None:
    assert len(baccarat().bets) == 19
    few = baccarat(bets=["player", "banker_no_commission", "tie"])
    assert [one.bet for one in few.bets] == ["banker_no_commission", "player", "tie"]
    assert rule_set_faults(few) == []
    del few.bets[:]
    assert rule_set_faults(few) == [
        "the bets must be by bet id in ascending order, one of each, at least one"
    ]


def test_bac_41_an_ez_table_offers_exactly_its_five_bets() -> None:
    rule_set = baccarat_ez()
    assert [one.bet for one in rule_set.bets] == ["banker", "dragon_7", "panda_8", "player", "tie"]
    assert not rule_set.bets[0].HasField("commission")
    rule_set.baccarat.ez = False
    assert rule_set_faults(rule_set) == ["an EZ table is a rule set of its own"]
    del rule_set.bets[1]
    assert rule_set_faults(rule_set)[0].startswith("the bets must be banker, dragon_7")


def test_bac_40_the_last_rounds_of_side_bets_are_those_of_the_rule_set() -> None:
    rule_set = baccarat()
    [pair] = [one for one in rule_set.bets if one.bet == "player_pair"]
    assert pair.until_round == 60
    pair.until_round = 61
    assert rule_set_faults(rule_set) == [
        "player_pair is offered until round 61; it must be 60 (0: always)"
    ]


def test_bac_30_the_pay_lines_are_those_of_the_rule_set() -> None:
    rule_set = baccarat()
    [bonus] = [one for one in rule_set.bets if one.bet == "player_bonus"]
    bonus.lines[0].pays.numerator = 2
    assert rule_set_faults(rule_set) == ["player_bonus by_4 pays 2:1; it must be 1:1"]
    del bonus.lines[0]
    assert rule_set_faults(rule_set)[0].startswith("the pay lines of player_bonus must be by_4, ")


def test_the_hash_of_baccarat_never_changes() -> None:
    """It stands in recorded logs. Whoever must change the rule set makes a new version."""
    assert baccarat_1().hash.hex() == (
        "03de90106dee3f4ae78143b37141d30bc6ce3635640f1d4cd9525ca18402f119"
    )


def test_every_option_makes_another_hash() -> None:
    variants = [
        baccarat_1(),
        baccarat_1(tie_pays=9),
        baccarat_1(rounding=Rounding.HALF_UP),
        baccarat_1(decks=6),
        baccarat_1(cut_depth=14),
        baccarat_1(cut_depth=14, rounds_after_cut=1),
    ]
    assert len({one.hash for one in variants}) == len(variants)
    assert [rule_set_faults(one) for one in variants] == [[]] * len(variants)
    assert rounding_of(variants[2]) is Rounding.HALF_UP


Change = Callable[[rule_set_pb2.RuleSet], object]


def changed(change: Change) -> rule_set_pb2.RuleSet:
    rule_set = baccarat_1()
    change(rule_set)
    rule_set.hash = hash_of(rule_set)
    return rule_set


def put(field: str, number: int) -> Change:
    return lambda rule_set: setattr(rule_set, field, number)


def odds(place: int, numerator: int, denominator: int) -> Change:
    pays = rule_set_pb2.Odds(numerator=numerator, denominator=denominator)
    return lambda rule_set: rule_set.bets[place].pays.CopyFrom(pays)


def bet(place: int, name: str) -> Change:
    return lambda rule_set: setattr(rule_set.bets[place], "bet", name)


def drop(place: int) -> Change:
    return lambda rule_set: rule_set.bets.pop(place)


def waive(place: int) -> Change:
    return lambda rule_set: rule_set.bets[place].ClearField("commission")


FAULTS: list[tuple[Change, str]] = [
    (put("version", 9), "there is no rule set 'baccarat' version 9"),
    (put("game", 0), "there is no rule set 'baccarat' version 1"),
    (bet(2, "zebra"), "unknown bets: zebra"),
    (drop(2), "the bets must be banker, player, tie, in this order"),
    (odds(0, 2, 1), "banker pays 2:1; it must be 1:1"),
    (odds(2, 0, 1), "tie pays 0:1; it must be 1:1 to 1000:1"),
    (odds(2, 1001, 1), "tie pays 1001:1; it must be 1:1 to 1000:1"),
    (odds(2, 17, 2), "tie pays 17:2; it must be 1:1 to 1000:1"),
    (odds(2, 8, 0), "tie pays 8:0; it must be 1:1 to 1000:1"),
    (waive(0), "the commission of banker is not that of the rule set"),
    (put("rounding", 0), "the rounding is not one of down, half even, half up"),
    (put("decks", 0), "a shoe of 0 decks; it must be 1 to 8"),
    (put("decks", 9), "a shoe of 9 decks; it must be 1 to 8"),
    (put("cut_depth", 5), "cut depth 5 is under 6"),
    (put("cut_depth", 405), "cut depth 405 leaves no card for the first round"),
    (put("rounds_after_cut", 2), "2 rounds after the cut card; at most 1 may follow"),
    (put("rounds_after_cut", 1), "a round after the cut card takes a cut depth of 12 or more"),
]


@pytest.mark.parametrize(("change", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_what_is_wrong_with_a_rule_set_is_said_in_words(change: Change, words: str) -> None:
    assert rule_set_faults(changed(change)) == [words]


@pytest.mark.parametrize(
    "change",
    [put("cut_depth", 6), put("cut_depth", 404), put("decks", 1), odds(2, 1, 1), odds(2, 1000, 1)],
)
def test_bac_3_what_just_fits(change: Change) -> None:
    assert rule_set_faults(changed(change)) == []


def test_a_rule_set_with_another_hash_is_refused() -> None:
    rule_set = baccarat_1()
    rule_set.hash = b"\0" * 32
    assert rule_set_faults(rule_set) == ["the hash is not that of the rule set"]


SpecChange = Callable[[spec_pb2.TableSpec], object]


def limit(place: int, field: str, number: int) -> SpecChange:
    return lambda of: setattr(of.limits[place], field, number)


SPEC_FAULTS: list[tuple[SpecChange, str]] = [
    (lambda of: of.limits.pop(0), "no limit for banker"),
    (
        lambda of: of.limits.append(
            spec_pb2.BetLimit(bet="zebra", min_minor=1, max_minor=1, step_minor=1)
        ),
        "limits for bets that are not offered: zebra",
    ),
    (
        lambda of: of.limits.append(of.limits[2]),
        "the limits must be by bet id in ascending order, one for each",
    ),
    (
        lambda of: of.limits.reverse(),
        "the limits must be by bet id in ascending order, one for each",
    ),
    (limit(0, "min_minor", 0), "banker: minimum and step are at least 1"),
    (limit(0, "step_minor", 0), "banker: minimum and step are at least 1"),
    (limit(0, "max_minor", MAX_STAKE_MINOR + 1), f"banker: the maximum is over {MAX_STAKE_MINOR}"),
    (limit(0, "max_minor", 99), "banker: minimum 100 is over maximum 99"),
    (
        limit(0, "step_minor", 1_000_001),
        "banker: no multiple of step 1000001 lies between 100 and 1000000",
    ),
    (lambda of: of.ClearField("pacing"), "the pacing is missing"),
    (
        lambda of: setattr(of.pacing, "pause_ms", 600_001),
        "the betting window and the pause are at most 600000 ms",
    ),
    (lambda of: setattr(of.rule_set, "cut_depth", 5), "cut depth 5 is under 6"),
]


@pytest.mark.parametrize(("change", "words"), SPEC_FAULTS, ids=[words for _, words in SPEC_FAULTS])
def test_what_is_wrong_with_a_tables_rules_is_said_in_words(change: SpecChange, words: str) -> None:
    of = spec()
    change(of)
    assert table_faults(of) == [words]


def test_several_faults_are_all_said() -> None:
    of = spec()
    of.rule_set.cut_depth = 5
    of.limits.pop()
    assert table_faults(of) == ["cut depth 5 is under 6", "no limit for tie"]


def test_mon_4_a_table_warns_of_profits_that_are_no_whole_minor_unit() -> None:
    of = spec()
    assert table_warnings(of) == []
    of.limits[0].step_minor = 10
    [warning] = table_warnings(of)
    assert warning == (
        "banker: with a stake step of 10 some profits are no whole minor unit and are rounded; "
        "a step of 20 makes them whole"
    )


def test_mon_2_a_table_is_in_a_currency_that_there_is() -> None:
    of = spec()
    for code in ("EUR", "JPY", "KWD"):
        of.currency_code = code
        assert table_faults(of) == []
    of.currency_code = "ZZZ"
    assert table_faults(of) == ["ZZZ is no currency of ISO 4217"]
    assert {EXPONENTS[code] for code in ("JPY", "EUR", "KWD")} == {0, 2, 3}


@pytest.mark.parametrize("ace", [0, 3])
def test_dt_1_fs_1_a_rule_set_says_where_the_ace_stands(ace: int) -> None:
    """Otherwise no round of it could be settled, and none begin where the exposure is limited."""
    for rule_set in (dragon_tiger(), football_studio()):
        assert rule_set_faults(rule_set) == []
        rule_set.two_cards.ace = rule_set_pb2.AceRank.ValueType(ace)
        rule_set.hash = hash_of(rule_set)
        assert rule_set_faults(rule_set) == ["the ace stands neither low nor high"]


@pytest.mark.parametrize("peek", [0, 4])
def test_bj_4_a_rule_set_says_when_the_dealer_peeks(peek: int) -> None:
    rule_set = blackjack()
    rule_set.blackjack.peek = rule_set_pb2.Peek.ValueType(peek)
    rule_set.hash = hash_of(rule_set)
    assert rule_set_faults(rule_set) == ["the peek is not one of ace only, both, none"]
