"""A custodian that has lost a key, or was given another: it says so before a card is called."""

from __future__ import annotations

import dataclasses

from services.kernel.key_file import KeyRing
from tests.unit.shoe_facts import (
    S1,
    TABLE_CLOSED,
    called,
    closed,
    round_opened,
    table_opened,
    voided,
)
from tests.unit.test_custodian import custodian, ready

OTHER_KEY = KeyRing({"k9": bytes(32)}, "k9")
SAME_NAME = KeyRing({"k1": bytes(32)}, "k1")


def test_a_lost_key_is_told_as_soon_as_its_shoe_stands() -> None:
    game = ready(custodian())
    for keys, why in ((OTHER_KEY, "sealed by key k1, not held here"), (SAME_NAME, "does not open")):
        keeper = custodian(keys=keys)
        assert keeper.poll(game.state, 0, True) == []
        assert why in keeper.problems[S1]


def test_who_holds_the_key_has_nothing_to_tell() -> None:
    game = ready(custodian())
    keeper = custodian(2)
    assert keeper.poll(game.state, 0, True) == []
    assert keeper.problems == {}
    game.given(round_opened(1), called(1))
    assert len(keeper.poll(game.state, 0, True)) == 1


def test_one_seal_is_opened_a_poll_and_every_seal_in_time() -> None:
    """Opening takes milliseconds, and a start may find a thousand shoes."""
    game = ready(custodian())
    for shoe_id in ("t2-s1", "t3-s1"):
        # Each seal is bound to its shoe: under another id it does not open.
        game.state.shoes[shoe_id] = dataclasses.replace(game.state.shoes[S1], shoe_id=shoe_id)
    keeper = custodian()
    keeper.poll(game.state, 0, True)
    assert keeper.problems == {}, "the first one opens"
    keeper.poll(game.state, 0, True)
    assert sorted(keeper.problems) == ["t2-s1", "t3-s1"], "and those that cost nothing are all seen"


def test_a_shoe_is_looked_at_once() -> None:
    game = ready(custodian())
    keeper = custodian(keys=OTHER_KEY)
    keeper.poll(game.state, 0, True)
    keeper.problems.clear()
    keeper.poll(game.state, 0, True)
    assert keeper.problems == {}


def test_the_way_out_of_a_lost_key() -> None:
    """VoidRound, CloseTable, OpenTable: the next shoe is sealed by a key that is held. The lost one
    cannot be laid open, and stays a problem."""
    game = ready(custodian())
    game.given(round_opened(1), called(1))
    keeper = custodian(keys=OTHER_KEY)
    assert keeper.poll(game.state, 0, True) == []
    game.given(voided(1), closed(1), TABLE_CLOSED)
    game.given(table_opened())
    game.given(*keeper.poll(game.state, 0, True)).given(*keeper.poll(game.state, 0, True))
    assert game.state.tables["t1"].shoe_id == "t1-s2"
    assert game.state.shoes["t1-s2"].key_id == "k9"
    assert list(keeper.problems) == [S1]
