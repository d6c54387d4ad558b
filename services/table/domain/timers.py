"""Which timers the table waits for, by its state alone. A shell with a clock sends what is due."""

from __future__ import annotations

from typing import NamedTuple

from sabot.log.v1 import entry_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from services.kernel.event import Position
from services.table.domain.state import Phase, Round, Table, TableState
from services.table.domain.suspensions import due_us
from services.table.domain.switches import table_off
from services.table.domain.turns import Turn


class Timer(NamedTuple):
    """An input to append once its time has come."""

    due_us: int
    """Log time, microseconds since 1970 UTC."""
    body: table.OpenRound | table.CloseBetting | table.TimeOutTurn | orders.EscalateSuspension


def timers_wanted(state: TableState) -> list[Timer]:
    """Every timer that is running, in no order of time.

    A round that waits for its shoe wants no timer until the shoe is ready; the shoe's start may
    open it. `asked_by` is the event whose answer set the timer."""
    wanted: list[Timer] = []
    for table_id, one in state.tables.items():
        running = one.running
        if running is None:
            off = table_off(state, one)
            if one.next_due_us is not None and one.shoe_ready and off is None:
                opens = table.OpenRound(
                    table_id=table_id,
                    source=table.SOURCE_TIMER,
                    number=one.number + 1,
                    asked_by=_proto(one.next_asked_at),
                )
                wanted.append(Timer(one.next_due_us, opens))
        elif running.suspended:
            wanted.extend(_of_suspension(table_id, one, running))
        elif running.phase is Phase.BETTING and running.closes_at_us is not None:
            closes = table.CloseBetting(
                table_id=table_id,
                round_id=running.round_id,
                source=table.SOURCE_TIMER,
                timer=running.timer,
                asked_by=_proto(running.asked_at),
            )
            wanted.append(Timer(running.closes_at_us, closes))
        elif running.turn is not None:
            wanted.extend(_of_turn(table_id, running, running.turn))
    return wanted


def _of_turn(table_id: str, running: Round, turn: Turn) -> list[Timer]:
    """The time of a turn runs also while its stake is under way, once."""
    if turn.due_us is None or turn.timed_out:
        return []
    over = table.TimeOutTurn(
        table_id=table_id,
        round_id=running.round_id,
        turn=turn.number,
        timer=turn.timer,
        asked_by=_proto(turn.asked_at),
    )
    return [Timer(turn.due_us, over)]


def _of_suspension(table_id: str, one: Table, running: Round) -> list[Timer]:
    """A round that stands still has no other timer."""
    at_us = due_us(one.spec, running)
    if at_us is None:
        return []
    told = orders.EscalateSuspension(
        table_id=table_id, round_id=running.round_id, asked_by=_proto(running.suspended_by)
    )
    return [Timer(at_us, told)]


def _proto(position: Position) -> entry_pb2.Position:
    return entry_pb2.Position(
        segment=position.segment, sequence=position.sequence, index=position.index
    )
