"""Schemas of the custom resources in the manifests: of their fields, those that the manifests use.
Whatever else stands there is refused, so that a misspelt field is found.

Read from the API of CloudNativePG 1.24, `postgresql.cnpg.io/v1`.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def _object(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}

CLUSTER = _object(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "postgresql.cnpg.io/v1"},
    kind={"const": "Cluster"},
    metadata=_object(("name",), name=_TEXT, namespace=_TEXT, labels=_TEXTS, annotations=_TEXTS),
    spec=_object(
        ("instances",),
        instances={"type": "integer", "minimum": 1},
        bootstrap=_object(initdb=_object(database=_TEXT, owner=_TEXT)),
        storage=_object(size=_TEXT),
        postgresql=_object(parameters=_TEXTS),
        resources=_object(requests=_TEXTS, limits=_TEXTS),
        affinity=_object(enablePodAntiAffinity={"type": "boolean"}, topologyKey=_TEXT),
    ),
)

CUSTOM: dict[str, Schema] = {"postgresql.cnpg.io/v1": CLUSTER}
"""By `apiVersion`."""
