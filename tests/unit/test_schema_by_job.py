"""Who makes the tables: services wait for a Job that does, and go on beside a later release."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from sqlalchemy import text

from services.cli import migrate
from services.kernel import migrations
from services.kernel.database_witness import DatabaseWitness
from services.kernel.databases import open_engine
from services.kernel.projections import Projector
from services.kernel.schema import SchemaBehind, await_schema, make_schema
from services.kernel.settings import BadSettings
from services.kernel.witness_rows import REVISIONS
from services.wallet.projection import WalletProjection
from tests.postgres import PostgresServer
from tests.unit.projecting import ON_BOTH, WAIT_S, url_of
from tests.unit.projection_log import busy_log
from tests.unit.test_database_witness import OneLog, told
from tests.unit.test_host import Alarms

WALLET = "services.wallet.migrations"
ALL = {"table", "wallet", "settlement", "shoe", "witness"}


@ON_BOTH
async def test_what_is_behind_is_told_and_what_is_ahead_is_enough(tmp_path: Path) -> None:
    engine = open_engine(url_of(tmp_path))
    with pytest.raises(SchemaBehind, match=r"services\.wallet stand at revision nothing"):
        await await_schema(engine, WALLET)
    await migrations.upgrade_engine(engine, WALLET)
    await await_schema(engine, WALLET)
    stands = text("UPDATE alembic_version SET version_num = :one")
    async with engine.begin() as connection:
        await connection.execute(stands, {"one": "0001"})
    with pytest.raises(SchemaBehind, match="stand at revision 0001"):
        await await_schema(engine, WALLET)
    async with engine.begin() as connection:
        await connection.execute(stands, {"one": "of a later release"})
    await await_schema(engine, WALLET)
    await make_schema(engine, WALLET)  # nor does a release that was rolled back touch them
    async with engine.begin() as connection:
        stood = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    assert stood == "of a later release"
    await engine.dispose()


@ON_BOTH
async def test_a_projection_waits_for_its_tables_and_makes_none(tmp_path: Path) -> None:
    log, url = busy_log(rounds=1, bets=2), url_of(tmp_path)
    projector = Projector(WalletProjection(), url, log.read, schema=await_schema)
    assert not await projector.start(wait_s=0.2)
    await told(lambda: isinstance(projector.away, SchemaBehind))
    await migrations.upgrade(url, "wallet")
    assert await projector.caught_up(WAIT_S)
    await projector.close()


@ON_BOTH
async def test_a_start_after_a_rollback_knows_what_was_read(tmp_path: Path) -> None:
    """The release that it was rolled back from has added to the witnesses' tables."""
    url, alarms, log = url_of(tmp_path), Alarms(), OneLog(0)
    engine = open_engine(url)
    await migrations.upgrade_engine(engine, REVISIONS)
    async with engine.begin() as connection:
        await connection.execute(text("ALTER TABLE witnesses ADD COLUMN later INTEGER"))
        await connection.execute(text("UPDATE alembic_version SET version_num = 'later'"))
    await engine.dispose()
    witness = DatabaseWitness(
        url, "wallet", log, log.entries, alarm=alarms, on_broken=lambda _: None, schema=make_schema
    )
    assert await asyncio.wait_for(witness.remembered(), WAIT_S) == []
    assert alarms == []
    await witness.close()


@ON_BOTH
async def test_a_start_waits_for_what_was_read(tmp_path: Path) -> None:
    url, alarms, log = url_of(tmp_path), Alarms(), OneLog(0)
    witness = DatabaseWitness(
        url, "wallet", log, log.entries, alarm=alarms, on_broken=lambda _: None, schema=await_schema
    )
    asking = asyncio.create_task(witness.remembered())
    await told(lambda: witness._away_since is not None)
    assert not asking.done()
    engine = open_engine(url)
    await migrations.upgrade_engine(engine, REVISIONS)
    await engine.dispose()
    assert await asking == []
    assert alarms == []
    await witness.close()


async def test_the_command_makes_all_of_them(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SABOT_CELL", "made")
    monkeypatch.setenv("SABOT_DATABASE_URL", postgres.url("").partition("?")[0])
    for _ in range(2):
        await migrate.migrated(as_json=True)
        assert json.loads(capsys.readouterr().out).keys() == ALL
    schemas = postgres.sql("SELECT schemaname FROM pg_tables WHERE tablename = 'alembic_version'")
    assert {f"made_{one}" for one in ALL} <= set(schemas)


async def test_the_command_says_what_stands_in_its_way(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SABOT_DATABASE_URL", raising=False)
    with pytest.raises(BadSettings, match="SABOT_DATABASE_URL"):
        await migrate.migrated(as_json=True)
    postgres.sql("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    place = postgres.url("").partition("@")[2].partition("?")[0]
    monkeypatch.setenv("SABOT_CELL", "guests")
    monkeypatch.setenv("SABOT_DATABASE_URL", f"postgresql://guest:guest@{place}")
    with pytest.raises(migrate.NotMigrated, match="permission denied"):
        await migrate.migrated(as_json=True)
