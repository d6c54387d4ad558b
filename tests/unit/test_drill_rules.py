"""Drills judge by the rules' own expressions: as Prometheus would, and by no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from services.cli.drill_failures import DRILLS
from services.cli.drill_rules import RULES, CannotEvaluate, Samples, Vector, evaluate, read_rule
from services.cli.drill_stage import OF_A_FLEET, DrillFailed, Stage
from services.cli.failures import in_one_line
from services.cli.split import Child
from tools.alert_rules import ROOT, alert_rules

KILLED = read_rule(RULES, "AlarmLogStrained").expression


def scraped(*texts: tuple[float, str]) -> Samples:
    samples = Samples()
    for now, text in texts:
        samples.add(text, now, job="sabot", instance="a")
    return samples


def values(found: Vector) -> list[float]:
    return sorted(found.values())


def counter(value: int) -> str:
    return f"""# HELP sabot_alarms_total What.
# TYPE sabot_alarms_total counter
sabot_alarms_total{{kind="log_strained"}} {value}.0
sabot_alarms_total{{kind="log_weak"}} 7.0
"""


@pytest.mark.parametrize("name", DRILLS)
def test_every_drill_names_an_alert_of_the_rules_that_it_can_judge(name: str) -> None:
    rule = read_rule(RULES, DRILLS[name].alert)
    assert evaluate(rule.expression, Samples(), 0.0) == {}
    assert (ROOT / rule.runbook).is_file()
    lines = (ROOT / "docs/drills.md").read_text().splitlines()
    (row,) = [line for line in lines if line.startswith(f"| `{name}` | ")]
    assert f"| `{rule.alert}` | [" in row
    assert f"({rule.runbook.removeprefix('docs/')})" in row


def test_the_installed_rules_are_those_of_prometheus() -> None:
    assert RULES.read_text() == alert_rules(), "run: python tools/alert_rules.py"


def test_gauges_are_compared() -> None:
    samples = scraped((0.0, "sabot_ready 1.0\nsabot_clock_offset_seconds -3.5\n"))
    assert values(evaluate("sabot_ready == 0", samples, 1.0)) == []
    assert values(evaluate("sabot_ready == 1", samples, 1.0)) == [1.0]
    assert values(evaluate("abs(sabot_clock_offset_seconds) > 0.5", samples, 1.0)) == [3.5]
    assert values(evaluate('sabot_ready{instance="b"} == 1', samples, 1.0)) == []
    assert values(evaluate("sabot_ready == 1", samples, 400.0)) == [], "nothing was heard of it"


def test_a_counter_that_grew_or_was_not_there_before_alarms() -> None:
    still = scraped((0.0, counter(2)), (700.0, counter(2)))
    assert evaluate(KILLED, still, 700.0) == {}
    assert values(evaluate(KILLED, scraped((690.0, counter(0)), (700.0, counter(1))), 700.0)) == [1]
    assert values(evaluate(KILLED, scraped((700.0, counter(3))), 700.0)) == [3]
    begun_anew = scraped((690.0, counter(5)), (695.0, counter(0)), (700.0, counter(1)))
    assert values(evaluate(KILLED, begun_anew, 700.0)) == [1]


@pytest.mark.parametrize(
    "expression",
    [
        "rate(sabot_rpcs_total[5m]) > 0",
        'sabot_rpcs_total{code=~"A|B"} > 0',
        "sabot_ready + sabot_ready > 0",
        "sabot_ready[5m] > 0",
        "max by (job) (sabot_ready) > 0",
    ],
)
def test_what_is_not_known_here_is_refused(expression: str) -> None:
    with pytest.raises(CannotEvaluate):
        evaluate(expression, scraped((0.0, "sabot_ready 1.0\n")), 0.0)


def test_what_came_before_a_repair_is_no_longer_counted() -> None:
    """As it will be in ten minutes if nothing more happens."""
    samples = scraped((690.0, counter(0)), (700.0, counter(1)), (702.0, counter(1)))
    assert values(evaluate(KILLED, samples, 702.0)) == [1]
    assert evaluate(KILLED, samples.aged(KILLED, 701.0, 600.0), 702.0) == {}
    samples.add(counter(2), 703.0, job="sabot", instance="a")
    assert values(evaluate(KILLED, samples.aged(KILLED, 701.0, 600.0), 703.0)) == [1]


@pytest.mark.parametrize("name", DRILLS)
async def test_what_does_not_run_is_said_in_one_line(name: str) -> None:
    """It ended by itself just before: there is nothing to pause or to kill."""
    fleet: Any = SimpleNamespace(
        child=lambda service: Child(service, service, 0, {}), embedded=None
    )
    with pytest.raises(DrillFailed) as failed:
        await DRILLS[name].begin(Stage(fleet))
    told = str(in_one_line(failed.value))
    assert told.endswith(" does not run") or DRILLS[name].needs != OF_A_FLEET
