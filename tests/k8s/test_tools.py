"""The pod in which a person runs `sabot`: it reaches the log and nothing else, and what the
guide says to run there is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from services.cli.main import app
from services.events import SERVICES
from services.kernel.nats_users import ADMIN, BACKUP, SNAPSHOTS
from tests.k8s.manifests import PRODUCTION, ROOT, rendered, workload
from tests.k8s.policies import Door
from tests.k8s.test_policies import opened

GUIDE = (ROOT / "docs" / "operations.md").read_text()
"""The operator's."""
TOOLS = f"{PRODUCTION}/tools"
COMMANDS = re.findall(
    r"^    kubectl -n sabot exec job/tools -- python -m services.cli (.+)$", GUIDE, re.MULTILINE
)


def test_the_tools_reach_the_log_s_clients_and_nothing_else() -> None:
    cell, tools = rendered(PRODUCTION), rendered(TOOLS)
    more = opened([*cell, *tools]) - opened(cell)
    log = workload(cell, "nats").ports["client"]
    dns = {("tools", "dns", Door(53, protocol)) for protocol in ("TCP", "UDP")}
    assert more == {("tools", "nats", Door(log)), *dns}


def test_the_tools_hold_the_passwords_that_a_restore_needs_and_go_by_themselves() -> None:
    one = workload(rendered(TOOLS), "tools")
    sources = one.mounts()["/run/secrets/nats"]["projected"]["sources"]
    held = {
        item["path"]: each["secret"]["name"]
        for each in sources
        for item in each["secret"]["items"]
        if item["key"] == "password"
    }
    users = {*SERVICES, ADMIN, BACKUP.name, SNAPSHOTS.name}
    assert held == {f"{user}.password": f"nats-{user}" for user in users}
    assert one.spec["activeDeadlineSeconds"] <= 12 * 3600


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.split()[:2]))
def test_the_guide_s_commands_are_understood_and_find_what_they_name(command: str) -> None:
    verb: Any = typer.main.get_command(app)
    words = shlex.split(command)
    while hasattr(verb, "commands"):
        verb = verb.commands[words.pop(0)]
    told = verb.make_context("tools", [word.replace("PUBLIC_KEY", "00") for word in words]).params
    one = workload(rendered(TOOLS), "tools")
    urls = workload(rendered(PRODUCTION), "table").env["SABOT_NATS_URL"].split(",")
    assert set(told["nats_url"].split(",")) <= set(urls)
    mounted = {Path(path) for path in one.mounts()}
    for value in told.values():
        if isinstance(value, Path) and value.is_absolute():
            assert value in mounted or value.parent in mounted, value
    password = told.get("password_file")
    if password is not None:
        assert password.name == f"{told['user']}.password"


def test_the_guide_runs_what_reaches_for_the_log() -> None:
    assert {command.split()[0] for command in COMMANDS} >= {"backup", "restore", "streams"}
    for folder in (f"apply -k k8s/{TOOLS}", f"delete -k k8s/{TOOLS}"):
        assert f"    kubectl {folder}\n" in GUIDE
