"""The disk of the log's server is full, and then has room again: the server goes on taking nothing.
The fleet takes no calls meanwhile, says what to do, and after that goes on with everything."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from sabot.partner.v1 import partner_service_pb2 as partner
from services.kernel import appending, host
from tests.fleet.clients import PATIENCE_S, Partner, table_spec
from tests.fleet.running import (
    NOT_SERVING,
    SERVING,
    Inside,
    inside,
    is_harmless,
    until_health,
)
from tests.fleet.test_power_cut import make_disk, mounted

STAKE = 1_00
SILENT_S = 3.0
"""Instead of the twenty seconds that an election may take: there is one server."""


def fill(disk: Path) -> Path:
    """Leave no room on a disk."""
    path = disk / "somebody's film"
    with path.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
    return path


async def bet_on(north: Partner, round_id: str) -> None:
    """Bet again and again: some blocks of the log's file may have room yet."""
    for number in range(10_000):
        await north.place("anna", round_id, ("player", STAKE), request_id=f"bet-{number}")


async def serving(running: Inside, wanted: int) -> None:
    await until_health(int(running.fleet.address.rpartition(":")[2]), wanted)


async def test_a_full_disk_is_not_served_and_told_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms: list[tuple[str, dict[str, Any]]] = []
    silent: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def alarm(_: object, kind: str, facts: dict[str, Any]) -> None:
        if not is_harmless(kind, facts):
            alarms.append((kind, facts))
        if kind == "log_does_not_answer" and not silent.done():
            silent.set_result(facts["do"])

    monkeypatch.setattr(host.Alarms, "__call__", alarm)
    monkeypatch.setattr(appending, "SILENT_S", SILENT_S)
    image = tmp_path / "disk.img"
    make_disk(image)
    async with mounted(image, tmp_path / "disk") as disk:
        async with inside(disk / "data") as running:
            dealer, north = running.operator(), running.partner("north")
            await dealer.open_table(table_spec("t1"))
            await north.open_account("anna", 10_000_00)
            round_id = await dealer.open_round("t1")
            await serving(running, SERVING)

            film = fill(disk)
            betting = asyncio.create_task(bet_on(north, round_id))
            async with asyncio.timeout(PATIENCE_S):
                what_to_do = await silent
            assert f"disk of {disk / 'data'} has room" in what_to_do
            assert "start it again" in what_to_do
            await serving(running, NOT_SERVING)

            film.unlink()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2 * SILENT_S):
                    await serving(running, SERVING)  # room alone does not bring it back
            betting.cancel()
            await asyncio.wait([betting])
            told = dict(north.told.on)
        alarms.clear()
        async with inside(disk / "data") as running:
            dealer, north = running.operator(), running.partner("north")
            assert (await north.place("anna", round_id, ("tie", STAKE))).bets
            await dealer.close_betting(round_id)
            await north.round_in("t1", partner.ROUND_STATE_PAID)
            ledger = await running.ledger()
            assert ledger.at_rest() == []
            assert ledger.denies("north", told) == []
            assert alarms == []
