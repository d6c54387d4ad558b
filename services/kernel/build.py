"""Which build this is: stands beside what it writes, never compared."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    BUILD = f"sabot-{version('sabot')}"
except PackageNotFoundError:  # run from a tree that is not installed
    BUILD = "sabot-tree"
"""Name and version."""
