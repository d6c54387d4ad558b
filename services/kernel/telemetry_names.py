"""The one registry of what the fleet emits: metrics, spans and log events.

Whatever is not declared here cannot be emitted: metrics are made from these declarations, and a
test reads the source for span and log names that are missing.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

LATENCY_BUCKETS_S = (
    *(0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""Finest between 1 and 15 ms, where a bet's confirmation lies (docs/architecture.md)."""


class Metric(NamedTuple):
    """One metric. Labels are few and of few values; accounts never are one."""

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = LATENCY_BUCKETS_S


# Metrics of calls
RPCS = Metric("counter", "sabot_rpcs", "Calls answered.", ("method", "code"))
RPC_SECONDS = Metric("histogram", "sabot_rpc_seconds", "How long calls took.", ("method",))
RPCS_RUNNING = Metric("gauge", "sabot_rpcs_running", "Calls being served.", ("method",))
RPC_REFUSALS = Metric("counter", "sabot_rpc_refusals", "Calls refused, by reason.", ("reason",))
WATCHERS = Metric("gauge", "sabot_watchers", "Streams being followed.", ("stream",))
WATCH_RESYNCS = Metric("counter", "sabot_watch_resyncs", "Streams that had to start again.")

# Metrics of a process
ALARMS = Metric("counter", "sabot_alarms", "What an operator had to see, by kind.", ("kind",))
SHELL_PROBLEMS = Metric(
    "gauge", "sabot_shell_problems", "What a shell cannot do now, each an alarm.", ("shell",)
)

# Spans. A call's span bears its method's full name, `sabot.partner.v1.PartnerService/PlaceBets`.
SPAN_INPUT: Final = "input"
SPAN_ANSWER: Final = "answer"

# Log events
ALARM: Final = "alarm"
RPC_BROKE: Final = "rpc_broke"
RPC_SLOW: Final = "rpc_slow"
TOKENS_RELOADED: Final = "tokens_reloaded"
TOKENS_NOT_RELOADED: Final = "tokens_not_reloaded"
SERVER_STARTED: Final = "server_started"
SERVER_DRAINING: Final = "server_draining"
SERVER_STOPPED: Final = "server_stopped"
SERVER_READY: Final = "server_ready"
SERVER_NOT_READY: Final = "server_not_ready"

METRICS: dict[str, Metric] = {
    value.name: value for value in list(globals().values()) if isinstance(value, Metric)
}
"""Every metric by name."""
SPANS: frozenset[str] = frozenset(
    value for name, value in list(globals().items()) if name.startswith("SPAN_")
)
"""Every span's name, those of calls apart."""
LOG_EVENTS: frozenset[str] = frozenset(
    value
    for name, value in list(globals().items())
    if isinstance(value, str) and name.isupper() and not name.startswith(("SPAN_", "_"))
)
"""Every log event's name."""
