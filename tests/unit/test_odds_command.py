"""`sabot odds` as people and programs meet it."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.main import app

RUN = CliRunner()


def told(*arguments: str) -> dict[str, Any]:
    done = RUN.invoke(app, ["odds", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(*arguments: str) -> str:
    done = RUN.invoke(app, ["odds", *arguments])
    assert done.exit_code == 2
    return " ".join(done.stderr.split())


def edge(bet: str, *arguments: str) -> str:
    [found] = [one["edge"] for one in told(*arguments)["bets"] if one["bet"] == bet]
    return str(found)


@pytest.mark.parametrize(
    "game", ["baccarat", "blackjack", "roulette", "sicbo", "dragon_tiger", "football_studio"]
)
def test_every_game_is_told_in_fractions_that_add_up(game: str) -> None:
    found = told(game)
    assert list(found) == ["game", "rules", "bets"]
    assert found["game"] == game
    for one in found["bets"]:
        assert list(one) == ["bet", "outcomes", "rtp", "edge"]
        for outcome in one["outcomes"]:
            assert list(outcome) == ["name", "pays", "probability"]
            for fraction in (outcome["pays"], outcome["probability"]):
                assert re.fullmatch(r"-?\d+/\d+", fraction)
        chances = [Fraction(outcome["probability"]) for outcome in one["outcomes"]]
        pays = [Fraction(outcome["pays"]) for outcome in one["outcomes"]]
        assert sum(chances) == 1
        assert Fraction(one["rtp"]) == sum(
            chance * (1 + pay) for chance, pay in zip(chances, pays, strict=True)
        )
        assert Fraction(one["edge"]) == 1 - Fraction(one["rtp"])


def test_lost_pushed_and_half_lost_are_fractions_too() -> None:
    pays = {
        outcome["name"]: outcome["pays"]
        for game in ("baccarat", "dragon_tiger")
        for one in told(game)["bets"]
        for outcome in one["outcomes"]
        if one["bet"] in {"banker", "dragon"}
    }
    assert pays == {"won": "1/1", "pushed": "0/1", "lost": "-1/1", "half_lost": "-1/2"}


def test_banker_is_listed_both_ways_and_the_ez_table_by_its_rules() -> None:
    bets = [one["bet"] for one in told("baccarat")["bets"]]
    assert {"banker", "banker_no_commission"} <= set(bets)
    assert edge("banker", "baccarat") == "114753351728/10847218479825"
    assert edge("banker_no_commission", "baccarat") == "284694798368/19524993263685"
    assert edge("player", "baccarat") == "241149546272/19524993263685"
    ez = told("baccarat", "--rules", "ez")
    assert ez["rules"] == "baccarat_ez"
    assert sorted(one["bet"] for one in ez["bets"]) == [
        "banker",
        "dragon_7",
        "panda_8",
        "player",
        "tie",
    ]
    assert edge("banker", "baccarat", "--rules", "baccarat_ez") == "66274384744/6508331087895"


def test_other_rules_are_chosen_by_words() -> None:
    assert told("sicbo")["rules"] == "sicbo_atlantic_city"
    assert told("sicbo", "--rules", "macau")["rules"] == "sicbo_macau"
    assert edge("any_triple", "sicbo", "--rules", "sicbo_macau") == "11/36"
    assert told("dragon_tiger", "--rules", "tie_8, decks_6")["rules"] == (
        "dragon_tiger tie_8 decks_6"
    )
    assert edge("tie", "dragon_tiger", "--rules", "tie_8") == "136/415"
    assert edge("red", "roulette", "--rules", "la_partage") == "1/74"
    assert edge("home", "football_studio", "--rules", "ace_low") == "31/830"
    assert edge("tie", "baccarat", "--rules", "tie_9") != edge("tie", "baccarat")
    by_peek = {
        peek: round(float(100 * Fraction(edge("main", "blackjack", "--rules", peek))), 3)
        for peek in ("both", "ace_only", "none")
    }
    assert by_peek == {"both": 0.609, "ace_only": 0.710, "none": 0.718}


def test_cards_that_were_seen_are_gone() -> None:
    """Without its tens a shoe has no insurance to pay."""
    tens = ",".join(rank + suit for rank in "TJQK" for suit in "SHDC" for _ in range(8))
    assert edge("insurance", "blackjack", "--seen", tens) == "1/1"
    with_blanks = ["--seen", "AS TD, KC\nKC"]
    assert edge("player_pair", "baccarat", *with_blanks) == edge(
        "player_pair", "baccarat", "--seen", "KC,KC,TD,AS"
    )
    assert edge("player_pair", "baccarat", "--seen", "") == "43/415"


def test_a_person_reads_a_table() -> None:
    done = RUN.invoke(app, ["odds", "dragon_tiger", "--seen", "AS"])
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0][:4] == ["dragon_tiger,", "415", "cards", "left"]
    assert lines[1][:2] == ["dragon", "1"]
    assert lines[2][:2] == ["won", "1:1"]
    split = RUN.invoke(app, ["odds", "blackjack"]).stdout
    assert re.search(r"^  split 0\.\d{4}:1 ", split, re.MULTILINE)


def test_what_cannot_be_answered_is_said() -> None:
    assert "the games are baccarat, blackjack" in refused("chess")
    assert "no rules 'zz'; there are ez, tie_1 to tie_1000" in refused("baccarat", "--rules", "zz")
    for word in ("tie_0", "tie_1001", "tie_", "tie_²", "decks_9", "tie_00000000008"):
        assert f"no rules '{word}'" in refused("dragon_tiger", "--rules", word)
    assert "the game has no cards to be seen" in refused("roulette", "--seen", "AS")
    nine = ",".join(["AS"] * 9)
    assert "AS is seen 9 times, there are 8 of it" in refused("baccarat", "--seen", nine)
    assert "'1S' is no card" in refused("baccarat", "--seen", "1S")
    most = ",".join(
        rank + suit for rank in "A23456789TJQK" for suit in "SHDC" for _ in range(8)
    ).split(",")[:411]
    assert "may take 6 cards, 5 are left" in refused("baccarat", "--seen", ",".join(most))


def test_the_commands_of_the_page_are_understood() -> None:
    page = (Path(__file__).parents[2] / "docs" / "odds.md").read_text()
    commands = re.findall(r"^    \.venv/bin/sabot (odds .*)$", page, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        assert RUN.invoke(app, command.split()).exit_code == 0, command
