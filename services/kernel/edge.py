"""What the shells of a service may ask of the kernel: append an input and wait for what became of
it, read states, follow the log. `services.kernel.process.Process` does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message

from services.kernel.event import Event, Position


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an input: the answer that ends its path, as read back from the log."""

    input_position: Position
    event: Event


class NotTaken(Exception):
    """The input did not enter the log, and will not."""


class EdgeNotReady(NotTaken):
    """This process is not at the head of the log, its clock is off, the log is weaker than it must
    be, or it is stopping: try another replica, or later."""


class EdgeBusy(NotTaken):
    """Back-pressure: inputs have waited too long for their answers. Try again a little later."""


class LogIsFull(NotTaken):
    """The log takes no more entries."""


class OutcomeUnknown(Exception):
    """The input may or may not be in the log, or it is but its outcome did not come in time. Send
    the same request again with the same request id."""


class Edge(Protocol):
    """A process's attachment to a cell."""

    @property
    def cell(self) -> str:
        """The cell's name."""
        ...

    @property
    def position(self) -> Position:
        """Everything up to here has been folded."""
        ...

    @property
    def log_time_us(self) -> int:
        """Log time here, microseconds since 1970 UTC."""
        ...

    @property
    def behaviour(self) -> int:
        """The behaviour in force here."""
        ...

    @property
    def known_behaviour(self) -> int:
        """The highest behaviour that every core in this process can decide by."""
        ...

    def failed_input(self, position: Position) -> Position | None:
        """What is to be retried where an operator names this position: what some service failed to
        decide, also by way of an earlier retry. None where nothing failed there."""
        ...

    async def submit(
        self,
        service: str,
        body: Message,
        *,
        partner: str,
        actor: str,
        until: frozenset[type[Message]],
        wait_s: float,
        traceparent: str = "",
    ) -> Outcome:
        """Append `body` as an input of `service`, follow the chain of answers from it, and return
        the first answer of a type in `until`; `InputFailed`, `InputIgnored`, `InputNoted` and
        `RequestRepeated` end every chain too.

        `wait_s`: seconds, at most until the caller's deadline.
        Raises NotTaken (and its kinds) or OutcomeUnknown.
        """
        ...

    def state(self, service: str) -> Any:  # Any: the state's type is the service's own.
        """The state of a service whose core runs in this process. Read it; never change it."""
        ...

    async def reached(self, position: Position, *, wait_s: float) -> bool:
        """Wait until everything up to `position` is folded; whether it was, in `wait_s` seconds."""
        ...

    def follow(self, listener: Callable[[list[Event]], None]) -> Callable[[], None]:
        """Call `listener` with the events of each entry as it is folded, from now on. Returns a
        function that ends it. A listener must be quick and must not raise."""
        ...
