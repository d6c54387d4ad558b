"""A real PostgreSQL for tests: in a folder of its own, on a free loopback port, stopped at the end.

It takes the machine's own server, or has Debian's package installed where that may be done.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from services.kernel.held_ports import HeldPorts
from tests.debian import install

NO_POSTGRESQL = "PostgreSQL cannot be had here"
"""A reason of tests/skips.md."""
START_S = 60.0
SUPERUSER = "root"


def server_programs() -> Path:
    """The folder of `postgres` and `initdb`; the test is skipped where they cannot be had."""
    install("postgresql", lambda: _programs() is not None, "--no-install-recommends")
    found = _programs()
    if found is None:
        pytest.skip(NO_POSTGRESQL)
    return found


def _programs() -> Path | None:
    places = [Path(found).resolve().parent] if (found := shutil.which("postgres")) else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    return None


class PostgresServer:
    """One server. Its process is the test's own: `kill`, `pause` and `start` it at will."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self.password = secrets.token_hex(16)
        self._held = HeldPorts(1)
        (self.port,) = self._held.numbers
        self._as = _unprivileged() if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._encrypts = False

    def create(self) -> None:
        """Make an empty cluster."""
        given = self._folder / "password"
        given.write_text(self.password)
        if self._as is not None:
            for path in (self._folder, given):
                os.chown(path, *self._as)
        self._run(
            *("initdb", "--pgdata", str(self._folder / "data"), "--username", SUPERUSER),
            *("--auth", "scram-sha-256", "--pwfile", str(given)),
            *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
        )
        given.unlink()

    def take_certificate(self, chain: bytes, key: bytes) -> None:
        """Have it encrypt, from its next start on."""
        for name, content in (("server.crt", chain), ("server.key", key)):
            path = self._folder / "data" / name
            path.write_bytes(content)
            path.chmod(0o600)
            if self._as is not None:
                os.chown(path, *self._as)
        self._encrypts = True

    def start(self) -> None:
        """Run it, and wait until it takes connections."""
        command = [
            *self._unprivileged(),
            *(str(self._programs / "postgres"), "-D", str(self._folder / "data")),
            *("-p", str(self.port), "-c", "listen_addresses=127.0.0.1"),
            *("-c", f"unix_socket_directories={self._folder}", "-c", "fsync=off"),
            *("-c", f"ssl={'on' if self._encrypts else 'off'}"),
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + START_S
        while not self._accepts():
            if self._process.poll() is not None or time.monotonic() > until:
                said = (self._folder / "log").read_text()[-2_000:]
                raise RuntimeError(f"PostgreSQL ended: {self._process.returncode}\n{said}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End it as an operator does who does not wait for clients."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End it as a crash does: it recovers at its next start."""
        self._end(signal.SIGQUIT)

    def pause(self) -> None:
        """Let it stand still with its connections open. Each of them is a process of its own."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal_all(signal.SIGCONT)

    def let_go(self) -> None:
        """It is not started again."""
        self._held.release()

    def url(self, schema: str) -> str:
        """Where a projection's tables are, with the password."""
        place = f"127.0.0.1:{self.port}/postgres"
        return f"postgresql+asyncpg://{SUPERUSER}:{self.password}@{place}?schema={schema}"

    def sql(self, statement: str, database: str = "postgres") -> list[str]:
        """What a statement gives: a line a row, columns separated by `|`."""
        told = self._run(
            *("psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", SUPERUSER, "-d", database),
            *("-v", "ON_ERROR_STOP=1", "-tAqc", statement),
            PGPASSWORD=self.password,
        )
        return told.splitlines()

    def _end(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None:
            process.send_signal(number)
            process.wait(START_S)
            self._process = None

    def _signal_all(self, number: signal.Signals) -> None:
        process = self._process
        if process is None:
            raise RuntimeError("PostgreSQL is not running")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in (process.pid, *map(int, children)):
            os.kill(pid, number)

    def _accepts(self) -> bool:
        done = subprocess.run(
            [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)],
            check=False,
        )
        return done.returncode == 0

    def _run(self, program: str, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [*self._unprivileged(), str(self._programs / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=START_S,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", **environment},
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr}")
        return done.stdout

    def _unprivileged(self) -> list[str]:
        """What goes before a command: PostgreSQL does not run as root. Not by `subprocess`'s own
        way, which forks, and a fork of a process with gRPC's threads may not live."""
        if self._as is None:
            return []
        user, group = self._as
        return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]


@contextmanager
def postgresql(certificate: tuple[bytes, bytes] | None = None) -> Iterator[PostgresServer]:
    """A running server on an empty cluster. With a certificate (chain and key, PEM) it encrypts."""
    programs = server_programs()
    # Not below the test's own folder, which another user may not enter.
    folder = Path(tempfile.mkdtemp(prefix="sabot-postgresql-"))
    server = PostgresServer(programs, folder)
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


def _unprivileged() -> tuple[int, int]:
    """A user and a group."""
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            found = pwd.getpwnam(name)
            return found.pw_uid, found.pw_gid
    pytest.skip(NO_POSTGRESQL)
