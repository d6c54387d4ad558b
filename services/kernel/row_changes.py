"""What a batch of events changes in a projection's tables, gathered by primary key: twenty events
may touch one row, and it is written once. `row_writer` writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Table

Key = tuple[Any, ...]
"""Values of a table's primary key, in the order of its columns."""
Row = dict[str, Any]


class TableChanges:
    """The changes of one table."""

    __slots__ = ("added", "appended", "deleted", "inserted", "saved", "updated")

    def __init__(self) -> None:
        self.appended: list[Key] = []
        self.inserted: dict[Key, Row] = {}
        self.saved: dict[Key, Row] = {}
        self.updated: dict[Key, Row] = {}
        self.added: dict[Key, tuple[Row, Row]] = {}
        self.deleted: set[Key] = set()

    def append(self, values: Key) -> None:
        """A row that is new by its nature and never changes: its values in the order of columns."""
        self.appended.append(values)

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
        """Some columns of a row that is there or comes in this batch; no effect where it is not."""
        row = self.inserted.get(key) or self.saved.get(key) or self.updated.get(key)
        if row is None:
            self.updated[key] = values
        else:
            row.update(values)

    def add(self, key: Key, amounts: Row, values: Row) -> None:
        """Add amounts to some columns of a row that is there or comes in this batch, and set
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

    def rows(self) -> int:
        """How many rows will be written or taken out."""
        kinds = (self.inserted, self.saved, self.updated, self.added, self.deleted)
        return len(self.appended) + sum(len(kind) for kind in kinds)


class Changes:
    """The changes of all tables of a projection."""

    __slots__ = ("tables",)

    def __init__(self) -> None:
        self.tables: dict[Table, TableChanges] = {}

    def __getitem__(self, table: Table) -> TableChanges:
        """The changes of a table, to add to them."""
        found = self.tables.get(table)
        if found is None:
            found = self.tables[table] = TableChanges()
        return found

    def rows(self) -> int:
        """How many rows will be written or taken out."""
        return sum(one.rows() for one in self.tables.values())


def updates_by_columns(
    updated: Mapping[Key, Row],
) -> Iterator[tuple[tuple[str, ...], list[Key]]]:
    """Rows that set the same columns, for one statement: columns, and the key and values of
    each."""
    groups: dict[tuple[str, ...], list[Key]] = {}
    for key, values in updated.items():
        groups.setdefault(tuple(values), []).append((*key, *values.values()))
    yield from groups.items()


def additions_by_columns(
    added: Mapping[Key, tuple[Row, Row]],
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], list[Key]]]:
    """The same for rows that are added to: columns added to, columns set, and the rows' values."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Key]] = {}
    for key, (amounts, values) in added.items():
        row = (*key, *amounts.values(), *values.values())
        groups.setdefault((tuple(amounts), tuple(values)), []).append(row)
    for (amount_columns, value_columns), rows in groups.items():
        yield amount_columns, value_columns, rows
