"""What the custodian measures: whether it can draw, and open every shoe that stands."""

from __future__ import annotations

from services.kernel.measures import Measure
from services.kernel.telemetry import Metrics
from services.kernel.telemetry_names import GENERATOR_FAILED, SHOES_WITHOUT_KEY
from services.shoe.custodian import GENERATOR, Custodian


def measure_custodian(custodian: Custodian, metrics: Metrics) -> Measure:
    """By what the custodian says that it cannot do."""
    failed = metrics.gauge(GENERATOR_FAILED)
    without_key = metrics.gauge(SHOES_WITHOUT_KEY)

    def measure(_now: float) -> None:
        failed.set(GENERATOR in custodian.problems)
        without_key.set(sum(1 for about in custodian.problems if about != GENERATOR))

    return measure
