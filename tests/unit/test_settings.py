"""Settings come from the environment, and a bad one is told in one line."""

from __future__ import annotations

import pytest

from services.kernel.settings import BadSettings, ServiceSettings, load


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ServiceSettings.model_fields:
        monkeypatch.delenv(f"SABOT_{name.upper()}", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)


def test_defaults_are_for_one_machine() -> None:
    found = load(ServiceSettings)
    assert (found.cell, found.host, found.port, found.otlp_endpoint) == ("main", "127.0.0.1", 0, "")


def test_the_environment_sets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SABOT_CELL", "north-1")
    monkeypatch.setenv("SABOT_PORT", "7000")
    monkeypatch.setenv("SABOT_TOKEN_FILE", "/run/tokens.json")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
    found = load(ServiceSettings)
    assert (found.cell, found.port, found.otlp_endpoint) == (
        "north-1",
        7000,
        "http://127.0.0.1:4317",
    )
    assert found.token_file is not None
    assert found.token_file.name == "tokens.json"


def test_every_bad_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SABOT_PORT", "70000")
    monkeypatch.setenv("SABOT_LOG_LEVEL", "LOUD")
    with pytest.raises(BadSettings) as caught:
        load(ServiceSettings)
    told = str(caught.value)
    assert "SABOT_PORT: " in told
    assert "SABOT_LOG_LEVEL: " in told
    assert "\n" not in told
