"""The pages of rule sets: complete in both languages, and only what the rule set holds."""

from __future__ import annotations

import re

import pytest

from sabot.rules.v1 import rule_set_pb2
from services.games import catalogue
from services.games.rule_sets import lines_of
from services.rules.pages.page import WORDS, line_name, page, percent, returned

RULE_SETS = catalogue.all_rule_sets()


def rows(text: str) -> dict[str, list[str]]:
    """The paytable, by bet id."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        named = re.search(r"\(`([a-z0-9_]+)`\)$", cells[0])
        if line.startswith("|") and named:
            found[named.group(1)] = cells
    return found


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("rule_set", RULE_SETS, ids=lambda one: str(one.rule_set_id))
def test_every_bet_stands_with_its_odds_closing_round_and_return(
    rule_set: rule_set_pb2.RuleSet, language: str
) -> None:
    told = rows(page(rule_set, language))
    assert list(told) == [offer.bet for offer in rule_set.bets]
    for offer in rule_set.bets:
        cells = told[offer.bet]
        pays = cells[2]
        for line, odds in lines_of(offer).items():
            assert (
                f"{odds.numerator} {'to' if language == 'en' else 'pour'} {odds.denominator}"
                in pays
            )
            assert not line or line_name(line, WORDS[language]) in pays
        if offer.until_round:
            assert cells[3] == str(offer.until_round)
        if offer.edge:
            assert cells[-1] == percent(returned(offer))
    assert page(rule_set, language).rstrip().endswith(f"`{rule_set.hash.hex()}`.")


@pytest.mark.parametrize("rule_set", RULE_SETS, ids=lambda one: str(one.rule_set_id))
def test_vis_6_every_translation_says_that_english_prevails(
    rule_set: rule_set_pb2.RuleSet,
) -> None:
    assert "le texte anglais prévaut" in page(rule_set, "fr")
    assert "prévaut" not in page(rule_set, "en")


def test_the_languages_have_words_for_the_same_things() -> None:
    english, french = WORDS["en"], WORDS["fr"]
    assert english.titles.keys() == french.titles.keys()
    assert english.lines.keys() == french.lines.keys()
    assert {game: bets.keys() for game, bets in english.bets.items()} == {
        game: bets.keys() for game, bets in french.bets.items()
    }
    for words in (english, french):
        assert set(words.titles) >= {one.rule_set_id for one in RULE_SETS}


def test_bac_43_the_highest_return_of_each_baccarat_table() -> None:
    assert "Banker: 98.9421 % of the stake" in page(catalogue.baccarat())
    assert "Banker: 98.9817 % of the stake" in page(catalogue.baccarat_ez())


def test_what_a_table_configures_is_what_its_page_says() -> None:
    assert rows(page(catalogue.baccarat(tie_pays=9)))["tie"][2] == "9 to 1"
    assert rows(page(catalogue.baccarat(tie_pays=9)))["tie"][-1] == "-"
    assert "lose only half" not in page(catalogue.roulette())
    assert "lose only half" in page(catalogue.roulette(la_partage=True))
    assert "The ace is the lowest card." in page(catalogue.dragon_tiger())
    assert "The ace is the highest card." in page(catalogue.dragon_tiger(ace_high=True))
    assert "One more round is played" in page(catalogue.baccarat(cut_depth=14, rounds_after_cut=1))
    assert "returns the stake of Banker instead" in page(catalogue.baccarat_ez())


def test_percentages_are_rounded_to_the_nearest() -> None:
    assert percent(returned(rule_set_pb2.BetOffer(edge="1/8"))) == "87.5000 %"
    assert percent(returned(rule_set_pb2.BetOffer(edge="1/3"))) == "66.6667 %"
    assert percent(returned(rule_set_pb2.BetOffer(edge="1/20")), 0) == "95 %"
