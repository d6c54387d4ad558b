"""A service on a machine whose clock steps: SIGUSR1 sets it ahead, SIGUSR2 back again. For drills,
which run it in place of the service: `python -m services.cli.drill_clock services.table`.
"""

from __future__ import annotations

import runpy
import signal
import sys
import time

STEP_NS = 3_000_000_000
"""By how much; beyond a second a process takes no inputs."""


def step_at_signals() -> None:
    """From here on this process's clock follows the signals; what measures spans does not."""
    real_ns = time.time_ns
    ahead_ns = 0

    def told(number: int, _frame: object) -> None:
        nonlocal ahead_ns
        ahead_ns = STEP_NS if number == signal.SIGUSR1 else 0

    def now_ns() -> int:
        return real_ns() + ahead_ns

    def now_s() -> float:
        return now_ns() / 1_000_000_000

    time.time_ns, time.time = now_ns, now_s
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, told)


if __name__ == "__main__":
    step_at_signals()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
