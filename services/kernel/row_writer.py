"""Writes row changes: many rows with every statement.

SQLite runs in a thread that takes the interpreter's lock once a step. With one row a step
(`executemany`) a busy event loop lets it write some hundred rows a second; with hundreds of rows a
statement it does not matter how busy the loop is. So rows go to SQLite as long VALUES lists, and to
PostgreSQL, whose driver sends an `executemany` in one go, as that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import aiosqlite
from sqlalchemy import Delete, Insert, Table, Update, bindparam, delete, insert, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from services.kernel.row_changes import (
    Changes,
    Key,
    TableChanges,
    additions_by_columns,
    updates_by_columns,
)

ROWS_A_STATEMENT = 1_000
"""The event loop prepares them in one go, in less than a millisecond."""
VALUES_A_STATEMENT = 30_000
"""SQLite takes 32,766 parameters in a statement."""

_PREFIX = "key_"
"""Before the names of key parameters, so that they do not meet those of values."""


async def write(connection: AsyncConnection, changes: Changes) -> None:
    """Write everything, in the caller's transaction. After a rollback it may be written again."""
    if connection.dialect.name == "sqlite":
        driver = (await connection.get_raw_connection()).driver_connection
        if not isinstance(driver, aiosqlite.Connection):
            raise TypeError(f"SQLite by {type(driver).__name__}")
        for table, one in changes.tables.items():
            await _write_lists(driver, table, one)
    else:
        for table, one in changes.tables.items():
            await _write_many(connection, table, one)


def upsert(table: Table, dialect: str) -> sqlite.Insert | postgresql.Insert:
    """The INSERT of a database that knows ON CONFLICT. Raises ValueError for any other."""
    match dialect:
        case "sqlite":
            return sqlite.insert(table)
        case "postgresql":
            return postgresql.insert(table)
        case _:
            raise ValueError(f"projections are not kept in {dialect}")


# ---- SQLAlchemy's statements, for any database -------------------------------------------------


async def _write_many(connection: AsyncConnection, table: Table, changes: TableChanges) -> None:
    keys = _key_names(table)
    names = tuple(column.name for column in table.columns)
    if changes.deleted:
        await _execute(connection, _delete(table), _named(_parameters(keys), changes.deleted))
    if changes.appended:
        await _execute(connection, _insert(table), _named(names, changes.appended))
    if changes.inserted:
        await _execute(connection, _insert(table), list(changes.inserted.values()))
    if changes.saved:
        statement = _save(table, connection.dialect.name)
        await _execute(connection, statement, list(changes.saved.values()))
    for columns, rows in updates_by_columns(changes.updated):
        named = _named((*_parameters(keys), *columns), rows)
        await _execute(connection, _update(table, (), columns), named)
    for amounts, columns, rows in additions_by_columns(changes.added):
        named = _named((*_parameters(keys), *amounts, *columns), rows)
        await _execute(connection, _update(table, amounts, columns), named)


async def _execute(
    connection: AsyncConnection, statement: Delete | Insert | Update, rows: list[dict[str, Any]]
) -> None:
    for start in range(0, len(rows), ROWS_A_STATEMENT):
        await connection.execute(statement, rows[start : start + ROWS_A_STATEMENT])


def _key_names(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.primary_key)


def _parameters(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(_PREFIX + name for name in keys)


def _named(names: Sequence[str], rows: Sequence[Key] | set[Key]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


@lru_cache(maxsize=256)
def _insert(table: Table) -> Insert:
    return insert(table)


@lru_cache(maxsize=256)
def _save(table: Table, dialect: str) -> Insert:
    """An upsert of whole rows."""
    statement = upsert(table, dialect)
    keys = _key_names(table)
    others = {
        column.name: statement.excluded[column.name]
        for column in table.columns
        if column.name not in keys
    }
    if not others:
        return statement.on_conflict_do_nothing(index_elements=keys)
    return statement.on_conflict_do_update(index_elements=keys, set_=others)


@lru_cache(maxsize=1024)
def _update(table: Table, amounts: tuple[str, ...], columns: tuple[str, ...]) -> Update:
    """Adds to the columns `amounts`, and sets `columns`."""
    return (
        update(table)
        .where(*(column == bindparam(_PREFIX + column.name) for column in table.primary_key))
        .values(
            {name: table.c[name] + bindparam(name) for name in amounts}
            | {name: bindparam(name) for name in columns}
        )
    )


@lru_cache(maxsize=256)
def _delete(table: Table) -> Delete:
    return delete(table).where(
        *(column == bindparam(_PREFIX + column.name) for column in table.primary_key)
    )


# ---- long VALUES lists, for SQLite -------------------------------------------------------------


class _Listed(NamedTuple):
    """A statement around a list of rows, each of which is `width` parameters."""

    before: str
    after: str
    width: int


async def _write_lists(
    connection: aiosqlite.Connection, table: Table, changes: TableChanges
) -> None:
    names = tuple(column.name for column in table.columns)
    values_of: Callable[[dict[str, Any]], Key] = itemgetter(*names)
    if changes.deleted:
        await _execute_list(connection, _listed_delete(table), list(changes.deleted))
    if changes.appended:
        await _execute_list(connection, _listed_insert(table, None), changes.appended)
    if changes.inserted:
        rows = list(map(values_of, changes.inserted.values()))
        await _execute_list(connection, _listed_insert(table, None), rows)
    if changes.saved:
        rows = list(map(values_of, changes.saved.values()))
        await _execute_list(connection, _listed_insert(table, "sqlite"), rows)
    for columns, rows in updates_by_columns(changes.updated):
        await _execute_list(connection, _listed_update(table, (), columns), rows)
    for amounts, columns, rows in additions_by_columns(changes.added):
        await _execute_list(connection, _listed_update(table, amounts, columns), rows)


async def _execute_list(connection: aiosqlite.Connection, listed: _Listed, rows: list[Key]) -> None:
    before, after, width = listed
    one = f"({', '.join('?' * width)})"
    count = min(ROWS_A_STATEMENT, VALUES_A_STATEMENT // width)
    for start in range(0, len(rows), count):
        part = rows[start : start + count]
        statement = f"{before}{', '.join([one] * len(part))}{after}"
        # One visit to the driver's thread instead of SQLAlchemy's three: each waits for a turn of
        # the event loop, which may be busy.
        await connection.execute_fetchall(statement, tuple(chain.from_iterable(part)))


_SQLITE = sqlite.dialect()
_quote = _SQLITE.identifier_preparer.quote


@lru_cache(maxsize=256)
def _listed_insert(table: Table, upserting: str | None) -> _Listed:
    """An INSERT of whole rows in the order of columns; `upserting`: an upsert of this dialect."""
    statement = _save(table, upserting) if upserting else _insert(table)
    names = [column.name for column in table.columns]
    text = str(statement.compile(dialect=_SQLITE, column_keys=names))
    one = f"({', '.join('?' * len(names))})"
    before, found, after = text.partition(one)
    if not found:
        raise ValueError(f"an INSERT without its values: {text}")
    return _Listed(before, after, len(names))


@lru_cache(maxsize=1024)
def _listed_update(table: Table, amounts: tuple[str, ...], columns: tuple[str, ...]) -> _Listed:
    keys = _key_names(table)
    target = _quote(table.name)
    names = [f"v{number}" for number in range(len(keys) + len(amounts) + len(columns))]
    new = iter(names)
    where = " AND ".join(f"{target}.{_quote(name)} = given.{next(new)}" for name in keys)
    sums = [f"{_quote(name)} = {target}.{_quote(name)} + given.{next(new)}" for name in amounts]
    sets = [f"{_quote(name)} = given.{next(new)}" for name in columns]
    return _Listed(
        f"WITH given({', '.join(names)}) AS (VALUES ",
        f") UPDATE {target} SET {', '.join(sums + sets)}"  # noqa: S608  # names of tables' columns
        f" FROM given WHERE {where}",
        len(names),
    )


@lru_cache(maxsize=256)
def _listed_delete(table: Table) -> _Listed:
    keys = _key_names(table)
    columns = ", ".join(_quote(name) for name in keys)
    return _Listed(
        f"DELETE FROM {_quote(table.name)} WHERE ({columns}) IN (VALUES ",  # noqa: S608  # as above
        ")",
        len(keys),
    )
