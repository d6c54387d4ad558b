"""What the limits service is made of."""

from __future__ import annotations

from sabot.limits.v1 import limits_service_pb2
from services.kernel.host import Parts, Served
from services.kernel.process import Process
from services.kernel.projections import Projector
from services.kernel.settings import ServiceSettings
from services.kernel.telemetry import Metrics
from services.limits.domain.core import CORE
from services.limits.servicer import LimitsServicer


def parts(settings: ServiceSettings) -> Parts:
    """What may be staked."""
    del settings

    def serve(process: Process, projector: Projector | None, metrics: Metrics) -> Served:
        del projector, metrics
        service = limits_service_pb2.DESCRIPTOR.services_by_name["LimitsService"]
        return [(service, LimitsServicer(process))]

    return Parts(core=CORE, serve=serve)
