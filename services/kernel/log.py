"""What a cell's log must do, whichever one it is. `memory_log` and `jetstream` do it, and one
contract suite (tests/contract) holds them to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

MAX_PAYLOAD_BYTES = 256 * 1024
"""An entry with its headers: measured best between batching and latency, and far below NATS's own
default of 1 MiB, beyond which the server ends the connection."""


class LogMessage(NamedTuple):
    """One stored entry."""

    sequence: int
    subject: str
    headers: Mapping[str, str]
    payload: bytes


@dataclass(frozen=True, slots=True)
class LogInfo:
    """How the log stands, as its server says."""

    first_sequence: int
    last_sequence: int
    server_time_us: int
    """The server's clock when it answered, microseconds since 1970 UTC."""
    bytes_used: int
    bytes_max: int
    """The log's limit; -1 where there is none."""


class FenceLost(Exception):
    """Another writer's entry stands, or is being stored, where this one was to stand. Nothing of
    this append is stored. `last_sequence`: the subject's last sequence as the server named it, or
    None."""

    def __init__(self, last_sequence: int | None) -> None:
        super().__init__(
            f"another writer was first; the subject's last sequence is {last_sequence}"
        )
        self.last_sequence = last_sequence


class AppendUnknown(Exception):
    """The append is neither known to be stored nor known not to be. Send the same bytes again."""


class AppendRefused(Exception):
    """The log refused the append, and nothing of it is stored: full, forbidden or too large."""


class LogFull(AppendRefused):
    """The log has reached its limit, or its disk is full."""


class LogUnavailable(Exception):
    """The log cannot be asked now."""


class Log(Protocol):
    """A cell's log: one total order of entries on a few subjects."""

    @property
    def cell(self) -> str:
        """The cell's name."""
        ...

    async def append(
        self, subject: str, payload: bytes, *, expected: int | None, wait_s: float
    ) -> int:
        """Store one entry; the sequence it got.

        With `expected`, only if that is the sequence of the subject's last entry (0: it has none).
        One call sends once and never again by itself.

        Raises FenceLost, AppendRefused, or AppendUnknown after `wait_s` seconds without an answer
        and on every other failure whose effect cannot be told."""
        ...

    def read(self, after: int) -> AsyncIterator[Sequence[LogMessage]]:
        """All entries with a greater sequence, in order and without end, as they come, in batches.

        It reconnects by itself and never skips: where the next sequence is no longer there it
        raises `LogUnavailable` (a hole). Close it with `aclose`."""
        ...

    async def info(self, *, wait_s: float) -> LogInfo:
        """How the log stands. Raises LogUnavailable."""
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...
