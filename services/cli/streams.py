"""The cell's stream on servers of one's own: what is wanted, what is there, and the way from one to
the other. Nothing is ever done that could take away what is written. And the bucket of snapshots
beside it, which is a cache."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.cli.secret_files import secret_in
from services.kernel.log import LogUnavailable
from services.kernel.nats_connection import Forbidden, NatsConnection, NotAnswered, NotSent
from services.kernel.nats_users import MAKER
from services.kernel.object_store import bucket_definition, bucket_stream
from services.kernel.shared_snapshots import BUCKET_BYTES, snapshot_bucket
from services.kernel.streams import (
    create_stream,
    deviations,
    find_named,
    require_stream,
    stream_definition,
    stream_name,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

WAIT_S = 60.0
"""For the servers: they may be starting too."""
ASK_WAIT_S = 1.0
"""For one answer; a cluster that has a leader gives it in milliseconds."""
ASK_PAUSE_S = 0.1
"""Between questions."""

UNLIMITED = -1

FIXED = frozenset({"name", "retention", "storage", "sealed"})
"""What JetStream changes of no stream that is there."""
KEPT_DENIED = frozenset({"deny_delete", "deny_purge"})
"""What JetStream allows on no stream again where it was denied."""


class What(Enum):
    """What there is to do about a stream."""

    NOTHING = "nothing"
    CREATE = "create"
    UPDATE = "update"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done. `changes` and `refused` are in words."""

    stream: str
    what: What
    changes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """What stands in the way: while there is anything, nothing is done."""
    config: Mapping[str, Any] | None = None
    """What the servers are asked for."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the log's servers are, and how the maker of streams connects."""

    urls: Sequence[str]
    user: str
    password_file: Path | None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[NatsConnection]:
        """A connection. Raises LogUnavailable and OSError."""
        password = secret_in(self.password_file) if self.password_file else None
        connection = NatsConnection(
            self.urls,
            name="sabot-streams",
            user=self.user or None,
            password=password,
            inbox_prefix=MAKER.inbox_prefix if self.user == MAKER.name else "_INBOX",
        )
        await connection.open(wait_s=WAIT_S)
        try:
            yield connection
        finally:
            await connection.close()


def _raised(have: Any, wanted: Any) -> bool:
    return bool(have < wanted)


def _more_room(have: Any, wanted: Any) -> bool:
    return bool(have > 0) and bool(wanted == UNLIMITED or wanted > have)


def _limit_lifted(have: Any, wanted: Any) -> bool:
    return bool(have > 0) and wanted in (0, UNLIMITED)


def _switched_on(have: Any, wanted: Any) -> bool:
    return bool(wanted and not have)


def _switched_off(have: Any, wanted: Any) -> bool:
    return bool(have and not wanted)


SAFE: Mapping[str, Callable[[Any, Any], bool]] = {
    "num_replicas": _raised,
    "max_bytes": _more_room,
    "max_age": _limit_lifted,
    "max_msgs": _limit_lifted,
    "max_msgs_per_subject": _limit_lifted,
    "discard": lambda have, wanted: (have, wanted) == ("old", "new"),
    "deny_delete": _switched_on,
    "deny_purge": _switched_on,
    "allow_rollup_hdrs": _switched_off,
    "allow_direct": _switched_off,
}
"""Settings that may be changed, each in the direction in which the log keeps at least as much.
Fewer replicas, less room or another storage could lose what is written: those are refused, and so
is everything that is not named here."""


def plan(
    config: Mapping[str, Any], cell: str, *, replicas: int, max_bytes: int | None, may_create: bool
) -> Plan:
    """What is to be done about a stream with this configuration; empty: there is none.

    `max_bytes` None: as it is. `may_create` is the caller's word that these servers have never held
    the stream: one that is made where another was lost would hide the loss."""
    name = stream_name(cell)
    if not config:
        room = UNLIMITED if max_bytes is None else max_bytes
        wanted = stream_definition(cell, replicas=replicas, max_bytes=room)
        if may_create:
            return Plan(name, What.CREATE, ("the stream is made",), config=wanted)
        why = "there is no stream; where there has never been one, say --create"
        return Plan(name, What.REFUSE, refused=(why,))
    told = deviations(config, cell, replicas=replicas, max_bytes=max_bytes)
    room = config.get("max_bytes", UNLIMITED) if max_bytes is None else max_bytes
    wanted = stream_definition(cell, replicas=replicas, max_bytes=room)
    changes, refused = [], []
    for one in told:
        setting = one.split(" ", 1)[0]
        have = config.get(setting)
        safe = SAFE.get(setting)
        can = safe is not None and have is not None and setting in wanted
        if can and safe is not None and safe(have, wanted[setting]):
            changes.append(one)
        else:
            refused.append(one)
    if refused:
        return Plan(name, What.REFUSE, tuple(changes), tuple(refused))
    if changes:
        return Plan(name, What.UPDATE, tuple(changes), config={**config, **wanted})
    return Plan(name, What.NOTHING)


async def planned(
    servers: Servers, cell: str, *, replicas: int, max_bytes: int | None, may_create: bool
) -> Plan:
    """What would be done on these servers."""
    async with servers.connected() as connection:
        config = await _found(connection, stream_name(cell))
    return plan(config, cell, replicas=replicas, max_bytes=max_bytes, may_create=may_create)


async def applied(
    servers: Servers, cell: str, *, replicas: int, max_bytes: int | None, may_create: bool
) -> Plan:
    """Do what is to be done, and look whether the stream is now as it must be. Raises StreamUnfit
    where it is not, and LogUnavailable."""
    async with servers.connected() as connection:
        config = await _found(connection, stream_name(cell))
        found = plan(config, cell, replicas=replicas, max_bytes=max_bytes, may_create=may_create)
        if found.what is What.REFUSE:
            return found
        if found.what is What.UPDATE and found.config is not None:
            await _update(connection, found.config)
        await require_stream(
            connection,
            cell,
            replicas=replicas,
            max_bytes=UNLIMITED if max_bytes is None else max_bytes,
            may_create=found.what is What.CREATE,
            wait_s=WAIT_S,
        )
    return found


# ---- the bucket of snapshots -------------------------------------------------------------------


def plan_bucket(
    config: Mapping[str, Any], cell: str, *, replicas: int, max_bytes: int | None
) -> Plan:
    """What is to be done about the bucket of snapshots: it is a cache, so it is made where it is
    not there, and whatever can be changed is. `max_bytes` None: as it is."""
    room = config.get("max_bytes", UNLIMITED) if max_bytes is None else max_bytes
    bucket = snapshot_bucket(cell)
    wanted = bucket_definition(
        bucket, replicas=replicas, max_bytes=room if room > 0 else BUCKET_BYTES
    )
    name = bucket_stream(bucket)
    if not config:
        return Plan(name, What.CREATE, ("the bucket of snapshots is made",), config=wanted)
    told = {
        key: f"{key} is {json.dumps(config.get(key))}, it must be {json.dumps(value)}"
        for key, value in wanted.items()
        if config.get(key, type(value)()) != value
    }
    kept = FIXED | {key for key in KEPT_DENIED if config.get(key)}
    if fixed := [words for key, words in told.items() if key in kept]:
        return Plan(name, What.REFUSE, refused=(*fixed, "delete it: what it holds is made again"))
    if told:
        return Plan(name, What.UPDATE, tuple(told.values()), config={**config, **wanted})
    return Plan(name, What.NOTHING)


async def bucket_planned(
    servers: Servers, cell: str, *, replicas: int, max_bytes: int | None
) -> Plan:
    """What would be done on these servers."""
    async with servers.connected() as connection:
        config = await _found(connection, bucket_stream(snapshot_bucket(cell)))
    return plan_bucket(config, cell, replicas=replicas, max_bytes=max_bytes)


async def bucket_applied(
    servers: Servers, cell: str, *, replicas: int, max_bytes: int | None
) -> Plan:
    """Do what is to be done about the bucket. Raises LogUnavailable."""
    async with servers.connected() as connection:
        config = await _found(connection, bucket_stream(snapshot_bucket(cell)))
        found = plan_bucket(config, cell, replicas=replicas, max_bytes=max_bytes)
        if found.what is What.CREATE and found.config is not None:
            await create_stream(connection, found.config, WAIT_S)
        elif found.what is What.UPDATE and found.config is not None:
            await _update(connection, found.config)
    return found


# ---- asking ------------------------------------------------------------------------------------


async def _found(connection: NatsConnection, stream: str) -> dict[str, Any]:
    """A stream's configuration. A cluster that has no leader yet answers nothing at all, not even
    later: it is asked again."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WAIT_S
    while True:
        try:
            return await find_named(connection, stream, wait_s=ASK_WAIT_S)
        except LogUnavailable:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(ASK_PAUSE_S)


async def _update(connection: NatsConnection, config: Mapping[str, Any]) -> None:
    try:
        reply = await connection.request(
            f"$JS.API.STREAM.UPDATE.{config['name']}", json.dumps(config).encode(), wait_s=WAIT_S
        )
    except (NotSent, NotAnswered, Forbidden) as error:
        raise LogUnavailable(f"the stream {config['name']}: {error}") from error
    problem = json.loads(reply.data).get("error")
    if problem is not None:
        raise LogUnavailable(f"the stream {config['name']}: {problem.get('description')}")


def lines(found: Plan) -> list[str]:
    """A plan for a person."""
    words = {
        What.NOTHING: "is as it must be",
        What.CREATE: "is not there and will be made",
        What.UPDATE: "needs changes, all of which keep what is written",
        What.REFUSE: "is not as it must be, and nothing will be done about it",
    }
    told = [f"{found.stream} {words[found.what]}"]
    told += [f"  change: {change}" for change in found.changes]
    told += [f"  refused: {refusal}" for refusal in found.refused]
    return told


def as_json(found: Plan) -> dict[str, Any]:
    """A plan for programs."""
    return {
        "stream": found.stream,
        "what": found.what.value,
        "changes": list(found.changes),
        "refused": list(found.refused),
    }
