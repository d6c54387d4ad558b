"""Files with secrets: who else may read them."""

from __future__ import annotations

import os
import stat

ROOT = 0
"""The user that an orchestrator mounts secrets as."""


def exposed(found: os.stat_result) -> bool:
    """Whether a file may be read or written by others than it is meant for.

    One's own file is for its owner alone. A file of root's that only a group may read, too, is how
    an orchestrator mounts a secret for a process without rights of its own.
    """
    mounted = found.st_uid == ROOT != os.geteuid()
    allowed = stat.S_IRWXU | (stat.S_IRGRP if mounted else 0)
    return bool(stat.S_IMODE(found.st_mode) & ~allowed)
