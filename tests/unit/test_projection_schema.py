"""Schemas: the revisions give the tables that the code describes, on every database."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest
from sqlalchemy import Dialect, MetaData, inspect, make_url
from sqlalchemy.schema import CreateIndex, CreateTable

from services.kernel import migrations, row_writer
from services.kernel.databases import open_engine
from tests.unit.projecting import ON_BOTH, url_of

pytestmark = ON_BOTH

SERVICES = ("table", "wallet", "settlement", "shoe")
DIALECTS = ("sqlite", "postgresql+asyncpg")


def metadata_of(service: str) -> MetaData:
    metadata = import_module(f"services.{service}.projection").METADATA
    assert isinstance(metadata, MetaData)
    return metadata


@pytest.mark.parametrize("service", SERVICES)
async def test_revisions_and_metadata_agree(service: str, tmp_path: Path) -> None:
    url = url_of(tmp_path, service)
    await migrations.upgrade(url, service)
    await migrations.upgrade(url, service)
    engine = open_engine(url)
    async with engine.connect() as connection:
        found = await connection.run_sync(migrations.differences, metadata_of(service))
        names = await connection.run_sync(lambda one: inspect(one).get_table_names())
    await engine.dispose()
    assert found == []
    assert set(names) == {*metadata_of(service).tables, "alembic_version"}


@pytest.mark.parametrize("service", SERVICES)
def test_revisions_are_one_line(service: str) -> None:
    script = migrations.scripts(migrations.package_of(service))
    assert len(script.get_heads()) == 1
    assert len(script.get_bases()) == 1


async def test_many_processes_may_upgrade_at_once(tmp_path: Path) -> None:
    url = url_of(tmp_path, "wallet")
    await asyncio.gather(*(migrations.upgrade(url, "wallet") for _ in range(4)))


async def test_projections_of_one_process_may_upgrade_at_once(tmp_path: Path) -> None:
    """Alembic's operations are those of the migration of the process that began last: of all that
    run at once the tables would come into one database."""
    urls = {service: url_of(tmp_path, service) for service in SERVICES}
    await asyncio.gather(*(migrations.upgrade(urls[service], service) for service in SERVICES))
    for service in SERVICES:
        engine = open_engine(urls[service])
        async with engine.connect() as connection:
            found = await connection.run_sync(migrations.differences, metadata_of(service))
            names = await connection.run_sync(lambda one: inspect(one).get_table_names())
        await engine.dispose()
        assert found == []
        assert set(names) == {*metadata_of(service).tables, "alembic_version"}


async def test_a_new_file_that_another_process_writes_to_is_waited_for(tmp_path: Path) -> None:
    """SQLite's switch to its write-ahead log does not wait for a lock by itself."""
    url = f"sqlite+aiosqlite:///{tmp_path / 'wallet.db'}"
    other = sqlite3.connect(tmp_path / "wallet.db", isolation_level=None)
    other.execute("CREATE TABLE other (row)")
    other.execute("BEGIN IMMEDIATE")
    upgrading = asyncio.create_task(migrations.upgrade(url, "wallet"))
    done, _ = await asyncio.wait({upgrading}, timeout=0.2)
    assert not done
    other.execute("ROLLBACK")
    await upgrading
    other.close()
    with closing(sqlite3.connect(tmp_path / "wallet.db")) as after:
        assert after.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_an_upgrade_that_breaks_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = url_of(tmp_path, "wallet")
    upgrade = migrations.upgrade_connection

    def broken(*args: object) -> None:
        upgrade(*args)  # type: ignore[arg-type]  # handed on
        raise RuntimeError("power")

    monkeypatch.setattr(migrations, "upgrade_connection", broken)
    with pytest.raises(RuntimeError):
        await migrations.upgrade(url, "wallet")
    engine = open_engine(url)
    async with engine.connect() as connection:
        assert await connection.run_sync(lambda one: inspect(one).get_table_names()) == []
    await engine.dispose()


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("make", [make_url(f"{name}://").get_dialect() for name in DIALECTS])
def test_statements_are_made_for_both_databases(service: str, make: type[Dialect]) -> None:
    dialect = make()
    for table in metadata_of(service).sorted_tables:
        assert str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            assert str(CreateIndex(index).compile(dialect=dialect))
        columns = tuple(column.name for column in table.columns if not column.primary_key)
        for statement in (
            row_writer._save(table, dialect.name),
            row_writer._insert(table),
            row_writer._update(table, (), columns),
            row_writer._update(table, columns[:1], columns[1:]),
            row_writer._delete(table),
        ):
            assert str(statement.compile(dialect=dialect))


def test_other_databases_are_refused() -> None:
    with pytest.raises(ValueError, match="mysql"):
        row_writer.upsert(metadata_of("table").tables["bets"], "mysql")
