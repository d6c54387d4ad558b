"""For every test: a skip that tests/skips.md does not permit is a failure."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest

PERMITTED = re.findall(
    r"^- `([^`]+)`", Path(__file__).with_name("skips.md").read_text(), re.MULTILINE
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if not any(permitted in reason for permitted in PERMITTED):
            report.outcome = "failed"
            report.longrepr = f"{reason!r} is no permitted reason: see tests/skips.md"
    return report
