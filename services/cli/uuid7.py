"""UUIDv7, the form of request ids: the time first, then chance (RFC 9562, 5.7)."""

from __future__ import annotations

import os
import time
from uuid import UUID


def uuid7() -> str:
    """A fresh request id of this moment."""
    millis = time.time_ns() // 1_000_000
    raw = bytearray(millis.to_bytes(6, "big") + os.urandom(10))
    raw[6] = raw[6] & 0x0F | 0x70
    raw[8] = raw[8] & 0x3F | 0x80
    return str(UUID(bytes=bytes(raw)))
