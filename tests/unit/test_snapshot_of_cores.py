"""The states of limits, wallet and shoe, with something of everything in them, as snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.table.v1 import events_pb2 as table
from services.kernel.event import Core
from services.kernel.snapshot import StateCodec
from tests.unit import limits_baccarat_facts as limits_facts
from tests.unit import shoe_facts, wallet_facts
from tests.unit.deciding import Deciding, by


def limits() -> Deciding[Any]:
    first, second = ("b1", "player", 100), ("b2", "tie", 100)
    return limits_facts.round_open().given(
        limits_facts.placed("r1", first),
        limits_facts.reserved("r1", first),
        limits_facts.placed("r2", second),
        limits_facts.withdrawn("w1", first),
        table.TableOpened(spec=limits_facts.spec(high=500), revision=2),
    )


def wallet() -> Deciding[Any]:
    return wallet_facts.with_money(500, "a1", "a2").given(
        wallet_facts.approved("r1", ("b1", "tie", 40)),
        wallet_facts.deposit(1, 100),
        wallet_facts.block(2),
        wallet_facts.BOOK_CLOSED,
    )


def shoe() -> Deciding[Any]:
    order = shoe_facts.SEVEN_FIRST
    other = shoe_facts.spec()
    other.table_id = "t2"  # Its shoe is still awaited.
    return shoe_facts.ready().given(
        shoe_facts.round_opened(1),
        shoe_facts.called(1),
        shoe_facts.opening(order, 8, 4, "t1-1"),
        shoe_facts.called(1, (shoe_facts.PLAYER,), before=4),
        by(table.TableOpened(spec=other), partner="", service="table"),
    )


@pytest.mark.parametrize("game", [limits(), wallet(), shoe()], ids=["limits", "wallet", "shoe"])
def test_a_state_comes_back_as_it_was(game: Deciding[Any]) -> None:
    codec = StateCodec()
    core: Core[Any] = game.core
    raw = codec.dumps(core.state_type, game.state)
    back = codec.loads(core.state_type, raw)
    assert back == game.state
    assert repr(back) == repr(game.state)  # In the same order, too.
    assert codec.dumps(core.state_type, back) == raw
