"""A real PostgreSQL for tests: in a folder of its own, on a free loopback port, stopped at the end.

It takes the machine's own server, or has Debian's package installed where that may be done.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.cli.private_postgresql import NoPostgresql, PostgresServer, server_programs
from tests.debian import install

__all__ = ["PostgresServer", "postgresql"]

NO_POSTGRESQL = "PostgreSQL cannot be had here"
"""A reason of tests/skips.md."""


def programs() -> Path:
    """The folder of `postgres` and `initdb`; the test is skipped where they cannot be had."""
    install("postgresql", lambda: server_programs() is not None, "--no-install-recommends")
    found = server_programs()
    if found is None:
        pytest.skip(NO_POSTGRESQL)
    return found


@contextmanager
def postgresql(certificate: tuple[bytes, bytes] | None = None) -> Iterator[PostgresServer]:
    """A running server on an empty cluster. With a certificate (chain and key, PEM) it encrypts."""
    found = programs()
    # Not below the test's own folder, which another user may not enter.
    folder = Path(tempfile.mkdtemp(prefix="sabot-postgresql-"))
    try:
        server = PostgresServer(found, folder)
    except NoPostgresql:
        pytest.skip(NO_POSTGRESQL)
    try:
        server.create()
        if certificate is not None:
            server.take_certificate(*certificate)
        server.start()
        yield server
    finally:
        server.stop()
        server.let_go()
        shutil.rmtree(folder, ignore_errors=True)
