"""Rules as a core: what happens next in a game, and what won."""

from __future__ import annotations

from services.kernel.event import NEWEST_BEHAVIOUR, Core
from services.rules.domain.decide import decide
from services.rules.domain.events import ANSWERS, FOLDS
from services.rules.domain.evolve import evolve
from services.rules.domain.state import RulesState

CORE: Core[RulesState] = Core(
    service="rules",
    schema=4,
    behaviour=NEWEST_BEHAVIOUR,
    state_type=RulesState,
    initial=RulesState,
    evolve=evolve,
    decide=decide,
    folds=FOLDS,
    answers=ANSWERS,
)
