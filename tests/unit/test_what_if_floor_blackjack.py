"""`sabot what-if` at blackjack on the floor: with another hole card the look tells otherwise."""

from __future__ import annotations

import pytest

from services.cli.what_if import Change, WhatIf, what_if
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.simulator.virtual_time import run_virtual
from tests.playthroughs.test_floor_blackjack import happened

HOLE = 5
"""The place of the first round's hole card, a five behind an ace."""


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return run_virtual(happened())[0]


def asked(store: MemoryStore, change: Change) -> WhatIf:
    async def main() -> WhatIf:
        return await what_if(MemoryLog(store), "bj-1", change)

    return run_virtual(main())


def test_without_a_change_it_comes_to_what_it_came_to(store: MemoryStore) -> None:
    found = asked(store, Change())
    assert found.would_be == found.recorded
    assert not any(one.minor for one in found.differences)


def test_with_a_king_behind_the_ace_the_look_tells_of_a_blackjack(store: MemoryStore) -> None:
    """Nobody acts: Ann's 10.00 are lost, and her insurance of 5.00 pays 10.00; Ben loses 10.00."""
    found = asked(store, Change(cards={HOLE: "KD"}))
    assert found.would_be.result == "dealer AD KD = blackjack; seat 1 6H 5C = 11; seat 4 8S 8C = 16"
    came = {key[1]: one.net_minor for key, one in found.would_be.by_account.items()}
    assert (came["ann"], came["ben"]) == (0, -1_000)
