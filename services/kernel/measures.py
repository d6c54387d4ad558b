"""What a process measures of itself, each second: gauges that say how it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import Counter

from services.kernel.appending import ANSWER, INPUT
from services.kernel.process import Process
from services.kernel.projections import Projector
from services.kernel.telemetry import Metrics
from services.kernel.telemetry_names import (
    ANSWERS_WAITING_SECONDS,
    APPEND_SECONDS,
    APPENDS_UNKNOWN,
    CLOCK_OFFSET_SECONDS,
    FENCE_LOSSES,
    LOG_BYTES,
    LOG_BYTES_MAX,
    LOG_ENTRIES,
    LOG_ENTRY,
    LOG_EVENTS_READ,
    LOG_HEARD_SECONDS,
    LOG_LAG,
    PROJECTION_LAG,
    PROJECTION_STOPPED,
    READY,
    START_ENTRY,
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
    metrics.gauge(START_ENTRY).set(process.started_from)
    used = metrics.gauge(LOG_BYTES)
    most = metrics.gauge(LOG_BYTES_MAX)
    lag = metrics.gauge(PROJECTION_LAG)
    stopped = metrics.gauge(PROJECTION_STOPPED)
    losses = metrics.counter(FENCE_LOSSES)
    lag_entries = metrics.gauge(LOG_LAG)
    clock = metrics.gauge(CLOCK_OFFSET_SECONDS)
    heard = metrics.gauge(LOG_HEARD_SECONDS)
    waiting = metrics.gauge(ANSWERS_WAITING_SECONDS)
    entries = metrics.counter(LOG_ENTRIES)
    events = metrics.counter(LOG_EVENTS_READ)
    unknown = metrics.counter(APPENDS_UNKNOWN)
    append_seconds = metrics.histogram(APPEND_SECONDS)
    process.appending.on_stored = lambda service, kind, seconds: append_seconds.labels(
        service, kind
    ).observe(seconds)
    counted: dict[tuple[Counter, tuple[str, ...]], int] = {}
    for service in process.folding.replicas:
        losses.labels(service)
        unknown.labels(service, ANSWER)

    def grow(
        counter: Counter, totals: Mapping[tuple[str], int] | Mapping[tuple[str, str], int]
    ) -> None:
        """Bring a counter up to what was counted elsewhere, by its labels."""
        for labels, total in totals.items():
            counter.labels(*labels).inc(total - counted.get((counter, labels), 0))
            counted[counter, labels] = total

    def measure(now: float) -> None:
        ready.set(process.ready)
        unanswered.set(process.oldest_unanswered_s)
        entry.set(process.position.sequence)
        info = process.log_end.room.info
        if info is not None:
            used.set(info.bytes_used)
            most.set(info.bytes_max)
            lag_entries.set(max(0, info.last_sequence - process.position.sequence))
        heard.set(process.log_end.heard_s)
        clock.set(process.log_end.clock_off_s)
        for service, replica in process.folding.replicas.items():
            since = replica.unanswered_since
            waiting.labels(service).set(0.0 if since is None else max(0.0, now - since))
        grow(entries, {_kind(key): count for key, (count, _) in process.read_counts.items()})
        grow(events, {_kind(key): count for key, (_, count) in process.read_counts.items()})
        grow(unknown, process.appending.unknown)
        for service, projector in projectors.items():
            lag.labels(service).set(projector.lag)
            stopped.labels(service).set(projector.error is not None)
        grow(
            losses, {(service,): times for service, times in process.appending.fence_losses.items()}
        )

    return measure


def _kind(key: tuple[str, bool]) -> tuple[str, str]:
    service, is_input = key
    return service, INPUT if is_input else ANSWER
