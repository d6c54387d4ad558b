"""NetworkPolicies, evaluated as Kubernetes defines them: who may connect to whom on which port.

A connection is let through where the policies of the source's side and those of the destination's
both let it. A pod that no policy of a direction selects is free in that direction; policies add up;
a rule without peers or without ports means all of them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.k8s.manifests import Object, Workload, of_kind, selects


@dataclass(frozen=True)
class Place:
    """A pod, or an address outside of the cluster."""

    name: str
    namespace: str = ""
    """Empty: outside of the cluster."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict[str, str])
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    ports: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of a pod, by name: policies may call them so."""
    address: str = ""
    """Of what is outside."""


@dataclass(frozen=True)
class Door:
    """A port."""

    number: int
    protocol: str = "TCP"


def pod_of(one: Workload, namespace: str) -> Place:
    """A pod of a workload."""
    return Place(
        one.name,
        namespace,
        {"kubernetes.io/metadata.name": namespace},
        one.labels,
        one.open_ports,
    )


def allowed(objects: list[Object], source: Place, target: Place, door: Door) -> bool:
    """Whether a connection is let through."""
    return _side(objects, "Egress", source, target, target, door) and _side(
        objects, "Ingress", target, source, target, door
    )


def connections(
    objects: list[Object], places: list[Place], doors: list[Door]
) -> Iterator[tuple[str, str, Door]]:
    """All that are let through, of every pair and door. What is outside does not call itself."""
    for source in places:
        for target in places:
            if source.namespace or target.namespace:
                for door in doors:
                    if allowed(objects, source, target, door):
                        yield source.name, target.name, door


def _side(
    objects: list[Object], kind: str, own: Place, other: Place, target: Place, door: Door
) -> bool:
    """Whether one side's policies let a connection through; `own` is that side."""
    selecting = [
        one["spec"]
        for one in of_kind(objects, "NetworkPolicy")
        if one["metadata"]["namespace"] == own.namespace
        and kind in _kinds(one["spec"])
        and selects(one["spec"]["podSelector"], dict(own.labels))
    ]
    rules = [rule for policy in selecting for rule in policy.get(kind.lower(), [])]
    peers = "to" if kind == "Egress" else "from"
    return not selecting or any(
        _meets(rule.get(peers), own, other) and _opens(rule.get("ports"), target, door)
        for rule in rules
    )


def _kinds(policy: Object) -> list[str]:
    told: list[str] = policy["policyTypes"]  # ours always say
    return told


def _meets(peers: list[Object] | None, own: Place, other: Place) -> bool:
    return not peers or any(_is_peer(peer, own, other) for peer in peers)


def _is_peer(peer: Object, own: Place, other: Place) -> bool:
    assert peer.keys() <= {"podSelector", "namespaceSelector", "ipBlock"}
    if "ipBlock" in peer:
        # Which addresses pods have is the cluster's; blocks are for what is outside.
        return not other.namespace and _in_block(peer["ipBlock"], other.address)
    if not other.namespace:
        return False
    if "namespaceSelector" in peer:
        if not selects(peer["namespaceSelector"], dict(other.namespace_labels)):
            return False
    elif other.namespace != own.namespace:
        return False
    return selects(peer.get("podSelector"), dict(other.labels))


def _in_block(block: Object, address: str) -> bool:
    here = ipaddress.ip_address(address)

    def within(network: str) -> bool:
        return here in ipaddress.ip_network(network)

    return within(block["cidr"]) and not any(within(one) for one in block.get("except", []))


def _opens(ports: list[Object] | None, target: Place, door: Door) -> bool:
    return not ports or any(_is_door(one, target, door) for one in ports)


def _is_door(one: Object, target: Place, door: Door) -> bool:
    assert one.keys() <= {"port", "protocol", "endPort"}
    if one.get("protocol", "TCP") != door.protocol:
        return False
    if "port" not in one:
        return True
    port = one["port"]
    first = target.ports.get(port, -1) if isinstance(port, str) else int(port)
    return first <= door.number <= int(one.get("endPort", first))
