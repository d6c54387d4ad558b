"""The guide for partners: every command and every part of its programs is run as it stands there.

Only places are others: the interpreter's folder for `.venv/bin/`, free ports, a folder of the test.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from services.certify.run import CASES
from services.kernel.held_ports import HeldPorts

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/partners"
BIN = f"{Path(sys.executable).parent}/"
DEMO = ".venv/bin/python -m services.cli.main demo --data data --port 0 --no-console"
"""What `make run` runs, with ports of its own."""
TIMEOUT_S = 300


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page in one language, in order."""
    text = (GUIDE / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def environment() -> dict[str, str]:
    paths = f"{ROOT}{os.pathsep}{ROOT / 'protos/gen'}"
    return {**os.environ, "PYTHONPATH": paths, "GRPC_VERBOSITY": "NONE"}


@pytest.fixture
def demonstration(tmp_path: Path) -> Iterator[str]:
    """`make run` in a folder of the test's; where it takes calls."""
    assert blocks("transfer.md", "sh") == ["make run\n"]
    recipe = re.search(r"^run:.*\n\t@(\S+) demo", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    assert recipe[1] == "$(BIN)/sabot"
    with subprocess.Popen(
        [sys.executable, "-m", "services.cli.main", "demo", "--data", "data", "--no-console"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = []
        found = None
        for line in process.stdout:  # What is logged is said there too.
            said.append(line)
            if found := re.match(r"sabot takes calls at (\S+);", line):
                break
        assert found, said
        try:
            yield found[1]
        finally:
            # Twice: the proof of what it played is left out.
            process.send_signal(signal.SIGINT)
            for told in process.stdout:
                if told.startswith("stopped;"):
                    break
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


@pytest.mark.timeout(2 * TIMEOUT_S)
def test_the_program_of_the_transfer_page_runs(demonstration: str, tmp_path: Path) -> None:
    program = "\n".join(blocks("transfer.md", "python"))
    assert program.count("127.0.0.1:7400") == 1
    done = subprocess.run(
        [sys.executable, "-c", program.replace("127.0.0.1:7400", demonstration)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "done"
    assert done.stdout.startswith("demo-1 EUR ['banker', ")


@pytest.mark.timeout(4 * TIMEOUT_S)
def test_the_commands_of_the_seamless_page_run(tmp_path: Path) -> None:
    held = HeldPorts(1)
    (port,) = held.numbers
    told = []
    try:
        for block in blocks("seamless.md", "sh"):
            script = re.sub(
                r"^ROUNDS=(\d+) make run$", rf"{DEMO} --rounds \1", block, flags=re.MULTILINE
            )
            script = script.replace(".venv/bin/", BIN).replace(":7490", f":{port}")
            done = subprocess.run(
                ["/bin/sh", "-e", "-c", script],
                cwd=tmp_path,
                env=environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=TIMEOUT_S,
                stdin=subprocess.DEVNULL,
            )
            assert done.returncode == 0, script + done.stdout + done.stderr
            told.append(done.stdout)
    finally:
        with suppress(OSError):
            os.kill(int((tmp_path / "wallet.pid").read_text()), signal.SIGKILL)
        held.release()
    assert told[2].splitlines()[-1] == f"{len(CASES)} passed, 0 failed, 0 not tried: certified"
    assert told[-1].startswith("the books agree: "), told[-1]
    assert "the books agree: 0 " not in told[-1]
    assert told[3].splitlines()[0].split()[:2] == ["passed", "rollback-before-debit"]


def test_the_page_of_certification_lists_the_cases_as_they_are() -> None:
    text = (GUIDE / "certification.md").read_text()
    listed = re.findall(r"^\| `([a-z][a-z-]*)` \| (.+) \|$", text, re.MULTILINE)
    assert listed == [(one.name, one.title) for one in CASES]
    assert f"{len(CASES)} passed, 0 failed, 0 not tried: certified" in text


def test_the_page_of_certification_knows_every_flag() -> None:
    text = (GUIDE / "certification.md").read_text()
    shown = subprocess.run(
        [sys.executable, "-m", "services.cli.main", "certify-wallet", "--help"],
        env={**environment(), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    flags = set(re.findall(r"--[a-z-]+", shown)) - {"--help", "--list", "--deadline"}
    assert flags == set(re.findall(r"^\| `(--[a-z-]+)` ", text, re.MULTILINE))


def test_what_is_left_out_is_said() -> None:
    text = " ".join((GUIDE / "README.md").read_text().split())
    assert "Promotions (free bets, bonus money, jackpots) and tips are left out for now" in text
