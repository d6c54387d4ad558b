"""Logs, metrics and traces: JSON lines by structlog, prometheus-client, OpenTelemetry over OTLP.

Names come from `services.kernel.telemetry_names` only. Trace context is carried by hand, as the W3C
header `traceparent`: ready-made gRPC instrumentation reports OK for a crash (measured), and the
log's entries need the same twenty lines anyway.
"""

from __future__ import annotations

import functools
import logging
import random
import re
import sys
import threading
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, TextIO
from wsgiref.simple_server import WSGIServer

import structlog
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, TraceFlags
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from services.kernel.telemetry_names import METRICS, Metric

SEND_S = 2.0
"""How long the end of a process waits for its last spans to be sent."""
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_NO_TRACE = "0" * 32
_NO_SPAN = "0" * 16


# Logs


def configure_logging(
    *, service: str, level: str = "INFO", stream: TextIO | None = None, **always: str
) -> None:
    """Write one JSON object a line to `stream` (stderr), `service` and `always` in each.

    The standard library's records, such as those of grpc, come out the same way.
    """
    lowest = logging.getLevelNamesMapping()[level]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        functools.partial(_always, {"service": service, **always}),
    ]
    end: list[Any] = [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(ensure_ascii=False),
    ]
    target = stream or sys.stderr
    structlog.configure(
        processors=[*shared, *end],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
        logger_factory=structlog.WriteLoggerFactory(file=target),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(target)
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()], processors=[strip, *end]
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(lowest, logging.WARNING))  # libraries: only what is wrong


def _always(
    facts: Mapping[str, str], _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    for name, value in facts.items():
        event.setdefault(name, value)
    return event


def logger(**facts: object) -> Any:  # Any: structlog's loggers are lazy proxies.
    """A logger whose lines carry `facts`. Events are names of the registry, facts are keywords."""
    return structlog.get_logger(**facts)


# Metrics


class Metrics:
    """The metrics of a process, each made from its declaration when it is first asked for."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._made: dict[str, Counter | Gauge | Histogram] = {}
        self._served: tuple[WSGIServer, threading.Thread] | None = None

    def counter(self, metric: Metric) -> Counter:
        """The counter of this declaration."""
        made = self._make(metric)
        if not isinstance(made, Counter):
            raise TypeError(f"{metric.name} is no counter")
        return made

    def gauge(self, metric: Metric) -> Gauge:
        """The gauge of this declaration."""
        made = self._make(metric)
        if not isinstance(made, Gauge):
            raise TypeError(f"{metric.name} is no gauge")
        return made

    def histogram(self, metric: Metric) -> Histogram:
        """The histogram of this declaration."""
        made = self._make(metric)
        if not isinstance(made, Histogram):
            raise TypeError(f"{metric.name} is no histogram")
        return made

    def serve(self, host: str, port: int) -> None:
        """Serve them over HTTP from a thread of its own."""
        self._served = start_http_server(port, host, self.registry)

    def close(self) -> None:
        """Serve them no more."""
        if self._served is not None:
            server, thread = self._served
            server.shutdown()
            thread.join()
            server.server_close()
            self._served = None

    def _make(self, metric: Metric) -> Counter | Gauge | Histogram:
        made = self._made.get(metric.name)
        if made is None:
            if METRICS.get(metric.name) != metric:
                raise KeyError(f"{metric.name} is not in the registry of names")
            about = (metric.name, metric.meaning, metric.labels)
            if metric.kind == "counter":
                made = Counter(*about, registry=self.registry)
            elif metric.kind == "gauge":
                made = Gauge(*about, registry=self.registry)
            else:
                made = Histogram(*about, registry=self.registry, buckets=metric.buckets)
            self._made[metric.name] = made
        return made


# Traces


def parse_traceparent(header: str) -> SpanContext | None:
    """The remote span that a W3C traceparent names; None where it names none."""
    found = _TRACEPARENT.fullmatch(header)
    if found is None or found[1] == _NO_TRACE or found[2] == _NO_SPAN:
        return None
    flags = TraceFlags(int(found[3], 16))
    return SpanContext(int(found[1], 16), int(found[2], 16), is_remote=True, trace_flags=flags)


def sampled(header: str) -> str:
    """The traceparent, if its trace is being recorded; else nothing."""
    found = parse_traceparent(header)
    return header if found is not None and found.trace_flags & TraceFlags.SAMPLED else ""


def traceparent_of(span: trace.Span) -> str:
    """A span as W3C traceparent, to be carried on."""
    about = span.get_span_context()
    return f"00-{about.trace_id:032x}-{about.span_id:016x}-{about.trace_flags:02x}"


class Tracing:
    """Starts spans, or does not: `exporter` None means that nothing is recorded.

    A caller that sampled its trace has it sampled here too; a caller without a trace gets one with
    probability `ratio`. What is not sampled costs a look at one string.
    """

    def __init__(
        self,
        *,
        service: str,
        ratio: float = 0.0,
        exporter: SpanExporter | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        self._ratio = ratio if exporter is not None else 0.0
        self._provider: TracerProvider | None = None
        self._tracer: trace.Tracer | None = None
        if exporter is not None:
            about = {"service.name": f"sabot-{service}", **(facts or {})}
            self._provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
            self._tracer = self._provider.get_tracer("sabot")

    def start(
        self,
        name: str,
        traceparent: str,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        root: bool = False,
        links: Iterable[str] = (),
        start_us: int | None = None,
    ) -> Span | None:
        """A running span under `traceparent`, or None where its trace is not sampled.

        With `root`, a span without a parent begins a trace, if the ratio has it so. `links`: other
        traceparents that it has to do with. `start_us`: when it began, if not now; microseconds
        since 1970 UTC.
        """
        if self._tracer is None:
            return None
        parent = parse_traceparent(traceparent) if traceparent else None
        if parent is None:
            if not root or random.random() >= self._ratio:  # noqa: S311  # sampling, no secret
                return None
            context = None
        elif not parent.trace_flags & TraceFlags.SAMPLED:
            return None
        else:
            context = trace.set_span_in_context(NonRecordingSpan(parent))
        linked = [Link(each) for each in map(parse_traceparent, links) if each is not None]
        start_ns = None if start_us is None else start_us * 1000
        span = self._tracer.start_span(name, context, kind, links=linked, start_time=start_ns)
        return span if isinstance(span, Span) else None

    def close(self) -> None:
        """Send what is waiting, and stop. Waits no longer than `SEND_S` for a collector."""
        if self._provider is None:
            return
        # A thread that nothing waits for at the end: the library waits half a minute for a
        # collector that is away, and a drain has its own time.
        sending = threading.Thread(target=self._provider.shutdown, daemon=True)
        sending.start()
        sending.join(SEND_S)


def otlp_exporter(endpoint: str) -> SpanExporter:
    """Sends spans to an OTLP collector over gRPC; `http://` is plain text, `https://` is TLS."""
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415 - only if used: it takes half a second to import
        OTLPSpanExporter,
    )

    return OTLPSpanExporter(endpoint=endpoint, insecure=endpoint.startswith("http://"))
