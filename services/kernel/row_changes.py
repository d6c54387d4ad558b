"""What a batch of events changes in a projection's tables: gathered by primary key, written by the
thousand.

Twenty events may touch one row; it is written once. Everything is SQLAlchemy Core with
`executemany`; the only thing that differs between databases, the upsert, is asked of the dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Delete, Insert, Table, Update, bindparam, delete, insert, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

ROWS_A_STATEMENT = 400
"""Rows of one `executemany`: SQLAlchemy prepares them on the event loop, so that a slice must be
over in a few milliseconds; beyond some hundreds nothing is gained."""

Key = tuple[Any, ...]
"""Values of a table's primary key, in the order of its columns."""
Row = dict[str, Any]

_PREFIX = "key_"
"""Before the names of key parameters, so that they do not meet those of values."""


class TableChanges:
    """The changes of one table."""

    __slots__ = ("added", "deleted", "inserted", "saved", "updated")

    def __init__(self) -> None:
        self.inserted: dict[Key, Row] = {}
        self.saved: dict[Key, Row] = {}
        self.updated: dict[Key, Row] = {}
        self.added: dict[Key, tuple[Row, Row]] = {}
        self.deleted: set[Key] = set()

    def insert(self, key: Key, row: Row) -> None:
        """A row that is new by its nature, such as one keyed by a log position."""
        self.inserted[key] = row

    def save(self, key: Key, row: Row) -> None:
        """A whole row, whether it is there already or not."""
        self.deleted.discard(key)
        self.updated.pop(key, None)
        self.added.pop(key, None)
        if key in self.inserted:
            self.inserted[key] = row
        else:
            self.saved[key] = row

    def update(self, key: Key, values: Row) -> None:
        """Some columns of a row that is there, or comes in this batch; no effect where it is
        not."""
        row = self.inserted.get(key) or self.saved.get(key)
        if row is not None:
            row.update(values)
            return
        known = self.updated.get(key)
        if known is None:
            self.updated[key] = values
        else:
            known.update(values)

    def add(self, key: Key, amounts: Row, values: Row) -> None:
        """Add amounts to some columns of a row that is there, or comes in this batch, and set
        others. A column is either added to or set, never both."""
        row = self.inserted.get(key) or self.saved.get(key)
        if row is None:
            known = self.added.get(key)
            if known is None:
                self.added[key] = (amounts, values)
                return
            row = known[0]
            known[1].update(values)
        else:
            row.update(values)
        for column, amount in amounts.items():
            row[column] = row.get(column, 0) + amount

    def delete(self, key: Key) -> None:
        """Take a row out; one that came in this batch is never written."""
        if self.inserted.pop(key, None) is not None:
            return
        self.saved.pop(key, None)
        self.updated.pop(key, None)
        self.added.pop(key, None)
        self.deleted.add(key)


class Changes:
    """The changes of all tables of a projection."""

    __slots__ = ("_tables",)

    def __init__(self) -> None:
        self._tables: dict[Table, TableChanges] = {}

    def __getitem__(self, table: Table) -> TableChanges:
        """The changes of a table, to add to them."""
        found = self._tables.get(table)
        if found is None:
            found = self._tables[table] = TableChanges()
        return found

    def rows(self) -> int:
        """How many rows will be written or taken out."""
        return sum(
            len(one.inserted)
            + len(one.saved)
            + len(one.updated)
            + len(one.added)
            + len(one.deleted)
            for one in self._tables.values()
        )

    async def write(self, connection: AsyncConnection) -> None:
        """Write everything, in the caller's transaction. It may be written again after a
        rollback."""
        dialect = connection.dialect.name
        for table, changes in self._tables.items():
            names = tuple(column.name for column in table.primary_key)
            if changes.deleted:
                rows = [_keyed(names, key, {}) for key in changes.deleted]
                await _execute(connection, _delete(table), rows)
            if changes.inserted:
                await _execute(connection, _insert(table), list(changes.inserted.values()))
            if changes.saved:
                await _execute(connection, _save(table, dialect), list(changes.saved.values()))
            for columns, group in _by_columns(changes.updated):
                rows = [_keyed(names, key, values) for key, values in group]
                await _execute(connection, _update(table, columns), rows)
            for (amounts, values), pairs in _by_both(changes.added):
                rows = [_keyed(names, key, {**one, **other}) for key, (one, other) in pairs]
                await _execute(connection, _add(table, amounts, values), rows)


async def _execute(
    connection: AsyncConnection, statement: Delete | Insert | Update, rows: Sequence[Row]
) -> None:
    for start in range(0, len(rows), ROWS_A_STATEMENT):
        await connection.execute(statement, rows[start : start + ROWS_A_STATEMENT])


def _keyed(names: tuple[str, ...], key: Key, values: Row) -> Row:
    row = dict(values)
    for name, value in zip(names, key, strict=True):
        row[_PREFIX + name] = value
    return row


def _by_columns(
    changed: Mapping[Key, Row],
) -> Iterator[tuple[tuple[str, ...], list[tuple[Key, Row]]]]:
    """Rows in groups that change the same columns, for one statement each."""
    groups: dict[tuple[str, ...], list[tuple[Key, Row]]] = {}
    for key, values in changed.items():
        groups.setdefault(tuple(values), []).append((key, values))
    yield from groups.items()


def _by_both(
    added: Mapping[Key, tuple[Row, Row]],
) -> Iterator[tuple[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[Key, tuple[Row, Row]]]]]:
    """The same for rows that are added to: by the columns added to and those set."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[Key, tuple[Row, Row]]]] = {}
    for key, (amounts, values) in added.items():
        names = tuple(amounts), tuple(values)
        groups.setdefault(names, []).append((key, (amounts, values)))
    yield from groups.items()


@lru_cache(maxsize=256)
def _insert(table: Table) -> Insert:
    return insert(table)


def upsert(table: Table, dialect: str) -> sqlite.Insert | postgresql.Insert:
    """The INSERT of a database that knows ON CONFLICT. Raises ValueError for any other."""
    match dialect:
        case "sqlite":
            return sqlite.insert(table)
        case "postgresql":
            return postgresql.insert(table)
        case _:
            raise ValueError(f"projections are not kept in {dialect}")


@lru_cache(maxsize=256)
def _save(table: Table, dialect: str) -> Insert:
    """An upsert of whole rows."""
    statement = upsert(table, dialect)
    keys = [column.name for column in table.primary_key]
    others = {
        column.name: statement.excluded[column.name]
        for column in table.columns
        if column.name not in keys
    }
    if not others:
        return statement.on_conflict_do_nothing(index_elements=keys)
    return statement.on_conflict_do_update(index_elements=keys, set_=others)


@lru_cache(maxsize=1024)
def _update(table: Table, columns: tuple[str, ...]) -> Update:
    return (
        update(table)
        .where(*(column == bindparam(_PREFIX + column.name) for column in table.primary_key))
        .values({name: bindparam(name) for name in columns})
    )


@lru_cache(maxsize=1024)
def _add(table: Table, amounts: tuple[str, ...], values: tuple[str, ...]) -> Update:
    return (
        update(table)
        .where(*(column == bindparam(_PREFIX + column.name) for column in table.primary_key))
        .values(
            {name: table.c[name] + bindparam(name) for name in amounts}
            | {name: bindparam(name) for name in values}
        )
    )


@lru_cache(maxsize=256)
def _delete(table: Table) -> Delete:
    return delete(table).where(
        *(column == bindparam(_PREFIX + column.name) for column in table.primary_key)
    )
