"""`python -m services.rules`: the rules service in a process of its own."""

from __future__ import annotations

import sys

from services.events import event_types
from services.kernel.service_main import main
from services.rules.parts import parts

if __name__ == "__main__":
    sys.exit(main("rules", parts, event_types()))
