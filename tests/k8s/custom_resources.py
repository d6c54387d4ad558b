"""The custom resources in the manifests, held against what their own APIs know: every field by its
name and type, so that a misspelt one is found. See third_party/README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

Schema = dict[str, Any]

FOLDER = Path(__file__).parent / "third_party"
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
METADATA: Schema = {
    "type": "object",
    "properties": {"name": _TEXT, "namespace": _TEXT, "labels": _TEXTS, "annotations": _TEXTS},
    "required": ["name", "namespace"],
    "additionalProperties": False,
}
"""What the manifests say of an object; Kubernetes knows more, which nobody writes down."""
RESOURCES: Schema = {
    "type": "object",
    "properties": {"requests": _TEXTS, "limits": _TEXTS},
    "additionalProperties": False,
}
"""Kubernetes' own type, which the schema of a database's cluster borrows and leaves open."""


def _schemas() -> dict[tuple[str, str], Schema]:
    found = {}
    for path in sorted(FOLDER.glob("*/*.json")):
        schema: Schema = json.loads(path.read_text())
        name = schema["$ref"].removeprefix("#/$defs/").replace("~1", "/")
        kind = schema["$defs"][name]["properties"]
        kind["metadata"] = METADATA
        for one in schema["$defs"].values():
            if "resources" in one.get("properties", {}):
                one["properties"]["resources"] = RESOURCES
        found[kind["apiVersion"]["const"], kind["kind"]["const"]] = schema
    return found


SCHEMAS = _schemas()
"""By `apiVersion` and `kind`."""


def validate(one: Schema) -> None:
    """Raises jsonschema.ValidationError; KeyError for a kind of which there is no schema."""
    jsonschema.validate(one, SCHEMAS[one["apiVersion"], one["kind"]])
