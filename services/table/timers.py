"""The shell that closes betting windows, opens rounds and ends turns when their time has come.

It looks at the table core's state, so after any crash it goes on where the log stands. Two
replicas' timers do no harm: the core takes the first and ignores the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import switch_events_pb2 as switches
from services.kernel.event import Position
from services.table.domain.state import TableState
from services.table.domain.timers import timers_wanted

STANDBY_US = 1_000_000
"""How much later a replica acts that did not write the table's last answers."""
AGAIN_US = 2_000_000
"""A timer that was told and is still wanted is told again after this: its entry may be lost."""


_Key = tuple[str, str, int, int]


def _position(proto: entry_pb2.Position) -> Position:
    return Position(proto.segment, proto.sequence, proto.index)


def _key(
    body: table.OpenRound | table.CloseBetting | table.TimeOutTurn | orders.EscalateSuspension,
) -> _Key:
    """What makes a timer the same one."""
    match body:
        case table.OpenRound():
            return (body.table_id, "", body.number, 0)
        case table.CloseBetting():
            return (body.table_id, body.round_id, body.timer, 0)
        case table.TimeOutTurn():
            return (body.table_id, body.round_id, body.timer, body.turn)
        case orders.EscalateSuspension():
            return (body.table_id, body.round_id, body.asked_by.sequence, -1)
        case _:
            assert_never(body)


class Timers:
    """See the module; a `services.kernel.shells.Shell`."""

    service = "table"
    wakes: frozenset[type[Message]] = frozenset(
        {
            table.RoundOpened,
            table.RoundResumed,
            table.RoundClosed,
            rules.ActionCalled,
            rules.InsuranceOffered,
            switches.SwitchSet,
        }
    )
    since = 1

    def __init__(self) -> None:
        self._told: dict[_Key, int] = {}
        self.problems: dict[str, str] = {}

    def poll(
        self, state: TableState, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message]:
        """The timers that are due, those told within the last two seconds apart. `answered`: those
        set in answer to what stands there or later are not in the log yet, and do not run."""
        due: list[Message] = []
        told: dict[_Key, int] = {}
        wait_us = 0 if leading else STANDBY_US
        for timer in timers_wanted(state):
            body = timer.body
            key = _key(body)
            if answered is not None and _position(body.asked_by) >= answered:
                continue
            last_us = self._told.get(key)
            if timer.due_us + wait_us <= now_us and (
                last_us is None or last_us + AGAIN_US <= now_us
            ):
                due.append(body)
                last_us = now_us
            if last_us is not None:
                told[key] = last_us
        self._told = told
        return due
