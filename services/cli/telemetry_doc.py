"""Writes docs/telemetry.md from the registry of names: `python -m services.cli.telemetry_doc`."""

from __future__ import annotations

import sys
from pathlib import Path

from services.kernel.telemetry_names import (
    ALARM_KINDS,
    ATTRIBUTES,
    LOG_EVENTS,
    METRICS,
    SPANS,
    Metric,
)

INTRODUCTION = """\
# Telemetry

<!-- Written by `python -m services.cli.telemetry_doc` from the registry of names; do not edit. -->

What a fleet tells of itself: metrics, log lines and traces. Every name is declared in
`services/kernel/telemetry_names.py`, and what is not declared there cannot be emitted. The rules
in `deploy/prometheus/alerts.yml` and the dashboards in `deploy/grafana` use registered names
only; a test parses each of their expressions. [The runbooks](runbooks/README.md) say what to do.

## Metrics

Each process serves them over HTTP at `SABOT_METRICS_PORT`, for Prometheus. Where it is not set,
none are served. Labels have few values: an account or a request is never one. Prometheus adds
`job` and `instance`; the rules expect the job `sabot`. Counters end in `_total` where they are
scraped, histograms in `_bucket`, `_sum` and `_count`.

Gauges are set once a second. The books are summed every 30 seconds, as it costs a look at every
account.

| metric | kind | labels | meaning |
|---|---|---|---|
"""

BEHIND_METRICS = """
### The objective

99.9 % of the calls of PlaceBets are answered within a second, over 30 days. A refusal by the
rules is an answer; a call that failed on our side is a miss, however quick it was. Four alerts
tell how fast the budget burns, each over a long and a short window: 14.4 times too fast over an
hour and 5 minutes, 6 times over six hours and 30 minutes (both wake somebody), 3 times over a day
and two hours, once over three days and six hours (both wait for the morning).

## Alarms

An alarm is what an operator must see: one log line, and one more in `sabot_alarms_total{kind}`.
The counters of all kinds stand at 0 from the start of a process, so that the first alarm is seen
to grow; what was raised before the first scrape is found by the rules as a counter that was not
there before.

"""

BEHIND_ALARMS = """
## Logs

JSON, one object a line, on stderr. Each has `event`, `level`, `timestamp` (UTC) and `service`;
the rest are facts of the event. `SABOT_LOG_LEVEL` is the least level that is written; records of
libraries are written from WARNING on, with prose as their `event`. Events of our own:

"""

BEHIND_LOGS = """
`rpc_broke` carries `incident`, the same that the caller was told, and the exception. `alarm`
carries `kind` and the facts that its runbook lists.

## Traces

One bet is one trace through all services: the call, and for each input and answer of its path a
span that lasts from when it was taken or decided until it was read back, durable. The context
travels as a W3C `traceparent`, from the caller's metadata into the entries of the log, so a trace
goes on in whatever process reads them. What a round's end means for an account's bets, their
settlement and payout, goes on in the trace of its first traced request in that round; its other
requests, and the trace of whoever ended the round, are links of those spans. That a request was
traced is remembered in memory alone: where settlement or wallet starts anew before the round ends,
the trace ends with the reservation. A replay begins no spans. `sabot find --trace ID` shows the
same trace in the log, for as long as the log lives.

A caller that sampled its trace has it recorded; of calls without one, `SABOT_TRACE_RATIO` (0.01)
begin one. Spans are sent by OTLP over gRPC to `OTEL_EXPORTER_OTLP_ENDPOINT`; where it is not set,
none are recorded. `deploy/otel/collector.yaml` takes them. The spans are named by the method,
such as `sabot.partner.v1.PartnerService/PlaceBets`, or:

"""
BEHIND_SPANS = """
They carry these attributes, and nothing of what a request holds:

"""
EXEMPLARS = """
A traced call leaves its trace's id as an exemplar in the bucket of `sabot_rpc_seconds` that it
fell into: from a slow bucket on a dashboard to the trace of such a call. They are told to whoever
scrapes in the OpenMetrics format, as Prometheus does; it keeps them where it was started with
`--enable-feature=exemplar-storage`.
"""


def document() -> str:
    """The whole of docs/telemetry.md."""
    return "".join(
        (
            INTRODUCTION,
            *(_row(METRICS[name]) for name in sorted(METRICS)),
            BEHIND_METRICS,
            *(f"- [`{kind}`](runbooks/{kind.replace('_', '-')}.md)\n" for kind in ALARM_KINDS),
            BEHIND_ALARMS,
            *(f"- `{name}`\n" for name in sorted(LOG_EVENTS)),
            BEHIND_LOGS,
            *(f"- `{name}`\n" for name in sorted(SPANS)),
            BEHIND_SPANS,
            *(f"- `{name}`\n" for name in sorted(ATTRIBUTES)),
            EXEMPLARS,
        )
    )


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning} |\n"


def main() -> None:
    """Write the file below the current folder's docs."""
    path = Path("docs/telemetry.md")
    path.write_text(document())
    sys.stdout.write(f"{path} written\n")


if __name__ == "__main__":
    main()
