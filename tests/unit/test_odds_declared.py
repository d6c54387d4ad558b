"""Declared edges are held against the enumeration where rule sets come in: at a start, and where an
operator opens a table."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import operator_service_pb2 as operators
from services.cli.failures import in_one_line
from services.games.catalogue import PUBLISHED, baccarat, blackjack
from services.games.rule_sets import named
from services.kernel.errors import Refused
from services.kernel.settings import ServiceSettings, load
from services.odds import declared
from services.rules.parts import parts
from tests.unit.front import SAM, UUID7, Door, table_state


def with_edge(rule_set: rule_set_pb2.RuleSet, bet: str, edge: str) -> rule_set_pb2.RuleSet:
    [offer] = [one for one in rule_set.bets if one.bet == bet]
    offer.edge = edge
    return named(rule_set)


def opening(rule_set: rule_set_pb2.RuleSet) -> operators.OpenTableRequest:
    spec = table_state().spec
    spec.rule_set.CopyFrom(rule_set)
    return operators.OpenTableRequest(request_id=UUID7, spec=spec)


@pytest.fixture
def unchecked() -> Any:
    """What was found of the published rule sets is forgotten, before and after."""
    declared.require_published.cache_clear()
    yield
    declared.require_published.cache_clear()


def test_a_start_refuses_a_rule_set_with_a_wrong_edge(
    unchecked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts(load(ServiceSettings))
    declared.require_published.cache_clear()
    key = ("baccarat", 2)
    wrong = PUBLISHED[key]._replace(default=with_edge(baccarat(), "tie", "1/7"))
    monkeypatch.setitem(PUBLISHED, key, wrong)
    with pytest.raises(declared.EdgesWrong) as refused:
        parts(load(ServiceSettings))
    assert in_one_line(refused.value) == (
        "rule set baccarat version 2: tie declares an edge of 1/7; "
        "by enumeration it is 103841353768/723147898655"
    )


async def test_a_table_with_a_wrong_edge_is_not_opened() -> None:
    door = Door()
    request = opening(with_edge(baccarat(tie_pays=9), "tie", "1/7"))
    with pytest.raises(Refused) as refused:
        await door.operator.open_table(request, SAM)
    assert refused.value.reason.name == "BAD_TABLE_SPEC"
    assert "tie declares an edge of 1/7; by enumeration it is" in str(refused.value.facts["detail"])
    assert door.edge.submitted == []


@pytest.mark.parametrize(
    "rule_set",
    [
        baccarat(),
        baccarat(tie_pays=9),
        with_edge(baccarat(tie_pays=9), "tie", "63053127805/1301666217579"),
        blackjack(decks=6),
        # What is wrong otherwise is for the core to say.
        with_edge(rule_set_pb2.RuleSet(bets=[rule_set_pb2.BetOffer(bet="tie")]), "tie", "1/7"),
    ],
    ids=["published", "other_pays", "other_edge", "none_declared", "no_rule_set"],
)
async def test_other_tables_are_the_cores_to_judge(rule_set: rule_set_pb2.RuleSet) -> None:
    door = Door(tables.TableOpened(revision=1))
    await door.operator.open_table(opening(rule_set), SAM)
    assert len(door.edge.submitted) == 1
