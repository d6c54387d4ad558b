"""Nothing stands in a manifest that nobody reads, and nothing is missing that somebody does: what
the checks of single workloads leave over. Each check is tried on a manifest that is broken so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.k8s.manifests import (
    CELLS,
    PRODUCTION,
    RENDERED,
    Object,
    Workload,
    of_kind,
    rendered,
    selects,
    workload,
    workloads,
)
from tests.k8s.told import VARIABLES

COMMAND = ["python", "-m", "services.cli"]
"""Begins what is told everything by arguments, which `parsed` reads."""
OF_OPENSSL = {"SSL_CERT_FILE"}
"""What the library itself reads: whom it trusts."""
READS_SETTINGS = {("projections", "migrate")}
"""Verbs that read what a service reads."""
SERVER_PROBES = {
    # The server alone: while it waits for the others, or reads a long log, it is well.
    "startupProbe": "/healthz?js-server-only=true",
    "livenessProbe": "/healthz?js-enabled-only=true",
    "readinessProbe": "/healthz?js-server-only=true",
}
"""Paths of nats-server's own."""
READ_ONLY = {"secret", "projected", "configMap"}


def unread(objects: list[Object]) -> list[str]:
    """What nobody reads, or what is missing, in words."""
    return [
        *(told for one in workloads(objects) for told in _of_pod(one)),
        *_of_servers(objects),
        *_of_others(objects),
    ]


def _of_pod(one: Workload) -> Iterator[str]:
    containers = [one, *one.beside()]
    volumes = {each["name"] for each in one.pod.get("volumes", [])}
    claims = {each["metadata"]["name"] for each in one.spec.get("volumeClaimTemplates", [])}
    mounted = set()
    for each in containers:
        name = f"{one.name}/{each.container['name']}"
        by_arguments = each.container["command"][:3] == COMMAND
        as_a_service = tuple(each.container["command"][3:]) in READS_SETTINGS
        unknown = sorted(each.env.keys() - OF_OPENSSL - (VARIABLES if as_a_service else set()))
        if by_arguments and unknown:
            yield f"{name} is told by its arguments and reads no {unknown}"
        if not by_arguments and each.container.get("args"):
            yield f"{name} reads no arguments"
        if one.kind in {"Job", "CronJob"} and each.ports:
            yield f"{name} listens nowhere"
        for mount in each.container.get("volumeMounts", []):
            mounted.add(mount["name"])
            kinds = each.mounts()[mount["mountPath"]].keys()
            if kinds & READ_ONLY and mount.get("readOnly") is not True:
                yield f"{name} could write into {mount['mountPath']}"
    for volume in (volumes | claims) - mounted:
        yield f"{one.name} mounts no {volume}"
    about = one.template["metadata"].get("annotations", {})
    scraped = {name: value for name, value in about.items() if name.startswith("prometheus.io/")}
    port = one.open_ports.get("metrics")
    wanted = {"prometheus.io/scrape": "true", "prometheus.io/port": str(port)} if port else {}
    if scraped != wanted:
        yield f"{one.name} is scraped at {port} and says {scraped}"


def _of_servers(objects: list[Object]) -> Iterator[str]:
    for one in workloads(objects):
        if one.labels["sabot/part"] != "log":
            continue
        for probe, path in SERVER_PROBES.items():
            if one.container[probe]["httpGet"] != {"path": path, "port": "monitor"}:
                yield f"{one.name}: no server answers the {probe} so"


def _of_others(objects: list[Object]) -> Iterator[str]:
    pods = workloads(objects)
    mounted = {
        source["configMap"]["name"]
        for one in pods
        for volume in one.mounts().values()
        for source in volume.get("projected", {}).get("sources", [])
        if "configMap" in source
    }
    for one in of_kind(objects, "ConfigMap"):
        if one["metadata"]["name"] not in mounted:
            yield f"nobody mounts the ConfigMap {one['metadata']['name']}"
    for one in of_kind(objects, "PodDisruptionBudget"):
        chosen = [each.name for each in pods if selects(one["spec"]["selector"], each.labels)]
        if len(chosen) != 1:
            yield f"the budget {one['metadata']['name']} is of {chosen}"
    for one in of_kind(objects, "HorizontalPodAutoscaler"):
        target = one["spec"]["scaleTargetRef"]
        if (target["kind"], target["name"]) not in {(each.kind, each.name) for each in pods}:
            yield f"the autoscaler {one['metadata']['name']} scales nothing"
    accounts = {each.pod["serviceAccountName"] for each in pods}
    for one in of_kind(objects, "ServiceAccount"):
        if one["metadata"]["name"] not in accounts:
            yield f"nobody is {one['metadata']['name']}"


@pytest.mark.parametrize("folder", sorted({*RENDERED, *CELLS}))
def test_nothing_is_left_over_and_nothing_is_missing(folder: str) -> None:
    assert unread(rendered(folder)) == []


# ---- each check can fail -----------------------------------------------------------------------

Break = Callable[[list[Object]], object]


def container(objects: list[Object], name: str, number: int = 0) -> Object:
    return Workload(workload(objects, name).object, number).container


def mount(objects: list[Object], name: str, volume: str) -> Object:
    mounts: list[Object] = container(objects, name)["volumeMounts"]
    return next(one for one in mounts if one["name"] == volume)


def scraping(objects: list[Object], name: str) -> Object:
    told: Object = workload(objects, name).template["metadata"]["annotations"]
    return told


VARIABLE = {"name": "NOBODY", "value": "1"}
ABOUT = {"name": "nobody", "namespace": "sabot"}
NONE = {"matchLabels": {"app.kubernetes.io/name": "nobody"}}
BROKEN: dict[str, Break] = {
    "prove/prove is told by": lambda all_: container(all_, "prove").update(env=[VARIABLE]),
    "nats/watch is told by": lambda all_: container(all_, "nats", 1).update(env=[VARIABLE]),
    "rules/rules reads no arguments": lambda all_: container(all_, "rules").update(args=["--x"]),
    "backup/backup listens nowhere": lambda all_: container(all_, "backup").update(
        ports=[{"name": "calls", "containerPort": 7400}]
    ),
    "could write into /run/secrets/tokens": lambda all_: mount(all_, "shoe", "tokens").pop(
        "readOnly"
    ),
    "could write into /etc/nats": lambda all_: mount(all_, "nats", "config").pop("readOnly"),
    "rules mounts no spare": lambda all_: (
        workload(all_, "rules").pod["volumes"].append({"name": "spare", "emptyDir": {}})
    ),
    "rules is scraped at 7402": lambda all_: scraping(all_, "rules").clear(),
    "nats is scraped at 7402": lambda all_: scraping(all_, "nats").update(
        {"prometheus.io/port": "7403"}
    ),
    "no server answers the readinessProbe": lambda all_: container(all_, "nats")["readinessProbe"][
        "httpGet"
    ].update(path="/ready"),
    "no server answers the livenessProbe": lambda all_: container(all_, "nats")["livenessProbe"][
        "httpGet"
    ].update(port="client"),
    "nobody mounts the ConfigMap": lambda all_: all_.append(
        {"kind": "ConfigMap", "metadata": ABOUT, "data": {}}
    ),
    "the budget nobody is of []": lambda all_: all_.append(
        {"kind": "PodDisruptionBudget", "metadata": ABOUT, "spec": {"selector": NONE}}
    ),
    "scales nothing": lambda all_: of_kind(all_, "HorizontalPodAutoscaler")[0]["spec"][
        "scaleTargetRef"
    ].update(name="door"),
    "nobody is nobody": lambda all_: all_.append({"kind": "ServiceAccount", "metadata": ABOUT}),
}
"""By a part of what must be told."""


@pytest.mark.parametrize("told", BROKEN)
def test_a_manifest_that_is_broken_so_is_found(told: str) -> None:
    objects = rendered(PRODUCTION)
    BROKEN[told](objects)
    (found,) = unread(objects)
    assert told in found
