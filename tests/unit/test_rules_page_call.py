"""GetRulesPage and `sabot rules`: the same page, asked for in either way."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sabot.rules.v1 import rules_service_pb2 as rules
from services.cli.main import app
from services.games import catalogue
from services.kernel.errors import Refused
from services.rules.pages.page import page
from services.rules.servicer import RulesServicer
from tests.unit.front import NORTH


async def test_a_page_is_told_by_id_in_the_language_asked_for() -> None:
    servicer = RulesServicer()
    told = await servicer.get_rules_page(
        rules.GetRulesPageRequest(rule_set_id="roulette", language="fr"), NORTH
    )
    assert told.text == page(catalogue.roulette(), "fr")
    assert told.language == "fr"
    assert told.rule_set_hash == catalogue.roulette().hash
    english = await servicer.get_rules_page(
        rules.GetRulesPageRequest(rule_set_id="roulette"), NORTH
    )
    assert english.language == "en"


async def test_inc_4_a_page_is_told_of_the_rules_of_a_table_with_its_options() -> None:
    configured = catalogue.dragon_tiger(tie_pays=8)
    told = await RulesServicer().get_rules_page(
        rules.GetRulesPageRequest(rule_set=configured), NORTH
    )
    assert "| 8 to 1 |" in told.text
    assert told.rule_set_hash == configured.hash


async def test_no_page_of_rules_that_are_none() -> None:
    with pytest.raises(Refused) as unknown:
        await RulesServicer().get_rules_page(rules.GetRulesPageRequest(rule_set_id="keno"), NORTH)
    assert unknown.value.reason.name == "RULE_SET_NOT_FOUND"
    broken = catalogue.dragon_tiger()
    broken.cut_depth = 1
    with pytest.raises(Refused) as bad:
        await RulesServicer().get_rules_page(rules.GetRulesPageRequest(rule_set=broken), NORTH)
    assert bad.value.reason.name == "BAD_RULE_SET"
    assert bad.value.facts["detail"].startswith("cut depth 1 is under")


def test_the_command_prints_the_page() -> None:
    run = CliRunner().invoke
    shown = run(app, ["rules", "show", "baccarat", "--lang", "fr"])
    assert (shown.exit_code, shown.output) == (0, page(catalogue.baccarat(), "fr"))
    assert "sicbo_macau" in run(app, ["rules", "list"]).output
    for wrong in (["rules", "show", "keno"], ["rules", "show", "baccarat", "--lang", "de"]):
        assert run(app, wrong).exit_code == 2
