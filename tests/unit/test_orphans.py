"""A worker of the tests that is ended by its timeout leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

WORKER = """
import os, subprocess, sys
from tests.orphans import end_with_this_process

end_with_this_process()
sleeps = "import time; print('runs', flush=True); time.sleep(600)"
command = [sys.executable, "-I", "-S", "-c", sleeps]
process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
process.stdout.readline()
print(process.pid, flush=True)
os._exit(1)
"""
SOON_S = 30.0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a process is")
def test_what_a_worker_started_ends_with_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKER],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 1, done.stderr
    left = Path("/proc") / done.stdout.strip()
    until = time.monotonic() + SOON_S
    while left.exists() and "\nState:\tZ" not in (left / "status").read_text():
        assert time.monotonic() < until, "it goes on"
        time.sleep(0.05)
