"""A rehearsed restore: a fleet is backed up while it plays, its log is restored into an empty
place, and a fleet there has the same digests and projections and goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from services.cli.fleet import CELL, embedded_log
from services.cli.inspect_state import state_at
from services.cli.log_source import open_source
from services.cli.main import app
from services.events import SERVICES
from services.kernel.nats_process import write_private
from tests.fleet.load import crowd
from tests.fleet.running import PROJECTIONS, inside, on_one_server, rows_of_projection


async def sabot(*words: str | Path) -> dict[str, Any]:
    """Run a command to its end; what it printed as JSON."""
    asked = [*map(str, words), "--json"]
    done = await asyncio.to_thread(CliRunner().invoke, app, asked)
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


async def digests(data: Path) -> Mapping[str, str]:
    """What every service's state comes to at the log's end."""
    async with open_source(data) as log:
        return {service: (await state_at(log, service)).digest for service in SERVICES}


async def test_a_log_is_backed_up_while_bets_go_on_and_restored_to_the_byte(tmp_path: Path) -> None:
    file, first, second = tmp_path / "main.backup", tmp_path / "first", tmp_path / "second"
    async with on_one_server(first) as running, crowd(running, seed=21) as playing:
        early = await sabot("backup", "-o", file, "--data", running.data)
        await playing.rounds_go_on(1)
        await playing.rest()
        await running.proven(**playing.partners)
        account = "north-0"
        had = await playing.north.balance(account)
        rows = {
            name: await rows_of_projection(running.data, name, projection)
            for name, projection in PROJECTIONS.items()
        }
    # Now that nothing is noted any more.
    late = await sabot("backup", "-o", file, "--data", first / "data")
    assert late["added"] == late["entries"] - early["entries"] > 0
    manifest = json.loads(file.with_name(f"{file.name}.json").read_text())
    assert (manifest["entries"], manifest["head"]) == (late["entries"], late["head"])
    before = await digests(first / "data")

    found = await sabot("restore", file, "--data", second / "data")
    assert (found["added"], found["head"]) == (late["entries"], late["head"])
    assert await digests(second / "data") == before
    async with on_one_server(second) as running:
        await running.proven()
        for name, projection in PROJECTIONS.items():
            restored = await rows_of_projection(running.data, name, projection)
            assert {**restored, "projection_positions": []} == {
                **rows[name],
                "projection_positions": [],
            }
        north = running.partner("north")
        assert await north.balance(account) == had
        await north.deposit(account, 70)
        assert await north.balance(account) == (had[0] + 70, had[1])
        # Nothing there remembers the log: an operator is told once. Where backing up and restoring
        # took long, that nothing was served meanwhile is a significant event; and others may call.
        kinds = {alarm["kind"] for alarm in running.alarms()}
        assert kinds <= {"witness_missing", "events_noted", "attestation_changed"}


async def test_a_cluster_s_log_is_restored_by_the_services_own_users(tmp_path: Path) -> None:
    file, again, secrets = tmp_path / "main.backup", tmp_path / "again", tmp_path / "secrets"
    async with inside(tmp_path / "first") as running, crowd(running, seed=22) as playing:
        await playing.rest()
    made = await sabot("backup", "-o", file, "--data", tmp_path / "first")
    secrets.mkdir()
    async with embedded_log(tmp_path / "cluster", CELL, services=SERVICES) as server:
        for service in SERVICES:
            write_private(secrets / f"{service}.password", server.users[service].password)
        cluster = ("--nats-url", server.client_url, "--secrets", secrets)
        found = await sabot("restore", file, *cluster)
        assert (found["entries"], found["head"]) == (made["entries"], made["head"])
        await sabot("backup", "-o", again, *cluster)
    assert again.read_bytes() == file.read_bytes()
