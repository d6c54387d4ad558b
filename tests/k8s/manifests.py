"""Manifests as an operator's `kubectl` renders them, and what tests ask of them."""

from __future__ import annotations

import copy
import functools
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
K8S = ROOT / "k8s"
KUBECTL = Path(sys.executable).parent / "kubectl"
RENDERED = (
    "base",
    "overlays/dev",
    "overlays/production",
    "new-cell",
    "overlays/dev/new-cell",
    "overlays/production/new-cell",
    "tools",
    "overlays/production/tools",
)
"""What can be applied as it stands."""
CELLS = ("base", "overlays/dev", "overlays/production")
"""Of these: whole cells."""
PRODUCTION = "overlays/production"
"""Of these: the one that has everything."""

MAKE_PODS = ("StatefulSet", "Job", "Deployment", "CronJob")

Object = dict[str, Any]


@functools.cache
def _rendered(path: Path) -> list[Object]:
    command = [str(KUBECTL), "kustomize", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "a warning of kustomize: something is out of date"
    return [one for one in yaml.load_all(done.stdout, yaml.CSafeLoader) if one]


def rendered(name: str) -> list[Object]:
    """All objects of a folder of k8s/."""
    return copy.deepcopy(_rendered(K8S / name))


def of_kind(objects: list[Object], *kinds: str) -> list[Object]:
    return [one for one in objects if one["kind"] in kinds]


def named(objects: list[Object], kind: str, name: str) -> Object:
    (found,) = [one for one in of_kind(objects, kind) if one["metadata"]["name"] == name]
    return found


@dataclass(frozen=True)
class Workload:
    """Whatever makes pods, seen by one of their containers: the first, which bears its name, or one
    beside that."""

    object: Object
    number: int = 0
    """Of the container."""

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def kind(self) -> str:
        return str(self.object["kind"])

    @property
    def spec(self) -> Object:
        found: Object = self.object["spec"]
        return found

    @property
    def template(self) -> Object:
        """Of its pods. A CronJob has one of Jobs around it."""
        around = self.spec["jobTemplate"]["spec"] if self.kind == "CronJob" else self.spec
        found: Object = around["template"]
        return found

    @property
    def surge(self) -> int:
        """How many more pods there may be while a release rolls."""
        strategy: Object = self.spec.get("strategy", {})
        return int(strategy.get("rollingUpdate", {}).get("maxSurge", 0))

    @property
    def labels(self) -> dict[str, str]:
        found: dict[str, str] = self.template["metadata"]["labels"]
        return found

    @property
    def pod(self) -> Object:
        found: Object = self.template["spec"]
        return found

    @property
    def container(self) -> Object:
        found: Object = self.pod["containers"][self.number]
        return found

    def beside(self) -> list[Workload]:
        """The same, seen by each container beside the first."""
        return [Workload(self.object, place) for place in range(1, len(self.pod["containers"]))]

    @property
    def env(self) -> dict[str, str]:
        """Values by name; the pod's own name is the one that its first replica has."""
        told = {}
        for one in self.container.get("env", []):
            if "valueFrom" in one:
                assert one["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
                told[one["name"]] = f"{self.name}-0"
            else:
                told[one["name"]] = one["value"]
        assert len(told) == len(self.container.get("env", [])), "a variable stands there twice"
        return told

    @property
    def ports(self) -> dict[str, int]:
        return {one["name"]: one["containerPort"] for one in self.container.get("ports", [])}

    @property
    def open_ports(self) -> dict[str, int]:
        """Of the whole pod."""
        told = dict(self.ports)
        for one in self.beside() if self.number == 0 else []:
            told |= one.ports
        return told

    @property
    def is_service(self) -> bool:
        return self.labels["sabot/part"] == "service"

    def mounts(self) -> dict[str, Object]:
        """Volumes by where they are mounted; claims are not among the pod's volumes."""
        volumes = {one["name"]: one for one in self.pod.get("volumes", [])}
        claims = {one["metadata"]["name"]: one for one in self.spec.get("volumeClaimTemplates", [])}
        return {
            one["mountPath"]: (volumes | claims)[one["name"]]
            for one in self.container.get("volumeMounts", [])
        }

    def scratch(self) -> list[Object]:
        """Volumes that go with the pod."""
        return [volume for volume in self.mounts().values() if "emptyDir" in volume]

    def secrets(self) -> dict[str, str]:
        """Names of Secrets by where they are mounted."""
        return {
            path: volume["secret"]["secretName"]
            for path, volume in self.mounts().items()
            if "secret" in volume
        }

    def config_maps(self) -> dict[str, str]:
        """Names of ConfigMaps by where they are mounted."""
        return {
            path: volume["configMap"]["name"]
            for path, volume in self.mounts().items()
            if "configMap" in volume
        }


class DatabasePods(Workload):
    """The pods that the database's own operator makes for a `Cluster`, as policies see them."""

    @property
    def labels(self) -> dict[str, str]:
        return {"cnpg.io/cluster": self.name}

    @property
    def ports(self) -> dict[str, int]:
        return {"postgresql": 5432, "status": 8000}

    @property
    def open_ports(self) -> dict[str, int]:
        return self.ports


def workloads(objects: list[Object]) -> list[Workload]:
    return [Workload(one) for one in of_kind(objects, *MAKE_PODS)]


def every_container(objects: list[Object]) -> list[Workload]:
    """All containers of all workloads."""
    return [each for one in workloads(objects) for each in (one, *one.beside())]


def everything(*folders: str) -> list[Any]:
    """Every container of these folders' workloads, as a parameter with a readable id."""
    return [
        pytest.param(one, id=f"{folder}-{one.name}-{one.container['name']}")
        for folder in folders
        for one in every_container(rendered(folder))
    ]


def services(objects: list[Object]) -> list[Workload]:
    return [one for one in workloads(objects) if one.is_service]


def workload(objects: list[Object], name: str) -> Workload:
    (found,) = [one for one in workloads(objects) if one.name == name]
    return found


def replicas(objects: list[Object], one: Workload) -> int:
    """How many pods of a workload there are to begin with; none of a Job or a CronJob."""
    scaler = _scaler(objects, one)
    return int(scaler["spec"]["minReplicas"] if scaler else one.spec.get("replicas", 0))


def scaled_to(objects: list[Object], one: Workload) -> int:
    """How many there may be; 0 where nothing scales it."""
    scaler = _scaler(objects, one)
    return int(scaler["spec"]["maxReplicas"]) if scaler else 0


def _scaler(objects: list[Object], one: Workload) -> Object | None:
    for each in of_kind(objects, "HorizontalPodAutoscaler"):
        target = each["spec"]["scaleTargetRef"]
        if (target["kind"], target["name"]) == (one.kind, one.name):
            return each
    return None


def selects(selector: Object | None, labels: dict[str, str]) -> bool:
    """Whether a label selector takes these labels. An empty one takes all."""
    told = selector or {}
    assert told.keys() <= {"matchLabels", "matchExpressions"}
    wanted = told.get("matchLabels", {})
    for one in told.get("matchExpressions", []):
        assert one["operator"] == "In"
        if labels.get(one["key"]) not in one["values"]:
            return False
    return bool(wanted.items() <= labels.items())


def amount(text: str) -> int:
    """A quantity of memory or storage in bytes, as Kubernetes or Go's runtime write it."""
    for unit, factor in (("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40)):
        number = text.removesuffix("B").removesuffix(unit)
        if number.isdecimal():
            return int(number) << factor
    return int(text)
