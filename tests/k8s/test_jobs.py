"""What runs once and what runs every night."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.cli import nats_config
from services.cli.prove import LEAVE_WITHIN_S
from services.kernel.nats_users import ADMIN, BACKUP, SNAPSHOTS
from tests.k8s.manifests import (
    CELLS,
    PRODUCTION,
    ROOT,
    amount,
    of_kind,
    rendered,
    replicas,
    services,
    workload,
    workloads,
)
from tests.k8s.told import NIGHTLY, parsed

GUIDE = (ROOT / "docs" / "operations.md").read_text()
"""The operator's."""


def test_a_job_makes_the_tables_for_which_services_wait() -> None:
    objects = rendered(PRODUCTION)
    job = workload(objects, "migrations")
    assert job.container["command"][3:] == ["projections", "migrate"]
    assert parsed(job) == {"as_json": False}
    for one in services(objects):
        assert one.env["SABOT_SCHEMA_BY"] == "job"
        assert job.env.items() <= one.env.items(), "the same database and cell"
    assert not any("SABOT_SCHEMA_BY" in one.env for one in services(rendered("base")))


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
    assert told["max_bytes"] + told["snapshot_bytes"] <= 0.85 * min(volume, store)


# ---- before a release --------------------------------------------------------------------------


@pytest.mark.parametrize("folder", CELLS)
def test_a_release_s_snapshots_are_built_by_a_job_where_services_look_for_them(folder: str) -> None:
    objects = rendered(folder)
    job = workload(objects, "snapshots")
    told = parsed(job)
    assert job.container["command"][3:] == ["snapshots", "build"]
    assert (told["user"], told["again"]) == (SNAPSHOTS.name, False)
    assert not told["services"], "of all"
    assert job.secrets()["/run/secrets/nats"] == f"nats-{SNAPSHOTS.name}"
    assert told["password_file"] == Path("/run/secrets/nats/password")
    for one in services(objects):
        assert one.env["SABOT_SNAPSHOTS"] == "bucket"
        assert told["nats_url"] == one.env["SABOT_NATS_URL"]
        assert told["cell"] == one.env["SABOT_CELL"]
    audit = workload(objects, "audit").container["resources"]["limits"]["memory"]
    assert job.container["resources"]["limits"]["memory"] == audit, "it folds what audit folds"


def test_the_job_of_snapshots_can_be_applied_alone_before_a_release() -> None:
    """As the guide says it: by its label, which nothing has that would roll."""
    label = re.search(r"apply -k k8s/overlays/production -l (\S+)=(\S+)$", GUIDE, re.MULTILINE)
    assert label is not None
    applied = [
        (one["kind"], one["metadata"]["name"])
        for one in rendered(PRODUCTION)
        if one["metadata"].get("labels", {}).get(label[1]) == label[2]
    ]
    assert sorted(applied) == [("Job", "snapshots"), ("ServiceAccount", "snapshots")]


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
