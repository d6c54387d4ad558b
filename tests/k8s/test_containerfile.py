"""The image's recipe as text: what it must say, and what it must not. test_image builds it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HADOLINT = Path(sys.executable).parent / "hadolint"
COMPILERS = re.compile(r"\b(apt|apt-get|apk|dnf|yum|gcc|g\+\+|clang|make|build-essential|pip|uv)\b")
REGISTRY = re.compile(r"^[^/]*[.:][^/]*/")
"""A first part of an image's name with a dot or a port is a host."""


@dataclass(frozen=True)
class Instruction:
    word: str
    rest: str


def instructions() -> list[Instruction]:
    text = (ROOT / "deploy" / "Containerfile").read_text()
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    found = []
    for line in joined.splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            found.append(Instruction(word, " ".join(rest.split())))
    return found


def stages() -> list[list[Instruction]]:
    found: list[list[Instruction]] = []
    for one in instructions():
        if one.word == "FROM":
            found.append([])
        if found:
            found[-1].append(one)
    return found


def the(stage: list[Instruction], word: str) -> list[str]:
    return [one.rest for one in stage if one.word == word]


def lint(path: Path) -> str:
    """What hadolint has to say, with its warnings and its advice; no rule is off."""
    command = [str(HADOLINT), "--no-color", "--failure-threshold", "style", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode == 0) == (not done.stdout), done.stderr
    return done.stdout


def test_hadolint_has_nothing_to_say() -> None:
    assert lint(ROOT / "deploy" / "Containerfile") == ""


def test_hadolint_would_find_a_last_user_that_is_root(tmp_path: Path) -> None:
    text = (ROOT / "deploy" / "Containerfile").read_text()
    broken = tmp_path / "Containerfile"
    broken.write_text(text + "USER root\n")
    assert "DL3002" in lint(broken)


def test_only_known_instructions_in_capitals() -> None:
    known = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "CMD"}
    assert {one.word for one in instructions()} == known, "ADD, SHELL and the like have no place"


def test_the_base_is_an_argument_without_a_registry_and_without_latest() -> None:
    first = instructions()[0]
    assert first.word == "ARG"
    name, _, default = first.rest.partition("=")
    assert name == "BASE"
    assert not REGISTRY.match(default)
    tag = default.partition(":")[2]
    assert re.match(r"3\.11\b", tag), "the lock is made for this Python"
    assert [stage[0].rest for stage in stages()] == ["${BASE} AS build", "${BASE}"]


def test_packages_come_by_the_lock_s_hashes_and_as_wheels() -> None:
    installs = [run for run in the(stages()[0], "RUN") if " install " in run]
    assert len(installs) == 1
    for flag in (
        "--require-hashes",
        "--only-binary :all:",
        "-r requirements.txt",
        "--no-cache-dir",
    ):
        assert flag in installs[0]
    assert "index" not in installs[0], "any mirror serves"


def test_the_final_stage_runs_nothing_and_has_no_compiler_nor_installer() -> None:
    final = stages()[-1]
    assert the(final, "RUN") == []
    assert the(final, "COPY") == ["--from=build /opt/sabot /opt/sabot"]
    assert not any(COMPILERS.search(one.rest) for one in final)
    assert "--without-pip" in " ".join(the(stages()[0], "RUN"))


def test_it_runs_as_a_numbered_user_that_is_not_root() -> None:
    (user,) = the(stages()[-1], "USER")
    uid, _, gid = user.partition(":")
    assert int(uid) >= 10_000
    assert int(gid) >= 10_000
    words = [one.word for one in stages()[-1]]
    assert words.index("USER") > words.index("COPY"), "what is copied belongs to root"


def test_nothing_is_written_where_the_root_is_read_only() -> None:
    (env,) = the(stages()[-1], "ENV")
    assert "PYTHONDONTWRITEBYTECODE=1" in env
    assert any("compileall" in run for run in the(stages()[0], "RUN"))
    assert not re.search(r"PASSWORD|TOKEN|KEY|SECRET", env)


def test_what_is_copied_is_there_and_reaches_the_builder() -> None:
    allowed = (ROOT / ".containerignore").read_text().splitlines()
    assert allowed[0] == "*", "everything else stays out: tests, data, keys"
    for copied in the(stages()[0], "COPY"):
        *sources, _ = copied.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in allowed, source


def test_the_paths_that_it_sets_find_the_services_and_the_command(tmp_path: Path) -> None:
    """The same layout as in the image, run: src/services and src/gen, nothing installed."""
    (tmp_path / "services").symlink_to(ROOT / "services")
    (tmp_path / "gen").symlink_to(ROOT / "protos" / "gen")
    (command,) = the(stages()[-1], "CMD")
    (env,) = the(stages()[-1], "ENV")
    assert "PYTHONPATH=/opt/sabot/src:/opt/sabot/src/gen" in env
    python, *arguments = json.loads(command)
    assert python == "python"
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{tmp_path / 'gen'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Usage: sabot" in done.stdout


def test_what_is_written_names_the_release(tmp_path: Path) -> None:
    """The recipe's own lines, run: Python then knows the version as of an installed package."""
    (run,) = [run for run in the(stages()[0], "RUN") if "METADATA" in run]
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    (tmp_path / "src").mkdir()
    script = run.replace("/opt/sabot/src", str(tmp_path / "src")).replace("python ", "python3 ")
    where = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    subprocess.run(["/bin/sh", "-ec", script], cwd=tmp_path, env={"PATH": where}, check=True)
    asked = subprocess.run(
        [sys.executable, "-c", "from services.kernel.build import BUILD; print(BUILD)"],
        env={"PYTHONPATH": f"{tmp_path / 'src'}:{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert asked.stdout.strip() == f"sabot-{version}"


@pytest.mark.parametrize("name", ["python:3.11-slim", "library/python:3.11"])
def test_the_check_for_registries_lets_plain_names_pass(name: str) -> None:
    assert not REGISTRY.match(name)


@pytest.mark.parametrize("name", ["registry.example/python:3.11", "localhost:5000/python"])
def test_the_check_for_registries_finds_hosts(name: str) -> None:
    assert REGISTRY.match(name)
