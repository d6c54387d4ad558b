"""The stream of a cell, as code: how it is made, and how an existing one must be.

It keeps everything for ever and refuses what does not fit: `discard` is `new`, and there is no
limit of age or number. That nothing in it can be deleted is said twice, by the deny flags here and
by the users' permissions; flags alone do not stop an update of the stream itself.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

from services.kernel.log import MAX_PAYLOAD_BYTES, LogUnavailable
from services.kernel.nats_connection import Forbidden, NatsConnection, NotAnswered, NotSent

CELL_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
"""What a cell may be called: it is a token of subjects, of the stream's name and of a folder's."""

STREAM_NOT_FOUND = 10059
CLUSTER_NOT_READY = frozenset({10004, 10005, 10008, 10009})
"""Incomplete, no peers for placement, unavailable, no leader: it may be so while servers start."""

RETRY_PAUSE_S = 0.1
"""Between attempts to make a stream in a cluster that is not ready."""

STREAM_WAIT_S = 10.0
"""For the making of a stream; a cluster that has just started must find its leader first."""

IRRELEVANT = frozenset(
    {
        "consumer_limits",  # bind nobody's reading that is not refused aloud
        "description",
        "duplicate_window",  # no entry carries a message id, so there is nothing to compare
        "max_consumers",
        "metadata",
        "placement",
        "republish",  # copies; the log itself is the same
    }
)
"""Settings of a stream that may be as they like."""


class StreamUnfit(Exception):
    """The stream is not as a cell's log must be. `deviations` names each setting in words."""

    def __init__(self, stream: str, deviations: list[str]) -> None:
        super().__init__(f"stream {stream}: {'; '.join(deviations)}")
        self.deviations = deviations


class StreamMissing(Exception):
    """There is no stream, and none may be made."""


def stream_name(cell: str) -> str:
    """The name of a cell's stream. Raises ValueError where no cell may be called so."""
    if CELL_NAME.fullmatch(cell) is None:
        raise ValueError(f"no cell may be called {cell!r}")
    return f"SABOT_{cell}"


def stream_subjects(cell: str) -> list[str]:
    """The subjects of a cell's stream: inputs and answers of every service."""
    return [f"sabot.{cell}.*.in", f"sabot.{cell}.*.out"]


def stream_definition(cell: str, *, replicas: int, max_bytes: int) -> dict[str, Any]:
    """The configuration of a cell's stream, as JetStream wants it. `max_bytes`: -1 for none."""
    return {
        "name": stream_name(cell),
        "subjects": stream_subjects(cell),
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "discard": "new",
        "max_age": 0,
        "max_msgs": -1,
        "max_msgs_per_subject": -1,
        "max_bytes": max_bytes,
        "max_msg_size": MAX_PAYLOAD_BYTES,
        "deny_delete": True,
        "deny_purge": True,
        "allow_rollup_hdrs": False,
        # Whole-cell reading goes through consumers; a direct get may be answered by a replica that
        # is behind.
        "allow_direct": False,
        # The raw scanner reads blocks as they are.
        "compression": "none",
        "sealed": False,
    }


def deviations(
    config: Mapping[str, Any], cell: str, *, replicas: int, max_bytes: int | None = None
) -> list[str]:
    """What of an existing stream's configuration is not as it must be, in words; empty if all is.

    `max_bytes` is compared only where it is given: an operator may give a log more room.
    """
    wanted = stream_definition(cell, replicas=replicas, max_bytes=-1)
    if max_bytes is None:
        del wanted["max_bytes"]
    else:
        wanted["max_bytes"] = max_bytes
    actual = {key: config.get(key, type(value)()) for key, value in wanted.items()}
    wrong = [
        f"{key} is {_words(actual[key])}, it must be {_words(value)}"
        for key, value in wanted.items()
        if actual[key] != value
    ]
    others = sorted(config.keys() - wanted.keys() - IRRELEVANT - {"max_bytes"})
    return wrong + [
        f"{key} is {_words(config[key])}, it must not be set" for key in others if config[key]
    ]


async def find_stream(connection: NatsConnection, cell: str, *, wait_s: float) -> dict[str, Any]:
    """The configuration of a cell's stream; empty if there is none. Raises LogUnavailable."""
    return await find_named(connection, stream_name(cell), wait_s=wait_s)


async def find_named(connection: NatsConnection, stream: str, *, wait_s: float) -> dict[str, Any]:
    """The configuration of any stream; empty if there is none. Raises LogUnavailable."""
    answer = await _ask(connection, f"STREAM.INFO.{stream}", None, wait_s)
    error = answer.get("error")
    if error is None:
        config: dict[str, Any] = answer["config"]
        return config
    if error.get("err_code") == STREAM_NOT_FOUND:
        return {}
    raise LogUnavailable(f"the stream {stream}: {error.get('description')}")


async def require_stream(
    connection: NatsConnection,
    cell: str,
    *,
    replicas: int,
    max_bytes: int = -1,
    may_create: bool,
    wait_s: float = STREAM_WAIT_S,
) -> bool:
    """See to it that a cell's stream is there and as it must be; whether it was made just now.

    `may_create` is the caller's word that this place has never held one: a stream that is made
    where another was lost would hide the loss. `max_bytes` is used for a new stream only. Raises
    StreamMissing, StreamUnfit and LogUnavailable.
    """
    config = await find_stream(connection, cell, wait_s=wait_s)
    created = False
    if not config:
        if not may_create:
            raise StreamMissing(f"the stream {stream_name(cell)} is gone")
        config = await create_stream(
            connection, stream_definition(cell, replicas=replicas, max_bytes=max_bytes), wait_s
        )
        created = True
    found = deviations(config, cell, replicas=replicas)
    if found:
        raise StreamUnfit(stream_name(cell), found)
    return created


async def create_stream(
    connection: NatsConnection, definition: Mapping[str, Any], wait_s: float
) -> dict[str, Any]:
    """Make a stream; its configuration. A cluster that is not ready is asked again. Raises
    LogUnavailable."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    while True:
        left = max(0.0, deadline - loop.time())
        answer = await _ask(connection, f"STREAM.CREATE.{definition['name']}", definition, left)
        error = answer.get("error")
        if error is None:
            config: dict[str, Any] = answer["config"]
            return config
        if error.get("err_code") not in CLUSTER_NOT_READY or loop.time() >= deadline:
            raise LogUnavailable(f"the stream {definition['name']}: {error.get('description')}")
        await asyncio.sleep(RETRY_PAUSE_S)


async def _ask(
    connection: NatsConnection, what: str, body: Mapping[str, Any] | None, wait_s: float
) -> dict[str, Any]:
    payload = b"" if body is None else json.dumps(body).encode()
    try:
        reply = await connection.request(f"$JS.API.{what}", payload, wait_s=wait_s)
    except (NotSent, NotAnswered, Forbidden) as error:
        raise LogUnavailable(str(error) or "no connection to the log's server") from error
    try:
        answer: dict[str, Any] = json.loads(reply.data)
    except ValueError as error:
        raise LogUnavailable("JetStream is not there") from error
    return answer


def _words(value: object) -> str:
    return json.dumps(value)
