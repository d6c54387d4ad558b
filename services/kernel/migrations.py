"""Schemas of projections: brought up to date by Alembic, run from within, without an ini file.

The revisions of a service are the modules of its package `services.<name>.migrations`. They are
found by import, so that they work wherever the packages are installed, and run on the projection's
own (asynchronous) engine in one transaction, which other processes wait for.
"""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, text
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.schema import CreateSchema

from services.kernel.databases import IMMEDIATE, open_engine
from services.kernel.schema import SchemaBehind

_LOCK = 0x5AB07
"""The number of PostgreSQL's advisory lock that migrations hold."""
_ALONE = threading.Lock()
"""Held by the one migration that runs in this process: Alembic's operations, `op`, are those of the
migration that began last, whoever calls them. Fleets have all their projections in one process."""
AGAIN_S = 0.01
"""How long to wait before asking for it again."""


def package_of(service: str) -> str:
    """The package that holds a service's revisions."""
    return f"services.{service}.migrations"


async def upgrade(url: str, service: str) -> None:
    """Bring the database at `url` to the newest schema of a service's projection."""
    engine = open_engine(url)
    try:
        await upgrade_engine(engine, package_of(service))
    finally:
        await engine.dispose()


async def require_schema(engine: AsyncEngine, package: str) -> None:
    """Whether an engine's database has what a package of revisions needs. A schema of a later
    release does: revisions of a release only add, and what they replace goes a release later.

    Raises SchemaBehind."""
    script = scripts(package)
    async with engine.connect() as connection:
        stands = await connection.run_sync(_heads)
    wanted = set(script.get_heads())
    if stands != wanted and stands <= _known(script):
        at = ", ".join(sorted(stands)) or "nothing"
        raise SchemaBehind(
            f"the tables of {package.rpartition('.')[0]} stand at revision {at}, this release "
            f"needs {', '.join(sorted(wanted))}: `sabot projections migrate` makes them"
        )


async def upgrade_engine(engine: AsyncEngine, package: str) -> None:
    """Bring an engine's database to the newest schema of a package of revisions."""
    async with engine.connect() as connection:
        await connection.execution_options(**{IMMEDIATE: True})
        async with connection.begin():
            while not _ALONE.acquire(blocking=False):  # noqa: ASYNC110 - another thread may have it
                await asyncio.sleep(AGAIN_S)
            try:
                await connection.run_sync(upgrade_connection, package)
            finally:
                _ALONE.release()


def upgrade_connection(connection: Connection, package: str) -> None:
    """Bring a connection's database to the newest schema, within the caller's transaction. That of
    a later release is left as it is, and does: see `require_schema`."""
    script = scripts(package)
    stands = _heads(connection)
    if stands == set(script.get_heads()) or not stands <= _known(script):
        return
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        _make_schema(connection)

    def steps(revision: Any, _context: MigrationContext) -> Any:  # Any: Alembic's own are untyped
        return script._upgrade_revs("head", revision)  # noqa: SLF001  # as Alembic's command does

    context = MigrationContext.configure(connection, opts={"fn": steps})
    with Operations.context(context):
        context.run_migrations()


def _known(script: ScriptDirectory) -> set[str]:
    """The revisions that this build knows."""
    return {one.revision for one in script.walk_revisions()}


def _heads(connection: Connection) -> set[str]:
    """The revisions that a database stands at; none where it is empty."""
    return set(MigrationContext.configure(connection).get_current_heads())


def _make_schema(connection: Connection) -> None:
    """Make the schema that the connection looks into, unless it is there: a user who may make none
    is given one that is."""
    name = connection.scalar(text("SELECT current_setting('search_path')"))
    missing = connection.scalar(text("SELECT current_schema()")) is None
    if missing and name:
        connection.execute(CreateSchema(name))


def scripts(package: str) -> ScriptDirectory:
    """The revisions of a package."""
    folder = import_module(package).__path__[0]
    return ScriptDirectory(Path(folder), version_locations=[Path(folder)])


def revision_of(package: str) -> str:
    """The newest revision of a package."""
    (head,) = scripts(package).get_heads()
    return head


def differences(connection: Connection, metadata: MetaData) -> list[Any]:
    """What a database's schema has otherwise than `metadata`, as Alembic tells it."""
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    found: list[Any] = compare_metadata(context, metadata)
    return found
