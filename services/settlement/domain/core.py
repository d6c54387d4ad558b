"""Settlement as a core: what every bet is paid."""

from __future__ import annotations

from sabot.settlement.v1.events_pb2 import BetsSettled
from sabot.wallet.v1.events_pb2 import StakeReserved
from services.kernel.event import NEWEST_BEHAVIOUR, Core
from services.settlement.domain.decide import decide
from services.settlement.domain.events import ANSWERS, FOLDS
from services.settlement.domain.evolve import evolve
from services.settlement.domain.state import SettlementState

CORE: Core[SettlementState] = Core(
    service="settlement",
    schema=4,
    behaviour=NEWEST_BEHAVIOUR,
    state_type=SettlementState,
    initial=SettlementState,
    evolve=evolve,
    decide=decide,
    folds=FOLDS,
    answers=ANSWERS,
    begins={StakeReserved: lambda stake, partner: (partner, stake.account_id, stake.round_id)},
    ends={BetsSettled: lambda bill, _: (bill.partner_id, bill.account_id, bill.round_id)},
)
