"""`sabot keys`: drawn once, private, and what the custodian and audit read."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from services.audit.seal_keys import load_or_create_signer
from services.cli.main import app
from services.kernel.key_file import load_or_create_keys
from services.kernel.tokens import Tokens, digest_of


def no_draw(count: int) -> bytes:
    raise AssertionError(f"{count} bytes drawn although there are keys")


def test_keys_are_drawn_once_and_then_only_looked_at(tmp_path: Path) -> None:
    first = CliRunner().invoke(app, ["keys", "--out", str(tmp_path / "new")])
    assert first.exit_code == 0, first.output
    files = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert files == ["call_keys.json", "seal_keys.json", "shoe_keys.json"]
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new").iterdir()} == {0o600}
    ring = load_or_create_keys(tmp_path / "new" / "shoe_keys.json", no_draw)
    signer = load_or_create_signer(tmp_path / "new" / "seal_keys.json")
    assert ring.current in first.output
    assert signer.public_key.hex() in first.output
    assert all(key.hex() not in first.output for key in ring.keys.values())
    again = CliRunner().invoke(app, ["keys", "--out", str(tmp_path / "new")])
    assert again.output == first.output


def test_a_device_gets_a_token_that_is_bound(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    arguments = ["token", "wheel-7", "--role", "device", "--table", "t1", "--file", str(file)]
    made = CliRunner().invoke(app, arguments)
    assert made.exit_code == 0, made.output
    caller = Tokens(file).caller(made.output.strip())
    assert caller is not None
    assert (caller.operator, *caller.speaks_for, *caller.tables) == ("wheel-7", "wheel-7", "t1")
    assert made.output.strip() not in file.read_text()


def test_a_token_without_a_file_shows_its_line() -> None:
    made = CliRunner().invoke(app, ["token", "dana", "--role", "dealer"])
    assert made.exit_code == 0, made.output
    assert made.stdout.strip()
    assert made.stderr.strip() == (
        f'"{digest_of(made.stdout.strip())}": {{"operator": "dana", "roles": ["dealer"]}}'
    )


def test_a_token_that_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    for arguments, told in (
        (["dana", "--role", "owner"], "'owner' is no role"),
        (["dana", "--role", "dealer", "--device", "wheel-7"], "for the role device"),
    ):
        made = CliRunner().invoke(app, ["token", *arguments, "--file", str(file)])
        assert made.exit_code == 1
        assert told in made.output
    assert not file.exists()
