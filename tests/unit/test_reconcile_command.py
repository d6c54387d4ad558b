"""`sabot reconcile` signs with the keys of the log that it reads, unless others are named; it makes
none."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli import ledger_command
from services.cli.main import app
from services.cli.partner_books import partner_side
from services.kernel.key_file import KeyFileUnusable
from services.wallet.periods import Period

ASK = ["reconcile", "--partner", "west", "--currency", "EUR", "--from", "2026-03-29"]


@pytest.mark.parametrize(
    ("named", "used"), [([], "elsewhere/call_keys.json"), (["--keys", "other.json"], "other.json")]
)
def test_it_signs_with_the_keys_of_its_data_folder(
    named: list[str], used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Path, Path | None]] = []

    async def against(*args: object) -> int:
        wallet = args[5]
        assert isinstance(wallet, tuple)
        asked.append(wallet)
        return 0

    monkeypatch.setattr(ledger_command, "_against", against)
    told = CliRunner().invoke(
        app, [*ASK, "--data", "elsewhere", "--against", "127.0.0.1:1", *named]
    )
    assert told.exit_code == 0, told.output
    assert asked == [("main", Path(used), None)]


async def test_keys_that_are_not_there_are_not_made(tmp_path: Path) -> None:
    """No partner could know them: its wallet would refuse every call."""
    keys = tmp_path / "no_keys.json"
    period = Period(0, 1)
    with pytest.raises(KeyFileUnusable, match="there is no such key file"):
        async with partner_side("127.0.0.1:1", "west", "EUR", period, "main", keys, None):
            pass
    assert not keys.exists()


@pytest.mark.parametrize("currency", ["eur", "XXQ", ""])
@pytest.mark.parametrize("against", [[], ["--against", "127.0.0.1:1"]])
def test_a_currency_that_there_is_not_agrees_with_nobody(currency: str, against: list[str]) -> None:
    told = CliRunner().invoke(app, [*ASK, "--currency", currency, *against])
    assert told.exit_code == 2, told.output
    assert f"{currency!r} is no currency such as EUR" in told.output
