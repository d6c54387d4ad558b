"""The one registry of what the fleet emits: metrics, spans and log events.

Whatever is not declared here cannot be emitted: metrics are made from these declarations, and a
test reads the source for span and log names that are missing.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

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
READY = Metric("gauge", "sabot_ready", "Whether calls are taken: 1, else 0.")
UNANSWERED_SECONDS = Metric(
    "gauge", "sabot_unanswered_seconds", "How long the oldest input has waited for its answer."
)
ALARMS = Metric("counter", "sabot_alarms", "What an operator had to see, by kind.", ("kind",))
SHELL_PROBLEMS = Metric(
    "gauge", "sabot_shell_problems", "What a shell cannot do now, each an alarm.", ("shell",)
)
PROJECTION_LAG = Metric(
    "gauge",
    "sabot_projection_lag_entries",
    "Entries that were read and are not in the projection yet.",
    ("service",),
)
PROJECTION_STOPPED = Metric(
    "gauge",
    "sabot_projection_stopped",
    "Whether the projection takes nothing more: 1, else 0.",
    ("service",),
)

# Metrics of the log, as a process sees it
LOG_ENTRY = Metric("gauge", "sabot_log_entry", "The last entry that was read and folded.")
LOG_LAG = Metric(
    "gauge",
    "sabot_log_lag_entries",
    "Entries that the log had when it was last asked for its end, and that were not read yet.",
)
LOG_HEARD_SECONDS = Metric(
    "gauge",
    "sabot_log_heard_seconds",
    "How old the log's last word on its end is up to which all is read; -1 before there is one.",
)
CLOCK_OFFSET_SECONDS = Metric(
    "gauge",
    "sabot_clock_offset_seconds",
    "How far this machine's clock is ahead of the log server's; negative: behind.",
)
LOG_ENTRIES = Metric(
    "counter",
    "sabot_log_entries",
    "Entries read since the start was over, by whose they are; `kind` is `input` or `answer`.",
    ("service", "kind"),
)
LOG_EVENTS_READ = Metric(
    "counter",
    "sabot_log_events",
    "The events in them.",
    ("service", "kind"),
)
APPEND_SECONDS = Metric(
    "histogram",
    "sabot_append_seconds",
    "How long appends took from their first sending until the log had them.",
    ("service", "kind"),
)
APPENDS_UNKNOWN = Metric(
    "counter",
    "sabot_appends_unknown",
    "Sendings of appends that had no answer: they are sent again, the same.",
    ("service", "kind"),
)
ANSWERS_WAITING_SECONDS = Metric(
    "gauge",
    "sabot_answers_waiting_seconds",
    "How long the oldest answer decided here has waited to be stored, by this replica or another.",
    ("service",),
)
LOG_BYTES = Metric("gauge", "sabot_log_bytes", "Bytes that the log holds.")
LOG_BYTES_MAX = Metric(
    "gauge", "sabot_log_bytes_max", "Bytes that the log may hold; -1 where it has no bound."
)
FENCE_LOSSES = Metric(
    "counter",
    "sabot_fence_losses",
    "Appends of answers that came behind another replica's.",
    ("service",),
)

START_ENTRY = Metric(
    "gauge",
    "sabot_start_entry",
    "The entry at which the snapshot stood that the process began from; 0: it read all of the log.",
)
SNAPSHOTS_SHARED = Metric(
    "counter",
    "sabot_snapshots_shared",
    "Sets of snapshots that were due in the cell's bucket, by what came of it: `stored`, `present` "
    "(another replica's was there), `full`, `away` or `raced`.",
    ("outcome",),
)

# Metrics of the audit
AUDIT_DIFFERENCES = Metric(
    "gauge", "sabot_audit_differences", "Recorded answers that do not follow, since the start."
)
AUDIT_UNFOLLOWED = Metric(
    "gauge", "sabot_audit_unfollowed", "Services whose record the audit cannot follow."
)
BOOKS_UNBALANCED = Metric(
    "gauge", "sabot_books_unbalanced", "Currencies in which accounts and ledgers do not sum to 0."
)
RETURN_DEVIATION = Metric(
    "gauge",
    "sabot_return_deviation",
    "What a bet's fates returned by its rules beyond its exact return, per unit of the "
    "stake, one sample a round.",
    ("rules", "bet"),
)
RETURN_OUTSIDE = Metric(
    "gauge",
    "sabot_return_outside",
    "Whether a bet's exact return lies outside of the limits that its rounds leave, or its "
    "rules do not know a fate of it: 1, else 0.",
    ("rules", "bet"),
)
SEAL_AGE_SECONDS = Metric(
    "gauge",
    "sabot_seal_age_seconds",
    "For how long entries have waited for a seal; 0 where all that is worth one has it.",
)

# Metrics of the custodian
GENERATOR_FAILED = Metric(
    "gauge", "sabot_generator_failed", "Whether the generator of chance has failed: 1, else 0."
)
SHOES_WITHOUT_KEY = Metric(
    "gauge", "sabot_shoes_without_key", "Shoes that stand and cannot be opened here."
)

# Metrics of the calls to partners' wallets
PARTNER_CALLS = Metric(
    "counter",
    "sabot_partner_calls",
    "Calls to partners' wallets that ended, by what came back.",
    ("partner", "method", "outcome"),
)
PARTNER_CALL_SECONDS = Metric(
    "histogram",
    "sabot_partner_call_seconds",
    "How long calls to partners' wallets took.",
    ("partner", "method"),
)
PARTNER_MOVEMENTS = Metric(
    "gauge",
    "sabot_partner_movements",
    "Movements that a partner's wallet has not confirmed.",
    ("partner",),
)
PARTNER_OLDEST_SECONDS = Metric(
    "gauge",
    "sabot_partner_oldest_seconds",
    "How long the oldest of them has waited; 0 where there is none.",
    ("partner",),
)
PARTNER_BREAKER = Metric(
    "gauge",
    "sabot_partner_breaker",
    "Whether calls to a partner's wallet are held back, since the last ones failed: 1, else 0.",
    ("partner",),
)

# Alarms. Each has a page in docs/runbooks and a rule in deploy/prometheus/alerts.yml.
AlarmKind = Literal[
    "answer_differs",
    "answer_does_not_follow",
    "answers_refused",
    "attestation_changed",
    "audit_gave_up",
    "background_failed",
    "books_unbalanced",
    "events_noted",
    "facts_refuted",
    "floor_fault",
    "input_failed",
    "input_untrue",
    "inputs_refused",
    "large_amounts",
    "log_does_not_answer",
    "log_misused",
    "log_nearly_full",
    "log_strained",
    "log_weak",
    "movement_disputed",
    "movement_refused",
    "movements_overdue",
    "process_stopped",
    "projection_stopped",
    "settlement_contested",
    "shell_cannot",
    "snapshot_unknown",
    "snapshot_unusable",
    "suspension_escalated",
    "witness_away",
    "witness_missing",
]
ALARM_KINDS: tuple[AlarmKind, ...] = get_args(AlarmKind)
"""Every kind of alarm: the type checker lets no other be raised."""

# Spans. A call's span bears its method's full name, `sabot.partner.v1.PartnerService/PlaceBets`.
SPAN_INPUT: Final = "input"
SPAN_ANSWER: Final = "answer"
# What spans tell: no ids of accounts, no amounts, nothing of a request's content.
ATTRIBUTE_SERVICE: Final = "sabot.service"
ATTRIBUTE_EVENT: Final = "sabot.event"
ATTRIBUTE_POSITION: Final = "sabot.position"
ATTRIBUTE_STATUS: Final = "rpc.grpc.status_code"

# Log events
ALARM: Final = "alarm"
RPC_BROKE: Final = "rpc_broke"
RPC_SLOW: Final = "rpc_slow"
TOKENS_RELOADED: Final = "tokens_reloaded"
TOKENS_NOT_RELOADED: Final = "tokens_not_reloaded"
LOG_READING: Final = "log_reading"
LOG_READ: Final = "log_read"
SNAPSHOTS_AWAY: Final = "snapshots_away"
SNAPSHOTS_NONE: Final = "snapshots_none"
SNAPSHOT_NOT_SHARED: Final = "snapshot_not_shared"
SERVER_STARTED: Final = "server_started"
SERVER_DRAINING: Final = "server_draining"
SERVER_STOPPED: Final = "server_stopped"
SERVER_READY: Final = "server_ready"
SERVER_NOT_READY: Final = "server_not_ready"
CONSOLE_FAILED: Final = "console_failed"
CONSOLE_SIGN_IN: Final = "console_sign_in"
CONSOLE_SIGN_IN_FAILED: Final = "console_sign_in_failed"
CONSOLE_ORDER: Final = "console_order"
CONSOLE_FOLLOWS: Final = "console_follows"
CONSOLE_NOT_TOLD: Final = "console_not_told"

METRICS: dict[str, Metric] = {
    value.name: value for value in list(globals().values()) if isinstance(value, Metric)
}
"""Every metric by name."""
SPANS: frozenset[str] = frozenset(
    value for name, value in list(globals().items()) if name.startswith("SPAN_")
)
"""Every span's name, those of calls apart."""
ATTRIBUTES: frozenset[str] = frozenset(
    value for name, value in list(globals().items()) if name.startswith("ATTRIBUTE_")
)
"""Every attribute that a span may carry."""
LOG_EVENTS: frozenset[str] = frozenset(
    value
    for name, value in list(globals().items())
    if isinstance(value, str)
    and name.isupper()
    and not name.startswith(("SPAN_", "ATTRIBUTE_", "_"))
)
"""Every log event's name."""
