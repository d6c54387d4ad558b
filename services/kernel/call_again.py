"""Calls that are sent once more where a server takes none for a moment, as docs/errors.md tells
callers to: for commands and everybody else who makes one call and is done."""

from __future__ import annotations

import json
from typing import Any

ATTEMPTS = 5
"""The most that gRPC makes."""
FIRST_S, MOST_S = 0.3, 1.0
"""Between two, at first and at most; up to a fifth more or less. Three seconds in all: a process
that was replaced has another in its place by then."""

CALL_AGAIN: tuple[tuple[str, Any], ...] = (
    ("grpc.enable_retries", 1),
    (
        "grpc.service_config",
        json.dumps(
            {
                "methodConfig": [
                    {
                        "name": [{}],  # every method: all of them may be repeated
                        "retryPolicy": {
                            "maxAttempts": ATTEMPTS,
                            "initialBackoff": f"{FIRST_S}s",
                            "maxBackoff": f"{MOST_S}s",
                            "backoffMultiplier": 2,
                            "retryableStatusCodes": ["UNAVAILABLE"],
                        },
                    }
                ]
            }
        ),
    ),
)
"""Options of a channel. The same message goes again, and so the same request id."""
