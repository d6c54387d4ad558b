"""`sabot odds` as people and programs meet it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sabot.table.v1 import odds_service_pb2
from services.cli.main import app
from services.kernel.grpc_server import Server
from services.kernel.tokens import Caller, Role
from services.table.domain.state import TableState
from services.table.odds_servicer import OddsServicer
from tests.unit.fake_edge import FakeEdge
from tests.unit.front import table_state

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
    twice = refused("sicbo", "--rules", "macau,atlantic_city")
    assert "'atlantic_city' contradicts a word before it" in twice
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
        if "--shoe" in command:
            continue  # It takes a fleet: see below.
        assert RUN.invoke(app, command.split()).exit_code == 0, command


# ---- a live shoe -------------------------------------------------------------------------------


class Callers:
    """An auditor and a dealer."""

    def caller(self, token: str) -> Caller | None:
        roles = {"good": Role.AUDITOR, "poor": Role.DEALER}
        if token not in roles:
            return None
        return Caller(operator="ada", roles=frozenset({roles[token]}))


@pytest.fixture
async def fleet() -> AsyncIterator[str]:
    """The address of a server with one shoe, of which a card was shown."""
    table = table_state(running=False)
    table.shoe_id, table.shoe_cards, table.seen = "t1-s1", 416, {0: "AS"}
    server = Server(Callers())
    service = odds_service_pb2.DESCRIPTOR.services_by_name["OddsService"]
    server.add(service, OddsServicer(FakeEdge(states={"table": TableState({"t1": table})})))
    port = server.listen("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0)


async def asked(fleet: str, game: str, shoe: str, token_file: Path, *more: str) -> Any:
    arguments = ["--shoe", shoe, "--address", fleet, "--token-file", str(token_file)]
    return await asyncio.to_thread(RUN.invoke, app, ["odds", game, *arguments, *more])


async def test_a_live_shoe_is_asked_of_a_running_fleet(fleet: str, tmp_path: Path) -> None:
    plain, several = tmp_path / "token", tmp_path / "tokens.json"
    plain.write_text("good\n")
    several.write_text('{"operator:ada": "good", "operator:dana": "poor"}')
    by_cards = told("baccarat", "--seen", "AS")["bets"]
    for token_file in (plain, several):
        done = await asked(fleet, "baccarat", "t1-s1", token_file, "--json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert (found["game"], found["rules"]) == ("baccarat", "baccarat")
        # The table offers the three bets of the first rule set.
        assert found["bets"] == [
            one for one in by_cards if one["bet"] in {"banker", "player", "tie"}
        ]
    shown = await asked(fleet, "baccarat", "t1-s1", plain)
    assert shown.stdout.startswith("baccarat, 415 cards left")


async def test_who_may_not_ask_and_what_is_not_there_is_said_in_a_line(
    fleet: str, tmp_path: Path
) -> None:
    several = tmp_path / "tokens.json"
    several.write_text('{"operator:ada": "good", "operator:dana": "poor"}')
    for game, shoe, operator, why in (
        ("baccarat", "t1-s1", "dana", "PERMISSION_DENIED"),
        ("baccarat", "t1-s9", "ada", "NOT_FOUND"),
        ("blackjack", "t1-s1", "ada", "shoe t1-s1 is one of baccarat, not of blackjack"),
        ("baccarat", "t1-s1", "olga", "has no token of operator olga"),
    ):
        done = await asked(fleet, game, shoe, several, "--operator", operator)
        assert done.exit_code == 1
        assert why in done.stderr
        assert done.stderr.count("\n") == 1
    nobody = await asked("127.0.0.1:1", "baccarat", "t1-s1", several)
    assert (nobody.exit_code, "UNAVAILABLE" in nobody.stderr) == (1, True)
    several.write_text("{")
    broken = await asked(fleet, "baccarat", "t1-s1", several)
    assert (broken.exit_code, "no JSON" in broken.stderr) == (1, True)


def test_a_live_shoe_has_its_own_rules_and_cards(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    for more in (["--rules", "ez"], ["--seen", "AS"]):
        assert "a live shoe has its rules" in refused("baccarat", "--shoe", "t1-s1", *more)
    assert "the games are" in refused("chess", "--shoe", "t1-s1", "--token-file", str(token))
