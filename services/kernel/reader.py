"""From stored bytes to events: order, damage, duplicates, log time, behaviour. Pure.

A `LogReader` is fed every entry of a cell, in order, and keeps what is a function of the whole log
and therefore the same in every process: the chain of hashes, log time, the behaviour in force, and
which entries of which writer it has seen."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sabot.log.v1 import entry_pb2, events_pb2
from services.kernel.entry import (
    KERNEL_INPUT_SUBJECTS,
    EventTypes,
    NotUnderstood,
    decode_entry,
    first_head,
    next_head,
    position_of,
)
from services.kernel.event import Event, Position

SEGMENT = 1
"""The only segment so far of every cell's log."""
END_OF_ENTRY = 0xFFFFFFFF
"""As an index: everything of the entry."""
REMEMBERED_COPIES = 64
"""Hashes kept of a writer's last entries on a subject. A writer has one append in flight, so a copy
that lands late is a copy of one of its last few entries."""
WRITER_SILENCE_US = 24 * 3600 * 1_000_000
"""A writer that was silent for so long, in log time, is forgotten."""
REMEMBERED_FAILURES = 10_000
"""Failed decisions that an operator may name: so many are one bug met again and again; the oldest
go first."""
REMEMBERED_HEADS = 1 << 17
"""Chain hashes kept behind the head (4 MiB), to hold `.out` entries against. An older cause than
that is left to a reading of the whole log."""


class LogBroken(Exception):
    """The log cannot be what it was, or cannot be understood. Nothing may be served from it."""

    def __init__(self, sequence: int, why: str) -> None:
        super().__init__(f"entry {sequence}: {why}")
        self.sequence = sequence
        self.why = why


@dataclass(slots=True)
class Writer:
    """What is known of one writer on one subject."""

    counter: int
    time_us: int
    copies: dict[int, bytes]
    """Hash of the entry by its counter, oldest first."""


@dataclass(slots=True)
class ReadEntry:
    """An entry as read."""

    sequence: int
    service: str
    is_input: bool
    writer: str
    counter: int
    head: bytes
    """The chain hash at this entry."""
    events: list[Event]
    """Empty where the entry is a copy of an earlier one."""
    protos: list[entry_pb2.Event]
    """The same events as recorded."""
    copy: bool = False
    """Whether it is a copy of an earlier entry of the same writer."""
    passed_over: bool = False
    """Whether nobody can read it, and an operator has accepted that."""


@dataclass(slots=True)
class ReaderState:
    """What a reader keeps; part of every snapshot."""

    sequence: int
    head: bytes
    time_us: int = 0
    behaviour: int = 1
    writers: dict[tuple[str, str], Writer] = field(default_factory=dict[tuple[str, str], Writer])
    failed: dict[Position, Position] = field(default_factory=dict[Position, Position])
    """What some service failed to decide, and each order to retry it → what failed at first."""


class LogReader:
    """Reads a cell's entries in order. `accepted` holds entries that an operator lets pass although
    they cannot be understood: sequence → chain hash there."""

    def __init__(
        self,
        cell: str,
        types: EventTypes,
        state: ReaderState | None = None,
        accepted: Mapping[int, bytes] | None = None,
    ) -> None:
        self.cell = cell
        self.state = state or ReaderState(0, first_head(cell))
        self._types = types
        self._accepted = accepted or {}
        self._subjects: dict[str, tuple[str, bool]] = {}
        self._heads: deque[bytes] = deque([self.state.head], maxlen=REMEMBERED_HEADS)
        self.heads_unchecked = 0
        """`.out` entries whose cause lies too far back to hold them against it here."""
        self.copies_unchecked = 0
        """Copies that came so late that the first one's hash is no longer kept: dropped all the
        same, since their count was seen."""
        self.accepted_entries: list[int] = []

    def remember(self, heads: Iterable[bytes]) -> None:
        """Know chain hashes before the place where it begins, the one there last: whoever goes on
        from a state has hashed the log up to it."""
        self._heads = deque(heads, maxlen=REMEMBERED_HEADS)

    def head_at(self, sequence: int) -> bytes | None:
        """The chain hash at an entry, if it is still remembered."""
        back = self.state.sequence - sequence
        if back < 0 or back >= len(self._heads):
            return None
        return self._heads[-1 - back]

    def read(
        self, sequence: int, subject: str, headers: Mapping[str, str], payload: bytes
    ) -> ReadEntry:
        """Take the next entry. Raises LogBroken."""
        state = self.state
        if sequence != state.sequence + 1:
            raise LogBroken(
                state.sequence + 1, f"missing: the log goes on with entry {sequence} after it"
            )
        service, is_input = self._service(sequence, subject)
        head = next_head(state.head, sequence, subject, headers, payload)
        try:
            read = self._decode(sequence, service, is_input, head, payload)
        except (NotUnderstood, LogBroken) as error:
            if self._accepted.get(sequence) != head:
                why = error.why if isinstance(error, LogBroken) else str(error)
                raise LogBroken(sequence, why) from error
            self.accepted_entries.append(sequence)
            self._go_on_after(service, is_input, payload)
            read = ReadEntry(sequence, service, is_input, "", 0, head, [], [], passed_over=True)
        state.sequence = sequence
        state.head = head
        self._heads.append(head)
        return read

    def _service(self, sequence: int, subject: str) -> tuple[str, bool]:
        known = self._subjects.get(subject)
        if known is None:
            parts = subject.split(".")
            if (
                len(parts) != 4
                or parts[:2] != ["sabot", self.cell]
                or parts[3] not in ("in", "out")
            ):
                raise LogBroken(sequence, f"subject {subject!r} is not one of this cell")
            known = self._subjects[subject] = (parts[2], parts[3] == "in")
        return known

    def _decode(
        self, sequence: int, service: str, is_input: bool, head: bytes, payload: bytes
    ) -> ReadEntry:
        entry = decode_entry(payload)
        read = ReadEntry(
            sequence, service, is_input, entry.writer, entry.counter, head, [], list(entry.events)
        )
        if is_input:
            read.copy = self._is_copy(sequence, service, entry, payload)
            if read.copy:
                read.protos = []
                return read
        elif entry.counter:
            raise NotUnderstood("an entry of answers has a counter")
        else:
            self._check_head(sequence, entry)
        self._events(read)
        return read

    def _go_on_after(self, service: str, is_input: bool, payload: bytes) -> None:
        """An operator lets an entry pass: what its writer wrote next must pass after it."""
        try:
            entry = decode_entry(payload)
        except NotUnderstood:
            return
        if is_input and entry.writer:
            key = (service, entry.writer)
            self.state.writers[key] = Writer(entry.counter, self.state.time_us, {})

    def _is_copy(self, sequence: int, service: str, entry: entry_pb2.Entry, payload: bytes) -> bool:
        """Whether this writer's entry stands in the log already; by the writer's own count."""
        if not entry.writer or not entry.counter:
            raise NotUnderstood("an entry of inputs without a writer and its count")
        state = self.state
        key = (service, entry.writer)
        digest = hashlib.sha256(payload).digest()
        writer = state.writers.get(key)
        if writer is None:
            if entry.counter != 1:
                raise LogBroken(
                    sequence,
                    f"writer {entry.writer} begins at its entry {entry.counter}: some are missing",
                )
            self._forget_silent_writers()
            writer = state.writers[key] = Writer(0, state.time_us, {})
        if entry.counter <= writer.counter:
            known = writer.copies.get(entry.counter)
            if known is None:
                self.copies_unchecked += 1
            elif known != digest:
                raise LogBroken(
                    sequence, f"writer {entry.writer} wrote its entry {entry.counter} differently"
                )
            return True
        if entry.counter != writer.counter + 1:
            raise LogBroken(
                sequence,
                f"writer {entry.writer} skips from its entry {writer.counter} to {entry.counter}",
            )
        writer.counter = entry.counter
        writer.copies[entry.counter] = digest
        if len(writer.copies) > REMEMBERED_COPIES:
            del writer.copies[next(iter(writer.copies))]
        writer.time_us = max(state.time_us, entry.events[-1].time_us)
        return False

    def _forget_silent_writers(self) -> None:
        horizon = self.state.time_us - WRITER_SILENCE_US
        writers = self.state.writers
        for key in [key for key, writer in writers.items() if writer.time_us < horizon]:
            del writers[key]

    def _check_head(self, sequence: int, entry: entry_pb2.Entry) -> None:
        """Answers carry the chain hash at their last cause: so they commit to what they answer."""
        cause = entry.events[-1].cause
        if not 0 < cause.sequence < sequence:
            raise NotUnderstood(f"answers to {cause.sequence}, which does not stand before it")
        expected = self.head_at(cause.sequence)
        if expected is None:
            self.heads_unchecked += 1
        elif expected != entry.head:
            raise LogBroken(
                sequence,
                f"its answers were given to another log: their head does not fit entry "
                f"{cause.sequence}",
            )

    def _events(self, read: ReadEntry) -> None:
        state = self.state
        is_input = read.is_input
        for index, proto in enumerate(read.protos):
            position = Position(SEGMENT, read.sequence, index)
            body = self._types.decode(proto.type, proto.body)
            owner = KERNEL_INPUT_SUBJECTS.get(type(body))
            if owner is not None and owner != read.service:
                raise NotUnderstood(f"{proto.type} stands on {read.service}, not on {owner}")
            if is_input:
                state.time_us = max(state.time_us, proto.time_us)
                if isinstance(body, events_pb2.ActivateBehaviour):
                    state.behaviour = max(state.behaviour, body.behaviour)
                elif isinstance(body, events_pb2.RetryInput):
                    self._retried(position, position_of(body.position))
                cause = None
            else:
                cause = position_of(proto.cause)
                if isinstance(body, events_pb2.InputFailed):
                    self._failed(cause)
            read.events.append(
                Event(
                    position,
                    read.service,
                    is_input,
                    body,
                    cause,
                    proto.partner,
                    proto.actor,
                    state.time_us,
                    state.behaviour,
                    False,
                    proto.note.traceparent,
                    proto.time_us if is_input else 0,
                    0 if is_input else proto.time_us,
                )
            )

    def _failed(self, cause: Position) -> None:
        """A decision failed. Where it was a retry, that is known by what failed at first."""
        if cause not in self.state.failed:
            self._remember(cause, cause)

    def _retried(self, order: Position, position: Position) -> None:
        """An operator has something decided again. Whoever names the order means the same."""
        first = self.state.failed.get(position)
        if first is not None:
            self._remember(order, first)

    def _remember(self, position: Position, first: Position) -> None:
        failed = self.state.failed
        failed[position] = first
        if len(failed) > REMEMBERED_FAILURES:
            del failed[next(iter(failed))]
