"""A round of blackjack that is interrupted wherever it stands: states as snapshots, a cell that
starts again, timers that come once."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import events_pb2 as table
from services.cli.cores import CORES
from services.kernel.memory_log import MemoryLog
from services.kernel.snapshot import StateCodec
from services.simulator.virtual_time import run_virtual
from services.table.timers import AGAIN_US, STANDBY_US, Timers
from tests.fleet.small_cell import SmallCell, memory_cell, virtual_clock
from tests.fleet.stacked_shoe import stacked_generator
from tests.unit.blackjack_facts import HIT, STAND, spec, turn
from tests.unit.table_facts import R1, T, resume, suspend
from tests.unit.test_table_turns import ACTION_US, playing

CARDS = "8S TS AD 8D 9S 6C 2H 3H TD KH 5D 9H"
"""Seat 1: a pair of eights; seat 2: nineteen; the dealer: an ace and a six."""
ACTS = (
    (1, rules.ACTION_INSURE),
    (2, rules.ACTION_DECLINE_INSURANCE),
    (1, rules.ACTION_SPLIT),
    (1, rules.ACTION_HIT),
    (1, rules.ACTION_STAND),
    (1, rules.ACTION_STAND),
    (2, rules.ACTION_STAND),
)


async def begin(cell: SmallCell) -> str:
    """A round with two seats, its betting closed."""
    await cell.open_account("ann", 100_000)
    await cell.open_table(spec(action_ms=5_000))
    round_id = await cell.open_round(T)
    await cell.bet_at(round_id, "ann", ("main", 1, 1_000), ("perfect_pairs", 1, 10))
    await cell.bet_at(round_id, "ann", ("main", 2, 600))
    await cell.order(
        table.CloseBetting(table_id=T, round_id=round_id, source=table.SOURCE_OPERATOR)
    )
    return round_id


def check_snapshots(cell: SmallCell) -> None:
    """Every state comes back from its bytes."""
    codec = StateCodec()
    for core in CORES:
        state = cell.process.state(core.service)
        raw = codec.dumps(core.state_type, state)
        again = codec.loads(core.state_type, raw)
        assert again == state, core.service
        assert codec.dumps(core.state_type, again) == raw


@pytest.mark.parametrize("acts", range(len(ACTS) + 1))
def test_a_cell_that_starts_again_goes_on_where_the_round_stood(acts: int) -> None:
    """After each action: the same states, the same open turn; whoever acts no more times out."""

    async def main() -> None:
        shoes = stacked_generator([CARDS])
        async with memory_cell(generator=shoes) as (cell, store):
            round_id = await begin(cell)
            for seat, action in ACTS[:acts]:
                await cell.act(round_id, "ann", seat, action)
            if acts < len(ACTS):
                await cell.turn_of(round_id, ACTS[acts][0])
            check_snapshots(cell)
            before = cell.digests()
        again = SmallCell(MemoryLog(store), virtual_clock, writer="again", generator=shoes)
        await again.start()
        if acts < len(ACTS):
            assert again.digests() == before
        await again.until(
            lambda: again.process.state("table").tables[T].running is None, "the round is over"
        )
        assert again.alarms == []
        account = again.process.state("wallet").accounts["acme", "ann"]
        assert account.reserved_minor == 0
        await again.stop()

    run_virtual(main())


def told(timers: Timers, state: Any, now_us: int, *, leading: bool = True) -> list[Any]:
    return list(timers.poll(state, now_us, leading))


def test_a_turns_timer_is_told_once_it_is_due_and_again_if_it_was_lost() -> None:
    game = playing()
    timers, due_us = Timers(), game.time_us + ACTION_US
    assert told(timers, game.state, due_us - 1) == []
    [over] = told(timers, game.state, due_us)
    assert isinstance(over, table.TimeOutTurn)
    assert (over.round_id, over.turn, over.timer) == (R1, 1, 1)
    assert told(timers, game.state, due_us + AGAIN_US - 1) == []
    assert told(timers, game.state, due_us + AGAIN_US) == [over]
    assert told(Timers(), game.state, due_us + STANDBY_US - 1, leading=False) == []
    assert told(Timers(), game.state, due_us + STANDBY_US, leading=False) == [over]


def test_the_next_turn_and_the_next_setting_have_timers_of_their_own() -> None:
    game = playing()
    timers = Timers()
    [first] = told(timers, game.state, game.time_us + ACTION_US)
    game.given(suspend())
    assert told(timers, game.state, game.time_us + ACTION_US) == []
    game.given(resume())
    [second] = told(timers, game.state, game.time_us + ACTION_US)
    assert (first.timer, second.timer) == (1, 2)
    game.given(second, turn(2, 2, (HIT, STAND)))
    [third] = told(timers, game.state, game.time_us + ACTION_US)
    assert (third.turn, third.timer) == (2, 1)
    assert {rules.ActionCalled, rules.InsuranceOffered} <= Timers.wakes
