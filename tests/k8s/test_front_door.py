"""The front door: what it is scaled by, and what partners reach through it."""

from __future__ import annotations

import re

import yaml

from services.kernel.grpc_server import MAX_RUNNING
from services.kernel.jetstream_read import CONSUMER_SLOTS
from services.kernel.telemetry_names import RPCS_RUNNING
from tests.k8s.manifests import PRODUCTION, ROOT, named, of_kind, rendered, scaled_to, workload
from tests.unit.promql import problems, scraped


def test_the_front_door_alone_is_scaled_and_by_what_it_can_be_short_of() -> None:
    objects = rendered(PRODUCTION)
    (scaler,) = of_kind(objects, "HorizontalPodAutoscaler")
    target = scaler["spec"]["scaleTargetRef"]
    door = workload(objects, "table")
    assert (target["kind"], target["name"]) == (door.kind, door.name)
    assert target["apiVersion"] == door.object["apiVersion"]
    assert "replicas" not in door.spec, "a release would undo what the autoscaler said"
    by_name = {one["type"]: one for one in scaler["spec"]["metrics"]}
    assert by_name.keys() == {"Resource", "Pods"}
    share = by_name["Resource"]["resource"]
    assert share["name"] in door.container["resources"]["requests"]
    assert share["target"]["averageUtilization"] < 100
    calls = by_name["Pods"]["pods"]
    assert calls["metric"]["name"] == RPCS_RUNNING.name
    assert int(calls["target"]["averageValue"]) <= MAX_RUNNING / 2
    assert "metrics" in door.ports, "what it is scaled by can be read"
    # Each replica reads through connections of its own, a rolling release through one more.
    assert scaled_to(objects, door) + 1 <= CONSUMER_SLOTS / 2


def test_the_adapter_serves_what_the_autoscaler_asks_for() -> None:
    (rule,) = yaml.safe_load((ROOT / "deploy/prometheus/adapter.yml").read_text())["rules"]
    (scaler,) = of_kind(rendered(PRODUCTION), "HorizontalPodAutoscaler")
    asked = [one["pods"]["metric"]["name"] for one in scaler["spec"]["metrics"] if "pods" in one]
    assert [rule["name"]["as"]] == asked
    query = rule["seriesQuery"]
    assert problems(query, scraped()) == []
    assert query.startswith(f'{asked[0]}{{job="sabot"')
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    (job,) = [one for one in config["scrape_configs"] if one["job_name"] == "sabot"]
    set_there = {each.get("target_label") for each in job["relabel_configs"]}
    assert rule["resources"]["overrides"].keys() <= set_there


def test_partners_reach_the_calls_of_their_guides_over_tls_and_no_operator_s() -> None:
    objects = rendered(PRODUCTION)
    gateway, route = named(objects, "Gateway", "partners"), named(objects, "GRPCRoute", "partners")
    (listener,) = gateway["spec"]["listeners"]
    assert (listener["protocol"], listener["tls"]["mode"]) == ("HTTPS", "Terminate")
    (parent,) = route["spec"]["parentRefs"]
    assert (parent["name"], parent["sectionName"]) == ("partners", listener["name"])
    assert route["spec"]["hostnames"] == [listener["hostname"]]
    (rule,) = route["spec"]["rules"]
    routed = {match["method"]["service"] for match in rule["matches"]}
    assert all(match["method"].keys() == {"type", "service"} for match in rule["matches"])
    served = {
        f"{package}.{name}"
        for path in (ROOT / "protos/sabot").rglob("*.proto")
        for package in re.findall(r"^package ([\w.]+);", path.read_text(), re.MULTILINE)
        for name in re.findall(r"^service (\w+)", path.read_text(), re.MULTILINE)
        if package != "sabot.partnerwallet.v1"  # partners serve that one
    }
    guides = " ".join(path.read_text() for path in (ROOT / "docs/partners").glob("*.md"))
    assert routed == {one for one in served if re.search(rf"\b{one.split('.')[-1]}\b", guides)}
    (backend,) = rule["backendRefs"]
    front = named(objects, "Service", backend["name"])["spec"]
    assert backend["port"] in {port["port"] for port in front["ports"]}
    policy = named(objects, "BackendTLSPolicy", "front")["spec"]
    assert [one["name"] for one in policy["targetRefs"]] == [backend["name"]]
    namespace = gateway["metadata"]["namespace"]
    assert policy["validation"]["hostname"] == f"{backend['name']}.{namespace}"
    assert "SABOT_TLS_CERTIFICATE" in workload(objects, "table").env
