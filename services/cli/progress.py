"""How far a reading of a log is, on a terminal, once it takes over two seconds: rate, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SHOWN_AFTER_S = 2.0
"""What is over sooner needs no progress."""
EVERY_S = 0.1
"""Between two updates of the line."""


class Progress:
    """Called with (entries done, entries in all, events done). Shows nothing unless stderr is a
    terminal."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.began = time.monotonic()
        self._next = self.began + SHOWN_AFTER_S
        self._bar: Any = None
        self._task: Any = None
        self._shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int | None = None, events: int = 0) -> None:
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + EVERY_S
        if self._bar is None:
            self._open()
        rate = (events or done) / (now - self.began)
        unit = "events" if events else "entries"
        self._bar.update(self._task, completed=done, total=total, rate=f"{rate:,.0f} {unit}/s")

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("entries  {task.fields[rate]}  left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(self.what, total=None, rate="")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """A progress that is gone from the terminal when its block ends."""
    shown = Progress(what)
    try:
        yield shown
    finally:
        shown.close()


def going_on(checkpoint: Path, sequence: int) -> None:
    """Tell that something of what is said was seen by an earlier call: up to which entry."""
    print(f"going on from {checkpoint}, which reaches to entry {sequence}", file=sys.stderr)
