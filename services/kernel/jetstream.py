"""A cell's log on NATS JetStream: appending and asking. Reading is in `jetstream_read`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from services.kernel.fence import fence_headers, header_bytes
from services.kernel.jetstream_read import PullReader
from services.kernel.log import (
    MAX_PAYLOAD_BYTES,
    AppendRefused,
    AppendUnknown,
    FenceLost,
    LogFull,
    LogInfo,
    LogMessage,
    LogUnavailable,
)
from services.kernel.nats_connection import (
    Forbidden,
    NatsConnection,
    NotAnswered,
    NotSent,
    TooLarge,
)
from services.kernel.streams import stream_name

WRONG_LAST_SEQUENCE = 10071
"""Another entry stands where this one was to stand; the description names the last sequence."""
WRONG_LAST_SEQUENCE_BUSY = 10164
"""Another entry is being stored there just now; no sequence is named."""
STORE_FAILED = 10077
"""The store did not take it; the description says why."""
MESSAGE_TOO_LARGE = 10054
"""Above the stream's `max_msg_size`."""
OUT_OF_RESOURCES = frozenset({10002, 10023, 10028, 10047})
"""Account, system, memory and storage resources used up."""

FULL_WORDS = ("maximum bytes", "maximum messages", "no space left", "resources exceeded", "limit")
"""How `STORE_FAILED` says that there is no room, as against a store that is broken or closed."""

REFUSAL_PAUSE_S = 0.02
"""Before an answer that says "not now" is passed on as unknown: the caller sends again at once, and
a leaderless cluster needs some time anyway."""

LAST_SEQUENCE = re.compile(r"wrong last sequence: (\d+)")


class JetStreamLog:
    """A client of a cell's stream; it is a `Log`. It must be used inside one running event loop."""

    def __init__(self, connection: NatsConnection, cell: str, *, consumer_prefix: str) -> None:
        """Use an open connection, which `close` closes. See `connect`."""
        self._connection = connection
        self._cell = cell
        self._stream = stream_name(cell)
        self._consumer_prefix = consumer_prefix
        self._info_subject = f"$JS.API.STREAM.INFO.{self._stream}"

    @classmethod
    async def connect(
        cls,
        servers: Sequence[str],
        cell: str,
        *,
        name: str,
        consumer_prefix: str,
        user: str | None = None,
        password: str | None = None,
        inbox_prefix: str = "_INBOX",
        authority: Path | None = None,
        wait_s: float = 10.0,
    ) -> JetStreamLog:
        """Connect to the servers that keep the cell's stream: `nats://host:port`, or `tls://…`, see
        `NatsConnection`.

        `name` is shown in the server's monitoring. The user must be allowed to use consumers named
        `<consumer_prefix>_<n>` (see `jetstream_read.consumer_names`) and to subscribe below
        `inbox_prefix`. Raises LogUnavailable after `wait_s` seconds.
        """
        connection = NatsConnection(
            servers,
            name=name,
            user=user,
            password=password,
            inbox_prefix=inbox_prefix,
            authority=authority,
        )
        await connection.open(wait_s=wait_s)
        return cls(connection, cell, consumer_prefix=consumer_prefix)

    @property
    def cell(self) -> str:
        """The cell's name."""
        return self._cell

    @property
    def connection(self) -> NatsConnection:
        """The connection, for what is not the log's: `streams`, say."""
        return self._connection

    async def append(
        self, subject: str, payload: bytes, *, expected: int | None, wait_s: float
    ) -> int:
        """See `Log.append`."""
        headers = fence_headers(expected)
        size = len(payload) + header_bytes(headers)
        if size > MAX_PAYLOAD_BYTES:
            raise AppendRefused(f"an entry of {size} bytes is above {MAX_PAYLOAD_BYTES}")
        deadline = asyncio.get_running_loop().time() + wait_s
        try:
            reply = await self._connection.request(subject, payload, headers=headers, wait_s=wait_s)
        except NotSent as error:
            raise AppendUnknown("no connection to the log's server") from error
        except NotAnswered as error:
            raise AppendUnknown(str(error)) from error
        except (Forbidden, TooLarge) as error:
            raise AppendRefused(str(error)) from error
        sequence, unclear = stored_sequence(reply.data, self._stream)
        if sequence is None:
            left = deadline - asyncio.get_running_loop().time()
            await asyncio.sleep(max(0.0, min(REFUSAL_PAUSE_S, left)))
            raise AppendUnknown(unclear)
        return sequence

    async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        """See `Log.read`."""
        reader = PullReader(
            self._connection, self._stream, consumer_prefix=self._consumer_prefix, after=after
        )
        async with contextlib.aclosing(reader.batches()) as batches:
            async for batch in batches:
                yield batch

    async def info(self, *, wait_s: float) -> LogInfo:
        """See `Log.info`."""
        try:
            reply = await self._connection.request(self._info_subject, b"", wait_s=wait_s)
        except (NotSent, NotAnswered, Forbidden) as error:
            raise LogUnavailable(str(error) or "no connection to the log's server") from error
        return parse_info(reply.data)

    async def close(self) -> None:
        """See `Log.close`. Readers raise LogUnavailable."""
        await self._connection.close()


def parse_info(data: bytes) -> LogInfo:
    """What STREAM.INFO answered. Raises LogUnavailable where that is an error, or nothing."""
    try:
        answer: Mapping[str, Any] = json.loads(data)
    except ValueError as error:
        raise LogUnavailable("nobody keeps the log's stream just now") from error
    if "error" in answer:
        raise LogUnavailable(f"the log's stream: {answer['error'].get('description')}")
    state = answer["state"]
    return LogInfo(
        first_sequence=max(1, state["first_seq"]),  # an empty stream says 0
        last_sequence=state["last_seq"],
        server_time_us=microseconds(answer["ts"]),
        bytes_used=state["bytes"],
        bytes_max=answer["config"]["max_bytes"],
    )


def stored_sequence(data: bytes, stream: str) -> tuple[int | None, str]:
    """The sequence that an acknowledgement names, or None and why it is unclear what happened.

    Raises FenceLost and AppendRefused.
    """
    try:
        answer: Mapping[str, Any] = json.loads(data)
    except ValueError:
        return None, "nobody keeps the log's stream just now"
    error = answer.get("error")
    if error is None:
        if answer.get("stream") != stream:
            raise AppendRefused(f"the subject belongs to the stream {answer.get('stream')}")
        return int(answer["seq"]), ""
    code, words = error.get("err_code", 0), str(error.get("description", ""))
    if code == WRONG_LAST_SEQUENCE:
        named = LAST_SEQUENCE.search(words)
        raise FenceLost(int(named.group(1)) if named else None)
    if code == WRONG_LAST_SEQUENCE_BUSY:
        raise FenceLost(None)
    if code in OUT_OF_RESOURCES:
        raise LogFull(words)
    if code == STORE_FAILED and any(word in words for word in FULL_WORDS):
        raise LogFull(words)
    if code == MESSAGE_TOO_LARGE:
        raise AppendRefused(words)
    return None, f"{words} ({code})"


def microseconds(timestamp: str) -> int:
    """A server's RFC 3339 time in UTC, of up to nine decimals, in microseconds since 1970."""
    whole, _, decimals = timestamp.rstrip("Z").partition(".")
    seconds = int(datetime.fromisoformat(whole + "+00:00").timestamp())
    return seconds * 1_000_000 + int(decimals[:6].ljust(6, "0"))
