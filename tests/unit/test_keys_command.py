"""`sabot keys`: drawn once, private, and what the custodian and audit read."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from services.audit.seal_keys import load_or_create_signer
from services.cli.main import app
from services.kernel.key_file import load_or_create_keys


def no_draw(count: int) -> bytes:
    raise AssertionError(f"{count} bytes drawn although there are keys")


def test_keys_are_drawn_once_and_then_only_looked_at(tmp_path: Path) -> None:
    first = CliRunner().invoke(app, ["keys", "--out", str(tmp_path / "new")])
    assert first.exit_code == 0, first.output
    files = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert files == ["seal_keys.json", "shoe_keys.json"]
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new").iterdir()} == {0o600}
    ring = load_or_create_keys(tmp_path / "new" / "shoe_keys.json", no_draw)
    signer = load_or_create_signer(tmp_path / "new" / "seal_keys.json")
    assert ring.current in first.output
    assert signer.public_key.hex() in first.output
    assert all(key.hex() not in first.output for key in ring.keys.values())
    again = CliRunner().invoke(app, ["keys", "--out", str(tmp_path / "new")])
    assert again.output == first.output
