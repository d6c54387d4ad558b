"""A folder for what a command starts for itself."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_folder(named: Path | None, purpose: str, *, keep: bool) -> Iterator[Path]:
    """The folder of that name, which is not there yet, and at the end stays if it is to be kept;
    or a temporary one. Where one is named, no other place need be writable: an image's root is not.
    """
    if named is None:
        with tempfile.TemporaryDirectory(prefix=f"sabot-{purpose}-") as temporary:
            yield Path(temporary)
        return
    named.mkdir(parents=True)
    try:
        yield named
    finally:
        if not keep:
            shutil.rmtree(named, ignore_errors=True)
