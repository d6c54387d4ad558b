"""Alert rules and dashboards: every expression parses and names only what processes expose."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from sabot.partner.v1 import partner_service_pb2
from services.kernel.telemetry_names import ALARM_KINDS, METRICS, RPC_SECONDS
from tests.debian import TIMEOUT_S, download
from tests.unit.promql import (
    FROM_SCRAPING,
    FROM_THE_CLUSTER,
    matchers,
    problems,
    scraped,
    selectors,
)

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/alerts.yml"
RULE_TESTS = sorted((ROOT / "deploy/prometheus/tests").glob("*.yml"))
DASHBOARDS = sorted((ROOT / "deploy/grafana").glob("*.json"))
NO_PROMTOOL = "promtool cannot be had here"
OF_FAILED_JOBS = {"job_name": "(prove|backup)-.*", "condition": "true"}
"""A Job that failed for good, not a pod of it that is tried once more."""


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def known() -> dict[str, frozenset[str]]:
    """What is scraped, and what the rules record: `sabot:log_full_in:days` keeps the job."""
    recorded = {rule["record"]: frozenset({"job"}) for rule in rules() if "record" in rule}
    return scraped() | recorded


# ---- expressions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_parses_and_names_only_what_there_is(rule: dict[str, Any]) -> None:
    assert problems(rule["expr"], known()) == []


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("sabot_bets_total > 0", "'sabot_bets_total' is no registered metric"),
        ("sabot_alarms > 0", "'sabot_alarms' is no registered metric"),
        ('sabot_ready{table="t1"}', "sabot_ready has no label 'table'"),
        ("sum by (kind) (sabot_ready)", "nothing here has the label 'kind'"),
        ("sabot_ready / on (shell) sabot_log_entry", "nothing here has the label 'shell'"),
        ("max(rate(sabot_no[5m])) > 0 or sabot_ready", "'sabot_no' is no registered metric"),
    ],
)
def test_what_is_not_registered_is_found(expression: str, problem: str) -> None:
    assert problems(expression, known()) == [problem]


def test_an_expression_that_does_not_parse_is_found() -> None:
    with pytest.raises(ValueError, match="unclosed"):
        problems("sum(sabot_ready", known())


def dashboard_expressions() -> Iterator[tuple[str, str, str]]:
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield path.stem, panel["title"], target["expr"]


@pytest.mark.parametrize(("board", "title", "expression"), [*dashboard_expressions()])
def test_a_panel_parses_and_names_only_what_there_is(
    board: str, title: str, expression: str
) -> None:
    assert problems(expression.replace("$instance", "a"), known()) == []


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_is_whole(path: Path) -> None:
    board = json.loads(path.read_text())
    variables = {one["name"] for one in board["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(board["panels"]))) <= variables
    assert set(Counter(panel["id"] for panel in board["panels"]).values()) == {1}
    places = Counter(
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    )
    assert set(places.values()) == {1}
    assert all(x < 24 for x, _ in places)
    for variable in board["templating"]["list"]:
        for series, label in re.findall(r"label_values\((\w+), (\w+)\)", json.dumps(variable)):
            assert label in known()[series]


def test_every_metric_is_shown_or_alarmed() -> None:
    asked = {one.name for rule in rules() for one in selectors(rule["expr"])}
    for _, _, expression in dashboard_expressions():
        asked |= {one.name for one in selectors(expression.replace("$instance", "a"))}
    for metric in METRICS.values():
        names = {f"{metric.name}{end}" for end in ("", "_total", "_bucket")}
        assert names & asked, f"nobody looks at {metric.name}"


# ---- rules ---------------------------------------------------------------------------------------


def test_label_values_that_are_asked_for_exist() -> None:
    partner = partner_service_pb2.DESCRIPTOR.services_by_name["PartnerService"]
    methods = {f"{partner.full_name}/{method.name}" for method in partner.methods}
    buckets = {str(bound) for bound in RPC_SECONDS.buckets}
    for rule in rules():
        for one in selectors(rule["expr"]):
            asked = matchers(one)
            assert asked.get("method", "sabot.partner.v1.PartnerService/PlaceBets") in methods
            assert asked.get("le", "1.0") in buckets
            assert asked.get("kind", "log_weak") in ALARM_KINDS
            assert asked.get("job", "sabot") == "sabot"
            if one.name in FROM_THE_CLUSTER:
                which = {"cronjob": "prove|backup"} if "cronjob" in asked else OF_FAILED_JOBS
                assert asked == {"namespace": "sabot"} | which


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_says_how_bad_it_is_and_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["labels"].keys() == {"severity"}
    assert alert["labels"]["severity"] in {"page", "ticket"}
    assert re.fullmatch(r"\d+[smhd]", alert["for"])
    assert (ROOT / alert["annotations"]["runbook"]).is_file()
    page = (ROOT / alert["annotations"]["runbook"]).read_text()
    assert f"`{alert['alert']}`" in page, "the page names its alert"
    kept = FROM_SCRAPING | frozenset().union(
        *(known()[one.name] for one in selectors(alert["expr"]))
    )
    told = re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"])
    assert set(told) <= kept
    tree: Any = promql_parser.parse(alert["expr"])
    if type(tree).__name__ == "BinaryExpr" and type(tree.lhs).__name__ == "AggregateExpr":
        assert set(told) <= set(tree.lhs.modifier.labels), "what is summed away cannot be told"


def test_every_kind_of_alarm_has_one_rule() -> None:
    kinds = [
        {matchers(one)["kind"] for one in selectors(alert["expr"])}
        for alert in alerts()
        if alert["alert"].startswith("Alarm")
    ]
    assert sorted(kinds, key=sorted) == [{kind} for kind in sorted(ALARM_KINDS)]
    assert all(
        alert["annotations"]["runbook"]
        == f"docs/runbooks/{matchers(selectors(alert['expr'])[0])['kind'].replace('_', '-')}.md"
        for alert in alerts()
        if alert["alert"].startswith("Alarm")
    )


def test_alerts_have_names_of_their_own_and_each_is_tried() -> None:
    names = [alert["alert"] for alert in alerts()]
    assert len(names) == len(set(names))
    fired: set[str] = set()
    silent: set[str] = set()
    for path in RULE_TESTS:
        for case in yaml.safe_load(path.read_text())["tests"]:
            for one in case["alert_rule_test"]:
                (fired if one["exp_alerts"] else silent).add(one["alertname"])
    assert fired == set(names)
    # Long burns and a missing audit are silent in the cases of the others.
    assert set(names) - silent <= {"BetsMissedSlowly", "BetsMissedLong"}


# ---- promtool ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def promtool(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Prometheus's own judge of rules: the machine's, or out of Debian's package `prometheus`,
    which is taken apart in a temporary folder and not installed."""
    found = shutil.which("promtool")
    if found is not None:
        return found
    folder = tmp_path_factory.mktemp("promtool")
    dpkg, tar = (shutil.which(name) for name in ("dpkg-deb", "tar"))
    if dpkg is None or tar is None or (package := download("prometheus", folder)) is None:
        pytest.skip(NO_PROMTOOL)
    try:
        files = subprocess.run(
            [dpkg, "--fsys-tarfile", package], check=True, capture_output=True, timeout=TIMEOUT_S
        ).stdout
        subprocess.run(
            [tar, "x", "-C", folder, "./usr/bin/promtool"],
            input=files,
            check=True,
            timeout=TIMEOUT_S,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        pytest.skip(NO_PROMTOOL)
    return str(folder / "usr/bin/promtool")


def test_the_rules_are_right_and_fire_when_they_should(promtool: str) -> None:
    checked = subprocess.run(
        [promtool, "check", "rules", RULES], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tried = subprocess.run(
        [promtool, "test", "rules", *RULE_TESTS], capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert tried.stdout.count("SUCCESS") == len(RULE_TESTS)


# ---- scraping ------------------------------------------------------------------------------------


def test_what_is_scraped_is_what_the_component_marks_and_the_rules_ask_for() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    assert config["rule_files"] == [RULES.name]
    job, cluster = config["scrape_configs"]
    assert (job["job_name"], cluster["job_name"]) == ("sabot", "kube-state-metrics")
    wanted = re.compile(cluster["metric_relabel_configs"][0]["regex"])
    assert {name for name in FROM_THE_CLUSTER if wanted.fullmatch(name)} == FROM_THE_CLUSTER.keys()
    nightly = (ROOT / "k8s/components/nightly/nightly.yaml").read_text()
    jobs = [one for one in yaml.safe_load_all(nightly) if one["kind"] == "CronJob"]
    assert [one["metadata"]["name"] for one in jobs] == ["prove", "backup"]
    component = (ROOT / "k8s/components/monitoring/kustomization.yaml").read_text()
    base = yaml.safe_load((ROOT / "k8s/base/kustomization.yaml").read_text())
    assert job["kubernetes_sd_configs"][0]["namespaces"]["names"] == [base["namespace"]]
    kept = {
        rule["source_labels"][0]: rule["regex"]
        for rule in job["relabel_configs"]
        if rule.get("action") == "keep"
    }
    assert kept == {
        "__meta_kubernetes_pod_annotation_prometheus_io_scrape": "true",
        "__meta_kubernetes_pod_container_port_name": "metrics",
    }
    assert "{name: metrics, containerPort:" in component
    assert 'prometheus.io/scrape: "true"' in component


# ---- the collector -------------------------------------------------------------------------------


def test_the_collector_takes_what_processes_send() -> None:
    config = yaml.safe_load((ROOT / "deploy/otel/collector.yaml").read_text())
    assert config["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"].endswith(":4317")
    for pipeline in config["service"]["pipelines"].values():
        for part in ("receivers", "processors", "exporters"):
            assert set(pipeline[part]) <= config[part].keys()
        assert pipeline["processors"][0] == "memory_limiter"
    assert set(config["service"]["extensions"]) == config["extensions"].keys()
