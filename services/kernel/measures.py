"""What a process measures of itself, each second: gauges that say how it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from services.kernel.process import Process
from services.kernel.projections import Projector
from services.kernel.telemetry import Metrics
from services.kernel.telemetry_names import (
    FENCE_LOSSES,
    LOG_BYTES,
    LOG_BYTES_MAX,
    LOG_ENTRY,
    PROJECTION_LAG,
    PROJECTION_STOPPED,
    READY,
    UNANSWERED_SECONDS,
)

Measure = Callable[[float], None]
"""Sets gauges; told the time, monotonic seconds."""


def measure_process(
    process: Process, projectors: Mapping[str, Projector], metrics: Metrics
) -> Measure:
    """Of every process: whether it takes calls, and how it stands to the log."""
    ready = metrics.gauge(READY)
    unanswered = metrics.gauge(UNANSWERED_SECONDS)
    entry = metrics.gauge(LOG_ENTRY)
    used = metrics.gauge(LOG_BYTES)
    most = metrics.gauge(LOG_BYTES_MAX)
    lag = metrics.gauge(PROJECTION_LAG)
    stopped = metrics.gauge(PROJECTION_STOPPED)
    losses = metrics.counter(FENCE_LOSSES)
    counted: dict[str, int] = {}
    for service in process.folding.replicas:
        losses.labels(service)

    def measure(_now: float) -> None:
        ready.set(process.ready)
        unanswered.set(process.oldest_unanswered_s)
        entry.set(process.position.sequence)
        info = process.room.info
        if info is not None:
            used.set(info.bytes_used)
            most.set(info.bytes_max)
        for service, projector in projectors.items():
            lag.labels(service).set(projector.lag)
            stopped.labels(service).set(projector.error is not None)
        for service, times in process.appending.fence_losses.items():
            losses.labels(service).inc(times - counted.get(service, 0))
            counted[service] = times

    return measure
