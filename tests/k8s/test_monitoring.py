"""Prometheus finds the pods, by its operator as by its own file, and calls them the same."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from services.events import SERVICES
from tests.k8s.custom_resources import validate
from tests.k8s.manifests import (
    K8S,
    PRODUCTION,
    ROOT,
    Object,
    named,
    of_kind,
    rendered,
    selects,
    workloads,
)

CONFIG = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())


def endpoint(monitor: Object) -> Object:
    (found,) = monitor["spec"]["podMetricsEndpoints"]
    one: Object = found
    return one


def test_the_operator_s_prometheus_finds_every_pod_that_has_metrics() -> None:
    objects = rendered(PRODUCTION)
    monitor = named(objects, "PodMonitor", "sabot")
    port = endpoint(monitor)["port"]
    found = {
        one.name
        for one in workloads(objects)
        if selects(monitor["spec"]["selector"], one.labels) and port in one.open_ports
    }
    assert found == {one.name for one in workloads(objects) if "metrics" in one.open_ports}
    assert found == {*SERVICES, "nats"}


def test_series_are_called_as_the_rules_and_dashboards_call_them() -> None:
    (job,) = [one for one in CONFIG["scrape_configs"] if one["job_name"] == "sabot"]
    by_config = {
        one["target_label"]: one["source_labels"]
        for one in job["relabel_configs"]
        if "target_label" in one
    }
    told = endpoint(named(rendered(PRODUCTION), "PodMonitor", "sabot"))
    by_operator = {one["targetLabel"]: one.get("sourceLabels") for one in told["relabelings"]}
    assert {"targetLabel": "job", "replacement": job["job_name"]} in told["relabelings"]
    assert by_operator == by_config | {"job": None}
    assert told["interval"] == CONFIG["global"]["scrape_interval"]


def test_who_has_no_operator_leaves_it_out_by_the_page_s_lines(tmp_path: Path) -> None:
    page = (K8S / "components/monitoring/README.md").read_text()
    (patch,) = re.findall(r"\n    patches:\n(?:    .*\n)+", page)
    lines = [line.removeprefix("    ") for line in patch.strip("\n").splitlines()]
    resources = f"resources: [{os.path.relpath(K8S / PRODUCTION, tmp_path)}]"
    (tmp_path / "kustomization.yaml").write_text("\n".join([resources, *lines]) + "\n")
    objects = rendered(str(tmp_path))
    assert of_kind(objects, "PodMonitor") == []
    assert len(objects) == len(rendered(PRODUCTION)) - 1


@pytest.mark.parametrize(
    "wrong", [{"ports": "metrics"}, {"relabelings": [{"target_label": "job"}]}, {"interval": 15}]
)
def test_a_field_that_the_operator_does_not_know_is_found(wrong: dict[str, Any]) -> None:
    one = named(rendered(PRODUCTION), "PodMonitor", "sabot")
    validate(one)
    endpoint(one).update(wrong)
    with pytest.raises(jsonschema.ValidationError):
        validate(one)
