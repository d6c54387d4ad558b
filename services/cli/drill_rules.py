"""Alert rules, looked at over what a drill scraped: the rule's own expression, so far as it is made
of what is known here. One that is made of more is refused, never guessed.
"""

from __future__ import annotations

import itertools
import json
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RULES = Path(__file__).parent / "alert_rules.json"
"""The alerts of deploy/prometheus/alerts.yml as an installed package has them; written by
`python tools/alert_rules.py`."""

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]

_SELECTOR = re.compile(r"^([a-z_]+)(?:\{([^}]*)\})?(?:\[(\d+)([smh])\])?(?: offset (\d+)([smh]))?$")
_COMPARED = re.compile(r"^(.+?) (==|!=|>=|<=|>|<) (-?[0-9.]+)$", re.DOTALL)
_CALL = re.compile(r"^(abs|increase)\((.+)\)$", re.DOTALL)
_LINE = re.compile(r"^([a-zA-Z_:]+)(?:\{(.*)\})? ([^ ]+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_BACK = re.compile(r"(?:\[| offset )(\d+)([smh])")
_NAME = re.compile(r"[a-z_]+")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class CannotEvaluate(Exception):
    """The expression is made of what is not known here; which, in words."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An alert as the rules have it."""

    alert: str
    expression: str
    for_s: float
    runbook: str

    @property
    def window_s(self) -> float:
        """How far back its expression looks."""
        found = _BACK.findall(self.expression)
        return max((int(count) * _SECONDS[unit] for count, unit in found), default=0)


def read_rule(path: Path, alert: str) -> Rule:
    """An alert of a file of rules. Raises CannotEvaluate where there is no such alert."""
    rule = json.loads(path.read_text()).get(alert)
    if rule is None:
        raise CannotEvaluate(f"{path} has no alert {alert}")
    duration = re.fullmatch(r"(\d+)([smh])", rule["for"])
    if duration is None:
        raise CannotEvaluate(f"{alert} is to hold for {rule['for']!r}")
    for_s = int(duration[1]) * _SECONDS[duration[2]]
    return Rule(alert, rule["expr"], for_s, rule["runbook"])


@dataclass(slots=True)
class Samples:
    """What was scraped, by name and labels: times in seconds, and values."""

    series: dict[str, dict[Labels, list[tuple[float, float]]]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def add(self, text: str, now: float, **labels: str) -> None:
        """A process's metrics, as it told them, under further labels."""
        for line in text.splitlines():
            found = None if line.startswith("#") else _LINE.fullmatch(line)
            if found is not None:
                own = dict(_LABEL.findall(found[2] or ""))
                self.put(found[1], {**own, **labels}, now, float(found[3]))

    def aged(self, expression: str, before: float, by_s: float) -> Samples:
        """Of what an expression names the same, but what was told before a moment stands so much
        further back."""
        older = Samples()
        for name in set(_NAME.findall(expression)) & set(self.series):
            older.series[name] = {
                labels: [(at - by_s if at < before else at, value) for at, value in points]
                for labels, points in self.series[name].items()
            }
        return older

    def put(self, name: str, labels: dict[str, str], now: float, value: float) -> None:
        """One sample."""
        self.series[name].setdefault(frozenset(labels.items()), []).append((now, value))


STALE_S = 300.0
"""A series of which nothing was heard for so long is gone, as Prometheus has it."""


def evaluate(expression: str, samples: Samples, now: float) -> Vector:
    """The series for which an expression holds, with their values. Raises CannotEvaluate."""
    text = " ".join(expression.split())
    for word in (" or ", " unless "):
        parts = list(_split(text, word))
        if len(parts) > 1:
            first = evaluate(parts[0], samples, now)
            other = evaluate(word.join(parts[1:]), samples, now)
            if word == " or ":
                return {**other, **first}
            return {labels: value for labels, value in first.items() if labels not in other}
    if text.startswith("(") and text.endswith(")"):
        return evaluate(text[1:-1], samples, now)
    compared = _COMPARED.fullmatch(text)
    if compared is not None:
        holds, bound = _HOLDS[compared[2]], float(compared[3])
        found = evaluate(compared[1], samples, now)
        return {labels: value for labels, value in found.items() if holds(value, bound)}
    call = _CALL.fullmatch(text)
    if call is not None and call[1] == "abs":
        return {key: abs(value) for key, value in evaluate(call[2], samples, now).items()}
    if call is not None:
        return _increase(call[2], samples, now)
    return _instant(text, samples, now)


def _split(text: str, word: str) -> Iterator[str]:
    """The parts of an expression that stand between a word outside of all brackets."""
    depth = begin = 0
    for at, sign in enumerate(text):
        depth += (sign in "({[") - (sign in ")}]")
        if depth == 0 and text.startswith(word, at):
            yield text[begin:at]
            begin = at + len(word)
    yield text[begin:]


def _selected(
    text: str, samples: Samples
) -> tuple[dict[Labels, list[tuple[float, float]]], float, float]:
    found = _SELECTOR.fullmatch(text)
    if found is None:
        raise CannotEvaluate(f"{text!r} is not evaluated by drills")
    name, matchers, window, window_unit, offset, offset_unit = found.groups()
    wanted = frozenset(_LABEL.findall(matchers or ""))
    if len(wanted) != len([one for one in (matchers or "").split(",") if one]):
        raise CannotEvaluate(f"{text!r}: drills know matchers of equality alone")
    series = {labels: points for labels, points in samples.series[name].items() if wanted <= labels}
    return (
        series,
        int(window) * _SECONDS[window_unit] if window else 0.0,
        int(offset) * _SECONDS[offset_unit] if offset else 0.0,
    )


def _instant(text: str, samples: Samples, now: float) -> Vector:
    series, window, offset = _selected(text, samples)
    if window:
        raise CannotEvaluate(f"{text!r} is a range")
    at = now - offset
    found: Vector = {}
    for labels, points in series.items():
        known = [value for time, value in points if at - STALE_S < time <= at]
        if known:
            found[labels] = known[-1]
    return found


def _increase(text: str, samples: Samples, now: float) -> Vector:
    """By how much counters grew within a window, a reset apart. Prometheus draws the growth out to
    the window's ends, by which none becomes or ceases to be 0."""
    series, window, offset = _selected(text, samples)
    found: Vector = {}
    for labels, points in series.items():
        within = [value for time, value in points if now - offset - window < time <= now - offset]
        if len(within) > 1:
            steps = itertools.pairwise(within)
            found[labels] = sum(b - a if b >= a else b for a, b in steps)
    return found


def told(vector: Vector) -> list[dict[str, Any]]:
    """For programs."""
    return [{**dict(sorted(labels)), "value": value} for labels, value in vector.items()]
