"""Which series and labels a PromQL expression asks for, held against the registry of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import promql_parser as promql

from services.kernel.telemetry_names import METRICS

FROM_SCRAPING = frozenset({"job", "instance"})
"""Labels that Prometheus adds to all that it scrapes."""


FROM_THE_CLUSTER: Mapping[str, frozenset[str]] = {
    "kube_job_failed": frozenset({"namespace", "job_name", "condition"}),
    "kube_cronjob_status_last_successful_time": frozenset({"namespace", "cronjob"}),
    "kube_cronjob_created": frozenset({"namespace", "cronjob"}),
}
"""What kube-state-metrics tells of Jobs, with its labels as its own documentation has them."""


def scraped() -> dict[str, frozenset[str]]:
    """Every series that processes expose, by its name as it is scraped, with its labels; `up`,
    Prometheus's own; and what the cluster tells."""
    series = {"up": FROM_SCRAPING}
    series |= {name: FROM_SCRAPING | labels for name, labels in FROM_THE_CLUSTER.items()}
    for metric in METRICS.values():
        labels = FROM_SCRAPING | set(metric.labels)
        if metric.kind == "counter":
            series[f"{metric.name}_total"] = labels
        elif metric.kind == "gauge":
            series[metric.name] = labels
        else:
            series[f"{metric.name}_bucket"] = labels | {"le"}
            series[f"{metric.name}_sum"] = series[f"{metric.name}_count"] = labels
    return series


def problems(expression: str, known: Mapping[str, frozenset[str]]) -> list[str]:
    """What is wrong with an expression, in words. Raises ValueError where it does not parse."""
    return list(_problems(promql.parse(expression), known))


def selectors(expression: str) -> list[Any]:
    """Its vector selectors."""
    return [node for node in _nodes(promql.parse(expression)) if _selects(node)]


def matchers(selector: Any) -> dict[str, str]:
    """What a selector's labels are to be, each with its operator apart."""
    return {one.name: one.value for one in selector.matchers.matchers}


def _problems(node: Any, known: Mapping[str, frozenset[str]]) -> Iterator[str]:
    available: set[str] = set()
    for each in _nodes(node):
        if not _selects(each):
            continue
        if each.name not in known:
            yield f"{each.name!r} is no registered metric"
            continue
        available |= known[each.name]
        for label in matchers(each).keys() - known[each.name]:
            yield f"{each.name} has no label {label!r}"
        if each.matchers.or_matchers:
            yield f"{each.name}: matchers joined by `or` are not checked here"
    for each in _nodes(node):
        for label in _grouped_by(each):
            if label not in available:
                yield f"nothing here has the label {label!r}"


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for name in ("expr", "lhs", "rhs", "param", "args", "vector_selector"):
        below = getattr(node, name, None)
        for one in below if isinstance(below, list) else [below]:
            if one is not None:
                yield from _nodes(one)


def _selects(node: Any) -> bool:
    return isinstance(node, promql.VectorSelector)


def _grouped_by(node: Any) -> list[str]:
    """The labels that an aggregation keeps or drops, or by which two sides are matched."""
    modifier: Any = getattr(node, "modifier", None)
    if modifier is None:
        return []
    if isinstance(node, promql.AggregateExpr):
        return [*modifier.labels]
    matching: Any = modifier.matching
    return [*(matching.labels if matching else ()), *(modifier.group_labels or ())]
