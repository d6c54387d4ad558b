"""Secrets, and what the operator's guide says of them and of what else is made by hand."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from pathlib import Path

from services.cli import nats_config
from services.events import SERVICES
from tests.k8s.manifests import PRODUCTION, RENDERED, ROOT, Object, of_kind, rendered, workloads
from tests.k8s.told import words_of

GUIDE = (ROOT / "docs" / "operations.md").read_text()
"""The operator's."""


def of_gateways(objects: list[Object]) -> dict[str, str]:
    """Gateways by the Secrets that they have their certificates of."""
    return {
        each["name"]: f"the gateway {one['metadata']['name']}"
        for one in of_kind(objects, "Gateway")
        for listener in one["spec"]["listeners"]
        for each in listener["tls"]["certificateRefs"]
    }


def test_the_operator_s_guide_tells_of_every_secret_and_of_no_other() -> None:
    used = set()
    for folder in RENDERED:
        for one in workloads(rendered(folder)):
            used |= set(one.secrets().values())
            for volume in one.mounts().values():
                sources = volume.get("projected", {}).get("sources", [])
                used |= {each["secret"]["name"] for each in sources if "secret" in each}
        used |= set(of_gateways(rendered(folder)))
    assert set(re.findall(r"^\| `([a-z-]+)` \|", GUIDE, re.MULTILINE)) == used
    assert not any(of_kind(rendered(folder), "Secret") for folder in RENDERED), "none in the tree"


def test_the_guide_makes_every_config_map_that_is_not_in_the_tree() -> None:
    objects = rendered(PRODUCTION)
    used = {
        (name, Path(text).name)
        for one in workloads(objects)
        for path, name in one.config_maps().items()
        for text in words_of(one)
        if str(Path(text).parent) == path
    }
    used |= {
        (each["name"], "ca.crt")
        for one in of_kind(objects, "BackendTLSPolicy")
        for each in one["spec"]["validation"]["caCertificateRefs"]
    }
    made = re.findall(
        r"^    kubectl -n sabot create configmap ([a-z-]+) --from-file=(\S+)$", GUIDE, re.MULTILINE
    )
    assert set(made) == used


def test_the_guide_s_commands_stand_in_blocks_of_their_own() -> None:
    """Right below a paragraph they would be shown as its words."""
    lines = GUIDE.splitlines()
    for above, line in itertools.pairwise(lines):
        if line.startswith("    kubectl"):
            assert not above or above.startswith("    "), line


def test_an_overlay_of_one_s_own_renames_the_image_of_new_cell_too(tmp_path: Path) -> None:
    """As the guide writes both."""
    images = re.search(r"^    (images: \[.+\])$", GUIDE, re.MULTILINE)
    assert images is not None
    beside = re.search(r"`(resources: \[(\S+)\])`", GUIDE)
    assert beside is not None
    for part in ("k8s", "deploy/nats"):
        shutil.copytree(ROOT / part, tmp_path / part)
    own = tmp_path / "k8s" / "overlays" / "own"
    (own / "new-cell").mkdir(parents=True)
    for folder, resources in ((own, "resources: [../production]"), (own / "new-cell", beside[1])):
        (folder / "kustomization.yaml").write_text(f"{resources}\n{images[1]}\n")
        objects = rendered(str(folder))
        assert objects
        for one in workloads(objects):
            assert one.container["image"] == "your/name/of/sabot:0.1.0"


def test_the_guide_s_table_names_the_keys_and_the_holders() -> None:
    told = {
        secret: (set(re.findall(r"`([a-z_.]+)`", keys)), holders)
        for secret, keys, holders in re.findall(
            r"^\| `([a-z-]+)` \| (.+?) \| .+? \| (.+?) \|", GUIDE, re.MULTILINE
        )
    }
    objects = [*rendered(PRODUCTION), *rendered(f"{PRODUCTION}/new-cell")]
    read: dict[str, set[str]] = {"nats-servers": {nats_config.SECRETS}}
    holders: dict[str, set[str]] = {"nats-servers": {"nats"}}
    for one in workloads(objects):
        for path in map(Path, words_of(one)):
            secret = one.secrets().get(str(path.parent))
            if secret is not None:
                read.setdefault(secret, set()).add(path.name)
                holders.setdefault(secret, set()).add(one.name)
    for secret, gateway in of_gateways(objects).items():
        read[secret], holders[secret] = {"tls.crt", "tls.key"}, {gateway}
    assert {secret: keys for secret, (keys, _) in told.items()} == read
    for secret, (_, who) in told.items():
        named_there = set(who.split(", "))
        if "every service" in named_there:
            named_there = named_there - {"every service"} | set(SERVICES)
        assert named_there == holders[secret], secret


def test_no_manifest_holds_anything_secret_or_a_registry_s_name() -> None:
    for folder in RENDERED:
        text = json.dumps(rendered(folder))
        assert not re.search(r"password: \"|BEGIN [A-Z ]*KEY", text)
        for one in workloads(rendered(folder)):
            assert "/" not in one.container["image"]
