"""How an entry carries its fence, and what that adds to its size: the same in every log."""

from __future__ import annotations

from collections.abc import Mapping

FENCE_HEADER = "Nats-Expected-Last-Subject-Sequence"
"""With it JetStream stores an entry only behind the subject's sequence that it names. It is kept
among the entry's headers, and so is part of the digest."""

HEADERS_BEGIN = "NATS/1.0\r\n"
HEADERS_END = "\r\n"
HEADER_EXTRA_BYTES = len(": \r\n")


def fence_headers(expected: int | None) -> dict[str, str]:
    """The headers of an entry that is appended with this fence; None: without one."""
    return {} if expected is None else {FENCE_HEADER: str(expected)}


def header_bytes(headers: Mapping[str, str] | None) -> int:
    """What headers add to a message on the wire and in the store, bytes."""
    if not headers:
        return 0
    lines = sum(
        len(key.encode()) + len(value.encode()) + HEADER_EXTRA_BYTES
        for key, value in headers.items()
    )
    return len(HEADERS_BEGIN) + lines + len(HEADERS_END)
