"""A writer of inputs: gathers what waits into entries and counts them. Pure; `process` moves the
bytes.

`.in` subjects have no fence, so many edges append at once. Each entry carries its writer (fresh at
every start) and the writer's count, and is sent again until it is seen; readers drop copies.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from sabot.log.v1 import entry_pb2
from services.kernel.entry import MAX_ENTRY_BYTES, MAX_EVENTS

T = TypeVar("T")

RENEW_US = 12 * 3600 * 1_000_000
"""A writer that was silent for so long begins anew under another id. Readers forget a writer after
24 hours of log time, and could not tell its next entry from one with others missing before it."""


@dataclass(slots=True)
class InputAppend(Generic[T]):
    """An append of inputs on its way; its bytes never change."""

    payload: bytes
    counter: int
    tokens: list[T]
    """What the callers gave with each event, in order."""
    maybe_stored: bool = False
    """Whether some sending of it had no answer, so that it may stand in the log."""


class InputWriter(Generic[T]):
    """The inputs of one process for one service. `T`: what a caller gives to know its event by."""

    def __init__(self, writer: str) -> None:
        self._name = writer
        self._generation = 0
        self._last_us = 0
        self.writer = writer
        """The writer's id, until it has been silent for long."""
        self._counter = 0
        self._waiting: deque[tuple[entry_pb2.Event, T]] = deque()
        self._unseen: dict[int, InputAppend[T]] = {}
        self.in_flight: InputAppend[T] | None = None

    def __len__(self) -> int:
        """How many events are not read back yet."""
        return len(self._waiting) + sum(len(append.tokens) for append in self._unseen.values())

    def waiting(self) -> int:
        """How many events wait for an append to begin."""
        return len(self._waiting)

    def put(self, event: entry_pb2.Event, token: T) -> None:
        """Let an event wait for the next append."""
        self._waiting.append((event, token))

    def put_first(self, event: entry_pb2.Event, token: T) -> None:
        """Let an event go in front of all that wait, at the time of the first of them."""
        if self._waiting:
            event.time_us = self._waiting[0][0].time_us
        self._waiting.appendleft((event, token))

    def next_append(self, now_us: int) -> InputAppend[T] | None:
        """Begin an append of what waits; None where nothing waits or one is on its way. `now_us`:
        this process's clock."""
        if self.in_flight is not None or not self._waiting:
            return None
        if self._last_us and now_us > self._last_us + RENEW_US and not self._unseen:
            self._generation += 1
            self.writer = f"{self._name}.{self._generation}"
            self._counter = 0
        self._last_us = now_us
        self._counter += 1
        entry = entry_pb2.Entry(writer=self.writer, counter=self._counter)
        tokens: list[T] = []
        size = 0
        while self._waiting and len(tokens) < MAX_EVENTS:
            event, token = self._waiting[0]
            size += event.ByteSize() + 8
            if tokens and size > MAX_ENTRY_BYTES:
                break
            self._waiting.popleft()
            entry.events.append(event)
            tokens.append(token)
        append = InputAppend(entry.SerializeToString(deterministic=True), self._counter, tokens)
        self.in_flight = self._unseen[append.counter] = append
        return append

    def stored(self, append: InputAppend[T]) -> None:
        """The log acknowledged an append: the next one may start. Where it stands is told by
        reading it back, since an earlier sending may have been stored before the one
        acknowledged."""
        if self.in_flight is append:
            self.in_flight = None

    def seen(self, counter: int) -> InputAppend[T] | None:
        """An own entry was read back for the first time: its append."""
        append = self._unseen.pop(counter, None)
        if append is not None and self.in_flight is append:
            self.in_flight = None
        return append

    def refused(self, append: InputAppend[T]) -> list[T] | None:
        """The log refused an append. Where it is certain that no sending of it was stored, its
        count is used again and the tokens of the events that are lost come back; else None: send it
        again."""
        if append.maybe_stored or self.in_flight is not append:
            return None
        self.in_flight = None
        del self._unseen[append.counter]
        self._counter -= 1
        return append.tokens

    def forsake(self) -> list[T]:
        """The tokens of all events that are not read back: the process goes on no longer."""
        tokens = [token for append in self._unseen.values() for token in append.tokens]
        tokens.extend(token for _, token in self._waiting)
        return tokens
