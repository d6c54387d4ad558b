"""The configuration of a cell's NATS servers, rendered from the table of users.

Every server of a cluster has the same file: what differs, its name, is in its environment. Secrets
are in a second file, which the first includes: passwords, and the routes that hold one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from services.events import SERVICES
from services.kernel.nats_process import write_private
from services.kernel.nats_users import NatsUser, cluster_users, permissions

SECRETS = "secrets.conf"
"""The file with secrets, beside the configuration."""
SERVER_NAME = "SERVER_NAME"
"""The variable of a server's environment that holds its name."""
ROUTES_USER = "routes"
"""What servers of the cluster call themselves to one another."""
MAX_CONNECTIONS = 256
"""Far above two replicas of seven services: who opens more is mistaken or hostile."""
MEMORY_STORE = 64 * 1024 * 1024
"""For consumers, which are kept in memory; no stream is."""

LOG_FILE = 16 * 1024 * 1024
"""Bytes of a server's log before it begins another: days, where nobody tries anything."""
LOG_FILES = 3
"""So many are there at a time."""
CERTIFICATES = Path("/run/secrets/nats-tls")
"""Where a server finds its certificate, key and authority, named as cert-manager names them."""
HANDSHAKE_S = 5
"""For TLS between servers and with clients; NATS's own 2 s are short on a busy machine."""

CLIENT_PORT, MONITOR_PORT, ROUTE_PORT = 4222, 8222, 6222
"""NATS's usual ports."""


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where a server listens and keeps its files. Sizes in bytes."""

    client: str = f"0.0.0.0:{CLIENT_PORT}"
    monitor: str = f"0.0.0.0:{MONITOR_PORT}"
    route: str = f"0.0.0.0:{ROUTE_PORT}"
    store: str = "/data/nats"
    pid_file: str = "/tmp/nats.pid"  # noqa: S108 -- of the container, which is its own
    log_file: str = "/logs/nats.log"
    """Read by `sabot nats watch`, which passes it on."""
    file_store: int = 100 * 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Variable:
    """A value that another file or the environment holds."""

    name: str


def config(cell: str, place: ServerPlace | None = None, *, tls: bool = False) -> str:
    """The configuration file of every server of a cell's cluster. `tls`: clients are served in TLS
    alone, and servers show one another certificates."""
    at = place or ServerPlace()
    told: dict[str, Any] = {
        "server_name": _Variable(SERVER_NAME),
        "listen": at.client,
        "http": at.monitor,
        "pid_file": at.pid_file,
        "max_connections": MAX_CONNECTIONS,
        "log_file": at.log_file,
        "logfile_size_limit": LOG_FILE,
        "logfile_max_num": LOG_FILES,
        "jetstream": {
            "store_dir": at.store,
            "sync_interval": "always",
            "max_memory_store": MEMORY_STORE,
            "max_file_store": at.file_store,
        },
        "lame_duck_grace_period": "5s",
        "lame_duck_duration": "30s",
        "cluster": {
            "name": "sabot",
            "listen": at.route,
            "no_advertise": True,
            "authorization": {"user": ROUTES_USER, "password": _Variable(_password(ROUTES_USER))},
            "routes": _Variable("ROUTES"),
        },
        "authorization": {
            "users": [
                {
                    "user": user.name,
                    "password": _Variable(_password(user.name)),
                    "permissions": permissions(user, cell),
                }
                for user in cluster_users(SERVICES)
            ]
        },
    }
    if tls:
        own = {
            "cert_file": str(CERTIFICATES / "tls.crt"),
            "key_file": str(CERTIFICATES / "tls.key"),
            "timeout": HANDSHAKE_S,
        }
        told["tls"] = own
        told["cluster"]["tls"] = {
            **own,
            "ca_file": str(CERTIFICATES / "ca.crt"),
            "verify": True,
        }
    head = [
        "# Written by `sabot nats config`; a test holds it against the table of users",
        "# (services/kernel/nats_users.py). Durations are quoted: an unquoted one is a number.",
        f"include {json.dumps(SECRETS)}",
    ]
    return "\n".join([*head, *_lines(told, 0)]) + "\n"


def secrets(users: Sequence[NatsUser], routes: Sequence[str]) -> dict[str, str]:
    """Fresh secrets as files by name: the one that the servers include, and each user's password.

    `routes`: where the servers listen for one another, `host:port`."""
    passwords = {user.name: uuid4().hex + uuid4().hex for user in users}
    of_routes = uuid4().hex + uuid4().hex
    lines = [
        f"{_password(name)}: {json.dumps(password)}"
        for name, password in (passwords | {ROUTES_USER: of_routes}).items()
    ]
    urls = [f"nats://{ROUTES_USER}:{of_routes}@{route}" for route in routes]
    lines.append(f"ROUTES: {json.dumps(urls)}")
    files = {f"{name}.password": password + "\n" for name, password in passwords.items()}
    return {SECRETS: "\n".join(lines) + "\n", **files}


def write_secrets(folder: Path, routes: Sequence[str]) -> list[Path]:
    """Write fresh secrets of a cluster into a folder that holds none; what was written. Raises
    FileExistsError where there are some: who replaces them must know that nobody can connect until
    servers and services have the new ones."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (folder / SECRETS).exists():
        raise FileExistsError(f"{folder / SECRETS} is there already; give another folder")
    written = []
    for name, text in secrets(cluster_users(SERVICES), routes).items():
        write_private(folder / name, text)
        written.append(folder / name)
    return written


def _password(user: str) -> str:
    return f"{user.upper()}_PASSWORD"


def _lines(block: Mapping[str, Any], depth: int) -> list[str]:
    indent = "  " * depth
    lines: list[str] = []
    for key, value in block.items():
        if isinstance(value, dict):
            lines += [f"{indent}{key} {{", *_lines(value, depth + 1), f"{indent}}}"]
        elif isinstance(value, list):
            lines += [f"{indent}{key}: [", *_items(value, depth + 1), f"{indent}]"]
        else:
            lines.append(f"{indent}{key}: {_scalar(value)}")
    return lines


def _items(values: Sequence[Any], depth: int) -> list[str]:
    indent = "  " * depth
    lines: list[str] = []
    for value in values:
        if isinstance(value, dict):
            lines += [f"{indent}{{", *_lines(value, depth + 1), f"{indent}}}"]
        else:
            lines.append(f"{indent}{_scalar(value)}")
    return lines


def _scalar(value: object) -> str:
    return f"${value.name}" if isinstance(value, _Variable) else json.dumps(value)
