"""The manifests, run: every pod of a rendered overlay as a process of this machine, with exactly
its command, arguments and environment. Only addresses, ports and mounted paths are mapped, and no
collector of traces is told of."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.cli.nats_config import write_secrets
from services.events import SERVICES
from services.kernel.held_ports import HOST, HeldPorts
from services.kernel.jetstream import JetStreamLog
from services.kernel.nats_connection import ENCRYPTED
from services.kernel.nats_process import LAUNCHER, http_get, server_binary
from services.kernel.nats_users import cluster_users
from services.kernel.streams import stream_name
from services.kernel.telemetry_names import ALARM, LOG_READ
from services.kernel.tokens import create_demo_tokens
from tests.fleet.clients import PATIENCE_S, Operator, Partner, Servers
from tests.fleet.running import is_harmless
from tests.k8s.manifests import (
    ROOT,
    Object,
    Workload,
    of_kind,
    rendered,
    replicas,
    workload,
    workloads,
)
from tests.postgres import PostgresServer, postgresql

START_S = 240.0
"""For fourteen processes at once on a small machine that runs other tests too."""
PROBE_PAUSE_S = 0.1
CELL = "main"


@dataclass
class Pod:
    """One replica."""

    workload: Workload
    name: str
    folder: Path
    ports: dict[str, int]
    """Of this machine, by name."""
    process: Process | None = None
    beside: list[Process] = field(default_factory=list[Process])
    """Of the containers beside the first."""


@dataclass
class LocalCell:
    """A cell of an overlay, on loopback."""

    folder: Path
    objects: list[Object]
    pods: list[Pod] = field(default_factory=list[Pod])
    gone: list[Pod] = field(default_factory=list[Pod])
    """Those that were replaced."""
    places: dict[str, list[dict[str, int]]] = field(default_factory=dict[str, list[dict[str, int]]])
    """Ports by workload, for as many pods as there may be of it at once. They stand for what
    Kubernetes does with a Service's addresses: who calls knows all of them."""
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    authority: trustme.CA = field(default_factory=trustme.CA)
    servers: list[Servers] = field(default_factory=list[Servers])
    held: list[HeldPorts] = field(default_factory=list[HeldPorts])
    """The pods' ports."""
    database: PostgresServer | None = None
    """What the resource `Cluster` asks for, where there is one."""

    # ---- what is there -------------------------------------------------------------------------

    def of(self, name: str) -> list[Pod]:
        return [pod for pod in self.pods if pod.workload.name == name]

    def plan(self) -> None:
        """Give every pod its folder and ports."""
        for one in workloads(self.objects):
            wanted = replicas(self.objects, one)
            count = wanted + one.surge
            self.held.append(HeldPorts(count * len(one.open_ports)))
            ports = iter(self.held[-1].numbers)
            self.places[one.name] = [
                {name: next(ports) for name in one.open_ports} for _ in range(count)
            ]
            for _ in range(wanted):
                self.add(one)

    def let_go(self) -> None:
        """The ports are anybody's."""
        for one in self.held:
            one.release()

    def add(self, one: Workload) -> Pod:
        """One more pod of a workload, with a name and a folder that no other has had."""
        taken = [pod.ports for pod in self.of(one.name)]
        ports = next(place for place in self.places[one.name] if place not in taken)
        number = sum(pod.workload.name == one.name for pod in (*self.pods, *self.gone))
        name = f"{one.name}-{number}" if one.kind == "StatefulSet" else f"{one.name}-5f7c-{number}"
        pod = Pod(one, name, self.folder / name, ports)
        self.pods.append(pod)
        return pod

    def make_secrets(self) -> None:
        """As docs/operations.md says, by the commands that it names."""
        drawn = self.folder / "drawn"
        write_secrets(drawn, [f"{HOST}:{pod.ports['route']}" for pod in self.of("nats")])
        self._secret("nats-servers", "secrets.conf", drawn / "secrets.conf")
        for user in cluster_users(SERVICES):
            self._secret(f"nats-{user.name}", "password", drawn / f"{user.name}.password")
        create_demo_tokens(drawn / "tokens.json", drawn / "clear.json")
        self.tokens = json.loads((drawn / "clear.json").read_text())
        self._secret("tokens", "tokens.json", drawn / "tokens.json")
        issued = self.authority.issue_cert(HOST)
        for part in issued.cert_chain_pems:
            part.write_to_path(drawn / "tls.crt", append=True)
        issued.private_key_pem.write_to_path(drawn / "tls.key")
        self.authority.cert_pem.write_to_path(drawn / "ca.crt")
        # One certificate does for all: on this machine every server has the same name.
        for secret, keys in (
            ("table-tls", ("tls.crt", "tls.key")),
            ("nats-tls", ("tls.crt", "tls.key", "ca.crt")),
            ("nats-ca", ("ca.crt",)),
        ):
            for key in keys:
                self._secret(secret, key, drawn / key)

    async def make_keys(self) -> None:
        drawn = self.folder / "drawn"
        command = [sys.executable, "-m", "services.cli", "keys", "--out", str(drawn)]
        assert await self._run(command, {}, self.folder / "keys.log") == 0
        self._secret("shoe-keys", "shoe_keys.json", drawn / "shoe_keys.json")
        self._secret("seal-keys", "seal_keys.json", drawn / "seal_keys.json")
        self._secret("call-keys", "call_keys.json", drawn / "call_keys.json")

    def make_database(self, server: PostgresServer) -> None:
        """What the database's operator does for a `Cluster`: an owner, a database, the Secret with
        the owner's password. The server encrypts by a certificate."""
        (cluster,) = of_kind(self.objects, "Cluster")
        made = cluster["spec"]["bootstrap"]["initdb"]
        password = self.folder / "drawn" / "database"
        password.write_text(secrets.token_hex(16))
        server.sql(f"CREATE ROLE {made['owner']} LOGIN PASSWORD '{password.read_text()}'")
        server.sql(f"CREATE DATABASE {made['database']} OWNER {made['owner']}")
        self._secret(f"{cluster['metadata']['name']}-app", "password", password)
        self.database = server

    def _secret(self, name: str, key: str, source: Path) -> None:
        folder = self.folder / "secrets" / name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / key)
        (folder / key).chmod(0o400)

    # ---- the mapping ---------------------------------------------------------------------------

    def local(self, text: str, pod: Pod | None, one: Workload) -> str:
        """What a pod is told, with this machine's addresses, ports and paths."""
        for server in self.of("nats"):
            for name, port in server.workload.ports.items():
                text = text.replace(f"{server.name}.nats:{port}", f"{HOST}:{server.ports[name]}")
        for service in ("wallet", "limits"):
            behind = ",".join(f"{HOST}:{place['calls']}" for place in self.places[service])
            text = text.replace(f"dns:///{service}:7400", f"ipv4:{behind}")
        if self.database is not None:
            text = text.replace("postgres-rw:5432", f"{HOST}:{self.database.port}")
        text = text.replace("http://collector.monitoring:4317", "")  # none runs here
        if pod is not None:
            for name, port in one.ports.items():
                text = re.sub(rf"^0\.0\.0\.0:{port}$", f"{HOST}:{pod.ports[name]}", text)
                text = re.sub(rf"(^|=){port}$", rf"\g<1>{pod.ports[name]}", text)
        text = re.sub(r"(^|=)0\.0\.0\.0$", rf"\g<1>{HOST}", text)
        for mounted in sorted(one.mounts(), key=len, reverse=True):
            if re.search(rf"(^|=){re.escape(mounted)}(/|$)", text):
                text = text.replace(mounted, str(self._mounted(mounted, pod, one)), 1)
                break
        return text

    def _mounted(self, path: str, pod: Pod | None, one: Workload) -> Path:
        if path in one.secrets():
            return self.folder / "secrets" / one.secrets()[path]
        of = pod.folder if pod is not None else self.folder / one.name
        place = of / path.strip("/").replace("/", "-")
        place.mkdir(parents=True, exist_ok=True)
        return place

    def _configure(self, pod: Pod) -> None:
        """The server's ConfigMap and Secret, projected into one folder."""
        (config,) = of_kind(self.objects, "ConfigMap")
        place = self._mounted("/etc/nats", pod, pod.workload)
        text = re.sub(
            r'"([^"\n]*)"',
            lambda found: f'"{self.local(found.group(1), pod, pod.workload)}"',
            config["data"]["nats.conf"],
        )
        (place / "nats.conf").write_text(text)
        shutil.copy(self.folder / "secrets" / "nats-servers" / "secrets.conf", place)

    # ---- processes -----------------------------------------------------------------------------

    async def start(self, pod: Pod) -> None:
        """Start a pod, as it is told; it is not waited for."""
        one = pod.workload
        if one.name == "nats":
            self._configure(pod)
        command = [self.local(word, pod, one) for word in one.container["command"]]
        told = {name: self.local(value, pod, one) for name, value in one.env.items()}
        told = {
            name: pod.name if value == f"{one.name}-0" else value for name, value in told.items()
        }
        pod.folder.mkdir(parents=True, exist_ok=True)
        pod.process = await self._spawn(command, told, pod.folder / "log")
        if not pod.beside:  # where the first alone began anew, the others run
            for other in one.beside():
                words = [*other.container["command"], *other.container["args"]]
                command = [self.local(word, pod, other) for word in words]
                log = pod.folder / f"{other.container['name']}.log"
                pod.beside.append(await self._spawn(command, {}, log))

    async def job(self, one: Workload) -> int:
        """Run a Job to its end; its exit code."""
        words = [*one.container["command"], *one.container.get("args", [])]
        command = [self.local(word, None, one) for word in words]
        told = {name: self.local(value, None, one) for name, value in one.env.items()}
        return await self._run(command, told, self.folder / f"{one.name}.log")

    async def _run(self, command: list[str], told: dict[str, str], log: Path) -> int:
        process = await self._spawn(command, told, log)
        return await asyncio.wait_for(process.wait(), START_S)

    async def _spawn(self, command: list[str], told: dict[str, str], log: Path) -> Process:
        binary, *rest = command
        binary = {"python": sys.executable, "nats-server": server_binary()}.get(binary, binary)
        here = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT / 'protos' / 'gen'}"}
        with contextlib.ExitStack() as files:
            out = files.enter_context(log.open("ab"))
            # It ends with this process, however that ends.
            launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid())]
            return await asyncio.create_subprocess_exec(
                *launcher, binary, *rest, env=here | told, stdout=out, stderr=out
            )

    async def stop(self, pod: Pod) -> int:
        """End a pod as Kubernetes does, in its grace; its exit code."""
        assert pod.process is not None
        if pod.process.returncode is None:
            pod.process.send_signal(signal.SIGTERM)
        grace = float(pod.workload.pod["terminationGracePeriodSeconds"])
        code = await asyncio.wait_for(pod.process.wait(), grace)
        for process in pod.beside:
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), grace) == 0
        pod.beside.clear()
        return code

    async def stop_all(self) -> None:
        for one in self.servers:
            await one.close()
        running = [pod for pod in self.pods if pod.process is not None]
        for part in (
            [pod for pod in running if pod.workload.is_service],
            [pod for pod in running if not pod.workload.is_service],
        ):
            await asyncio.gather(*(self.stop(pod) for pod in part))

    async def until(self, pod: Pod, probe: str) -> None:
        """Wait until a probe of the pod succeeds."""
        asked = pod.workload.container[probe]
        async with asyncio.timeout(START_S):
            while not await self._succeeds(pod, asked):
                assert pod.process is not None
                assert pod.process.returncode is None, (pod.folder / "log").read_text()[-2000:]
                await asyncio.sleep(PROBE_PAUSE_S)

    async def _succeeds(self, pod: Pod, probe: dict[str, Any]) -> bool:
        if "httpGet" in probe:
            port = pod.ports[probe["httpGet"]["port"]]
            try:
                status, _ = await http_get(HOST, port, probe["httpGet"]["path"], wait_s=5.0)
            except (OSError, TimeoutError, EOFError):
                return False
            return status == 200
        names = {number: name for name, number in pod.workload.ports.items()}
        port = pod.ports[names[probe["grpc"]["port"]]]
        request = health_pb2.HealthCheckRequest(service=probe["grpc"]["service"])
        async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            try:
                answer = await stub.Check(request, timeout=PATIENCE_S)
            except grpc.aio.AioRpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def waits_for_tables(self, pod: Pod) -> None:
        """A service that is started before the tables are made says so, and lives."""
        async with asyncio.timeout(START_S):
            while "`sabot projections migrate` makes them" not in (pod.folder / "log").read_text():
                assert pod.process is not None
                assert pod.process.returncode is None
                await asyncio.sleep(PROBE_PAUSE_S)
        assert not await self._succeeds(pod, pod.workload.container["readinessProbe"])

    async def roll(self, name: str) -> list[int]:
        """Replace every replica of a service, one after the other, by a new pod that is ready
        before the old one goes; exit codes of the old ones."""
        codes = []
        for old in self.of(name):
            new = self.add(old.workload)
            await self.start(new)
            await self.until(new, "readinessProbe")
            codes.append(await self.remove(old))
        return codes

    async def remove(self, pod: Pod) -> int:
        """End a pod for good; its exit code."""
        code = await self.stop(pod)
        self.pods.remove(pod)
        self.gone.append(pod)
        return code

    def misuses(self, pod: Pod) -> list[dict[str, Any]]:
        """What is told of attempts at a server of the log."""
        lines = (pod.folder / "watch.log").read_text().splitlines()
        facts = [json.loads(line) for line in lines if line.startswith("{")]
        return [fact for fact in facts if fact.get("kind") == "log_misused"]

    def began(self, pod: Pod) -> dict[str, Any]:
        """What a service said of where it began to read the log."""
        for line in (pod.folder / "log").read_text().splitlines():
            fact: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if fact.get("event") == LOG_READ:
                return fact
        raise AssertionError(f"{pod.name} has not read the log")

    def alarms(self) -> set[str]:
        """What kinds of alarms the services raised for which there must be a fault."""
        found = set()
        for pod in (*self.pods, *self.gone):
            if pod.workload.is_service:
                for line in (pod.folder / "log").read_text().splitlines():
                    fact = json.loads(line) if line.startswith("{") else {}
                    if fact.get("event") == ALARM and not is_harmless(fact["kind"], fact):
                        found.add(str(fact["kind"]))
        return found

    # ---- callers -------------------------------------------------------------------------------

    def _front(self) -> Servers:
        root = self.authority.cert_pem.bytes()
        made = Servers(
            *(f"{HOST}:{place['calls']}" for place in self.places["table"]),
            tls=grpc.ssl_channel_credentials(root),
        )
        self.servers.append(made)
        return made

    def partner(self, name: str) -> Partner:
        return Partner(self._front(), self.tokens[f"partner:{name}"])

    def operator(self, name: str = "sam") -> Operator:
        return Operator(self._front(), self.tokens[f"operator:{name}"])

    @property
    def trusted(self) -> Path:
        """The authority of the log's servers."""
        return self.folder / "secrets" / "nats-ca" / "ca.crt"

    @asynccontextmanager
    async def log(self) -> AsyncIterator[JetStreamLog]:
        """The log as audit may read it."""
        password = self.folder / "secrets" / "nats-audit" / "password"
        log = await JetStreamLog.connect(
            [f"{ENCRYPTED}{HOST}:{pod.ports['client']}" for pod in self.of("nats")],
            CELL,
            name="test",
            consumer_prefix="audit",
            user="audit",
            password=password.read_text().strip(),
            inbox_prefix="_INBOX_audit",
            authority=self.trusted,
            wait_s=PATIENCE_S,
        )
        try:
            yield log
        finally:
            await log.close()

    async def leader(self) -> Pod:
        """The server that leads the cell's stream."""
        async with self.log() as log:
            reply = await log.connection.request(
                f"$JS.API.STREAM.INFO.{stream_name(CELL)}", b"", wait_s=PATIENCE_S
            )
        name = json.loads(reply.data)["cluster"]["leader"]
        (found,) = [pod for pod in self.of("nats") if pod.name == name]
        return found


@asynccontextmanager
async def local_cell(
    folder: Path,
    overlay: str,
    new_cell: str,
    of: Callable[[Path, list[Object]], LocalCell] | None = None,
) -> AsyncIterator[LocalCell]:
    """A cell from nothing to ready, in the order of docs/operations.md; ended at the end. `of`
    makes another kind of cell."""
    cell = (of or LocalCell)(folder, rendered(overlay))
    cell.plan()
    cell.make_secrets()
    await cell.make_keys()
    with contextlib.ExitStack() as stack:
        stack.callback(cell.let_go)
        if of_kind(cell.objects, "Cluster"):
            issued = cell.authority.issue_cert(HOST)
            chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
            certificate = (chain, issued.private_key_pem.bytes())
            cell.make_database(stack.enter_context(postgresql(certificate)))
        async with _started(cell, new_cell):
            yield cell


@asynccontextmanager
async def _started(cell: LocalCell, new_cell: str) -> AsyncIterator[None]:
    try:
        for pod in cell.of("nats"):
            await cell.start(pod)
        for pod in cell.of("nats"):
            await cell.until(pod, "startupProbe")
            await cell.until(pod, "readinessProbe")
        assert await cell.job(workload(cell.objects, "streams")) == 1, "it makes no stream"
        assert await cell.job(workload(rendered(new_cell), "new-cell")) == 0
        assert await cell.job(workload(cell.objects, "streams")) == 0
        services = [pod for pod in cell.pods if pod.workload.is_service]
        for pod in services:
            await cell.start(pod)
        for probe in ("startupProbe", "livenessProbe"):
            await asyncio.gather(*(cell.until(pod, probe) for pod in services))
        for job in workloads(cell.objects):
            if job.name == "migrations":
                await asyncio.gather(*(cell.waits_for_tables(pod) for pod in services))
                assert await cell.job(job) == 0
        await asyncio.gather(*(cell.until(pod, "readinessProbe") for pod in services))
        yield
    finally:
        await cell.stop_all()
