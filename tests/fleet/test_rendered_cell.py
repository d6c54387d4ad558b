"""The manifests run: a cell from nothing, by exactly what the rendered overlay says, takes bets
while its pods are replaced and a server of its log is killed, and its log proves it."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

import nats
import pytest

from services.cli import verify_export
from services.cli.rebuild import PROJECTIONS
from services.cli.replay import verify
from services.events import SERVICES
from services.kernel.held_ports import HOST
from services.kernel.nats_connection import ENCRYPTED
from services.kernel.projection_places import WITNESS, schema_name
from tests.fleet.clients import PATIENCE_S, Partner
from tests.fleet.ledger import Ledger, read_events
from tests.fleet.load import crowd
from tests.k8s.local_cell import CELL, LocalCell, local_cell
from tests.k8s.manifests import workload

PRODUCTION = "overlays/production"
WITHIN_S = 60.0
"""Bets are confirmed again by then, whatever was replaced, on a busy machine too."""


async def rolled_under_load(folder: Path, rolled: Sequence[str]) -> None:
    async with (
        local_cell(folder, PRODUCTION, f"{PRODUCTION}/new-cell") as cell,
        crowd(cell, seed=11) as playing,
    ):
        await playing.rounds_go_on(1)
        await a_release_s_snapshots_are_built(cell)
        for service in rolled:
            codes = await cell.roll(service)
            for pod in cell.of(service):
                assert cell.began(pod)["snapshot"] == "bucket", "its folder was empty"
                assert cell.began(pod)["began_from"] > 0
            assert codes == [0, 0], f"{service} did not end in order: {codes}"
            await playing.north.more_bets_on(1, WITHIN_S)
        leader = await cell.leader()
        assert leader.process is not None
        leader.process.send_signal(signal.SIGKILL)
        await leader.process.wait()
        await playing.north.more_bets_on(1, WITHIN_S)
        await cell.start(leader)
        await cell.until(leader, "readinessProbe")
        await playing.rounds_go_on(1)
        await playing.rest()
        await who_tries_at_the_log_what_it_may_not_is_told_of(cell)
        await the_nights_jobs_do_their_part(cell)
        await proven(cell, playing.partners)


async def a_release_s_snapshots_are_built(cell: LocalCell) -> None:
    """By the Job as it is rendered, from a log that the first pods read from its beginning."""
    assert {cell.began(pod)["began_from"] for name in SERVICES for pod in cell.of(name)} == {0}
    job = workload(cell.objects, "snapshots")
    for told in ("built at entry", "nothing to build"):
        assert await cell.job(job) == 0
        assert told in (cell.folder / "snapshots.log").read_text()


async def who_tries_at_the_log_what_it_may_not_is_told_of(cell: LocalCell) -> None:
    """A service's own password in wrong hands at one of the servers, seen by what is beside it."""
    pod = cell.of("nats")[0]
    password = (cell.folder / "secrets/nats-table/password").read_text().strip()
    url = f"{ENCRYPTED}{HOST}:{pod.ports['client']}"
    trusted = ssl.create_default_context(cafile=cell.trusted)
    client = await nats.connect(url, user="table", password=password, error_cb=ignored, tls=trusted)
    await client.publish(f"sabot.{CELL}.wallet.in", b"a deposit")
    await client.flush()
    await client.close()
    async with asyncio.timeout(PATIENCE_S):
        while not (found := cell.misuses(pod)):  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.05)
    assert found[0]["user"] == "table"
    assert found[0]["subject"] == f"sabot.{CELL}.wallet.in"
    assert [other for other in cell.of("nats")[1:] if cell.misuses(other)] == []


async def ignored(_error: Exception) -> None:
    """The client is told, too."""


async def the_nights_jobs_do_their_part(cell: LocalCell) -> None:
    """As they are rendered: a proof is published, a backup is whole, and the second one adds what
    came since."""
    prove, backup = (workload(cell.objects, name) for name in ("prove", "backup"))
    assert await cell.job(prove) == 0
    (line,) = (cell.folder / "prove/proofs/proofs.jsonl").read_text().splitlines()
    told = json.loads(line)
    assert (told["right"], told["differences"], told["rounds"] > 0) == (True, [], True)
    assert told["line"] in (cell.folder / "prove.log").read_text()
    for nights in (1, 2):
        assert await cell.job(backup) == 0
        kept = sorted((cell.folder / "backup/backups").glob(f"{CELL}-*.backup"))
        assert len(kept) == nights
        with kept[-1].open("rb") as file:
            found = verify_export.verify(file)
        assert found.right
        assert found.entries >= told["last_sequence"]


async def proven(cell: LocalCell, partners: Mapping[str, Partner]) -> None:
    async with cell.log() as log:
        found = await verify(log)
        assert found.right, (found.line(), found.differences[:3])
        assert found.line().startswith("verified:")
        ledger = Ledger(await read_events(log))
    assert ledger.at_rest() == []
    for name, partner in partners.items():
        assert ledger.denies(name, partner.told.on) == []
    assert cell.alarms() == set(), "a server was killed, and nothing else went wrong"
    assert cell.database is not None
    schemas = cell.database.sql("SELECT nspname FROM pg_namespace", "sabot")
    assert {schema_name(CELL, service) for service in PROJECTIONS} <= set(schemas)
    rows = cell.database.sql(f"SELECT service FROM {schema_name(CELL, WITNESS)}.witnesses", "sabot")  # noqa: S608 - ours
    assert sorted(rows) == sorted(SERVICES), "so new pods knew how far the log was read"
    connections = "pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE usename = 'sabot'"
    assert cell.database.sql(f"SELECT bool_and(ssl) FROM {connections}") == ["t"]  # noqa: S608 - ours


@pytest.mark.timeout(600)
async def test_production_runs_as_rendered_and_is_rolled_under_load(tmp_path: Path) -> None:
    await rolled_under_load(tmp_path, ["wallet"])


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_every_service_of_production_is_rolled_under_load(tmp_path: Path) -> None:
    await rolled_under_load(tmp_path, SERVICES)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_every_service_is_scaled_up_and_down_under_load(tmp_path: Path) -> None:
    """A third replica takes part, the first two go, and one alone carries on until it is two
    again: nobody hears of it but by a request that is sent once more."""
    async with (
        local_cell(tmp_path, PRODUCTION, f"{PRODUCTION}/new-cell") as cell,
        crowd(cell, seed=13) as playing,
    ):
        await playing.rounds_go_on(1)
        for service in SERVICES:
            one = workload(cell.objects, service)
            first, second = cell.of(service)
            for old in (first, second):
                fresh = cell.add(one)
                await cell.start(fresh)
                await cell.until(fresh, "readinessProbe")
                assert len(cell.of(service)) == 3
                assert await cell.remove(old) == 0
                await playing.north.more_bets_on(1, WITHIN_S)
            last, gone = cell.of(service)
            assert await cell.remove(gone) == 0
            await playing.north.more_bets_on(1, WITHIN_S)
            again = cell.add(last.workload)
            await cell.start(again)
            await cell.until(again, "readinessProbe")
        await playing.rounds_go_on(1)
        await playing.rest()
        await proven(cell, playing.partners)
