"""A page for every alarm, which names only commands, metrics and calls that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from sabot.table.v1 import operator_service_pb2
from services.cli.main import app
from services.cli.telemetry_doc import document
from services.kernel.telemetry_names import ALARM_KINDS
from tests.unit.promql import scraped

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/runbooks"
COMMAND = typer.main.get_command(app)
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
PARTS = ["How it shows", "What is safe", "What to do", "What not to do", "When it is over"]
ALARMING = {"alarm", "_alarm", "alarms", "_alarms", "_tell_refusal"}
"""What alarms are raised by."""


def raised() -> set[str]:
    """Every kind that the source raises: first arguments, and what cores say of their answers."""
    kinds: set[str] = set()
    for path in ROOT.glob("services/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ALARMING and node.args and isinstance(node.args[0], ast.Constant):
                kinds.add(str(node.args[0].value))
            for keyword in node.keywords:
                if keyword.arg == "alarms" and isinstance(keyword.value, ast.Dict):
                    values = keyword.value.values
                    kinds |= {str(one.value) for one in values if isinstance(one, ast.Constant)}
    return kinds


def test_every_declared_kind_is_raised_and_no_other() -> None:
    # Those of preflight go through a table of kinds; the type checker holds them to the registry.
    assert raised() | {"log_weak", "log_strained"} == set(ALARM_KINDS)
    assert raised() <= set(ALARM_KINDS)


@pytest.mark.parametrize("kind", ALARM_KINDS)
def test_every_kind_of_alarm_has_its_page(kind: str) -> None:
    page = (FOLDER / f"{kind.replace('_', '-')}.md").read_text()
    assert f"`{kind}`" in page
    assert f'sabot_alarms_total{{kind="{kind}"}}' in page


def test_the_list_names_every_page_by_its_title() -> None:
    listed = re.findall(r"^- \[(.+)\]\((.+)\)$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert listed == [(page.read_text().splitlines()[0][2:], page.name) for page in PAGES]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_has_its_parts(path: Path) -> None:
    assert re.findall(r"^## (.+)$", path.read_text(), re.MULTILINE) == PARTS
    for part in path.read_text().split("\n## ")[1:]:
        assert part.split("\n", 1)[1].strip(), "no part is empty"


@pytest.mark.parametrize("path", [FOLDER / "README.md", *PAGES], ids=lambda path: path.stem)
def test_what_a_page_names_exists(path: Path) -> None:
    text = path.read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (FOLDER / link).is_file(), link
    for metric in re.findall(r"`(sabot_\w+)", text):
        assert metric in scraped() or metric == "sabot_rpc_seconds", metric
    calls = {
        method.name
        for method in operator_service_pb2.DESCRIPTOR.services_by_name[
            "TableOperatorService"
        ].methods
    }
    orders = r"`((?:Void|Resume|Suspend|Close|Open|Retry|Correct)[A-Z]\w+)`"
    assert set(re.findall(orders, text)) <= calls


def commands() -> list[tuple[str, str]]:
    return [
        (path.stem, command)
        for path in [FOLDER / "README.md", *PAGES]
        for command in re.findall(r"`sabot ([a-z][^`]*)`", path.read_text().replace("\n   ", " "))
    ]


@pytest.mark.parametrize(("page", "command"), commands())
def test_a_command_of_a_page_is_one_of_sabots_and_knows_its_options(
    page: str, command: str
) -> None:
    found: Any = COMMAND
    words = command.split()
    while words and hasattr(found, "commands"):
        name = words.pop(0)
        assert name in found.commands, f"there is no `sabot {command}`"
        found = found.commands[name]
    known = {option for one in found.params for option in (*one.opts, *one.secondary_opts)}
    assert {word for word in words if word.startswith("-")} <= known


def test_the_page_of_telemetry_is_what_the_registry_says() -> None:
    assert (ROOT / "docs/telemetry.md").read_text() == document(), (
        "run `python -m services.cli.telemetry_doc`"
    )
