"""Single entries of the log, read again where they stand.

What is read here is the log's own bytes, out of the order in which they were chained; whoever reads
must hold them against something else that is known of them, such as a digest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from sabot.log.v1 import entry_pb2
from services.kernel.entry import NotUnderstood, decode_entry
from services.kernel.event import Position
from services.kernel.log import Log, LogUnavailable

READ_ON = 2_000
"""Entries between two wanted ones that are read rather than jumped over: a new reader costs a few
exchanges with the server, as many entries a few milliseconds."""
WAIT_S = 30.0
"""How long it may take to read them."""


class Stored(NamedTuple):
    """An event as it stands."""

    subject: str
    event: entry_pb2.Event


async def events_at(log: Log, positions: Iterable[Position]) -> dict[Position, Stored]:
    """The events at these positions; those that the log does not have there are left out. Raises
    LogUnavailable."""
    wanted: dict[int, list[Position]] = {}
    for position in positions:
        wanted.setdefault(position.sequence, []).append(position)
    found: dict[Position, Stored] = {}
    try:
        async with asyncio.timeout(WAIT_S):
            last = (await log.info(wait_s=5.0)).last_sequence
            left = sorted(sequence for sequence in wanted if 1 <= sequence <= last)
            while left:
                left = await _read_on(log, left, wanted, found)
    except TimeoutError as error:
        raise LogUnavailable(f"{len(wanted)} entries were not read within {WAIT_S} s") from error
    return found


async def _read_on(
    log: Log,
    left: list[int],
    wanted: dict[int, list[Position]],
    found: dict[Position, Stored],
) -> list[int]:
    """Read the first of `left`, and those that are near behind; what is left then."""
    messages = log.read(left[0] - 1)
    done = 0
    try:
        async for batch in messages:
            for message in batch:
                if message.sequence != left[done]:
                    continue
                _take(message.subject, message.payload, wanted[message.sequence], found)
                done += 1
                if done == len(left) or left[done] - message.sequence > READ_ON:
                    return left[done:]
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    return left[done:]


def _take(
    subject: str, payload: bytes, positions: list[Position], found: dict[Position, Stored]
) -> None:
    try:
        events = decode_entry(payload).events
    except NotUnderstood:
        return
    for position in positions:
        if position.index < len(events):
            found[position] = Stored(subject, events[position.index])
