"""`sabot projections migrate`: the database's tables, as this release needs them."""

from __future__ import annotations

import asyncio

from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from services.cli.commands import dump
from services.cli.rebuild import PROJECTIONS
from services.kernel.databases import is_away, open_engine
from services.kernel.migrations import package_of, revision_of, upgrade_engine
from services.kernel.projection_places import WITNESS, projection_url, witness_url
from services.kernel.settings import BadSettings, ServiceSettings, load
from services.kernel.witness_rows import REVISIONS

WAIT_S = 300.0
"""For the database: it may be starting too."""
AGAIN_S = 1.0


class NotMigrated(OSError):
    """The database does not take what this release needs; what it says."""


async def migrated(*, as_json: bool) -> None:
    """Bring every schema of the cell up to date, and say where each stands. Raises BadSettings and
    NotMigrated."""
    settings = load(ServiceSettings)
    noted = witness_url(settings)
    if noted is None:
        raise BadSettings("SABOT_DATABASE_URL: needed to know which database")
    places = {
        service: (projection_url(settings, service), package_of(service)) for service in PROJECTIONS
    }
    places[WITNESS] = (noted, REVISIONS)
    until = asyncio.get_running_loop().time() + WAIT_S
    for name, (url, package) in places.items():
        await _upgrade(name, url, package, until)
        if not as_json:
            print(f"{name}: revision {revision_of(package)}")
    if as_json:
        dump({name: revision_of(package) for name, (_, package) in places.items()})


async def _upgrade(name: str, url: URL, package: str, until: float) -> None:
    engine = open_engine(url)
    try:
        while True:
            try:
                await upgrade_engine(engine, package)
            except (SQLAlchemyError, OSError) as error:
                if not is_away(error) or asyncio.get_running_loop().time() > until:
                    raise NotMigrated(f"{name}: {error}") from error
                await asyncio.sleep(AGAIN_S)
            else:
                return
    finally:
        await engine.dispose()
