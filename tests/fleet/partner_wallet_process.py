"""The example of a partner's wallet in a process of its own, killed and started again at will."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from typer.testing import CliRunner

from services.cli.main import app
from services.kernel.held_ports import HeldPorts


class WalletProcess:
    """While it runs; its books and keys lie in a folder."""

    def __init__(
        self, folder: Path, *more: str, partner: str = "north", keys: Path | None = None
    ) -> None:
        self.folder = folder
        self.keys = keys or folder / "call_keys.json"
        published = folder / "jwks.json"
        done = CliRunner().invoke(app, ["wallet-keys", "--keys", str(self.keys)])
        assert done.exit_code == 0, done.output
        published.write_text(done.stdout)
        self._held = HeldPorts(1)  # it is at one address however often it is started
        self.address = f"127.0.0.1:{self._held.numbers[0]}"
        self.books = folder / "wallet.db"
        self._pid = folder / "pid"
        self._started: subprocess.Popen[str] | None = None
        self._program = [
            sys.executable, "-m", "services.partner_wallet_example", "--listen", self.address,
            "--db", str(self.books), "--keys", str(published), "--cell", "main",
            "--partner", partner, *more,
        ]  # fmt: skip

    @property
    def restart_command(self) -> str:
        """A shell command that kills it and starts it again."""
        log, pid = (shlex.quote(str(self.folder / name)) for name in ("log", "pid"))
        return (
            f"kill -9 $(cat {pid}); "
            f"{shlex.join(self._program)} >>{log} 2>&1 </dev/null & echo $! >{pid}"
        )

    def start(self) -> None:
        """Start it and wait until it listens; one that was killed is forgotten."""
        self._forget()
        process = subprocess.Popen(
            self._program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._pid.write_text(str(process.pid))
        assert process.stdout is not None
        line = process.stdout.readline()
        assert re.fullmatch(r"listens on \S+\n", line), line
        self._started = process

    def _forget(self) -> None:
        if self._started is not None:
            self._started.kill()
            self._started.wait()
            if self._started.stdout is not None:
                self._started.stdout.close()
            self._started = None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, whoever started it."""
        with suppress(ProcessLookupError):
            os.kill(int(self._pid.read_text()), number)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.signal(signal.SIGKILL)
        self._forget()
        self._held.release()


def opened(accounts: Sequence[str]) -> list[str]:
    """Arguments that open accounts, `ID:CURRENCY:MINOR_UNITS`."""
    return [word for one in accounts for word in ("--open", one)]
