"""Reading a whole stream of JetStream, in order, without gaps, for ever.

A short-lived consumer is pulled from with one large request outstanding, so that an entry is on
its way the moment it is stored. The consumer is a throw-away thing: whenever anything is odd (a
gap, a silence, a broken connection, the consumer gone) another one is made where reading stopped.
It begins with the last entry already read, which must still be the same, so that a log that was
rolled back meanwhile is noticed; and a gap that a new consumer shows too is a hole in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from nats.aio.msg import Msg

from services.kernel.log import LogMessage, LogUnavailable
from services.kernel.nats_connection import Forbidden, NatsConnection, NotAnswered, NotSent

logger = logging.getLogger(__name__)

CONSUMER_SLOTS = 32
"""How many consumers a prefix may have at a time: NATS permissions cannot match half a token, so
the names are a closed list. A process that was killed leaves its own for `INACTIVE_S`."""

PULL_ENTRIES = 2_000
"""Entries a request asks for: so many may wait here for a slow reader."""
PULL_BYTES = 16 * 1024 * 1024
"""Bytes a request asks for, 64 of the largest entries."""
PULL_LOW = 500
"""The next request goes out when so few entries are left of those asked for."""
PULL_EXPIRES_S = 5.0
"""A request ends by itself after this; then the end of the stream is compared."""
HEARTBEAT_S = 0.25
"""How often the server says that a request still stands."""
QUIET_TICKS = 4
"""Heartbeats missed before the consumer counts as lost. Counted in ticks of this loop, so that a
loop that was busy does not take its own silence for the server's."""
INACTIVE_S = 15.0
"""The server removes a consumer that nobody has asked for so long."""
API_WAIT_S = 0.25
"""For an answer of the JetStream API. A cluster between two leaders gives none, so it is asked
again soon; each time it may take twice as long, for a server that is only slow."""
API_WAIT_MOST_S = 4.0
"""To what that grows."""
RETRY_PAUSE_S = 0.02
"""Between attempts to make a consumer."""
SHORTER_GRACE_S = 3.0
"""How long a log may look shorter than what was read, or not be there, before it counts: a new
leader or a server that has just started may still be catching up."""

CONSUMER_TAKEN = frozenset({10013, 10148})
STREAM_NOT_FOUND = 10059

ACK_TOKENS = 9
"""Tokens of the reply subject of an entry where no domain is named, two less than with one."""

NANOSECONDS = 1_000_000_000


def consumer_names(prefix: str) -> list[str]:
    """All the names of consumers that a reader with this prefix may use."""
    return [f"{prefix}_{slot}" for slot in range(CONSUMER_SLOTS)]


class _Odd(Exception):
    """Something that another consumer may put right."""


class PullReader:
    """Reads one stream from one position on."""

    def __init__(
        self, connection: NatsConnection, stream: str, *, consumer_prefix: str, after: int
    ) -> None:
        """Read `stream` behind the sequence `after`."""
        self._connection = connection
        self._stream = stream
        self._names = consumer_names(consumer_prefix)
        self._last = after
        self._seen: LogMessage | None = None
        self._hole_at = 0
        self._api_wait_s = API_WAIT_S
        # Of the present consumer:
        self._arrived: list[LogMessage] = []
        self._first = True
        self._checking = False
        self._odd: str | None = None
        self._failure: LogUnavailable | None = None
        self._ended = False
        self._requests: deque[int] = deque()
        self._quiet = 0
        self._wake: asyncio.Future[None] | None = None

    async def batches(self) -> AsyncGenerator[Sequence[LogMessage], None]:
        """Everything behind the start, as it comes. Raises LogUnavailable where there is a hole,
        where the log was rolled back, and when the connection is closed.
        """
        self._connection.when_lost(self._on_lost)
        old: str | None = None
        try:
            while True:
                consumer = ""
                subscription = None
                try:
                    consumer = await self._make_consumer()
                    inbox, subscription = await self._connection.subscribe(self._on_message)
                    if old is not None:
                        await self._delete(old, inbox)
                    async with contextlib.aclosing(self._deliver(consumer, inbox)) as batches:
                        async for batch in batches:
                            yield batch
                except (_Odd, NotSent) as odd:
                    logger.info("reading %s: %s", self._stream, str(odd) or "not connected")
                    await asyncio.sleep(RETRY_PAUSE_S)
                finally:
                    old = consumer or old
                    if subscription is not None:
                        await self._connection.unsubscribe(subscription)
        finally:
            self._connection.forget(self._on_lost)
            if old is not None and not self._connection.is_closing:
                await self._delete(old, "")

    async def _deliver(
        self, consumer: str, inbox: str
    ) -> AsyncGenerator[Sequence[LogMessage], None]:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(HEARTBEAT_S, self._on_tick)
        try:
            await self._pull(consumer, inbox)
            while True:
                if self._arrived:
                    batch, self._arrived = self._arrived, []
                    yield batch
                elif self._failure is not None:
                    raise self._failure
                elif self._odd is not None:
                    raise _Odd(self._odd)
                elif self._ended:
                    await self._compare_end()
                    self._ended = False
                else:
                    self._wake = loop.create_future()
                    timer.cancel()
                    timer = loop.call_later(HEARTBEAT_S, self._on_tick)
                    await self._wake
                if self._odd is None and sum(self._requests) < PULL_LOW:
                    await self._pull(consumer, inbox)
        finally:
            timer.cancel()

    async def _pull(self, consumer: str, inbox: str) -> None:
        request = {
            "batch": PULL_ENTRIES,
            "max_bytes": PULL_BYTES,
            "expires": int(PULL_EXPIRES_S * NANOSECONDS),
            "idle_heartbeat": int(HEARTBEAT_S * NANOSECONDS),
        }
        self._requests.append(PULL_ENTRIES)
        await self._connection.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{consumer}",
            json.dumps(request).encode(),
            inbox,
        )

    async def _make_consumer(self) -> str:
        """Make a consumer that begins with the last entry read, or the first one to read."""
        loop = asyncio.get_running_loop()
        shorter_since: float | None = None
        while True:
            await self._wait_for_connection()
            problem = await self._problem_of_stream()
            if problem is None:
                break
            shorter_since = shorter_since if shorter_since is not None else loop.time()
            if loop.time() - shorter_since > SHORTER_GRACE_S:
                raise LogUnavailable(problem)
            await asyncio.sleep(RETRY_PAUSE_S)
        # What arrived and was not handed on yet stays: `_last` counts it as read.
        self._requests.clear()
        self._first, self._odd, self._ended, self._quiet = True, None, False, 0
        self._checking = self._seen is not None
        names = random.sample(self._names, len(self._names))
        for name in names:
            answer = await self._ask(f"CONSUMER.CREATE.{self._stream}.{name}", self._config(name))
            error = answer.get("error")
            if error is None:
                self._api_wait_s = API_WAIT_S
                return name
            if error.get("err_code") not in CONSUMER_TAKEN:
                raise _Odd(f"no consumer: {error.get('description')}")
        raise _Odd("no consumer: all names of this prefix are in use")

    def _config(self, name: str) -> dict[str, Any]:
        start = self._last if self._seen is not None else self._last + 1
        return {
            "stream_name": self._stream,
            "action": "create",
            "config": {
                "name": name,
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": start,
                "ack_policy": "none",
                "replay_policy": "instant",
                "mem_storage": True,
                "num_replicas": 1,
                "inactive_threshold": int(INACTIVE_S * NANOSECONDS),
                # Makes it this reader's: without it a second one with the same start would be
                # given the same consumer, and each would get half of the entries.
                "metadata": {"reader": uuid4().hex},
            },
        }

    async def _problem_of_stream(self) -> str | None:
        """Why the stream cannot be read on from here; None when it can."""
        answer = await self._ask(f"STREAM.INFO.{self._stream}", None)
        error = answer.get("error")
        if error is not None:
            if error.get("err_code") != STREAM_NOT_FOUND:
                raise _Odd(str(error.get("description")))
            return f"there is no stream {self._stream}"
        first, last = answer["state"]["first_seq"], answer["state"]["last_seq"]
        if last < self._last:
            return f"the log ends at sequence {last}, but {self._last} was read: rolled back"
        if first > self._last + 1:
            return f"the log begins at sequence {first}; {self._last + 1} is missing: a hole"
        return None

    async def _compare_end(self) -> None:
        """After a silence, find out whether the stream holds more than what arrived."""
        answer = await self._ask(f"STREAM.INFO.{self._stream}", None)
        if "error" in answer or self._arrived:
            return
        last = answer["state"]["last_seq"]
        if last < self._last:
            raise _Odd("the log is shorter than what was read")
        if last == self._last:
            return
        if self._hole_at == self._last + 1:
            raise self._hole(last)
        self._hole_at = self._last + 1
        raise _Odd(f"sequence {self._last + 1} was not delivered")

    def _hole(self, shown: int) -> LogUnavailable:
        return LogUnavailable(
            f"sequence {self._last + 1} is missing from the log, {shown} is there: a hole"
        )

    async def _ask(self, what: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
        payload = b"" if body is None else json.dumps(body).encode()
        try:
            reply = await self._connection.request(
                f"$JS.API.{what}", payload, wait_s=self._api_wait_s
            )
        except NotAnswered as error:
            self._api_wait_s = min(2 * self._api_wait_s, API_WAIT_MOST_S)
            raise _Odd(f"{what}: {error}") from error
        except Forbidden as error:
            raise LogUnavailable(str(error)) from error
        try:
            answer: Mapping[str, Any] = json.loads(reply.data)
        except ValueError as error:
            raise _Odd(f"{what}: nobody answers") from error
        return answer

    async def _wait_for_connection(self) -> None:
        while not self._connection.is_connected:
            try:
                await self._connection.wait_connected(wait_s=API_WAIT_MOST_S)
            except NotSent:
                if self._connection.is_closing:
                    break
        if self._connection.is_closing:
            raise LogUnavailable("this client of the log was closed")

    async def _delete(self, consumer: str, inbox: str) -> None:
        """Free the name at once instead of after `INACTIVE_S`; nobody waits for the answer."""
        try:
            await self._connection.publish(
                f"$JS.API.CONSUMER.DELETE.{self._stream}.{consumer}", b"", inbox
            )
        except NotSent:
            logger.debug("the consumer %s is left to the server", consumer)

    def _on_tick(self) -> None:
        self._quiet += 1
        if self._quiet >= QUIET_TICKS:
            self._odd = "the consumer is silent"
        self._stir()

    def _on_lost(self) -> None:
        self._odd = "the connection broke"
        self._stir()

    def _stir(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _on_message(self, message: Msg) -> None:
        self._quiet = 0
        if message.reply.startswith("$JS.ACK."):
            self._on_entry(message)
        elif message.headers is not None and "Status" in message.headers:
            self._on_status(message.headers)
        # Anything else is the answer to a `_delete`.
        self._stir()

    def _on_entry(self, message: Msg) -> None:
        if self._odd is not None or self._failure is not None:
            return
        if self._requests:
            self._requests[0] -= 1
            if self._requests[0] == 0:
                self._requests.popleft()
        # $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<tries>.<stream sequence>.<...>
        tokens = message.reply.split(".")
        sequence = int(tokens[5] if len(tokens) == ACK_TOKENS else tokens[7])
        entry = LogMessage(sequence, message.subject, message.headers or {}, message.data)
        first, self._first = self._first, False
        if self._checking:
            self._checking = False
            if sequence == self._last and entry == self._seen:
                return
            if sequence == self._last:
                self._failure = LogUnavailable(
                    f"sequence {sequence} is another entry than was read: rolled back"
                )
                return
        if sequence != self._last + 1:
            if first:
                self._failure = self._hole(sequence)
            else:
                self._on_gap(sequence)
            return
        self._last = sequence
        self._seen = entry
        self._arrived.append(entry)

    def _on_gap(self, shown: int) -> None:
        """The consumer went past entries that did not arrive: lost on the way, or not there."""
        if self._hole_at == self._last + 1:
            self._failure = self._hole(shown)
        else:
            self._hole_at = self._last + 1
            self._odd = f"sequence {shown} came after {self._last}"

    def _on_status(self, headers: Mapping[str, str]) -> None:
        status = headers["Status"]
        if status == "100":
            delivered = int(headers.get("Nats-Last-Stream", "0"))
            if delivered > self._last:
                self._on_gap(delivered)
            return
        words = headers.get("Description", "")
        used_up = "MaxBytes" in words or "Batch Completed" in words
        if status in ("404", "408") or (status == "409" and used_up):
            if self._requests:
                self._requests.popleft()
            self._ended = status != "409"
            return
        self._odd = f"{status} {words}"
