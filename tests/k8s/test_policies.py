"""Who may talk to whom: every pair of pods, of others in the cluster and of addresses outside, at
every port that anybody listens on, held against the architecture's edges."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from services.events import SERVICES
from tests.k8s.manifests import (
    K8S,
    KUBECTL,
    PRODUCTION,
    DatabasePods,
    Object,
    of_kind,
    rendered,
    workloads,
)
from tests.k8s.policies import Door, Place, allowed, connections, pod_of
from tests.k8s.told import NIGHTLY

NAMESPACE = "sabot"


def other(name: str, namespace: str, labels: dict[str, str] | None = None, **pod: str) -> Place:
    """A pod of another namespace."""
    of_namespace = {"kubernetes.io/metadata.name": namespace} | (labels or {})
    return Place(
        name,
        namespace,
        of_namespace,
        {name.replace("_", "-"): value for name, value in pod.items()},
    )


DNS = other("dns", "kube-system", k8s_app="kube-dns")
OTHERS = [
    DNS,
    other("another of the system's", "kube-system"),
    other("gateway", "ingress", {"sabot/callers": "true"}),
    other("operators' proxy", "offices", {"sabot/operators": "true"}),
    other("monitoring", "monitoring"),
    other("database's operator", "cnpg-system"),
    other("stranger", "default"),
    # Labels of ours on a pod elsewhere give it nothing.
    Place(
        "impostor", "default", {"kubernetes.io/metadata.name": "default"}, {"sabot/part": "service"}
    ),
]
PARTNER = Place("a partner", address="203.0.113.9")
API = Place("API server", address="10.0.0.1")
OUTSIDE = [
    PARTNER,
    API,
    Place("cloud's metadata", address="169.254.169.254"),
    Place("somebody near", address="192.168.7.7"),
    Place("a carrier's address", address="100.64.3.3"),
    Place("the net, by version 6", address="2001:db8::9"),
]
ELSEWHERE = [
    Door(22),
    Door(53),
    Door(53, "UDP"),
    Door(80),
    Door(443),
    Door(4317),
    Door(6443),
    Door(8443),
]


def places(objects: list[Object]) -> list[Place]:
    pods = [pod_of(one, NAMESPACE) for one in workloads(objects)]
    pods += [pod_of(DatabasePods(one), NAMESPACE) for one in of_kind(objects, "Cluster")]
    return [*pods, *OTHERS, *OUTSIDE]


def doors(objects: list[Object]) -> list[Door]:
    """Every port that a pod of ours listens on, and some that nobody does."""
    ours = {number for one in places(objects) for number in one.ports.values()}
    return [*map(Door, sorted(ours)), *ELSEWHERE]


def opened(objects: list[Object]) -> set[tuple[str, str, Door]]:
    """All that may be connected."""
    return set(connections(objects, places(objects), doors(objects)))


def wanted(objects: list[Object], production: bool) -> set[tuple[str, str, Door]]:
    """The architecture's edges, and what a cluster needs."""
    of = {one.name: one.ports for one in places(objects)}

    def edge(source: str, target: str, port: str) -> tuple[str, str, Door]:
        return source, target, Door(of[target][port])

    edges = {edge(service, "nats", port) for service in SERVICES for port in ("client", "monitor")}
    edges |= {edge(job, "nats", "client") for job in ("streams", "snapshots")}
    edges.add(edge("nats", "nats", "route"))
    edges |= {edge("table", "wallet", "calls"), edge("table", "limits", "calls")}
    edges.add(edge("gateway", "table", "calls"))
    edges.add(("wallet", "a partner", Door(443)))
    ours = [one.name for one in places(objects) if one.namespace == NAMESPACE]
    edges |= {(one, "dns", Door(53, protocol)) for one in ours for protocol in ("TCP", "UDP")}
    if production:
        edges |= {edge("console", service, "calls") for service in SERVICES}
        edges |= {edge("console", "nats", "client"), edge("operators' proxy", "console", "pages")}
        edges |= {edge("monitoring", one, "metrics") for one in (*SERVICES, "nats")}
        edges |= {(service, "monitoring", Door(4317)) for service in SERVICES}
        edges |= {edge(job, "nats", "client") for job in NIGHTLY}
        edges |= {edge(service, "postgres", "postgresql") for service in SERVICES}
        edges |= {edge("migrations", "postgres", "postgresql")}
        edges |= {edge("postgres", "postgres", port) for port in ("postgresql", "status")}
        edges.add(edge("database's operator", "postgres", "status"))
        # An instance of the database asks the API server, whose address is the cluster's.
        for one in (*OTHERS, *OUTSIDE):
            edges |= {("postgres", one.name, Door(port)) for port in (443, 6443)}
    return edges


@pytest.mark.parametrize("folder", ["overlays/dev", PRODUCTION])
def test_every_edge_of_the_architecture_is_open_and_no_other(folder: str) -> None:
    objects = rendered(folder)
    # What others in the cluster and outside do among themselves is not ours to say.
    ours = {one.name for one in places(objects) if one.namespace == NAMESPACE}
    found = {one for one in opened(objects) if {one[0], one[1]} & ours}
    expected = wanted(objects, folder == PRODUCTION)
    assert found - expected == set(), "open, and should not be"
    assert expected - found == set(), "closed, and is needed"


def test_without_policies_everything_may_talk_to_everything() -> None:
    """The evaluation can see an open door."""
    objects = rendered("base")
    found = opened(objects)
    assert ("rules", "wallet", Door(7400)) in found
    assert ("stranger", "nats", Door(4222)) in found
    assert ("shoe", "a partner", Door(22)) in found


def test_each_policy_is_needed() -> None:
    """Without it, something is open that should not be, or closed that is needed."""
    objects = rendered(PRODUCTION)
    by_name = {one.name: one for one in places(objects)}
    tried = wanted(objects, production=True)
    for one in by_name.values():
        if one.namespace == NAMESPACE:
            tried |= {("stranger", one.name, Door(port)) for port in (22, *one.ports.values())}
            tried.add((one.name, "a partner", Door(22)))

    def told(left: list[Object]) -> list[bool]:
        return [allowed(left, by_name[a], by_name[b], door) for a, b, door in tried]

    whole = told(objects)
    for policy in of_kind(objects, "NetworkPolicy"):
        left = [one for one in objects if one is not policy]
        assert told(left) != whole, policy["metadata"]["name"]


def test_a_partner_s_wallet_at_another_port_is_one_line_of_an_overlay(tmp_path: Path) -> None:
    """The lines of the component's page, as they stand there."""
    page = (K8S / "components/network-policies/README.md").read_text()
    (patch,) = re.findall(r"\n    patches:\n(?:    .*\n)+", page)
    overlay = [f"resources: [{os.path.relpath(K8S / PRODUCTION, tmp_path)}]"]
    overlay += [line.removeprefix("    ") for line in patch.strip("\n").splitlines()]
    (tmp_path / "kustomization.yaml").write_text("\n".join(overlay) + "\n")
    done = subprocess.run(
        [str(KUBECTL), "kustomize", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    objects = [one for one in yaml.load_all(done.stdout, yaml.CSafeLoader) if one]
    assert opened(objects) - opened(rendered(PRODUCTION)) == {("wallet", "a partner", Door(8443))}


def test_labels_and_blocks_are_read_as_kubernetes_reads_them() -> None:
    """A selector of namespaces and one of pods in one peer mean both, in two peers either."""
    base = {"podSelector": {}, "policyTypes": ["Ingress"]}
    both = [
        {
            "namespaceSelector": {"matchLabels": {"a": "1"}},
            "podSelector": {"matchLabels": {"b": "1"}},
        }
    ]
    either = [{key: value} for key, value in both[0].items()]
    here = Place("here", "x")
    there = Place("there", "y", {"a": "1"}, {"b": "2"})

    def policy(peers: list[Object], **more: object) -> list[Object]:
        spec = base | {"ingress": [{"from": peers, **more}]}
        return [
            {"kind": "NetworkPolicy", "metadata": {"name": "p", "namespace": "x"}, "spec": spec}
        ]

    assert not allowed(policy(both), there, here, Door(1))
    assert allowed(policy(either), there, here, Door(1))
    assert not allowed(policy(either, ports=[{"port": 1}]), there, here, Door(1, "UDP"))
    assert allowed(policy(either, ports=[{"port": 1, "endPort": 9}]), there, here, Door(9))
    block: list[Object] = [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]
    assert allowed(policy(block), Place("in", address="10.2.0.1"), here, Door(1))
    assert not allowed(policy(block), Place("out", address="10.1.0.1"), here, Door(1))
