"""Where projections are kept: by the settings, or in the data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.kernel.databases import open_engine, schema_of
from services.kernel.projection_places import database_name, projection_url
from services.kernel.settings import BadSettings, ServiceSettings, load


def test_replicas_of_one_folder_have_a_file_each() -> None:
    names = [database_name(process, "table") for process in ("table", "table-2", "table-3")]
    assert names == ["table", "table-2", "table-3"]
    # A fleet in one process has one for each service, and a deployment's own names do no harm.
    assert database_name("fleet", "table") == "table"
    assert database_name("fleet", "wallet") == "wallet"


def test_without_a_database_it_is_a_file(tmp_path: Path) -> None:
    url = projection_url(ServiceSettings(data=tmp_path), "wallet", process="wallet-2")
    assert url.get_backend_name() == "sqlite"
    assert url.database == str(tmp_path / "projections" / "wallet-2.sqlite3")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+asyncpg"])
async def test_a_service_has_a_schema_of_its_cell_in_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    (tmp_path / "password").write_text("p@ss/word\n")
    monkeypatch.setenv("SABOT_CELL", "north-1")
    monkeypatch.setenv("SABOT_DATABASE_URL", f"{scheme}://sabot@db:5432/games")
    monkeypatch.setenv("SABOT_DATABASE_PASSWORD_FILE", str(tmp_path / "password"))
    settings = load(ServiceSettings)
    url = projection_url(settings, "wallet", process="wallet-2")
    assert schema_of(url) == "north_1_wallet"
    assert (url.username, url.password, url.host, url.database) == (
        *("sabot", "p@ss/word"),
        *("db", "games"),
    )
    engine = open_engine(url)
    assert engine.dialect.driver == "asyncpg"
    assert "schema" not in engine.url.query
    await engine.dispose()
    assert "p@ss" not in repr(settings)
    assert "games" not in repr(settings), "a URL may hold a password"


@pytest.mark.parametrize("wrong", ["mysql://db/x", "db:5432", "postgresql://"])
def test_another_kind_of_database_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv("SABOT_DATABASE_URL", wrong)
    with pytest.raises(BadSettings) as refused:
        load(ServiceSettings)
    assert str(refused.value).startswith("SABOT_DATABASE_URL: ")
    assert "postgresql://user@host:port/database" in str(refused.value)
    assert "\n" not in str(refused.value)
