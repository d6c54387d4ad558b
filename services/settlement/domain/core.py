"""Settlement as a core: what every bet is paid."""

from __future__ import annotations

from services.kernel.event import Core
from services.settlement.domain.decide import decide
from services.settlement.domain.events import ANSWERS, FOLDS
from services.settlement.domain.evolve import evolve
from services.settlement.domain.state import SettlementState

CORE: Core[SettlementState] = Core(
    service="settlement",
    schema=4,
    behaviour=1,
    state_type=SettlementState,
    initial=SettlementState,
    evolve=evolve,
    decide=decide,
    folds=FOLDS,
    answers=ANSWERS,
)
