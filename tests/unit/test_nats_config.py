"""What `sabot nats` prints and draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.nats_config import config, write_secrets
from services.events import SERVICES
from services.kernel.nats_users import cluster_users

ROOT = Path(__file__).parents[2]
CELL = "main"


def test_the_file_for_servers_of_one_s_own_is_what_the_command_prints() -> None:
    assert (ROOT / "deploy" / "nats" / "nats.conf").read_text() == config(CELL)


def test_secrets_are_drawn_once_and_are_private(tmp_path: Path) -> None:
    written = write_secrets(tmp_path / "secrets", ["nats-0:6222"])
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}
    passwords = {path.read_text() for path in written}
    assert len(passwords) == len(written) == len(cluster_users(SERVICES)) + 1
    with pytest.raises(FileExistsError):
        write_secrets(tmp_path / "secrets", ["nats-0:6222"])
