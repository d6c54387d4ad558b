"""`python -m services.wallet`: the wallet service in a process of its own."""

from __future__ import annotations

import sys

from services.events import event_types
from services.kernel.service_main import main
from services.wallet.parts import parts

if __name__ == "__main__":
    sys.exit(main("wallet", parts, event_types()))
