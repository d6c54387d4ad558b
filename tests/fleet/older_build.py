"""A service of the release before a behaviour: the same code, which knows none but the first, and
what it writes says so. `python older_build.py services.wallet` runs it in the service's place.
"""

from __future__ import annotations

import runpy
import sys

from services.kernel import build, event

BUILD = "sabot-older"
BEHAVIOUR = 1


def older(service: str) -> tuple[str, ...]:
    """What Python runs instead of a service."""
    return (__file__, f"services.{service}")


if __name__ == "__main__":
    event.NEWEST_BEHAVIOUR = BEHAVIOUR
    build.BUILD = BUILD
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
