"""Reads the case files of this folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def cases(name: str, **wanted: object) -> list[dict[str, Any]]:
    """The cases of a file whose fields have these values."""
    found: list[dict[str, Any]] = []
    for line in (HERE / name).read_text().splitlines():
        case: dict[str, Any] = json.loads(line)
        if all(case.get(field) == value for field, value in wanted.items()):
            found.append(case)
    return found


def named(case: dict[str, Any]) -> str:
    """A case's id, for the name of its test."""
    return str(case["id"])
