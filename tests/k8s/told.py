"""What containers are told, read as what they start reads it."""

from __future__ import annotations

import re
from typing import Any

import click
import typer.main

from services.cli.main import app
from services.kernel.nats_users import BACKUP, PROOF
from services.kernel.settings import ServiceSettings
from tests.k8s.manifests import PRODUCTION, Object, Workload, of_kind, rendered

VARIABLES = {
    str(field.validation_alias or f"SABOT_{name}".upper())
    for name, field in ServiceSettings.model_fields.items()
}
NIGHTLY = (PROOF.name, BACKUP.name)
OF_THE_RUNTIME = {"GOMEMLIMIT", "SSL_CERT_FILE"}
"""Read by Go's runtime and by OpenSSL, not by the server's configuration or our settings."""


def words_of(one: Workload) -> list[str]:
    """Whatever a container is told: its variables, its arguments, and a server's configuration."""
    told = [*one.env.values(), *(arg.partition("=")[2] for arg in one.container.get("args", []))]
    if one.name == "nats" and "/run/secrets/nats-tls" in one.secrets():
        told += re.findall(r'_file: "([^"]+)"', conf(rendered(PRODUCTION)))
    return told


def conf(objects: list[Object]) -> str:
    (found,) = [
        one["data"]["nats.conf"]
        for one in of_kind(objects, "ConfigMap")
        if one["metadata"]["name"].startswith("nats-config")
    ]
    return str(found)


def parsed(job: Workload) -> dict[str, Any]:
    """A Job's arguments, as the command `sabot` itself reads them."""
    command = job.container["command"]
    assert command[:3] == ["python", "-m", "services.cli"]
    verb: Any = typer.main.get_command(app)
    for word in command[3:]:
        verb = verb.commands[word]
    context: click.Context = verb.make_context(command[-1], list(job.container.get("args", [])))
    return context.params
