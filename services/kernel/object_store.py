"""A bucket of JetStream's object store, in the form that every client of NATS reads and writes: the
bytes of an object in pieces on `$O.<bucket>.C.<place>`, what it is on `$O.<bucket>.M.<name>`.

nats-py has a client of its own. This one is used because every request here ends soon and clearly
(see `nats_connection`), and because it asks for less. Objects have a closed list of names, each
with one place for its pieces, so that rights can be given object by object: an object is asked for
by its own subject, its pieces by a consumer that is filtered on theirs. The first piece of a new
object rolls the old ones up, so nobody needs the right to purge. Each piece is fenced by the one
before: of two writers one goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from nats.aio.msg import Msg

from services.kernel.fence import fence_headers
from services.kernel.jetstream import microseconds, stored_sequence
from services.kernel.jetstream_read import INACTIVE_S, NANOSECONDS
from services.kernel.log import AppendRefused, FenceLost, LogFull
from services.kernel.nats_connection import (
    Forbidden,
    NatsConnection,
    NotAnswered,
    NotSent,
    TooLarge,
)

CHUNK_BYTES = 128 * 1024
"""As every client of the object store cuts by default."""
CHUNKS_A_PULL = 64
"""Pieces that may be on their way at a time: 8 MiB."""
ASK_WAIT_S = 2.0
"""For one answer: the cluster may be between two leaders."""
ASK_TIMES = 3
"""So often is asked before the store counts as away."""
PULL_WAIT_S = 10.0
"""For the pieces of one pull."""
READER_SLOTS = 8
"""How many consumers a prefix may have on a bucket at a time: replicas read at their starts, for
seconds."""
ROLLUP = {"Nats-Rollup": "sub"}
"""What is stored with it takes the place of all that stood on its subject."""
STATUS = "Status"
NOT_FOUND = "404"
CONSUMER_TAKEN = frozenset({10013, 10148})
DIGEST = "SHA-256="


class StoreAway(Exception):
    """The bucket cannot be used now: not there, no leader, or not allowed."""


class StoreFull(Exception):
    """The bucket, or a disk, has no room for it."""


class StoreRaced(Exception):
    """Another writer writes the same object."""


class ObjectDamaged(Exception):
    """The pieces are not the object that was stored: being replaced just now, or damaged."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What is known of an object."""

    name: str
    place: str
    """Where its pieces are."""
    size: int
    chunks: int
    digest: bytes
    """SHA-256 of its bytes."""
    facts: Mapping[str, str]
    """What its writer says of it."""
    sequence: int
    """Of this saying, in the bucket's stream."""
    stored_us: int
    """When it was stored, by the server's clock, microseconds since 1970 UTC."""


def bucket_stream(bucket: str) -> str:
    """The stream of a bucket."""
    return f"OBJ_{bucket}"


def bucket_subjects(bucket: str) -> list[str]:
    """The subjects of a bucket: pieces, and what objects are."""
    return [f"$O.{bucket}.C.>", f"$O.{bucket}.M.>"]


def bucket_definition(bucket: str, *, replicas: int, max_bytes: int) -> dict[str, Any]:
    """The configuration of a bucket's stream, as JetStream wants it. `max_bytes` bounds it: what
    does not fit is refused, and what is there stays."""
    return {
        "name": bucket_stream(bucket),
        "subjects": bucket_subjects(bucket),
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "discard": "new",
        "max_age": 0,
        "max_msgs": -1,
        "max_msgs_per_subject": -1,
        "max_bytes": max_bytes,
        "max_msg_size": 2 * CHUNK_BYTES,
        "deny_delete": True,
        # A roll-up is a purge of one subject, as the server sees it.
        "deny_purge": False,
        "allow_rollup_hdrs": True,
        "allow_direct": True,
        "compression": "none",
        "sealed": False,
    }


def chunk_subject(bucket: str, place: str) -> str:
    """Where pieces are."""
    return f"$O.{bucket}.C.{place}"


def meta_subject(bucket: str, name: str) -> str:
    """Where it is said what an object is."""
    return f"$O.{bucket}.M.{urlsafe_b64encode(name.encode()).decode()}"


def ask_subject(bucket: str, subject: str) -> str:
    """Asks for the last message of a subject."""
    return f"$JS.API.DIRECT.GET.{bucket_stream(bucket)}.{subject}"


def reader_names(prefix: str) -> list[str]:
    """All the names of consumers that a reader with this prefix may use."""
    return [f"{prefix}_{slot}" for slot in range(READER_SLOTS)]


class ObjectBucket:
    """See the module. `consumer_prefix`: see `reader_names`."""

    def __init__(self, connection: NatsConnection, bucket: str, *, consumer_prefix: str) -> None:
        self._connection = connection
        self._bucket = bucket
        self._stream = bucket_stream(bucket)
        self._names = reader_names(consumer_prefix)

    async def room(self) -> int:
        """Bytes that still fit. Raises StoreAway."""
        told = json.loads((await self._ask(f"$JS.API.STREAM.INFO.{self._stream}", b"")).data)
        if "error" in told:
            raise StoreAway(str(told["error"].get("description")))
        most = int(told["config"]["max_bytes"])
        return max(0, most - int(told["state"]["bytes"])) if most > 0 else 1 << 62

    async def find(self, name: str) -> StoredObject | None:
        """What is stored under a name; None: nothing that can be read. A server that is behind may
        tell of an older one. Raises StoreAway."""
        last = await self._last(meta_subject(self._bucket, name))
        return None if last is None else _object_of(last)

    async def put(self, name: str, raw: bytes, facts: Mapping[str, str]) -> None:
        """Store an object in place of the one of that name, with one piece on its way at a time:
        the log's own appends go first. While it is written the old one is damaged.

        Raises StoreAway, StoreFull, StoreRaced."""
        subject = chunk_subject(self._bucket, name)
        last = await self._last(subject)
        fence = _sequence_of(last) if last is not None else 0
        chunks = 0
        for chunk in _chunks(raw):
            headers = fence_headers(fence) | (ROLLUP if chunks == 0 else {})
            fence = await self._store(subject, chunk, headers)
            chunks += 1
        told = {
            "name": name,
            "bucket": self._bucket,
            "nuid": name,
            "size": len(raw),
            "chunks": chunks,
            "digest": DIGEST + urlsafe_b64encode(hashlib.sha256(raw).digest()).decode(),
            "options": {"max_chunk_size": CHUNK_BYTES},
            "metadata": dict(facts),
        }
        await self._store(meta_subject(self._bucket, name), json.dumps(told).encode(), ROLLUP)

    async def get(self, one: StoredObject) -> bytes:
        """An object's bytes, as they were stored. Raises StoreAway and ObjectDamaged."""
        if one.chunks == 0:
            return b""
        told = ObjectDamaged("nothing came")
        for _ in range(ASK_TIMES):
            try:
                raw = await self._pieces(one)
            except ObjectDamaged as damaged:
                told = damaged
                continue
            if len(raw) == one.size and hashlib.sha256(raw).digest() == one.digest:
                return raw
            told = ObjectDamaged(f"{one.name}: its bytes are not those that were stored")
        raise told

    # ---- messages ------------------------------------------------------------------------------

    async def _last(self, subject: str) -> Msg | None:
        """The last message of a subject."""
        answer = await self._ask(ask_subject(self._bucket, subject), b"")
        status = (answer.headers or {}).get(STATUS)
        if status is None:
            return answer
        if status == NOT_FOUND:
            return None
        raise StoreAway(f"the bucket {self._bucket} is not there")

    async def _ask(self, subject: str, payload: bytes) -> Msg:
        """An answer to what changes nothing: asked again where there is none."""
        told = ""
        for _ in range(ASK_TIMES):
            try:
                answer = await self._connection.request(subject, payload, wait_s=ASK_WAIT_S)
            except (NotSent, NotAnswered) as error:
                told = str(error) or "no connection"
                continue
            except Forbidden as error:
                raise StoreAway(str(error)) from error
            if answer.data or STATUS in (answer.headers or {}):
                return answer
            told = "nobody answers"
        raise StoreAway(told)

    async def _store(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> int:
        """Store one message; its sequence. It is sent once: whoever does not hear of it begins
        anew, with another object's place or later."""
        try:
            reply = await self._connection.request(
                subject, payload, headers=headers, wait_s=ASK_WAIT_S
            )
            sequence, unclear = stored_sequence(reply.data, self._stream)
        except FenceLost as error:
            raise StoreRaced(f"{subject}: {error}") from error
        except LogFull as error:
            raise StoreFull(str(error)) from error
        except (NotSent, NotAnswered, Forbidden, TooLarge, AppendRefused) as error:
            raise StoreAway(str(error) or "no connection") from error
        if sequence is None:
            raise StoreAway(unclear)
        return sequence

    # ---- pieces --------------------------------------------------------------------------------

    async def _pieces(self, one: StoredObject) -> bytes:
        """All pieces, in their order. Raises StoreAway and ObjectDamaged."""
        arrived: asyncio.Queue[Msg | None] = asyncio.Queue()

        def lost() -> None:
            arrived.put_nowait(None)

        self._connection.when_lost(lost)
        try:
            inbox, subscription = await self._connection.subscribe(arrived.put_nowait)
        except NotSent as error:
            self._connection.forget(lost)
            raise StoreAway("no connection") from error
        consumer, pieces = "", list[bytes]()
        try:
            consumer = await self._make_consumer(chunk_subject(self._bucket, one.place))
            while len(pieces) < one.chunks:
                asked = min(CHUNKS_A_PULL, one.chunks - len(pieces))
                await self._pull(consumer, inbox, asked)
                async with asyncio.timeout(PULL_WAIT_S):
                    for _ in range(asked):
                        pieces.append(_piece_of(await arrived.get(), one))
        except TimeoutError as error:
            raise ObjectDamaged(f"{one.name}: {len(pieces)} of {one.chunks} pieces came") from error
        except NotSent as error:
            raise StoreAway("no connection") from error
        else:
            return b"".join(pieces)
        finally:
            self._connection.forget(lost)
            await self._connection.unsubscribe(subscription)
            await self._end_consumer(consumer, inbox)

    async def _make_consumer(self, subject: str) -> str:
        for name in self._names:
            config = {
                "name": name,
                "filter_subject": subject,
                "deliver_policy": "all",
                "ack_policy": "none",
                "replay_policy": "instant",
                "mem_storage": True,
                "num_replicas": 1,
                "inactive_threshold": int(INACTIVE_S * NANOSECONDS),
                "metadata": {"reader": uuid4().hex},
            }
            request = {"stream_name": self._stream, "action": "create", "config": config}
            asked = f"$JS.API.CONSUMER.CREATE.{self._stream}.{name}.{subject}"
            answer = json.loads((await self._ask(asked, json.dumps(request).encode())).data)
            error = answer.get("error")
            if error is None:
                return name
            if error.get("err_code") not in CONSUMER_TAKEN:
                raise StoreAway(str(error.get("description")))
        raise StoreAway("all names of this reader are in use")

    async def _pull(self, consumer: str, inbox: str, pieces: int) -> None:
        # All of them are there; where they are not, the server says so at once.
        request = {"batch": pieces, "no_wait": True}
        await self._connection.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{consumer}",
            json.dumps(request).encode(),
            inbox,
        )

    async def _end_consumer(self, consumer: str, inbox: str) -> None:
        """Free the name at once; nobody waits for the answer."""
        if consumer:
            subject = f"$JS.API.CONSUMER.DELETE.{self._stream}.{consumer}"
            try:
                await self._connection.publish(subject, b"", inbox)
            except NotSent:
                return  # the server does, after `INACTIVE_S`


def _chunks(raw: bytes) -> Iterator[bytes]:
    for at in range(0, len(raw), CHUNK_BYTES):
        yield raw[at : at + CHUNK_BYTES]


def _piece_of(message: Msg | None, one: StoredObject) -> bytes:
    if message is None:
        raise StoreAway("the connection broke")
    if not message.reply.startswith("$JS.ACK."):
        raise ObjectDamaged(f"{one.name}: fewer than {one.chunks} pieces are there")
    return message.data


def _sequence_of(message: Msg) -> int:
    return int((message.headers or {})["Nats-Sequence"])


def _object_of(message: Msg) -> StoredObject | None:
    """What an object is, as its writer said; None: it was removed, or this cannot be read."""
    headers = message.headers or {}
    try:
        told = json.loads(message.data)
        if told.get("deleted"):
            return None
        algorithm, _, digest = str(told["digest"]).partition("=")
        if f"{algorithm}=" != DIGEST:
            return None
        facts = {str(key): str(value) for key, value in told.get("metadata", {}).items()}
        return StoredObject(
            name=str(told["name"]),
            place=str(told["nuid"]),
            size=int(told["size"]),
            chunks=int(told["chunks"]),
            digest=urlsafe_b64decode(digest),
            facts=facts,
            sequence=_sequence_of(message),
            stored_us=microseconds(headers["Nats-Time-Stamp"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
