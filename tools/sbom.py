"""Prints what the image is made of, as CycloneDX: the lock's packages with the hashes that they are
installed by, and what lies in the tree from others.

    python tools/sbom.py > sbom.cdx.json

It needs nothing but Python, and says the same for the same lock: no time, no machine, no chance.
The base image is not in it; whoever makes that has a list of its own.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?: ; (?P<marker>.+?))? \\$"
    r"(?P<hashes>(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+)",
    re.MULTILINE,
)
VENDORED = re.compile(r"^\| `[\w-]+` \| `([\w.@/-]+)` \| ([\w.]+) \| ([\w.-]+) \|$", re.MULTILINE)
NAMESPACE = uuid.UUID("5b0e3f0c-6f0a-5d7e-9c39-5ab0c0f6a1d4")
"""Of the serial numbers: the same lock has the same."""


def sbom(lock: str, vendored: str, version: str) -> dict[str, Any]:
    """The bill of materials of a lock (requirements with hashes) and a table of vendored files.

    Raises ValueError where a line of the lock is not understood."""
    found = [_package(one) for one in PINNED.finditer(lock)]
    if len(found) != len(re.findall(r"^[A-Za-z0-9]", lock, re.MULTILINE)):
        raise ValueError("a line of the lock is no package with hashes")
    found += [_vendored(*one) for one in VENDORED.findall(vendored)]
    components = sorted(found, key=lambda one: str(one["purl"]))
    facts = json.dumps([version, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, facts)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "sabot",
                "name": "sabot",
                "version": version,
            }
        },
        "components": components,
        "dependencies": [{"ref": "sabot", "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _package(pin: re.Match[str]) -> dict[str, Any]:
    name = re.sub(r"[-_.]+", "-", pin["name"]).lower()
    purl = f"pkg:pypi/{name}@{pin['version']}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": pin["version"],
        "purl": purl,
        # Of every file of the release: which one is taken depends on the machine.
        "hashes": [
            {"alg": "SHA-256", "content": one}
            for one in sorted(re.findall(r"sha256:([0-9a-f]{64})", pin["hashes"]))
        ],
    }
    if pin["marker"]:
        component["properties"] = [{"name": "sabot:only-where", "value": pin["marker"]}]
    return component


def _vendored(name: str, version: str, licence: str) -> dict[str, Any]:
    purl = f"pkg:npm/{name}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "licenses": [{"license": {"id": licence}}],
    }


def main() -> None:
    """Print that of this tree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock = (ROOT / "requirements.txt").read_text()
    vendored = (ROOT / "services/console/third_party/README.md").read_text()
    json.dump(sbom(lock, vendored, project["version"]), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
