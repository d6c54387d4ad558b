"""`sabot switch`: what shall be switched, as the command has it and back."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sabot.table.v1 import operator_service_pb2 as operators
from services.cli.main import app
from services.cli.switches import BadTarget, line_of, switch_of, target_of


@pytest.mark.parametrize(
    "target",
    ["all", "game:sicbo", f"rules:{'ab' * 32}", "partner:acme", "account:acme/ann/2"],
)
def test_a_target_is_said_and_said_back(target: str) -> None:
    assert target_of(switch_of(target)) == target


@pytest.mark.parametrize(
    "target", ["", "all:of", "game:keno", "rules:xyz", "partner:", "account:ann", "table:t1"]
)
def test_what_is_not_said_plainly_is_not_understood(target: str) -> None:
    with pytest.raises(BadTarget):
        switch_of(target)
    done = CliRunner().invoke(app, ["switch", "off", target, "--reason", "x"])
    assert done.exit_code == 2


def test_what_is_off_is_told_in_one_line() -> None:
    off = operators.SwitchedOff(
        switch=switch_of("game:sicbo"), reason="an inquiry", actor="operator:sam"
    )
    off.since.FromSeconds(1_767_225_600)
    assert line_of(off) == (
        "game:sicbo is off since 2026-01-01 00:00:00 UTC by operator:sam: an inquiry"
    )
