"""Who brings a database's tables up to date: whoever opens them, or a Job before them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sqlalchemy.ext.asyncio import AsyncEngine

Schema = Callable[[AsyncEngine, str], Awaitable[None]]
"""Sees to an engine's tables being as a package of revisions has them, or raises SchemaBehind."""


class SchemaBehind(Exception):
    """The database's tables are not yet as this build needs them; somebody else makes them so."""


async def make_schema(engine: AsyncEngine, package: str) -> None:
    """Make the tables, and bring them up to date."""
    from services.kernel.migrations import upgrade_engine  # noqa: PLC0415  # slow to import

    await upgrade_engine(engine, package)


async def await_schema(engine: AsyncEngine, package: str) -> None:
    """Make nothing. Raises SchemaBehind where there is something to make."""
    from services.kernel.migrations import require_schema  # noqa: PLC0415  # slow to import

    await require_schema(engine, package)


def schema_by(whom: str) -> Schema:
    """As the setting `schema_by` says."""
    return await_schema if whom == "job" else make_schema
