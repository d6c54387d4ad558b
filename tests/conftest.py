"""For every test: a skip that tests/skips.md does not permit is a failure, and what a fleet in this
process logs is no output of a command that runs beside it."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
import structlog

PERMITTED = re.findall(
    r"^- `([^`]+)`", Path(__file__).with_name("skips.md").read_text(), re.MULTILINE
)

# Whoever runs a command in this process puts files of its own in the place of stdout and stderr
# while it runs, and structlog's default is stdout: a fleet beside it may log at any moment. pytest
# shows what is written here with the test that fails.
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.__stderr__))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if not any(permitted in reason for permitted in PERMITTED):
            report.outcome = "failed"
            report.longrepr = f"{reason!r} is no permitted reason: see tests/skips.md"
    return report
