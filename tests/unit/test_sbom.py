"""The bill of materials: exactly the lock and what lies in the tree from others, and stable."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.sbom import sbom

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.txt").read_text()
VENDORED = (ROOT / "services/console/third_party/README.md").read_text()


def printed() -> str:
    command = [sys.executable, "-I", "-S", str(ROOT / "tools/sbom.py")]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_every_component_is_in_the_lock_with_its_hashes_and_the_other_way_round() -> None:
    told: dict[str, Any] = json.loads(printed())
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    packages = {one["purl"]: one for one in told["components"] if "pypi" in one["purl"]}
    assert packages.keys() == {
        f"pkg:pypi/{name}@{version}"
        for name, version in re.findall(r"^([a-z0-9-]+)==([^\s;]+)", LOCK, re.MULTILINE)
    }
    hashes = [one["content"] for each in packages.values() for one in each["hashes"]]
    assert sorted(hashes) == sorted(re.findall(r"--hash=sha256:(\w+)", LOCK))
    only = [one for one in packages.values() if "properties" in one]
    assert len(only) == len(re.findall(r"^\S+==\S+ ; ", LOCK, re.MULTILINE))


def test_what_lies_in_the_tree_from_others_is_in_it() -> None:
    told: dict[str, Any] = json.loads(printed())
    vendored = {one["purl"] for one in told["components"]} - {
        one["purl"] for one in told["components"] if "pypi" in one["purl"]
    }
    folders = [
        one.name for one in (ROOT / "services/console/third_party").iterdir() if one.is_dir()
    ]
    assert len(vendored) == len(folders) > 0
    assert all(one.startswith("pkg:npm/") for one in vendored)


def test_it_is_the_same_for_the_same_lock_and_another_for_another() -> None:
    assert printed() == printed()
    one = sbom(LOCK, VENDORED, "1")
    other = sbom(LOCK.replace("sha256:0", "sha256:1", 1), VENDORED, "1")
    assert one["serialNumber"] != other["serialNumber"]
    refs = [each["bom-ref"] for each in one["components"]]
    assert len(refs) == len(set(refs))
    assert one["dependencies"] == [{"ref": "sabot", "dependsOn": refs}]


def test_a_line_without_hashes_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="no package with hashes"):
        sbom(LOCK + "evil==1.0\n", VENDORED, "1")
