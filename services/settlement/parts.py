"""What the settlement service is made of."""

from __future__ import annotations

from sabot.settlement.v1 import settlement_service_pb2
from services.kernel.host import Parts, Served
from services.kernel.process import Process
from services.kernel.projections import Projector
from services.kernel.settings import ServiceSettings
from services.kernel.telemetry import Metrics
from services.settlement.domain.core import CORE
from services.settlement.projection import SettlementProjection
from services.settlement.projection_queries import SqlSettlementQueries
from services.settlement.recaller import Recaller
from services.settlement.servicer import SettlementServicer


def parts(settings: ServiceSettings) -> Parts:
    """What bets are paid, and paid rounds settled again."""
    del settings

    recaller = Recaller()

    def serve(process: Process, projector: Projector | None, metrics: Metrics) -> Served:
        del metrics
        if projector is None:
            raise RuntimeError("settlement's shell needs its projection")
        queries = SqlSettlementQueries(projector)
        recaller.facts_of = queries.facts_at
        service = settlement_service_pb2.DESCRIPTOR.services_by_name["SettlementService"]
        return [
            (
                service,
                SettlementServicer(queries, lambda: process.position, lambda: process.behaviour),
            )
        ]

    return Parts(
        core=CORE,
        serve=serve,
        shells=[recaller],
        projection=SettlementProjection(),
        background=[recaller.run],
    )
