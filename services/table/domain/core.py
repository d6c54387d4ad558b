"""The table as a core: rounds and their betting windows, and how a round ends."""

from __future__ import annotations

from sabot.table.v1 import floor_events_pb2 as orders
from services.kernel.event import NEWEST_BEHAVIOUR, Core
from services.table.domain.decide import decide
from services.table.domain.events import ANSWERS, FOLDS
from services.table.domain.evolve import evolve
from services.table.domain.state import TableState

CORE: Core[TableState] = Core(
    service="table",
    schema=10,
    behaviour=NEWEST_BEHAVIOUR,
    state_type=TableState,
    initial=TableState,
    evolve=evolve,
    decide=decide,
    folds=FOLDS,
    answers=ANSWERS,
    alarms={orders.SuspensionEscalated: "suspension_escalated"},
)
