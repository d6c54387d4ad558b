"""Drills: what operators are promised to see of a failure, they see, and from an installed package
as well, which has neither the rules' own file nor anything to read YAML with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.cli.drill import run_drill
from services.cli.drill_failures import DRILLS
from services.cli.private_postgresql import server_programs
from tests.postgres import NO_POSTGRESQL

ROOT = Path(__file__).parents[2]
INSTALLED = """
import sys
sys.modules["yaml"] = None  # a package for development, as are all that are missing here
from services.cli.main import app
import services.cli
assert services.cli.__file__.startswith(sys.argv.pop(1)), services.cli.__file__
app()
"""
NOT_OURS = {"SABOT_DATABASE_URL": "postgresql://nobody@192.0.2.1/theirs", "SABOT_CELL": "theirs"}
"""What a pod's environment says of the cell that it belongs to."""


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Path]:
    """The package as its wheel has it."""
    source, wheels, folder = tmp_path / "source", tmp_path / "wheels", tmp_path / "installed"
    ours = shutil.ignore_patterns("__pycache__", "*.pyi")
    for name in ("services", "protos/gen"):
        shutil.copytree(ROOT / name, source / name, ignore=ours)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    wheels.mkdir()
    build = f"import setuptools.build_meta as make; make.build_wheel({str(wheels)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    shutil.unpack_archive(next(wheels.glob("*.whl")), folder, "zip")
    shutil.rmtree(source)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.timeout(400)
def test_a_killed_service_is_alarmed_and_nothing_is_lost_by_an_installed_package(
    tmp_path: Path, installed: Path
) -> None:
    environment = {**os.environ, **NOT_OURS, "PYTHONPATH": str(installed)}
    words = ("drill", "service-killed", "--pending", "--json", "--folder", str(tmp_path / "drill"))
    done = subprocess.run(
        [sys.executable, "-c", INSTALLED, str(installed), *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["runbook"] == "docs/runbooks/process-down.md"
    assert seen["verified"].startswith("verified: ")
    assert ", 0 differences" in seen["verified"]
    assert (installed / "services/console/templates/lobby.html").is_file()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", DRILLS)
async def test_every_drill_fires_its_alert_and_recovers(name: str, tmp_path: Path) -> None:
    if DRILLS[name].needs.database and server_programs() is None:
        pytest.skip(NO_POSTGRESQL)
    seen = await run_drill(DRILLS[name], tmp_path / "data")
    assert seen.right, seen.steps
    assert seen.alert_after_s >= seen.rule.for_s
