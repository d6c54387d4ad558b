"""The image, built by its recipe and run: the whole production overlay out of it, as a user without
rights on a root that cannot be written.

Built by buildah on a base of Debian that mmdebstrap makes; both are installed where that may be
done. What was fetched for it is kept beside the tests' environment.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.load import crowd
from tests.fleet.test_rendered_cell import proven, the_nights_jobs_do_their_part
from tests.k8s.image_cell import Image, ImageCell
from tests.k8s.local_cell import local_cell
from tests.k8s.manifests import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]

NOT_HERE = "images cannot be built here"
KEPT = Path(sys.prefix) / "image"
PACKAGES = ("python3", "python-is-python3", "python3-pip")
"""What the base has besides Debian's smallest: a Python in PATH, with pip."""
STEP_S = 1200.0


def run(*command: object, env: dict[str, str] | None = None) -> str:
    """Run a command of words; what it printed."""
    done = subprocess.run(
        [str(word) for word in command],
        env=env,
        capture_output=True,
        text=True,
        timeout=STEP_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def tools() -> None:
    """See that there are builders."""
    wanted = [one for one in ("buildah", "mmdebstrap") if shutil.which(one) is None]
    if wanted:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            pytest.skip(NOT_HERE)
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "update", "--quiet", env=env)
        run("apt-get", "install", "--yes", "--no-install-recommends", *wanted, env=env)


def base() -> Path:
    """A small Debian as one archive."""
    path = KEPT / f"base-{hashlib.sha256(' '.join(PACKAGES).encode()).hexdigest()[:12]}.tar"
    if not path.exists():
        leave_out = [
            f"--dpkgopt=path-exclude=/usr/share/{one}/*" for one in ("doc", "man", "locale")
        ]
        part = path.with_name("part.tar")
        include = f"--include={','.join(PACKAGES)}"
        run("mmdebstrap", "--variant=minbase", include, *leave_out, "bookworm", part)
        part.replace(path)
    return path


def wheels() -> Path:
    """The lock's files, so that the recipe needs no network: any mirror serves, this folder too."""
    lock = ROOT / "requirements.txt"
    path = KEPT / f"wheels-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not path.exists():
        part = KEPT / "part"
        shutil.rmtree(part, ignore_errors=True)
        fetch = [sys.executable, "-m", "pip", "download", "--require-hashes"]
        run(*fetch, "--only-binary", ":all:", "-r", lock, "--dest", part)
        part.rename(path)
    return path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Image, dict[str, Any]]]:
    """The image, unpacked, and what it says of itself."""
    tools()
    KEPT.mkdir(exist_ok=True)
    with (KEPT / "lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # another worker of the suite may be at it
        archive, files = base(), wheels()
    folder = tmp_path_factory.mktemp("image")
    pip = folder / "pip.conf"
    pip.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    store = ["--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "vfs"]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(folder / "run"), "BUILDAH_ISOLATION": "chroot"}
    buildah = functools.partial(run, "buildah", *store, env=env)
    empty = buildah("from", "scratch").strip()
    buildah("add", "--quiet", empty, archive, "/")
    buildah("commit", "--quiet", "--rm", empty, "base")
    mounts = [f"--volume={files}:/wheels:ro", f"--volume={pip}:/etc/pip.conf:ro"]
    recipe = ["--file", ROOT / "deploy/Containerfile", "--tag", "sabot:test"]
    base_image = ["--build-arg", "BASE=localhost/base", "--pull-never", "--isolation=chroot"]
    buildah("build", *base_image, *mounts, *recipe, ROOT)
    told = json.loads(buildah("inspect", "--type", "image", "sabot:test"))["OCIv1"]["config"]
    container = buildah("from", "--pull-never", "sabot:test").strip()
    root = Path(buildah("mount", container).strip())
    user = int(told["User"].partition(":")[0])
    settings = dict(one.split("=", 1) for one in told["Env"])
    try:
        yield Image(root, user, settings), told
    finally:
        buildah("umount", container)
        buildah("rm", container)
        shutil.rmtree(folder / "store", ignore_errors=True)


def test_what_it_says_of_itself_is_what_the_recipe_says(
    built: tuple[Image, dict[str, Any]],
) -> None:
    image, told = built
    assert told["User"] == "10001:10001"
    assert told["WorkingDir"] == "/data"
    assert told["Cmd"] == ["python", "-m", "services.cli", "--help"]
    mine = image.root / "opt/sabot"
    assert not [one for one in mine.rglob("*") if one.lstat().st_uid == image.user], (
        "it owns nothing"
    )
    assert not list(mine.glob("lib/python*/site-packages/pip")), "nor can it install anything"


def test_its_bill_of_materials_is_what_is_installed(built: tuple[Image, dict[str, Any]]) -> None:
    image, _ = built
    told = json.loads((image.root / "opt/sabot/sbom.cdx.json").read_text())
    packages = [one for one in told["components"] if one["purl"].startswith("pkg:pypi/")]
    there = {
        (re.sub(r"[-_.]+", "-", name).lower(), version)
        for one in image.root.glob("opt/sabot/lib/python*/site-packages/*.dist-info")
        for name, version in [one.name.removesuffix(".dist-info").rsplit("-", 1)]
    }
    everywhere = {(one["name"], one["version"]) for one in packages if "properties" not in one}
    assert everywhere <= there <= {(one["name"], one["version"]) for one in packages}
    vendored = [one for one in told["components"] if one not in packages]
    folder = image.root / "opt/sabot/src/services/console/third_party"
    assert len(vendored) == len([one for one in folder.iterdir() if one.is_dir()])


async def test_production_runs_out_of_the_image(
    built: tuple[Image, dict[str, Any]], tmp_path: Path
) -> None:
    image, _ = built
    for above in (tmp_path, *tmp_path.parents[:2]):
        above.chmod(0o755)  # pytest's folders are their maker's alone

    def of(folder: Path, objects: list[dict[str, Any]]) -> ImageCell:
        return ImageCell(folder, objects, image=image)

    async with (
        local_cell(tmp_path, "overlays/production", "overlays/production/new-cell", of) as cell,
        crowd(cell, seed=12) as playing,
    ):
        await playing.rounds_go_on(1)
        for pod in cell.pods:
            if pod.process is not None:
                assert pod.process.returncode is None
                here = Path(f"/proc/{pod.process.pid}")
                facts = dict(
                    line.split(":\t", 1) for line in (here / "status").read_text().splitlines()
                )
                assert set(facts["Uid"].split()) == {str(image.user)}
                assert int(facts["CapEff"], 16) == int(facts["CapBnd"], 16) == 0
                assert facts["NoNewPrivs"] == "1"
                assert " / ro" in (here / "mountinfo").read_text()
                assert (here / "root/opt/sabot/sbom.cdx.json").exists()
        await playing.rest()
        await the_nights_jobs_do_their_part(cell)
        await proven(cell, playing.partners)
