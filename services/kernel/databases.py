"""Engines of projections: SQLite by default, PostgreSQL in production."""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from services.kernel.event import InvariantViolated, Position

BUSY_MS = 5_000
"""How long SQLite waits for another process's write: its longest transaction is a batch."""
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


def open_engine(url: str, *, busy_ms: int = BUSY_MS) -> AsyncEngine:
    """An engine for `sqlite+aiosqlite:///…` or `postgresql+asyncpg://…`. It connects when used."""
    engine = create_async_engine(url)
    if make_url(url).get_backend_name() == "sqlite":

        @event.listens_for(engine.sync_engine, "connect")
        def set_up(connection: Any, _record: Any) -> None:  # Any: the driver's own, untyped
            # The driver's habit of beginning a transaction only at a write would let two reads of
            # one transaction see different states.
            connection.isolation_level = None
            cursor = connection.cursor()
            # WAL: readers and the writer do not wait for one another. NORMAL: a power cut may lose
            # the last commits, whole ones, and they are read from the log again.
            for pragma in (f"busy_timeout={busy_ms}", "journal_mode=WAL", "synchronous=NORMAL"):
                cursor.execute(f"PRAGMA {pragma}")
            cursor.close()

        @event.listens_for(engine.sync_engine, "begin")
        def begin(connection: Connection) -> None:
            immediate = connection.get_execution_options().get(IMMEDIATE, False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine
