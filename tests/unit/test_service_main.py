"""A service that cannot start says why in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.events import event_types
from services.kernel import service_main, telemetry
from services.kernel.reader import LogBroken
from services.kernel.service_main import EXIT_STOPPED, EXIT_USAGE, EXPECTED
from services.kernel.tokens import create_demo_tokens


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = tmp_path / "tokens.hashed.json"
    create_demo_tokens(tokens, tmp_path / "tokens.json")
    monkeypatch.setenv("SABOT_TOKEN_FILE", str(tokens))
    monkeypatch.setenv("SABOT_NATS_MONITOR_URLS", "http://127.0.0.1:1")
    monkeypatch.setenv("SABOT_DATA", str(tmp_path / "data"))


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("kind", EXPECTED, ids=lambda kind: str(kind.__name__))
def test_what_a_start_may_end_with_is_one_line(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve(*_: Any) -> None:
        error = kind.__new__(kind)
        Exception.__init__(error, "that is why")
        raise error

    monkeypatch.setattr(service_main, "_serve", serve)
    monkeypatch.setattr(telemetry, "configure_logging", lambda **_: None)
    nothing: Any = None
    assert service_main.main("wallet", nothing, event_types()) == EXIT_STOPPED
    assert capsys.readouterr().err == "wallet: that is why\n"


def test_a_missing_setting_is_said_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SABOT_TOKEN_FILE", raising=False)
    nothing: Any = None
    assert service_main.main("wallet", nothing, event_types()) == EXIT_USAGE
    assert capsys.readouterr().err.startswith("wallet: SABOT_TOKEN_FILE: needed")


def test_a_broken_log_says_where() -> None:
    assert str(LogBroken(7, "missing")) == "entry 7: missing"
