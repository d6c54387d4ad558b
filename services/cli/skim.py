"""Reads a log fast: chained, counted and timed like any reading, but a body is decoded only where
somebody looks at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import NamedTuple

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2, events_pb2
from services.kernel.entry import EventTypes, NotUnderstood, position_of
from services.kernel.event import Event, Position
from services.kernel.log import Log
from services.kernel.reader import SEGMENT, LogBroken, LogReader, ReadEntry, ReaderState
from services.kernel.recovery import read_message

TIMED = frozenset(
    str(one.DESCRIPTOR.full_name)
    for one in (events_pb2.ActivateBehaviour, events_pb2.RetryInput, events_pb2.InputFailed)
)
"""What changes how the rest of a log is read."""


class Skimmed(NamedTuple):
    """An event whose body is still bytes."""

    position: Position
    service: str
    is_input: bool
    proto: entry_pb2.Event
    time_us: int
    """Log time."""
    behaviour: int

    @property
    def cause(self) -> Position | None:
        """What it answers."""
        return None if self.is_input else position_of(self.proto.cause)

    def event(self, types: EventTypes) -> Event:
        """The event as cores see it. Raises LogBroken."""
        proto = self.proto
        try:
            body = types.decode(proto.type, proto.body)
        except NotUnderstood as error:
            raise LogBroken(self.position.sequence, str(error)) from error
        return Event(
            self.position,
            self.service,
            self.is_input,
            body,
            self.cause,
            proto.partner,
            proto.actor,
            self.time_us,
            self.behaviour,
            False,
            proto.note.traceparent,
            proto.time_us if self.is_input else 0,
            0 if self.is_input else proto.time_us,
        )


class SkimmedEntry(NamedTuple):
    """An entry whose bodies are still bytes."""

    read: ReadEntry
    """Without events."""
    payload: bytes
    times: tuple[int, ...]
    """Log time of each event."""
    behaviour: int

    def events(self) -> Iterator[Skimmed]:
        """Its events, in order."""
        read = self.read
        for index, (proto, time_us) in enumerate(zip(read.protos, self.times, strict=True)):
            position = Position(SEGMENT, read.sequence, index)
            yield Skimmed(position, read.service, read.is_input, proto, time_us, self.behaviour)

    def decode(self, types: EventTypes) -> None:
        """Have its events in `read`, as if it had been read in full. Raises LogBroken."""
        if not self.read.events:
            self.read.events.extend(one.event(types) for one in self.events())


class SkimReader(LogReader):
    """See the module."""

    def __init__(
        self,
        cell: str,
        types: EventTypes,
        state: ReaderState | None = None,
        accepted: Mapping[int, bytes] | None = None,
    ) -> None:
        super().__init__(cell, types, state, accepted)
        self.times: tuple[int, ...] = ()
        """Log times of the last entry's events."""

    def _events(self, read: ReadEntry) -> None:
        state = self.state
        # What was accepted is passed over only where it cannot be read.
        if read.sequence in self._accepted or any(proto.type in TIMED for proto in read.protos):
            super()._events(read)
            self.times = tuple(event.time_us for event in read.events)
        elif read.is_input:
            times: list[int] = []
            for proto in read.protos:
                state.time_us = max(state.time_us, proto.time_us)
                times.append(state.time_us)
            self.times = tuple(times)
        else:
            self.times = (state.time_us,) * len(read.protos)


async def skim(
    log: Log,
    reader: SkimReader,
    last: int,
    progress: Callable[[int, int, int], None] | None = None,
) -> AsyncIterator[list[SkimmedEntry]]:
    """Read on until entry `last`, in batches. Raises LogBroken."""
    if reader.state.sequence >= last:
        return
    messages = log.read(reader.state.sequence)
    events = 0
    try:
        async for batch in messages:
            entries: list[SkimmedEntry] = []
            for message in batch:
                if message.sequence > last:
                    break
                reader.times = ()
                read = read_message(reader, message)
                events += len(read.protos)
                entries.append(
                    SkimmedEntry(read, message.payload, reader.times, reader.state.behaviour)
                )
            yield entries
            if progress is not None:
                progress(reader.state.sequence, last, events)
            if reader.state.sequence >= last:
                return
            await asyncio.sleep(0)
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract


def bodies_in(body: Message, types: EventTypes) -> Iterator[Message]:
    """A body, and the one that it carries: a failure tells of what failed."""
    yield body
    if isinstance(body, events_pb2.InputFailed) and body.input_type in types:
        yield types.decode(body.input_type, body.input_body)
