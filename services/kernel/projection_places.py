"""Where projections are kept: a schema of PostgreSQL, or a file, for each service of a cell; and
where witnesses are, beside them in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import URL, make_url

from services.kernel.settings import ServiceSettings

WITNESS = "witness"
"""In a schema's name, where a service's stands; no service is called so."""


def projection_url(settings: ServiceSettings, service: str, *, process: str = "") -> URL:
    """The database of a service's projection, as the process of this name uses it.

    Raises OSError where the password's file cannot be read."""
    if not settings.database_url.get_secret_value():
        return sqlite_url(settings.data, database_name(process or service, service))
    return _schema_url(settings, service)


def witness_url(settings: ServiceSettings) -> URL | None:
    """Where what services have read of the log is noted; None where only files remember it.

    Raises OSError where the password's file cannot be read."""
    if not settings.database_url.get_secret_value():
        return None
    return _schema_url(settings, WITNESS)


def _schema_url(settings: ServiceSettings, named: str) -> URL:
    url = make_url(settings.database_url.get_secret_value())
    if settings.database_password_file is not None:
        url = url.set(password=settings.database_password_file.read_text().strip())
    return url.update_query_dict({"schema": schema_name(settings.cell, named)})


def schema_name(cell: str, service: str) -> str:
    """The schema of a service's tables. A cell's name holds no underscore, so no two are one."""
    return f"{cell}_{service}".replace("-", "_")


def database_name(process: str, service: str) -> str:
    """What the file of a service's projection is called in a process. Replicas that share a folder
    have one each: one that was stopped within a transaction would hold up another."""
    return process if process.startswith(f"{service}-") else service


def sqlite_url(data: Path, name: str) -> URL:
    """A file in a data folder."""
    folder = data / "projections"
    folder.mkdir(parents=True, exist_ok=True)
    return URL.create("sqlite+aiosqlite", database=str((folder / f"{name}.sqlite3").absolute()))
