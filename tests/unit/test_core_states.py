"""What table, rules and settlement remember survives a snapshot, and is then the same."""

from __future__ import annotations

from typing import Any

import pytest

from services.kernel.event import Core
from services.kernel.snapshot import StateCodec
from services.rules.domain.core import CORE as RULES
from services.settlement.domain.core import CORE as SETTLEMENT
from services.table.domain.core import CORE as TABLE
from tests.unit import test_rules_core, test_settlement_core
from tests.unit.deciding import Deciding
from tests.unit.table_facts import (
    betting,
    close_betting,
    cut_card,
    paced,
    place,
    resolved,
    suspend,
    suspended,
    withdraw,
)


def states() -> list[tuple[Core[Any], Deciding[Any]]]:
    """Every core in the middle of a round, with something in every field that a round may fill."""
    at_table = betting().given(
        place(), place("q2", ("tie", 100)), withdraw("w1", "t1-1.1"), cut_card(1)
    )
    at_table.given(close_betting(), suspend(), resolved())
    by_rules = test_rules_core.dealing().given(test_rules_core.dealt("P2S", "B3H"), suspended())
    to_settle = test_settlement_core.many(3, 2).given(
        test_settlement_core.accepted(test_settlement_core.TIE)
    )
    return [
        (TABLE, at_table),
        (TABLE, paced().given(place())),
        (RULES, by_rules),
        (SETTLEMENT, test_settlement_core.many(3, 2)),
        (SETTLEMENT, to_settle),
    ]


@pytest.mark.parametrize(("core", "log"), states())
def test_a_state_survives_a_snapshot(core: Core[Any], log: Deciding[Any]) -> None:
    codec = StateCodec()
    raw = codec.dumps(core.state_type, log.state)
    back = codec.loads(core.state_type, raw)
    assert back == log.state
    assert codec.dumps(core.state_type, back) == raw
