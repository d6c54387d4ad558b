"""A nats-server that ended by itself is started again by the fleet, its store looked at first."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from services.cli import fleet as fleets
from services.cli.log_source import check_folder
from tests.fleet.clients import PATIENCE_S
from tests.fleet.running import inside, kill


async def test_callers_are_answered_while_the_store_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long store takes minutes to look at: reading what an account has is nothing to it."""
    begun, go_on = threading.Event(), threading.Event()

    def looked_at_slowly(data: Path, cell: str) -> None:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        check_folder(data, cell)

    async with inside(tmp_path / "data") as running:
        north = running.partner("north")
        await north.open_account("ann", 700)
        monkeypatch.setattr(fleets, "check_folder", looked_at_slowly)
        kill(running.fleet.server.server.pid or 0)
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        assert await north.balance("ann") == (700, 0)
        go_on.set()
        await north.deposit("ann", 50)
        assert await north.balance("ann") == (750, 0)
        await running.ledger()
