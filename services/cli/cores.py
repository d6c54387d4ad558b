"""Every core of a fleet, in the order of a bet's path."""

from __future__ import annotations

from typing import Any

from services.audit.domain.core import CORE as AUDIT
from services.kernel.event import Core
from services.limits.domain.core import CORE as LIMITS
from services.rules.domain.core import CORE as RULES
from services.settlement.domain.core import CORE as SETTLEMENT
from services.shoe.domain.core import CORE as SHOE
from services.table.domain.core import CORE as TABLE
from services.wallet.domain.core import CORE as WALLET

CORES: tuple[Core[Any], ...] = (TABLE, LIMITS, WALLET, SHOE, RULES, SETTLEMENT, AUDIT)
BY_SERVICE: dict[str, Core[Any]] = {core.service: core for core in CORES}
