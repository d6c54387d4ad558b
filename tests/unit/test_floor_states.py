"""What is remembered of the floor survives a snapshot, and is then the same."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.rules.v1 import events_pb2 as rules
from services.games import catalogue
from services.kernel.snapshot import StateCodec
from services.rules.domain.core import CORE as RULES
from services.shoe.domain.core import CORE as SHOE
from services.table.domain.core import CORE as TABLE
from tests.unit import floor_facts as told
from tests.unit import test_floor_close as close
from tests.unit import test_table_corrections as corrections
from tests.unit.deciding import Deciding
from tests.unit.test_consumables import over


def states() -> list[Deciding[Any]]:
    """Every core with something in every field that the floor may fill."""
    wheel: Deciding[Any] = Deciding(SHOE).given(
        told.table_opened(catalogue.roulette()), told.round_opened(shoe_id=""), told.spin(17)
    )
    held = told.dealing().given(*(told.card(text) for text in ("2S", "3S", "4S", "5S", "6S")))
    counted = over().given(told.remaining("2S", "KD", last=False))
    closing = close.betting().given(close.bet(1, 10_000), close.take_back(1, 11_000))
    close.running(closing).at_floor.closing = close.closing()  # type: ignore[union-attr] # on the floor
    corrected = corrections.stopped().given(corrections.correct(), corrections.corrected())
    waiting = corrections.stopped().given(corrections.correct())
    dealt: Deciding[Any] = Deciding(RULES).given(
        told.table_opened(), told.round_opened(), told.sealed()
    )
    for at, (text, hand) in enumerate(zip(("2S", "2H", "3S", "2C"), told.FOUR, strict=True)):
        dealt.given(told.dealt(8 + at, text, hand))
    return [wheel, held, counted, closing, corrected, waiting, dealt]


@pytest.mark.parametrize("log", states())
def test_a_state_survives_a_snapshot(log: Deciding[Any]) -> None:
    codec = StateCodec()
    core = log.core
    assert core in (SHOE, TABLE, RULES)
    raw = codec.dumps(core.state_type, log.state)
    back = codec.loads(core.state_type, raw)
    assert back == log.state
    assert repr(back) == repr(log.state)
    assert codec.dumps(core.state_type, back) == raw


def test_the_states_hold_what_they_are_meant_to() -> None:
    wheel, held, counted, closing, corrected, waiting, dealt = (one.state for one in states())
    assert wheel.tables[told.T].at_floor.early is not None
    assert len(held.shoes[told.S1].floor.held) == 1
    assert counted.shoes[told.S1].floor.counted["KD"] == 1
    assert len(held.consumables) == 8
    assert held.request_ids.used
    for state in (closing, corrected, waiting):
        assert state.tables[told.T].running.at_floor is not None
    assert closing.tables[told.T].running.at_floor.noted
    assert dealt.tables[told.T].running.places == [8, 9, 10, 11]
    assert dealt.tables[told.T].running.calling == [rules.HAND_PLAYER]
