"""Whatever a test started ends with the process that ran the test, however that ends: a worker that
its timeout ends runs no `finally`, and a fleet of its would go on and take the machine from others.

A small process waits for the worker's end and then kills what is still there of it. What was
started by the worker, or by what the worker had started, is known by a word of its environment.
Linux alone tells that; elsewhere nothing is done.
"""

from __future__ import annotations

import os
import sys

MARK = "TESTS_OF_SABOT"
WATCHER = """
import os, signal, sys

def started_by(mark):
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read().split(bytes(1)):
                    yield int(name)
        except OSError:
            pass  # it has ended, or is somebody else's

sys.stdin.buffer.read()  # until the worker's end
mark = sys.argv[1].encode()
while left := list(started_by(mark)):
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
"""


def end_with_this_process() -> None:
    """From here on, whatever this process starts does not outlive it."""
    if sys.platform != "linux":
        return
    told, kept = os.pipe()
    os.set_inheritable(kept, False)
    mark = f"{os.getpid()}-{kept}-{os.urandom(8).hex()}"
    os.environ[MARK] = mark
    command = [sys.executable, "-I", "-S", "-c", WATCHER, f"{MARK}={mark}"]
    # No Popen: nobody waits for it. A session of its own, since Ctrl-C is the worker's.
    actions = [(os.POSIX_SPAWN_DUP2, told, 0)]
    os.posix_spawn(sys.executable, command, {}, file_actions=actions, setsid=True)
    os.close(told)
