"""What the shoe service is made of."""

from __future__ import annotations

from google.protobuf.descriptor import ServiceDescriptor

from sabot.shoe.v1 import floor_service_pb2, shoe_service_pb2
from services.kernel.host import Parts, Served
from services.kernel.key_file import load_or_create_keys
from services.kernel.process import Process
from services.kernel.projections import Projector
from services.kernel.settings import ServiceSettings
from services.kernel.telemetry import Metrics
from services.shoe.custodian import Custodian, system_generator
from services.shoe.domain.core import CORE
from services.shoe.floor_servicer import FloorServicer
from services.shoe.measures import measure_custodian
from services.shoe.projection import ShoeProjection
from services.shoe.projection_queries import SqlFloorQueries
from services.shoe.servicer import ShoeServicer


def parts(settings: ServiceSettings) -> Parts:
    """Shoes and their custodian, whose keys lie in the data folder unless they are mounted
    elsewhere. Its generator is tested before anything is drawn, these keys included.

    Raises KeyFileUnusable, and GeneratorFailed where there are no keys and none can be drawn."""
    generator = system_generator()
    keys = load_or_create_keys(
        settings.shoe_key_file or settings.data / "shoe_keys.json", generator.draw
    )

    def serve(process: Process, projector: Projector | None, metrics: Metrics) -> Served:
        del metrics
        if projector is None:
            raise RuntimeError("the shoe's shell needs its projection")
        queries = SqlFloorQueries(projector)
        served: list[tuple[ServiceDescriptor, object]] = [
            (
                shoe_service_pb2.DESCRIPTOR.services_by_name["ShoeService"],
                ShoeServicer(process),
            ),
            (
                floor_service_pb2.DESCRIPTOR.services_by_name["FloorService"],
                FloorServicer(process, queries),
            ),
        ]
        return served

    custodian = Custodian(settings.cell, keys, generator)
    return Parts(
        core=CORE,
        serve=serve,
        shells=[custodian],
        measure=lambda _process, metrics: measure_custodian(custodian, metrics),
        projection=ShoeProjection(),
    )
