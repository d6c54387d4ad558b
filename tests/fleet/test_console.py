"""The console's own tests (tests/console), in a pytest of their own: see its README."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 1800
"""A browser, a fleet and the console, beside other tests."""


@pytest.mark.timeout(TIMEOUT_S + 30)
def test_every_page_of_the_console_in_a_real_browser(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long"]
    done = subprocess.run(
        [*command, "--basetemp", str(tmp_path / "console"), "tests/console"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert re.search(r"^\d+ passed in ", done.stdout, re.MULTILINE), "nothing is left out"
