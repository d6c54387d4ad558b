"""The manifests, rendered, validated, and held against the code that reads what they say."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import jsonschema
import kubernetes_validate  # type: ignore[import-untyped]  # ships no types
import pytest
from sqlalchemy.engine import make_url

from services.cli.rebuild import PROJECTIONS
from services.console.settings import ConsoleSettings
from services.events import SERVICES
from services.kernel.database_witness import POOL as WITNESS_POOL
from services.kernel.databases import POOL, POOL_MORE
from services.kernel.health_port import LIVE, READY
from services.kernel.host import OPEN_STILL_S
from services.kernel.nats_connection import ENCRYPTED
from services.kernel.nats_users import cluster_users
from services.kernel.settings import ServiceSettings
from tests.k8s.custom_resources import SCHEMAS, validate
from tests.k8s.manifests import (
    CELLS,
    K8S,
    PRODUCTION,
    RENDERED,
    ROOT,
    DatabasePods,
    Object,
    Workload,
    amount,
    every_container,
    everything,
    named,
    of_kind,
    rendered,
    replicas,
    scaled_to,
    selects,
    services,
    workload,
    workloads,
)
from tests.k8s.told import OF_THE_RUNTIME, VARIABLES, words_of

KUBERNETES = "1.37"
LEFT_AT_DEFAULT = {
    "SABOT_TRACE_RATIO": "one call in a hundred is traced",
    "SABOT_LOG_LEVEL": "INFO",
}
"""Settings that no manifest sets, and why."""
OPENING = ("monitoring", "postgres", "console", "nightly")
"""Components with policies that open something: without those that close the rest, they would be
the only ones, and close what they do not name."""


# ---- as Kubernetes reads them ------------------------------------------------------------------


@pytest.mark.parametrize("folder", RENDERED)
def test_it_renders_and_keeps_the_schemas_strictly(folder: str) -> None:
    objects = rendered(folder)
    assert objects
    for one in objects:
        if (one["apiVersion"], one["kind"]) in SCHEMAS:
            validate(one)
        else:
            kubernetes_validate.validate(one, KUBERNETES, strict=True)
    names = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert len(names) == len(set(names))


def test_the_validation_finds_a_field_that_there_is_not() -> None:
    one = workload(rendered("base"), "wallet").object
    one["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(one, KUBERNETES, strict=True)


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        ("Cluster", "postgres", {"instance": 2}),
        ("Cluster", "postgres", {"instances": "2"}),
        ("Cluster", "postgres", {"bootstrap": {"initdb": {"db": "sabot"}}}),
        ("Cluster", "postgres", {"resources": {"limit": {"memory": "1Gi"}}}),
        ("Gateway", "partners", {"gatewayClassname": "partners"}),
        ("Gateway", "partners", {"listeners": [{"name": "calls", "port": 443}]}),
        ("GRPCRoute", "partners", {"hostnames": ["Sabot_example"]}),
        ("GRPCRoute", "partners", {"rules": [{"matches": [{"method": {"type": "Prefix"}}]}]}),
        ("BackendTLSPolicy", "front", {"validation": {"host": "front"}}),
    ],
)
def test_the_validation_of_custom_resources_finds_them_too(
    kind: str, name: str, wrong: Object
) -> None:
    one = named(rendered(PRODUCTION), kind, name)
    validate(one)
    one["spec"] |= wrong
    with pytest.raises(jsonschema.ValidationError):
        validate(one)


def test_every_schema_is_of_a_kind_that_is_used() -> None:
    used = {(one["apiVersion"], one["kind"]) for one in rendered(PRODUCTION)}
    assert used >= SCHEMAS.keys()


def test_every_component_overlay_and_folder_is_rendered_and_told_of() -> None:
    folders = {str(path.parent.relative_to(K8S)) for path in K8S.rglob("kustomization.yaml")}
    parts = {folder for folder in folders if folder.startswith(("base/", "components/"))}
    assert folders - parts == {*RENDERED, "template"}
    production = (K8S / PRODUCTION / "kustomization.yaml").read_text()
    for component in (K8S / "components").iterdir():
        assert f"../../components/{component.name}" in production, "production has all of them"
    for told in [*(K8S / "components").iterdir(), *(K8S / "overlays").iterdir()]:
        assert len((told / "README.md").read_text().splitlines()) > 2


def test_nothing_is_opened_without_the_policies_beside_them() -> None:
    for path in K8S.rglob("kustomization.yaml"):
        text = path.read_text()
        if any(f"components/{one}" in text for one in OPENING):
            assert "components/network-policies" in text, path


def test_images_have_the_release_s_tag_and_no_registry() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for folder in RENDERED:
        for one in every_container(rendered(folder)):
            assert one.container["image"] == f"sabot:{version}"


# ---- pods --------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", everything(*RENDERED))
def test_a_pod_keeps_the_restricted_standard_and_has_no_token(one: Workload) -> None:
    pod, container = one.pod, one.container
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["runAsUser"] == security["runAsGroup"] == security["fsGroup"] >= 10_000
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    kinds = {next(key for key in volume if key != "name") for volume in pod.get("volumes", [])}
    assert kinds <= {"secret", "configMap", "emptyDir", "projected", "persistentVolumeClaim"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & pod.keys()
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert "memory" in container["resources"]["limits"]
    assert amount(container["resources"]["limits"]["memory"]) >= amount(
        container["resources"]["requests"]["memory"]
    )


@pytest.mark.parametrize("folder", CELLS)
def test_each_has_an_account_of_its_own_without_a_token(folder: str) -> None:
    objects = rendered(folder)
    accounts = {one["metadata"]["name"]: one for one in of_kind(objects, "ServiceAccount")}
    assert [one.pod["serviceAccountName"] for one in workloads(objects)] == [
        one.name for one in workloads(objects)
    ]
    assert accounts.keys() == {one.name for one in workloads(objects)}
    assert all(one["automountServiceAccountToken"] is False for one in accounts.values())


def test_the_namespace_enforces_the_restricted_standard() -> None:
    for folder in CELLS:
        (namespace,) = of_kind(rendered(folder), "Namespace")
        labels = namespace["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        for one in rendered(folder):
            if one["kind"] != "Namespace":
                assert one["metadata"]["namespace"] == namespace["metadata"]["name"]


@pytest.mark.parametrize("folder", CELLS)
def test_every_service_runs_twice_and_is_spread_and_not_evicted_whole(folder: str) -> None:
    objects = rendered(folder)
    assert sorted(one.name for one in services(objects)) == sorted(SERVICES)
    budgets = of_kind(objects, "PodDisruptionBudget")
    for one in [*services(objects), workload(objects, "nats")]:
        assert replicas(objects, one) == (3 if one.name == "nats" else 2)
        assert selects(one.spec["selector"], one.labels)
        (budget,) = [each for each in budgets if selects(each["spec"]["selector"], one.labels)]
        assert budget["spec"]["maxUnavailable"] == 1
        spread = one.pod["topologySpreadConstraints"]
        assert {each["topologyKey"] for each in spread} == {
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
        }
        for other in workloads(objects):
            chosen = [selects(each["labelSelector"], other.labels) for each in spread]
            assert chosen == [other.name == one.name] * 2
        assert named(objects, "Service", one.name)["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize("folder", CELLS)
def test_a_service_keeps_nothing_that_its_pod_could_lose(folder: str) -> None:
    """A Deployment, whose folder goes with the pod; the log's servers keep theirs."""
    objects = rendered(folder)
    for one in services(objects):
        assert one.kind == "Deployment"
        assert one.spec["strategy"] == {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        room = [amount(each["emptyDir"]["sizeLimit"]) for each in one.scratch()]
        assert len(room) == 2, "its data folder, and for whatever is temporary"
        assert sum(room) <= amount(one.container["resources"]["limits"]["ephemeral-storage"])
        assert "emptyDir" in one.mounts()[one.env["SABOT_DATA"]]
    nats = workload(objects, "nats")
    assert nats.kind == "StatefulSet"
    assert nats.spec["podManagementPolicy"] == "Parallel", "one alone has no majority"
    assert nats.spec["serviceName"] == "nats"
    (claim,) = nats.spec["volumeClaimTemplates"]
    assert nats.mounts()["/data"] is claim
    assert set(nats.spec["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}


# ---- what they tell services -------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [each for each in everything(*CELLS) if each.values[0].is_service],
)
def test_a_service_is_told_what_it_reads_and_nothing_else(
    one: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = one.container["command"]
    assert command == ["python", "-m", f"services.{one.name}"]
    assert importlib.util.find_spec(f"services.{one.name}.__main__") is not None
    assert one.env.keys() - OF_THE_RUNTIME <= VARIABLES
    for name, value in one.env.items():
        monkeypatch.setenv(name, value)
    settings = ServiceSettings()
    assert (settings.name, settings.cell) == (f"{one.name}-0", "main")
    assert settings.nats_user == one.name
    assert settings.nats_user in {user.name for user in cluster_users(SERVICES)}
    assert one.secrets()["/run/secrets/nats"] == f"nats-{one.name}"
    assert settings.log_replicas == workload(rendered("base"), "nats").spec["replicas"]
    assert str(settings.data) in one.mounts()
    ports = {"calls": settings.port, "health": settings.health_port}
    if settings.metrics_port is not None:
        ports["metrics"] = settings.metrics_port
    assert one.ports == ports
    assert settings.host == "0.0.0.0"  # noqa: S104 -- a pod's own


@pytest.mark.parametrize("one", everything(*RENDERED))
def test_every_secret_file_is_mounted_and_every_mounted_one_is_read(one: Workload) -> None:
    paths = [text for text in words_of(one) if text.startswith("/run/")]
    mounted = one.secrets() | one.config_maps()
    for path in paths:
        assert str(Path(path).parent) in mounted
    assert {str(Path(path).parent) for path in paths} == mounted.keys()
    for volume in one.mounts().values():
        for kind in ("secret", "projected", "configMap"):
            if kind in volume:
                assert volume[kind]["defaultMode"] == 0o440, "root's, and readable by our group"


def test_every_setting_is_set_somewhere_or_left_for_a_reason() -> None:
    somewhere = {name for one in services(rendered(PRODUCTION)) for name in one.env}
    somewhere -= OF_THE_RUNTIME
    assert somewhere | LEFT_AT_DEFAULT.keys() == VARIABLES
    assert not somewhere & LEFT_AT_DEFAULT.keys()


def test_keys_are_shared_by_replicas_and_held_by_nobody_else() -> None:
    for service, secret in (
        ("shoe", "shoe-keys"),
        ("audit", "seal-keys"),
        ("wallet", "call-keys"),
        ("table", "table-tls"),
    ):
        holders = [
            one.name for one in workloads(rendered(PRODUCTION)) if secret in one.secrets().values()
        ]
        assert holders == [service]


def test_calls_about_accounts_find_the_wallets_and_addresses_are_those_of_services() -> None:
    objects = rendered(PRODUCTION)
    table = workload(objects, "table").env
    assert table["SABOT_WALLET_ADDRESS"] == "dns:///wallet:7400"
    assert table["SABOT_LIMITS_ADDRESS"] == "dns:///limits:7400"
    wallet = named(objects, "Service", "wallet")["spec"]
    assert [port["port"] for port in wallet["ports"]] == [7400]
    for one in of_kind(objects, "Service"):
        selector = {"matchLabels": one["spec"]["selector"]}
        (target,) = [each for each in workloads(objects) if selects(selector, each.labels)]
        for port in one["spec"]["ports"]:
            assert target.ports[port["targetPort"]] == port["port"]
    servers = workload(objects, "nats")
    hosts = [f"nats-{number}.nats" for number in range(replicas(objects, servers))]
    for each in services(objects):
        urls = [f"{ENCRYPTED}{host}:{servers.ports['client']}" for host in hosts]
        assert each.env["SABOT_NATS_URL"] == ",".join(urls)
        monitors = [f"http://{host}:{servers.ports['monitor']}" for host in hosts]
        assert each.env["SABOT_NATS_MONITOR_URLS"] == ",".join(monitors)


def test_the_console_is_told_what_it_reads_and_where_every_service_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects = rendered(PRODUCTION)
    one = workload(objects, "console")
    assert one.container["command"] == ["python", "-m", "services.console"]
    assert replicas(objects, one) == 1, "sessions are the process's own"
    own = {f"SABOT_CONSOLE_{name}".upper() for name in ConsoleSettings.model_fields}
    assert one.env.keys() - OF_THE_RUNTIME <= VARIABLES | own
    for name, value in one.env.items():
        monkeypatch.setenv(name, value)
    settings, log = ConsoleSettings(), ServiceSettings()
    assert settings.secure, "browsers reach it over TLS"
    assert settings.host == "0.0.0.0"  # noqa: S104 -- a pod's own
    assert one.ports == {"pages": settings.port}
    assert settings.people_file is not None
    assert one.secrets()[str(settings.people_file.parent)] == "console-people"
    assert settings.token_file is not None
    assert one.secrets()[str(settings.token_file.parent)] == "console-token"
    assert log.nats_user in {user.name for user in cluster_users(SERVICES)}
    assert log.nats_user not in SERVICES, "it appends nothing"
    assert one.secrets()["/run/secrets/nats"] == f"nats-{log.nats_user}"
    assert log.nats_url == workload(objects, "table").env["SABOT_NATS_URL"]
    assert settings.addresses == {service: f"dns:///{service}:7400" for service in SERVICES} | {
        "table": "tls:table:7400"
    }, "where the front door has a certificate"
    assert settings.ca_file is not None, "of an authority that gRPC's own list does not have"
    assert one.config_maps()[str(settings.ca_file.parent)] == "front-authority"
    probe = {"path": "/health", "port": "pages"}
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert one.container[name]["httpGet"] == probe


# ---- probes and ends ---------------------------------------------------------------------------


@pytest.mark.parametrize("folder", CELLS)
def test_probes_ask_the_health_port_and_recovery_is_no_death(folder: str) -> None:
    for one in services(rendered(folder)):
        port = one.ports["health"]
        assert one.container["startupProbe"]["grpc"] == {"port": port, "service": LIVE}
        assert one.container["livenessProbe"]["grpc"] == {"port": port, "service": LIVE}
        assert one.container["readinessProbe"]["grpc"] == {"port": port, "service": READY}


@pytest.mark.parametrize("folder", CELLS)
def test_a_pod_has_time_for_its_drain(folder: str) -> None:
    for one in services(rendered(folder)):
        pause = one.container["lifecycle"]["preStop"]["sleep"]["seconds"]
        readiness = one.container["readinessProbe"]
        drain = float(one.env["SABOT_DRAIN_S"])
        assert one.pod["terminationGracePeriodSeconds"] > pause + 2 * drain + OPEN_STILL_S
        assert readiness["periodSeconds"] * readiness["failureThreshold"] < drain


# ---- the database ------------------------------------------------------------------------------


def test_projections_and_witnesses_are_where_the_database_s_operator_puts_it() -> None:
    """It makes Services `NAME-rw` and a Secret `NAME-app` with the owner's password."""
    objects = rendered(PRODUCTION)
    cluster = named(objects, "Cluster", "postgres")
    made = cluster["spec"]["bootstrap"]["initdb"]
    wanted_of = {}
    for one in services(objects):
        url = make_url(one.env["SABOT_DATABASE_URL"])
        assert (url.username, url.host, url.port, url.database) == (
            made["owner"],
            f"{cluster['metadata']['name']}-rw",
            DatabasePods(cluster).ports["postgresql"],
            made["database"],
        )
        password = Path(one.env["SABOT_DATABASE_PASSWORD_FILE"])
        assert one.secrets()[str(password.parent)] == f"{cluster['metadata']['name']}-app"
        # While a release rolls one more is there of each.
        wanted_of[one.name] = max(replicas(objects, one), scaled_to(objects, one)) + one.surge
    assert wanted_of.keys() == set(SERVICES), "each notes there how far it has read the log"
    room = int(cluster["spec"]["postgresql"]["parameters"]["max_connections"])
    wanted = (POOL + POOL_MORE) * sum(wanted_of[service] for service in PROJECTIONS)
    assert wanted + WITNESS_POOL * sum(wanted_of.values()) <= room - 10, "the operator keeps some"
