"""The table's servicers over a fake edge, for their tests."""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from services.games.catalogue import baccarat_1
from services.kernel.call import Call
from services.kernel.event import Position
from services.kernel.telemetry import Metrics
from services.kernel.tokens import Caller, Role
from services.table.domain.state import Phase, Round, Table, TableState
from services.table.operator_servicer import TableOperatorServicer
from services.table.servicer import PartnerServicer
from services.table.watch import LiveBets, LiveTables
from tests.unit.fake_edge import PARTNER, FakeEdge, FakeQueries

UUID7 = "01890a5d-ac96-774b-bcce-b302099a8057"
NORTH = Call(Caller(partner=PARTNER), method="sabot.partner.v1.PartnerService/X")
SOUTH = Call(Caller(partner="south"))
SAM = Call(Caller(operator="sam", roles=frozenset({Role.SUPERVISOR})), method="a/B")
BETS = [
    bet_pb2.Bet(bet_id="t1-7.1", bet="player", stake_minor=500),
    bet_pb2.Bet(bet_id="t1-7.2", bet="tie", stake_minor=100),
]


def table_state(*, running: bool = True, number: int = 7, table_id: str = "t1") -> Table:
    spec = tables.TableOpened().spec
    spec.table_id = table_id
    spec.currency_code = "EUR"
    spec.rule_set.CopyFrom(baccarat_1())
    table = Table(spec=spec, revision=3, bets=("banker", "player", "tie"), number=number)
    if running:
        round_id = f"{table_id}-{number}"
        table.running = Round(round_id=round_id, number=number, shoe_id=f"{table_id}-s1")
        table.running.phase = Phase.DEALING
    return table


class Door:
    """The servicers over a fake edge."""

    def __init__(self, *answers: Message | Exception) -> None:
        state = TableState(tables={"t1": table_state()})
        self.edge = FakeEdge(answers=list(answers), states={"table": state})
        self.queries = FakeQueries()
        self.state = state
        metrics = Metrics()
        self.tables = LiveTables(self.edge, self.queries, metrics)
        self.bets = LiveBets(self.edge, self.queries, metrics)
        self.partner = PartnerServicer(self.edge, self.queries, self.tables, self.bets)
        self.operator = TableOperatorServicer(self.edge, self.queries)


FIRST = Position(1, 4, 2)
REPEATED = log.RequestRepeated(
    request_id="r-1", first=entry_pb2.Position(segment=1, sequence=4, index=2)
)
