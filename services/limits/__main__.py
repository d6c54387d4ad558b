"""`python -m services.limits`: the limits service in a process of its own."""

from __future__ import annotations

import sys

from services.events import event_types
from services.kernel.service_main import main
from services.limits.parts import parts

if __name__ == "__main__":
    sys.exit(main("limits", parts, event_types()))
