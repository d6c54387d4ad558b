"""Engines of projections: SQLite by default, PostgreSQL in production."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util import await_only

from services.kernel.event import InvariantViolated, Position

BUSY_MS = 5_000
"""How long SQLite waits for another process's write: its longest transaction is a batch."""
WAL_AGAIN_S = 0.02
"""How long to wait before asking again for SQLite's write-ahead log."""
CONNECT_S = 5.0
"""How long a connection to PostgreSQL may take to be made."""
COMMAND_S = 30.0
"""How long one statement there may take: a page of rows takes milliseconds, and a server that
stands still with its connections open would hold up a projection for ever."""
POOL = 4
POOL_MORE = 8
"""Connections of a projection that are kept, and more of them that are made when many ask at once:
its one writer, and queries of a few milliseconds each."""
IMMEDIATE = "sabot_immediate"
"""Execution option: the next transaction takes SQLite's write lock at its beginning."""

KeyInteger = BigInteger().with_variant(Integer(), "sqlite")
"""64 bits. On SQLite a primary key of this type is the row's own number and costs no second
index."""

_INDEX_BITS = 10
_SEQUENCE_BITS = 40
_MAX_INDEX = (1 << _INDEX_BITS) - 1
_MAX_SEQUENCE = (1 << _SEQUENCE_BITS) - 1
_MAX_SEGMENT = (1 << (63 - _INDEX_BITS - _SEQUENCE_BITS)) - 1


def position_key(position: Position) -> int:
    """A position as one integer of 63 bits that sorts like it: segment · 2^50 + sequence · 2^10 +
    index.

    An index above 1,023 (an entry holds at most 800 events) means the end of the entry.
    """
    segment, sequence, index = position
    if sequence > _MAX_SEQUENCE or segment > _MAX_SEGMENT:
        raise InvariantViolated(f"position {position} does not fit a key")
    return (
        (segment << (_INDEX_BITS + _SEQUENCE_BITS))
        | (sequence << _INDEX_BITS)
        | min(index, _MAX_INDEX)
    )


def position_of_key(key: int) -> Position:
    """The position of a key."""
    return Position(
        key >> (_INDEX_BITS + _SEQUENCE_BITS),
        (key >> _INDEX_BITS) & _MAX_SEQUENCE,
        key & _MAX_INDEX,
    )


def is_away(error: BaseException) -> bool:
    """Whether an error says that the database cannot be used now, rather than that a row is
    wrong."""
    if isinstance(error, DBAPIError):
        return not isinstance(
            error, DataError | IntegrityError | NotSupportedError | ProgrammingError
        )
    return isinstance(error, OSError | PoolTimeoutError | sqlite3.OperationalError)


def open_engine(
    url: str | URL,
    *,
    busy_ms: int = BUSY_MS,
    pool: int = POOL + POOL_MORE,
    answer_s: float | None = None,
) -> AsyncEngine:
    """An engine for `sqlite+aiosqlite:///…` or `postgresql+asyncpg://…`. It connects when used.

    At PostgreSQL `?schema=name` says where the tables are: services share a database and nothing
    in it. `pool`: connections at most; `answer_s`: how long a statement may take, seconds
    (COMMAND_S)."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(parsed, busy_ms)
    return _open_postgresql(parsed, pool, COMMAND_S if answer_s is None else answer_s)


def schema_of(url: str | URL) -> str:
    """The schema that a URL names; empty where it names none."""
    named = make_url(url).query.get("schema", "")
    return named if isinstance(named, str) else ""


def reading(engine: AsyncEngine) -> AsyncEngine:
    """The engine for queries: every statement of a connection sees the same state of the rows. At
    SQLite that is so for every transaction."""
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _open_postgresql(url: URL, pool: int, answer_s: float) -> AsyncEngine:
    schema = schema_of(url)
    settings = {"application_name": f"sabot {schema}".strip()}
    if schema:
        settings["search_path"] = schema
    return create_async_engine(
        url.difference_update_query(["schema"]),
        pool_size=min(POOL, pool),
        max_overflow=max(0, pool - POOL),
        connect_args={
            "timeout": CONNECT_S,
            "command_timeout": answer_s,
            "server_settings": settings,
        },
    )


def _open_sqlite(url: URL, busy_ms: int) -> AsyncEngine:
    engine = create_async_engine(url)

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:  # Any: the driver's own, untyped
        # The driver's habit of beginning a transaction only at a write would let two reads of one
        # transaction see different states.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={busy_ms}")
        # WAL: readers and the writer do not wait for one another. NORMAL: a power cut may lose the
        # last commits, whole ones, and they are read from the log again.
        _use_wal(cursor, busy_ms)
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get(IMMEDIATE, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _use_wal(cursor: Any, busy_ms: int) -> None:
    """Switch a database to its write-ahead log, for up to `busy_ms`: here SQLite does not wait for
    another connection by itself, it answers that the database is locked."""
    deadline = time.monotonic() + busy_ms / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() >= deadline:
                raise
            await_only(asyncio.sleep(WAL_AGAIN_S))
        else:
            return
