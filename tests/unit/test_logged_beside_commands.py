"""Tests run commands in their own process, beside a fleet that logs: what the one prints and what
the other logs are two things (see tests/conftest.py)."""

from __future__ import annotations

import typer
from typer.testing import CliRunner

from services.kernel import host
from services.kernel.telemetry import Metrics


def test_what_is_logged_while_a_command_runs_is_no_output_of_it() -> None:
    app = typer.Typer()

    @app.command()
    def _told() -> None:
        host.Alarms(Metrics())("log_strained", {"found": ["a slow disk"]})
        print("what was asked")

    done = CliRunner().invoke(app)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "what was asked\n", "")
