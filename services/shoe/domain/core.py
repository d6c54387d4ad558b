"""Shoes, wheels and dice: what was dealt, spun, rolled. The core never draws; it checks what it is
told and says what it means.

From a seal to the whole shoe laid open: `ShoeOpened`, the shown card and the burn (BAC-2), cards by
call, the cut card and the last round (BAC-3), `ShoeClosed`, `ShoeRevealed`. On the floor: from the
packs that fill it to the count of its cards, `ShoeCensus`.
"""

from __future__ import annotations

from sabot.shoe.v1 import floor_events_pb2 as floor
from services.kernel.event import NEWEST_BEHAVIOUR, Core
from services.shoe.domain.decide import decide
from services.shoe.domain.events import ANSWERS, FOLDS
from services.shoe.domain.evolve import evolve
from services.shoe.domain.state import ShoeState

CORE: Core[ShoeState] = Core(
    service="shoe",
    schema=5,
    behaviour=NEWEST_BEHAVIOUR,
    state_type=ShoeState,
    initial=ShoeState,
    evolve=evolve,
    decide=decide,
    folds=FOLDS,
    answers=ANSWERS,
    alarms={floor.FloorFaultFound: "floor_fault"},
)
