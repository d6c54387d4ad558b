"""The log's servers, as the manifests run them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.cli import nats_config
from services.events import SERVICES
from services.kernel.nats_connection import ENCRYPTED
from tests.k8s.manifests import CELLS, PRODUCTION, amount, rendered, workload, workloads
from tests.k8s.told import NIGHTLY, OF_THE_RUNTIME, conf, parsed, words_of


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
    assert callers == {*SERVICES, "console", "streams", "snapshots", "new-cell", *NIGHTLY}
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
