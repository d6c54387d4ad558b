"""What the fleet emits: only what the registry of names declares."""

from __future__ import annotations

import ast
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from services.kernel import telemetry, telemetry_names
from services.kernel.telemetry_names import LOG_EVENTS, METRICS, RPC_BROKE, RPCS, SPANS, Metric

ROOT = Path(__file__).parents[2]
SOURCES = sorted(ROOT.glob("services/**/*.py"))
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
LOGGERS = {"log", "_log", "logger"}
SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = SAMPLED[:-1] + "0"


def emitted(tree: ast.AST) -> Iterator[tuple[int, str, ast.expr]]:
    """Where a log line is written or a span is begun: line, kind and name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value
        name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        if not node.args:
            continue
        if name in LOGGERS and node.func.attr in LEVELS:
            yield node.lineno, "log", node.args[0]
        elif name in {"tracing", "_tracing"} and node.func.attr == "start":
            yield node.lineno, "span", node.args[0]


def stdlib_logger(tree: ast.AST) -> bool:
    """Whether a module logs by the standard library, whose lines are prose for operators."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "getLogger" for node in ast.walk(tree)
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_name_that_is_emitted_is_registered(path: Path) -> None:
    tree = ast.parse(path.read_text())
    registered = vars(telemetry_names)
    if stdlib_logger(tree):
        return
    for line, kind, name in emitted(tree):
        where = f"{path.relative_to(ROOT)}:{line}"
        known = LOG_EVENTS if kind == "log" else SPANS
        for each in [name.body, name.orelse] if isinstance(name, ast.IfExp) else [name]:
            if isinstance(each, ast.Name):
                assert each.id in registered, f"{where}: {each.id} is no registered name"
            elif isinstance(each, ast.Attribute):
                # `self.name` is a method's full name, the one kind of span that protos register.
                assert each.attr in registered or (kind, each.attr) == ("span", "name"), where
            else:
                assert isinstance(each, ast.Constant), f"{where}: a name must be registered"
                assert each.value in known, f"{where}: {each.value!r} is not registered"


def test_names_are_unique_and_say_their_units() -> None:
    assert len(LOG_EVENTS) == len({name.lower() for name in LOG_EVENTS})
    for metric in METRICS.values():
        assert metric.name.startswith("sabot_")
        assert not {"account", "account_id", "request_id"} & set(metric.labels)
        if metric.kind == "histogram":
            assert metric.name.rsplit("_", 1)[1] in {"seconds", "bytes", "events"}


def test_a_metric_that_is_not_registered_is_refused() -> None:
    metrics = telemetry.Metrics()
    with pytest.raises(KeyError):
        metrics.counter(Metric("counter", "sabot_secret", "Nobody knows."))
    with pytest.raises(KeyError):
        metrics.counter(RPCS._replace(labels=("account_id",)))
    with pytest.raises(TypeError):
        metrics.gauge(RPCS)
    assert metrics.counter(RPCS) is metrics.counter(RPCS)


def test_logs_are_json_lines_with_what_is_always_true() -> None:
    out = io.StringIO()
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    configured = structlog.get_config()
    try:
        telemetry.configure_logging(service="wallet", cell="main", stream=out)
        error = ValueError("a\nb")
        telemetry.logger(table="t1").error(RPC_BROKE, incident="7", exc_info=error)
        telemetry.logger().debug(RPC_BROKE)
        logging.getLogger("grpc").warning("from %s", "a library")
    finally:
        structlog.configure(**configured)
        logging.getLogger().handlers[:] = handlers
        logging.getLogger().setLevel(level)
    ours, theirs = (json.loads(line) for line in out.getvalue().splitlines())
    assert (ours["event"], ours["level"], ours["service"]) == (RPC_BROKE, "error", "wallet")
    assert (ours["table"], ours["incident"], ours["cell"]) == ("t1", "7", "main")
    assert "ValueError: a\nb" in ours["exception"]
    assert ours["timestamp"].endswith("Z")
    assert (theirs["event"], theirs["service"]) == ("from a library", "wallet")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        SAMPLED.upper(),
        SAMPLED + "\n",
        "01" + SAMPLED[2:],
        "00-" + "0" * 32 + SAMPLED[35:],
        SAMPLED[:36] + "0" * 16 + "-01",
    ],
)
def test_what_is_no_traceparent_begins_nothing(header: str) -> None:
    assert telemetry.parse_traceparent(header) is None


def test_a_sampled_trace_goes_on_and_an_unsampled_one_costs_nothing() -> None:
    exporter = InMemorySpanExporter()
    tracing = telemetry.Tracing(service="table", ratio=0.0, exporter=exporter)
    assert tracing.start("a/B", UNSAMPLED, root=True) is None
    assert tracing.start("a/B", "", root=True) is None
    assert tracing.start("input", "") is None
    span = tracing.start("a/B", SAMPLED, kind=SpanKind.SERVER, root=True, links=[SAMPLED])
    assert span is not None
    carried = telemetry.traceparent_of(span)
    assert carried[:36] == SAMPLED[:36]
    assert carried != SAMPLED
    assert carried.endswith("-01")
    span.end()
    tracing.close()
    (done,) = exporter.get_finished_spans()
    assert done.parent is not None
    assert done.parent.span_id == int(SAMPLED[36:52], 16)
    assert len(done.links) == 1


def test_the_ratio_begins_traces_and_no_exporter_none() -> None:
    exporter = InMemorySpanExporter()
    always = telemetry.Tracing(service="table", ratio=1.0, exporter=exporter)
    span = always.start("a/B", "", root=True)
    assert span is not None
    span.end()
    always.close()
    assert telemetry.Tracing(service="table", ratio=1.0).start("a/B", SAMPLED, root=True) is None
