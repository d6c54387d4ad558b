"""The manifests, rendered, validated, and held against the code that reads what they say."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import click
import jsonschema
import kubernetes_validate  # type: ignore[import-untyped]  # ships no types
import pytest
import typer.main
import yaml
from sqlalchemy.engine import make_url

from services.cli import nats_config
from services.cli.main import app
from services.cli.prove import LEAVE_WITHIN_S
from services.cli.rebuild import PROJECTIONS
from services.console.settings import ConsoleSettings
from services.events import SERVICES
from services.kernel.database_witness import POOL as WITNESS_POOL
from services.kernel.databases import POOL, POOL_MORE
from services.kernel.grpc_server import MAX_RUNNING
from services.kernel.health_port import LIVE, READY
from services.kernel.host import OPEN_STILL_S
from services.kernel.jetstream_read import CONSUMER_SLOTS
from services.kernel.nats_connection import ENCRYPTED
from services.kernel.nats_users import ADMIN, BACKUP, PROOF, cluster_users
from services.kernel.settings import ServiceSettings
from services.kernel.telemetry_names import RPCS_RUNNING
from tests.k8s.custom_resources import SCHEMAS, validate
from tests.k8s.manifests import (
    CELLS,
    K8S,
    RENDERED,
    ROOT,
    DatabasePods,
    Object,
    Workload,
    amount,
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
from tests.unit.promql import problems, scraped

KUBERNETES = "1.37"
PRODUCTION = "overlays/production"
GUIDE = (ROOT / "docs" / "operations.md").read_text()
"""The operator's."""
VARIABLES = {
    str(field.validation_alias or f"SABOT_{name}".upper())
    for name, field in ServiceSettings.model_fields.items()
}
LEFT_AT_DEFAULT = {
    "SABOT_TRACE_RATIO": "one call in a hundred is traced",
    "SABOT_LOG_LEVEL": "INFO",
}
"""Settings that no manifest sets, and why."""
NIGHTLY = (PROOF.name, BACKUP.name)
OPENING = ("monitoring", "postgres", "console", "nightly")
"""Components with policies that open something: without those that close the rest, they would be
the only ones, and close what they do not name."""
OF_THE_RUNTIME = {"GOMEMLIMIT", "SSL_CERT_FILE"}
"""Read by Go's runtime and by OpenSSL, not by the server's configuration or our settings."""


def words_of(one: Workload) -> list[str]:
    """Whatever a container is told: its variables, its arguments, and a server's configuration."""
    told = [*one.env.values(), *(arg.partition("=")[2] for arg in one.container.get("args", []))]
    if one.name == "nats" and "/run/secrets/nats-tls" in one.secrets():
        told += re.findall(r'_file: "([^"]+)"', conf(rendered(PRODUCTION)))
    return told


def everything(*folders: str) -> list[Any]:
    """Every container of these folders' workloads, as a parameter with a readable id."""
    return [
        pytest.param(one, id=f"{folder}-{one.name}-{one.container['name']}")
        for folder in folders
        for one in every_container(rendered(folder))
    ]


def every_container(objects: list[Object]) -> list[Workload]:
    """All containers of all workloads."""
    return [each for one in workloads(objects) for each in (one, *one.beside())]


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


# ---- the log's servers -------------------------------------------------------------------------


def conf(objects: list[Object]) -> str:
    (found,) = [
        one["data"]["nats.conf"]
        for one in of_kind(objects, "ConfigMap")
        if one["metadata"]["name"].startswith("nats-config")
    ]
    return str(found)


@pytest.mark.parametrize("folder", CELLS)
def test_the_servers_run_the_configuration_of_the_table_of_users(folder: str) -> None:
    objects = rendered(folder)
    text, nats = conf(objects), workload(objects, "nats")
    assert text == nats_config.config("main", tls=folder == PRODUCTION)
    assert nats.container["command"] == ["nats-server", "--config", "/etc/nats/nats.conf"]
    assert nats.env.keys() - OF_THE_RUNTIME == set(re.findall(r"\$(SERVER_NAME)\b", text))
    assert nats.ports == {
        "client": nats_config.CLIENT_PORT,
        "route": nats_config.ROUTE_PORT,
        "monitor": nats_config.MONITOR_PORT,
    }
    place = nats_config.ServerPlace()
    assert str(Path(place.store).parent) in nats.mounts()
    assert str(Path(place.pid_file).parent) in nats.mounts()
    sources = nats.mounts()["/etc/nats"]["projected"]["sources"]
    assert {"secret": {"name": "nats-servers"}} in sources
    assert len(sources) == 2
    stop = nats.container["lifecycle"]["preStop"]["exec"]["command"]
    assert stop == ["nats-server", "--signal", f"ldm={place.pid_file}"]


def test_production_speaks_to_the_log_in_tls_alone() -> None:
    """Whoever calls it trusts one authority; the servers show their own certificate, also to one
    another."""
    objects = [*rendered(PRODUCTION), *rendered(f"{PRODUCTION}/new-cell")]
    callers = set()
    for one in workloads(objects):
        urls = [word for word in words_of(one) if re.search(r"nats-\d\.nats:4222", word)]
        if urls:
            callers.add(one.name)
            (told,) = urls
            assert all(url.startswith(ENCRYPTED) for url in told.split(","))
            trusted = Path(one.env["SSL_CERT_FILE"])
            assert one.secrets()[str(trusted.parent)] == "nats-ca"
            assert "nats-tls" not in one.secrets().values(), "the servers' key is theirs"
    assert callers == {*SERVICES, "console", "streams", "new-cell", *NIGHTLY}
    assert not any("SSL_CERT_FILE" in one.env for one in workloads(rendered("base")))


@pytest.mark.parametrize("folder", CELLS)
def test_beside_each_server_what_it_refuses_is_watched(folder: str) -> None:
    nats = workload(rendered(folder), "nats")
    (watch,) = nats.beside()
    told = parsed(watch)
    place = nats_config.ServerPlace()
    assert told["log"] == Path(place.log_file)
    logs = str(told["log"].parent)
    assert nats.mounts()[logs] == watch.mounts()[logs], "the volume that the server writes into"
    assert watch.mounts().keys() == {logs}
    room = amount(nats.mounts()[logs]["emptyDir"]["sizeLimit"])
    assert room > 1.5 * nats_config.LOG_FILE * nats_config.LOG_FILES
    port = told["metrics_port"]
    assert watch.ports == ({"metrics": port} if port else {})
    assert (folder == PRODUCTION) == bool(port)
    assert told["host"] == ("0.0.0.0" if port else "127.0.0.1")  # noqa: S104 -- a pod's own


@pytest.mark.parametrize("folder", CELLS)
def test_a_server_is_given_time_and_memory(folder: str) -> None:
    nats = workload(rendered(folder), "nats")
    limit = amount(nats.container["resources"]["limits"]["memory"])
    assert 0.8 * limit <= amount(nats.env["GOMEMLIMIT"]) <= 0.95 * limit
    assert limit / 4 > nats_config.MEMORY_STORE
    assert nats.pod["terminationGracePeriodSeconds"] >= 30 + 5 + 10, "lame duck, its grace, the end"
    startup = nats.container["startupProbe"]
    assert startup["httpGet"]["path"] == "/healthz?js-server-only=true"
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 300, "a long log is read"


def test_two_servers_of_production_never_share_a_node() -> None:
    spread = workload(rendered(PRODUCTION), "nats").pod["topologySpreadConstraints"]
    assert spread[0]["topologyKey"] == "kubernetes.io/hostname"
    assert spread[0]["whenUnsatisfiable"] == "DoNotSchedule"


# ---- the front door -----------------------------------------------------------------------------


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


def test_a_job_makes_the_tables_for_which_services_wait() -> None:
    objects = rendered(PRODUCTION)
    job = workload(objects, "migrations")
    assert job.container["command"][3:] == ["projections", "migrate"]
    assert parsed(job) == {"as_json": False}
    for one in services(objects):
        assert one.env["SABOT_SCHEMA_BY"] == "job"
        assert job.env.items() <= one.env.items(), "the same database and cell"
    assert not any("SABOT_SCHEMA_BY" in one.env for one in services(rendered("base")))


# ---- the stream --------------------------------------------------------------------------------


def parsed(job: Workload) -> dict[str, Any]:
    """A Job's arguments, as the command `sabot` itself reads them."""
    command = job.container["command"]
    assert command[:3] == ["python", "-m", "services.cli"]
    verb: Any = typer.main.get_command(app)
    for word in command[3:]:
        verb = verb.commands[word]
    context: click.Context = verb.make_context(command[-1], list(job.container.get("args", [])))
    return context.params


@pytest.mark.parametrize(
    ("cell", "new"),
    [
        ("base", "new-cell"),
        (PRODUCTION, f"{PRODUCTION}/new-cell"),
        ("overlays/dev", "overlays/dev/new-cell"),
    ],
)
def test_jobs_apply_the_stream_s_definition_with_room_that_the_servers_have(
    cell: str, new: str
) -> None:
    objects = rendered(cell)
    kept, made = workload(objects, "streams"), workload(rendered(new), "new-cell")
    told = parsed(kept)
    assert told["create"] is False, "what is lost is not made anew by a release"
    assert parsed(made) == told | {"create": True}
    assert told["user"] == ADMIN
    assert kept.secrets()["/run/secrets/nats"] == f"nats-{ADMIN}"
    assert kept.secrets() == made.secrets()
    nats = workload(objects, "nats")
    assert told["replicas"] == replicas(objects, nats)
    assert told["nats_url"] == workload(objects, "table").env["SABOT_NATS_URL"]
    (claim,) = nats.spec["volumeClaimTemplates"]
    volume = amount(claim["spec"]["resources"]["requests"]["storage"])
    store = nats_config.ServerPlace().file_store
    assert told["max_bytes"] <= 0.8 * min(volume, store), "room for the servers' own files"


# ---- every night -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NIGHTLY)
def test_a_nightly_job_reads_as_its_own_user_and_keeps_what_it_writes(name: str) -> None:
    objects = rendered(PRODUCTION)
    one = workload(objects, name)
    told = parsed(one)
    assert one.container["command"][3:] == [name]
    assert told["user"] == name, "whom the table of users lets read, and nothing else"
    assert one.secrets()["/run/secrets/nats"] == f"nats-{name}"
    assert told["password_file"] == Path("/run/secrets/nats/password")
    table = workload(objects, "table").env
    assert (told["nats_url"], told["cell"]) == (table["SABOT_NATS_URL"], table["SABOT_CELL"])
    claims = {
        path: volume["persistentVolumeClaim"]["claimName"]
        for path, volume in one.mounts().items()
        if "persistentVolumeClaim" in volume
    }
    written = (
        [told["out"]]
        if name == BACKUP.name
        else [told[what].parent for what in ("checkpoint", "publish")]
    )
    assert {str(path) for path in written} == claims.keys(), (
        "what it writes outlives it, and nothing else is claimed"
    )
    spec = one.spec
    assert (spec["concurrencyPolicy"], spec["timeZone"]) == ("Forbid", "Etc/UTC")
    assert re.fullmatch(r"\d+ \d+ \* \* \*", spec["schedule"])
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] < 24 * 3600
    assert one.pod["restartPolicy"] == "Never", "each try is seen"


def test_every_claim_is_mounted_by_one_and_the_backups_have_room() -> None:
    objects = rendered(PRODUCTION)
    used = [
        volume["persistentVolumeClaim"]["claimName"]
        for one in workloads(objects)
        for volume in one.mounts().values()
        if "persistentVolumeClaim" in volume
    ]
    claims = {one["metadata"]["name"]: one for one in of_kind(objects, "PersistentVolumeClaim")}
    assert sorted(used) == sorted(claims)
    room = amount(claims["backups"]["spec"]["resources"]["requests"]["storage"])
    files = parsed(workload(objects, "backup"))["keep"] + 1
    assert room >= 1.2 * files * parsed(workload(objects, "streams"))["max_bytes"]


def test_a_proof_has_time_to_leave_its_checkpoint() -> None:
    one = workload(rendered(PRODUCTION), "prove")
    assert one.pod["terminationGracePeriodSeconds"] > LEAVE_WITHIN_S


# ---- secrets -----------------------------------------------------------------------------------


def of_gateways(objects: list[Object]) -> dict[str, str]:
    """Gateways by the Secrets that they have their certificates of."""
    return {
        each["name"]: f"the gateway {one['metadata']['name']}"
        for one in of_kind(objects, "Gateway")
        for listener in one["spec"]["listeners"]
        for each in listener["tls"]["certificateRefs"]
    }


def test_the_operator_s_guide_tells_of_every_secret_and_of_no_other() -> None:
    used = set()
    for folder in RENDERED:
        for one in workloads(rendered(folder)):
            used |= set(one.secrets().values())
            for volume in one.mounts().values():
                sources = volume.get("projected", {}).get("sources", [])
                used |= {each["secret"]["name"] for each in sources if "secret" in each}
        used |= set(of_gateways(rendered(folder)))
    assert set(re.findall(r"^\| `([a-z-]+)` \|", GUIDE, re.MULTILINE)) == used
    assert not any(of_kind(rendered(folder), "Secret") for folder in RENDERED), "none in the tree"


def test_the_guide_makes_every_config_map_that_is_not_in_the_tree() -> None:
    objects = rendered(PRODUCTION)
    used = {
        (name, Path(text).name)
        for one in workloads(objects)
        for path, name in one.config_maps().items()
        for text in words_of(one)
        if str(Path(text).parent) == path
    }
    used |= {
        (each["name"], "ca.crt")
        for one in of_kind(objects, "BackendTLSPolicy")
        for each in one["spec"]["validation"]["caCertificateRefs"]
    }
    made = re.findall(
        r"^    kubectl -n sabot create configmap ([a-z-]+) --from-file=(\S+)$", GUIDE, re.MULTILINE
    )
    assert set(made) == used


def test_the_guide_s_commands_stand_in_blocks_of_their_own() -> None:
    """Right below a paragraph they would be shown as its words."""
    lines = GUIDE.splitlines()
    for above, line in itertools.pairwise(lines):
        if line.startswith("    kubectl"):
            assert not above or above.startswith("    "), line


def test_an_overlay_of_one_s_own_renames_the_image_of_new_cell_too(tmp_path: Path) -> None:
    """As the guide writes both."""
    images = re.search(r"^    (images: \[.+\])$", GUIDE, re.MULTILINE)
    assert images is not None
    beside = re.search(r"`(resources: \[(\S+)\])`", GUIDE)
    assert beside is not None
    for part in ("k8s", "deploy/nats"):
        shutil.copytree(ROOT / part, tmp_path / part)
    own = tmp_path / "k8s" / "overlays" / "own"
    (own / "new-cell").mkdir(parents=True)
    for folder, resources in ((own, "resources: [../production]"), (own / "new-cell", beside[1])):
        (folder / "kustomization.yaml").write_text(f"{resources}\n{images[1]}\n")
        objects = rendered(str(folder))
        assert objects
        for one in workloads(objects):
            assert one.container["image"] == "your/name/of/sabot:0.1.0"


def test_the_guide_s_table_names_the_keys_and_the_holders() -> None:
    told = {
        secret: (set(re.findall(r"`([a-z_.]+)`", keys)), holders)
        for secret, keys, holders in re.findall(
            r"^\| `([a-z-]+)` \| (.+?) \| .+? \| (.+?) \|", GUIDE, re.MULTILINE
        )
    }
    objects = [*rendered(PRODUCTION), *rendered(f"{PRODUCTION}/new-cell")]
    read: dict[str, set[str]] = {"nats-servers": {nats_config.SECRETS}}
    holders: dict[str, set[str]] = {"nats-servers": {"nats"}}
    for one in workloads(objects):
        for path in map(Path, words_of(one)):
            secret = one.secrets().get(str(path.parent))
            if secret is not None:
                read.setdefault(secret, set()).add(path.name)
                holders.setdefault(secret, set()).add(one.name)
    for secret, gateway in of_gateways(objects).items():
        read[secret], holders[secret] = {"tls.crt", "tls.key"}, {gateway}
    assert {secret: keys for secret, (keys, _) in told.items()} == read
    for secret, (_, who) in told.items():
        named_there = set(who.split(", "))
        if "every service" in named_there:
            named_there = named_there - {"every service"} | set(SERVICES)
        assert named_there == holders[secret], secret


def test_no_manifest_holds_anything_secret_or_a_registry_s_name() -> None:
    for folder in RENDERED:
        text = json.dumps(rendered(folder))
        assert not re.search(r"password: \"|BEGIN [A-Z ]*KEY", text)
        for one in workloads(rendered(folder)):
            assert "/" not in one.container["image"]
