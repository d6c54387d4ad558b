"""A connection to NATS on which every request ends soon and clearly.

The traps of nats-py 2.16 that were measured, and what is done here about each:

- while disconnected it keeps what is published and sends it later: its buffer is switched off, and
  a request waits for the connection before it is sent, within its own time;
- a refused publish is only an asynchronous error, and its caller waits in vain: the error is
  matched to the requests waiting on that subject, which fail at once;
- a payload that fits with headers that make it too large ends the client for good: the sum is
  checked before anything is sent;
- a request outlives its connection: when that breaks, everything waiting fails at once;
- some errors close the client although it may reconnect for ever: then it is replaced;
- a connection that fails in its first words is forgotten without being closed: it is closed here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from services.kernel.fence import header_bytes
from services.kernel.log import LogUnavailable

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 2
"""For one attempt at one server; on a local network an answer takes milliseconds."""

RECONNECT_PAUSE_S = 0.1
"""Between attempts at the same server: a restarted one is found soon, a dead one costs little."""

PING_INTERVAL_S = 2
"""A connection that was cut without a word is given up after three of these."""

PINGS_UNANSWERED = 2
"""Pings without an answer before the connection counts as dead."""

ENCRYPTED = "tls://"
"""How a server's URL begins where nothing may be said to it in plain text."""

FORBIDDEN = re.compile(r'permissions violation for publish to "([^"]*)"', re.IGNORECASE)
"""The server's words when a user may not publish to a subject."""


class NotSent(Exception):
    """There was no connection in time; the request has not left this process."""


class NotAnswered(Exception):
    """The request was sent; whether it had an effect is unknown."""


class Forbidden(Exception):
    """The user may not publish to that subject; the request had no effect."""


class TooLarge(Exception):
    """Payload and headers are above what the server takes; nothing was sent."""


class NotEncrypted(nats_errors.Error):
    """A server that was to speak TLS does not."""

    def __str__(self) -> str:
        return "the server offers no TLS; nothing was said to it, no password either"


class _EncryptedClient(Client):
    """Says nothing to a server before TLS stands: the library itself would go on in plain text
    where the server's first words, which anybody can say, ask for no TLS."""

    def _connect_command(self) -> bytes:
        if not self._server_info.get("tls_required"):
            raise NotEncrypted
        return super()._connect_command()


class NatsConnection:
    """One client of NATS, for one event loop, with its own inbox and its own replies."""

    def __init__(
        self,
        servers: Sequence[str],
        *,
        name: str,
        user: str | None = None,
        password: str | None = None,
        inbox_prefix: str = "_INBOX",
        authority: Path | None = None,
    ) -> None:
        """`servers` are URLs, `nats://host:port`, or `tls://host:port` where each must prove its
        name by a certificate; `name` is what the server's monitoring shows; `inbox_prefix` is where
        the user may subscribe; `authority` whose certificates are trusted (PEM): OpenSSL's own
        choice where there is none, which `SSL_CERT_FILE` names. Raises OSError where it cannot be
        read.
        """
        self._encrypts = any(server.startswith(ENCRYPTED) for server in servers)
        if self._encrypts and not all(server.startswith(ENCRYPTED) for server in servers):
            raise ValueError("servers by tls:// and by nats:// are not one cluster")
        self._options: dict[str, Any] = {
            "servers": list(servers),
            "name": name,
            "user": user,
            "password": password,
            "inbox_prefix": inbox_prefix,
            "error_cb": self._on_error,
            "disconnected_cb": self._on_disconnected,
            "reconnected_cb": self._on_reconnected,
            "closed_cb": self._on_closed,
            "pending_size": 0,
            "max_reconnect_attempts": -1,
            "connect_timeout": CONNECT_TIMEOUT_S,
            "reconnect_time_wait": RECONNECT_PAUSE_S,
            "ping_interval": PING_INTERVAL_S,
            "max_outstanding_pings": PINGS_UNANSWERED,
        }
        if self._encrypts:
            self._options["tls"] = ssl.create_default_context(cafile=authority)
        self._problem: Exception | None = None
        """What the last attempt to connect met."""
        self._inbox = f"{inbox_prefix}.{uuid4().hex}"
        self._client: Client | None = None
        self._up = asyncio.Event()
        self._closing = False
        self._replacing: asyncio.Task[None] | None = None
        self._requests: dict[str, tuple[str, asyncio.Future[Msg]]] = {}
        self._next_request = 0
        self._lost_listeners: list[Callable[[], None]] = []

    async def open(self, *, wait_s: float) -> None:
        """Connect for the first time. Raises LogUnavailable after `wait_s` seconds."""
        try:
            await asyncio.wait_for(self._connect(), wait_s)
        except (TimeoutError, nats_errors.Error, OSError) as error:
            met = self._problem if isinstance(error, TimeoutError) and self._problem else error
            raise LogUnavailable(f"no connection to NATS: {_words(met)}") from error

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection just now, as far as this side knows."""
        return self._up.is_set()

    @property
    def max_payload(self) -> int:
        """What the server takes in one message, headers included, bytes."""
        return self._client.max_payload if self._client is not None else 0

    async def wait_connected(self, *, wait_s: float) -> None:
        """Wait for the connection. Raises NotSent after `wait_s` seconds or when closed."""
        if not self._up.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._up.wait(), wait_s)
        if self._closing or not self._up.is_set():
            raise NotSent

    async def request(
        self,
        subject: str,
        payload: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        wait_s: float,
    ) -> Msg:
        """Send one message and wait for its answer; it is sent once at most.

        Raises NotSent, NotAnswered, Forbidden and TooLarge.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        if self._client is not None and self.max_payload > 0:
            size = len(payload) + header_bytes(headers)
            if size > self.max_payload:
                raise TooLarge(f"{size} bytes; the server takes {self.max_payload}")
        self._next_request += 1
        token = str(self._next_request)
        future: asyncio.Future[Msg] = loop.create_future()
        self._requests[token] = (subject, future)
        timer = loop.call_at(deadline, _give_up, future)
        try:
            await self._publish(subject, payload, f"{self._inbox}.{token}", headers, deadline)
            return await future
        finally:
            timer.cancel()
            del self._requests[token]
            if future.done() and not future.cancelled():
                future.exception()  # taken note of, where the publish itself failed

    async def publish(self, subject: str, payload: bytes, reply: str) -> None:
        """Send one message without waiting for anything. Raises NotSent when not connected."""
        await self._publish(subject, payload, reply, None, asyncio.get_running_loop().time())

    async def subscribe(self, handle: Callable[[Msg], None]) -> tuple[str, Subscription]:
        """Listen on a new inbox; its subject and the subscription.

        `handle` gets every message as it comes, must not fail and must not wait. The subscription
        does not outlive the client: whoever holds it starts anew when `when_lost` says so.
        """
        if self._client is None:
            raise NotSent
        self._next_request += 1
        subject = f"{self._options['inbox_prefix']}.{uuid4().hex}"

        async def receive(message: Msg) -> None:
            handle(message)

        try:
            # No limits here: what may be under way is bounded by what the reader asks for.
            subscription = await self._client.subscribe(
                subject, cb=receive, pending_msgs_limit=0, pending_bytes_limit=0
            )
        except nats_errors.Error as error:
            raise NotSent from error
        return subject, subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Stop listening; a subscription that is gone already is no error."""
        with contextlib.suppress(nats_errors.Error):
            await subscription.unsubscribe()

    def when_lost(self, listener: Callable[[], None]) -> None:
        """Have `listener` called whenever the connection breaks or is closed."""
        self._lost_listeners.append(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        """Undo `when_lost`."""
        self._lost_listeners.remove(listener)

    @property
    def is_closing(self) -> bool:
        """Whether `close` was called."""
        return self._closing

    async def close(self) -> None:
        """Let go of the connection; what waits fails at once."""
        self._closing = True
        self._fail_waiting()
        if self._replacing is not None:
            self._replacing.cancel()
        if self._client is not None:
            await self._client.close()
        self._up.set()  # whoever waits for a connection shall see that none will come

    async def _connect(self) -> None:
        client = _EncryptedClient() if self._encrypts else Client()
        await client.connect(**self._options)
        # No limits: a reply that is dropped would be an append of unknown outcome.
        await client.subscribe(
            f"{self._inbox}.*", cb=self._on_reply, pending_msgs_limit=0, pending_bytes_limit=0
        )
        self._client = client
        self._up.set()

    async def _publish(
        self,
        subject: str,
        payload: bytes,
        reply: str,
        headers: Mapping[str, str] | None,
        deadline: float,
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self.wait_connected(wait_s=deadline - loop.time())
            if self._client is None:
                raise NotSent
            try:
                await self._client.publish(
                    subject, payload, reply=reply, headers=dict(headers) if headers else None
                )
            except (nats_errors.OutboundBufferLimitError, nats_errors.ConnectionClosedError):
                # Broken, and nobody has been told yet: nothing was sent, wait for the next one.
                self._up.clear()
            except nats_errors.Error as error:
                raise NotSent from error
            else:
                return

    async def _on_reply(self, message: Msg) -> None:
        waiting = self._requests.get(message.subject.rpartition(".")[2])
        if waiting is not None and not waiting[1].done():
            waiting[1].set_result(message)

    async def _on_error(self, error: Exception) -> None:
        forbidden = FORBIDDEN.search(str(error))
        if forbidden is None:
            # By whom one is answered is worth a word; that nobody answers is tried again.
            untrusted = isinstance(error, ssl.SSLError | NotEncrypted)
            fresh = self._problem is None or _words(self._problem) != _words(error)
            level = logging.WARNING if untrusted and fresh else logging.INFO
            logger.log(level, "nats: %s", _words(error))
            self._problem = error
            self._close_failed_attempt()
            return
        subject = forbidden.group(1).lower()
        logger.warning("nats: not allowed to publish to %s", subject)
        for asked, future in self._requests.values():
            if asked.lower() == subject and not future.done():
                future.set_exception(Forbidden(f"this user may not publish to {asked}"))

    def _close_failed_attempt(self) -> None:
        if self._client is not None and not self._client.is_connected:
            transport: Any = self._client._transport  # noqa: SLF001 -- nobody else closes it
            if transport is not None:
                transport.close()

    async def _on_disconnected(self) -> None:
        self._up.clear()
        self._fail_waiting()

    async def _on_reconnected(self) -> None:
        self._up.set()

    async def _on_closed(self) -> None:
        self._up.clear()
        self._fail_waiting()
        if not self._closing and self._client is not None:
            self._client = None
            self._replacing = asyncio.create_task(self._replace())

    async def _replace(self) -> None:
        while not self._closing:
            try:
                await self._connect()
            except (nats_errors.Error, OSError) as error:
                logger.warning("nats: %s", error)
                await asyncio.sleep(RECONNECT_PAUSE_S)
            else:
                return

    def _fail_waiting(self) -> None:
        for _, future in self._requests.values():
            if not future.done():
                future.set_exception(NotAnswered("the connection broke"))
        for listener in list(self._lost_listeners):
            listener()


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _give_up(future: asyncio.Future[Msg]) -> None:
    if not future.done():
        future.set_exception(NotAnswered("no answer in time"))
