"""A caller's request through the log: append it, wait for its outcome. A repeat gets the first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.log.v1.entry_pb2 import Position as PositionMessage
from services.kernel.call import Call, position_of
from services.kernel.edge import Edge, Outcome
from services.kernel.errors import (
    INPUT_FAILED,
    INPUT_IGNORED,
    OUTCOME_UNKNOWN,
    POSITION_NOT_REACHED,
    Reason,
    Refused,
)
from services.kernel.event import Position
from services.kernel.projections import ProjectionUnavailable

REPEAT_POLL_S = 0.05
"""How often a repeat looks for the first outcome while that is still to come. Repeats are rare."""
AT_LEAST_WAIT_S = 5.0
"""The longest that a query waits for the position it asks for: a position that no log has reached
would hold its call for ever."""


class Outcomes(Protocol):
    """Where the outcomes of earlier requests are read: a projection."""

    @property
    def position(self) -> Position:
        """Everything up to here can be read."""
        ...

    async def reached(self, position: Position, wait_s: float) -> bool:
        """Wait until everything up to `position` can be read, for `wait_s` seconds."""
        ...

    async def outcome_at(self, position: Position) -> Any | None:
        """The outcome of the request at a position, a message with the oneof `outcome`."""
        ...


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a request."""

    body: Message
    """The answer that says so."""
    position: Position
    """A query that asks for `at_least` this position sees it."""
    replayed: bool
    """Whether it is the outcome of an earlier request with the same id."""


async def append(
    edge: Edge,
    service: str,
    body: Message,
    call: Call,
    *,
    until: frozenset[type[Message]],
    partner: str = "",
) -> Outcome:
    """Append what a caller asks for, in the caller's name and as long as the caller waits. For the
    rest as `Edge.submit`."""
    return await edge.submit(
        service,
        body,
        partner=partner,
        actor=call.caller.actor,
        until=until,
        wait_s=call.wait_s(),
        traceparent=call.traceparent,
    )


async def ask(
    edge: Edge,
    outcomes: Outcomes,
    service: str,
    body: Message,
    call: Call,
    *,
    partner: str,
    until: frozenset[type[Message]],
    failed: Reason = INPUT_FAILED,
) -> Told:
    """Append a request of the caller's and wait for its outcome: an answer of a type in `until`.

    Raises Refused, with `failed` where a fault kept it from being decided; NotTaken and
    OutcomeUnknown as `Edge.submit` does.
    """
    outcome = await append(edge, service, body, call, until=until, partner=partner)
    answer = outcome.event.body
    if type(answer) in until:
        return Told(answer, outcome.event.position, replayed=False)
    if isinstance(answer, log.RequestRepeated):
        repeat = outcome.event.position
        return await _first_outcome(outcomes, position_of(answer.first), repeat, call, failed)
    if isinstance(answer, log.InputFailed):
        raise Refused(failed)
    if isinstance(answer, log.InputIgnored):
        raise Refused(INPUT_IGNORED, {"ignored": log.IgnoredReason.Name(answer.reason)})
    return Told(answer, outcome.event.position, replayed=False)


async def _first_outcome(
    outcomes: Outcomes, first: Position, repeat: Position, call: Call, failed: Reason
) -> Told:
    """What became of the first request with this id; it may still be under way."""
    give_up = time.monotonic() + call.wait_s()
    while (left_s := give_up - time.monotonic()) > 0:
        try:
            found = None
            if await outcomes.reached(repeat, left_s):
                found = await outcomes.outcome_at(first)
        except ProjectionUnavailable:
            found = None
        if found is not None:
            name = found.WhichOneof("outcome")
            if name is None:
                raise Refused(failed)
            if name != "pending":
                return Told(getattr(found, name), outcomes.position, replayed=True)
        await asyncio.sleep(min(REPEAT_POLL_S, left_s))
    raise Refused(OUTCOME_UNKNOWN)


async def await_position(
    reached: Callable[[Position, float], Awaitable[bool]], at_least: PositionMessage, call: Call
) -> None:
    """Wait until what is asked can be answered at a position. Raises Refused where it cannot."""
    position = position_of(at_least)
    if not await reached(position, call.wait_s(AT_LEAST_WAIT_S)):
        raise Refused(POSITION_NOT_REACHED, {"at_least": str(position)})
