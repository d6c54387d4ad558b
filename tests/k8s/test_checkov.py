"""Checkov's opinion of the manifests and of the image's recipe, with a reason for each rule that it
is not asked about.

It brings a hundred packages, some in older releases than ours, so it lives in an environment of its
own within this one, which the first run sets up from its lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.k8s.manifests import RENDERED, ROOT, rendered, workload

pytestmark = pytest.mark.long

LOCK = ROOT / "requirements-checkov.txt"
HOME = Path(sys.prefix) / "checkov"
SET_UP_S = 900.0
JUDGED_S = 300.0

SKIPPED = {
    "CKV_K8S_11": "a bound on processor time makes bets wait for the next period of the scheduler; "
    "requests share it out fairly, and memory is bounded",
    "CKV_K8S_15": "a tag is a release and never written anew: a pod starts again on its node while "
    "the registry is away",
    "CKV_K8S_43": "the name and the digest come with the overlay of whoever keeps the image",
    "CKV_DOCKER_2": "Kubernetes asks the health port and knows no HEALTHCHECK",
}
"""Rules that are not asked, and why."""
_WATCH = (
    "the container `watch` answers nobody: it reads what the server beside it writes, ends where "
    "it cannot, and is begun anew"
)
LEFT = {
    "CKV_K8S_8": {"StatefulSet.sabot.nats": _WATCH},
    "CKV_K8S_9": {"StatefulSet.sabot.nats": _WATCH},
}
"""What is left of rules that are asked of everything else, and why."""


@pytest.fixture(scope="module")
def checkov() -> Path:
    """The command, set up where it is not, or where its lock has changed."""
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # another worker of the suite may be at it
        stamp = HOME / wanted
        if not stamp.exists():
            venv.create(HOME / "env", clear=True, with_pip=True)
            install = [str(HOME / "env/bin/pip"), "install", "--quiet", "--require-hashes"]
            subprocess.run(
                [*install, "--disable-pip-version-check", "--requirement", str(LOCK)],
                check=True,
                capture_output=True,
                timeout=SET_UP_S,
            )
            stamp.touch()
    return HOME / "env/bin/checkov"


def judged(checkov: Path, folder: Path, framework: str) -> dict[str, set[str]]:
    """The rules that something breaks, and what breaks them. Something was looked at."""
    words = ["--directory", str(folder), "--framework", framework, "--output", "json"]
    done = subprocess.run(
        [str(checkov), *words, "--skip-download", "--quiet"],
        capture_output=True,
        text=True,
        timeout=JUDGED_S,
        check=False,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["summary"]["passed"] > 0, done.stderr[-2000:]
    assert told["summary"]["parsing_errors"] == 0
    found: dict[str, set[str]] = {}
    for one in told["results"]["failed_checks"]:
        found.setdefault(one["check_id"], set()).add(one["resource"])
    return found


@pytest.mark.timeout(SET_UP_S + JUDGED_S)
def test_checkov_finds_nothing_but_what_is_left_for_a_reason(checkov: Path, tmp_path: Path) -> None:
    manifests, recipe = tmp_path / "manifests", tmp_path / "recipe"
    manifests.mkdir()
    recipe.mkdir()
    for name in RENDERED:
        text = yaml.safe_dump_all(rendered(name))
        (manifests / f"{name.replace('/', '-')}.yaml").write_text(text)
    text = (ROOT / "deploy" / "Containerfile").read_text()
    base = next(line for line in text.splitlines() if line.startswith("ARG BASE="))
    (recipe / "Dockerfile").write_text(text.replace("${BASE}", base.partition("=")[2]))
    found = judged(checkov, manifests, "kubernetes") | judged(checkov, recipe, "dockerfile")
    left = {rule: set(resources) for rule, resources in LEFT.items()}
    assert {rule: found.pop(rule) for rule in LEFT if rule in found} == left
    assert found.keys() == SKIPPED.keys(), found


@pytest.mark.timeout(SET_UP_S + JUDGED_S)
def test_checkov_would_find_a_pod_that_may_write_its_root(checkov: Path, tmp_path: Path) -> None:
    one = workload(rendered("overlays/production"), "wallet").object
    one["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    (tmp_path / "wallet.yaml").write_text(yaml.safe_dump(one))
    assert {"CKV_K8S_16", "CKV_K8S_22"} <= judged(checkov, tmp_path, "kubernetes").keys()
