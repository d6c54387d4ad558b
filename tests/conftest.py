"""For every test: a skip that tests/skips.md does not permit is a failure, what a fleet in this
process logs is no output of a command that runs beside it, Hypothesis has the same examples each
time, and nothing that a test started outlives the process that ran it."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
import structlog
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

from tests.orphans import end_with_this_process

PERMITTED = re.findall(
    r"^- `([^`]+)`", Path(__file__).with_name("skips.md").read_text(), re.MULTILINE
)

end_with_this_process()

# Whoever runs a command in this process puts files of its own in the place of stdout and stderr
# while it runs, and structlog's default is stdout: a fleet beside it may log at any moment. pytest
# shows what is written here with the test that fails.
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.__stderr__))

# typer's runner would build the command's whole tree of verbs anew at each call.
typer.testing._get_command = functools.cache(typer.main.get_command)  # type: ignore[attr-defined]  # by its name there

# The same examples in every run, so that whoever changes something else meets no failure that was
# there before, and no judgement of how long this machine takes for them. Others are looked for by
# `pytest --hypothesis-profile=default`.
settings.register_profile(
    "same",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if not any(permitted in reason for permitted in PERMITTED):
            report.outcome = "failed"
            report.longrepr = f"{reason!r} is no permitted reason: see tests/skips.md"
    return report
