"""A real PostgreSQL of one's own, for drills and tests: in a folder, on a free loopback port, ended
with whoever started it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from services.kernel.held_ports import HeldPorts

START_S = 60.0
SUPERUSER = "root"


class NoPostgresql(Exception):
    """PostgreSQL's own programs are not on this machine, or may not be run."""


def server_programs() -> Path | None:
    """The folder of `postgres` and `initdb`; None where this machine has none."""
    places = [Path(found).resolve().parent] if (found := shutil.which("postgres")) else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    return None


class PostgresServer:
    """One server in a folder. `kill`, `pause` and `start` it at will.

    Raises NoPostgresql where it may not be run: it does not run as root, and there is nobody else.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self.password = os.urandom(16).hex()
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
            *_bound(),
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
        return _set_privileges(f"--reuid={user}", f"--regid={group}", "--clear-groups")


def _unprivileged() -> tuple[int, int]:
    """A user and a group."""
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            found = pwd.getpwnam(name)
            return found.pw_uid, found.pw_gid
    raise NoPostgresql("PostgreSQL does not run as root, and there is no user `nobody` here")


def _bound() -> list[str]:
    """What goes before a command that is to end with this process, however that is ended. It ends
    with the thread that started it: so the main one must."""
    main = threading.current_thread() is threading.main_thread()
    return _set_privileges("--pdeathsig", "INT") if main and sys.platform == "linux" else []


def _set_privileges(*words: str) -> list[str]:
    """What goes before a command, where this machine has it."""
    found = shutil.which("setpriv")
    return [found, *words] if found else []
