"""The tree keeps the promises of its README: few verbs, real commands, one way to test."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_VERBS = 15
"""A list that is read at a glance."""
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("services/*.md")])


def verbs() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_verbs_are_few_and_each_says_what_it_does() -> None:
    phony = re.search(
        r"^\.PHONY: ((?:[^\\\n]|\\\n)*)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert phony is not None
    assert set(phony[1].replace("\\", "").split()) == verbs()
    assert len(verbs()) <= MAX_VERBS


def test_ci_runs_the_test_command_of_the_readme_and_nothing_else() -> None:
    commands = [
        line
        for line in (ROOT / ".ci/run").read_text().splitlines()
        if not line.startswith(("#", "set ", "cd "))
    ]
    assert commands == ["exec make test"]
    assert re.search(r"^    make test$", (ROOT / "README.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_name_verbs_and_files_that_exist(path: Path) -> None:
    text = path.read_text()
    named = set(re.findall(r"`(?:[A-Z]+=\S+ )*make ([a-z][a-z-]*)", text))
    named |= set(re.findall(r"^    (?:[A-Z]+=\S+ )*make ([a-z][a-z-]*)", text, re.MULTILINE))
    assert named <= verbs()
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    missing = [link for link in links if not (path.parent / link).exists()]
    assert not missing


def test_decisions_are_numbered_in_a_row_and_listed() -> None:
    folder = ROOT / "docs/adr"
    files = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [int(name[:4]) for name in files] == list(range(1, len(files) + 1))
    index = (folder / "README.md").read_text()
    listed = re.findall(r"^\| \[(\d+)\]\(([^)]+)\)", index, re.MULTILINE)
    assert [name for _, name in listed] == files
    for number, name in listed:
        text = (folder / name).read_text()
        assert text.startswith(f"# {number}. "), name
        assert "\nState: " in text, name


@pytest.mark.parametrize("lock", [path.name for path in sorted(ROOT.glob("requirements*.txt"))])
def test_the_locks_hold_hashes_and_no_addresses(lock: str) -> None:
    text = (ROOT / lock).read_text()
    packages = re.findall(r"^\S+==\S+", text, re.MULTILINE)
    assert packages
    assert len(re.findall(r"^\S+==\S+.*\\\n    --hash=sha256:", text, re.MULTILINE)) == len(
        packages
    )
    assert "://" not in text


def test_what_runs_is_locked_alike_in_both_locks() -> None:
    pin = re.compile(r"^(\S+)==(\S+)", re.MULTILINE)
    running = dict(pin.findall((ROOT / "requirements.txt").read_text()))
    developing = dict(pin.findall((ROOT / "requirements-dev.txt").read_text()))
    assert running.items() <= developing.items()


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    running = [*project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        running += extra
    developing = project["dependency-groups"]["dev"]
    for lock, wanted in (
        ("requirements.txt", running),
        ("requirements-dev.txt", [*running, *developing]),
        ("requirements-checkov.txt", project["dependency-groups"]["checkov"]),
    ):
        locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / lock).read_text(), re.MULTILINE))
        names = {re.split(r"[\[<>=!~; ]", one.lower(), maxsplit=1)[0] for one in wanted}
        assert names <= locked, f"{lock}: run `make lock`"


def test_every_suppression_names_its_code_and_its_reason() -> None:
    suppression = re.compile(r"#\s*(noqa|type: ignore|pyright: ignore)(?P<rest>.*)")
    bad = []
    for folder in ("services", "tests", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = suppression.search(line)
                if found is None or path == Path(__file__):
                    continue
                if not re.match(r"(: ?[A-Z]+\d+|\[[\w, -]+\]).*?( #| --?|:) \S", found["rest"]):
                    bad.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not bad, "\n".join(bad)
