"""What the rules service is made of."""

from __future__ import annotations

from sabot.rules.v1 import rules_service_pb2
from services.kernel.host import Parts, Served
from services.kernel.process import Process
from services.kernel.projections import Projector
from services.kernel.settings import ServiceSettings
from services.kernel.telemetry import Metrics
from services.odds.declared import require_published
from services.rules.domain.core import CORE
from services.rules.servicer import RulesServicer


def parts(settings: ServiceSettings) -> Parts:
    """The games. Raises EdgesWrong where one declares what its enumeration does not give."""
    del settings
    require_published()

    def serve(process: Process, projector: Projector | None, metrics: Metrics) -> Served:
        del process, projector, metrics
        service = rules_service_pb2.DESCRIPTOR.services_by_name["RulesService"]
        return [(service, RulesServicer())]

    return Parts(core=CORE, serve=serve)
