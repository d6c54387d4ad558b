"""The custodian's key is lost between two runs: it is told before a card is called, and the way out
of docs/runbooks/lost-shoe-key.md leads out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import operator_service_pb2 as operators
from services.cli.uuid7 import uuid7
from services.kernel import host, telemetry
from services.kernel.call_again import CALL_AGAIN
from tests.fleet.clients import AGAIN_S, PATIENCE_S, Operator, table_spec
from tests.fleet.running import NOT_SERVING, SERVING, Inside, inside, is_harmless

STAKE = 4_00


class Kept(telemetry.Metrics):
    """Remembers the metrics of the last process that was started."""

    last: telemetry.Metrics

    def __init__(self) -> None:
        super().__init__()
        Kept.last = self


def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The alarms of fleets in this process, as they come."""
    alarms: list[tuple[str, Any]] = []

    def hear(_: object, kind: str, facts: dict[str, Any]) -> None:
        if not is_harmless(kind, facts):
            alarms.append((kind, facts))

    monkeypatch.setattr(host.Alarms, "__call__", hear)
    return alarms


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - a look at what was said, not an event
            await asyncio.sleep(AGAIN_S)


async def until_health(running: Inside, part: str, wanted: int) -> None:
    """Wait until health says this of a part of the process."""
    request = health_pb2.HealthCheckRequest(service=part)
    async with grpc.aio.insecure_channel(running.fleet.address, CALL_AGAIN) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        async with asyncio.timeout(PATIENCE_S):
            async for answer in stub.Watch(request):
                if answer.status == wanted:
                    return


async def void(dealer: Operator, round_id: str) -> None:
    request = operators.VoidRoundRequest(
        request_id=uuid7(), table_id="t1", round_id=round_id, reason=table.ROUND_REASON_EQUIPMENT
    )
    await dealer.tables.VoidRound(request, metadata=dealer.metadata, timeout=PATIENCE_S)


async def test_a_lost_shoe_key_is_told_before_a_card_is_called_and_there_is_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, alarms = tmp_path / "data", heard(monkeypatch)
    monkeypatch.setattr(telemetry, "Metrics", Kept)
    async with inside(data) as running:
        dealer, north = running.operator(), running.partner("north")
        await dealer.open_table(table_spec("t1"))
        await north.open_account("anna", 100_00)
        round_id = await dealer.open_round("t1")
        await until_health(running, "custodian", SERVING)
    assert alarms == []

    (data / "shoe_keys.json").unlink()
    async with inside(data) as running:
        dealer, north = running.operator(), running.partner("north")
        # Nobody has called a card, and bets are still open.
        await until(lambda: alarms)
        kind, facts = alarms[0]
        assert (kind, facts["about"]) == ("shell_cannot", "t1-s1")
        assert "not held here" in facts["why"]
        await until_health(running, "custodian", NOT_SERVING)
        await until_health(running, "", SERVING)  # other tables go on
        told = Kept.last.registry.get_sample_value
        assert told("sabot_shell_problems", {"shell": "custodian"}) == 1

        assert (await north.place("anna", round_id, ("player", STAKE))).bets
        await dealer.close_betting(round_id)
        await north.round_in("t1", partner.ROUND_STATE_DEALING)
        await void(dealer, round_id)
        await north.round_in("t1", partner.ROUND_STATE_RETURNED)
        assert await north.balance("anna") == (100_00, 0)
        await dealer.close_table("t1")
        await dealer.open_table(table_spec("t1"))
        again = await dealer.open_round("t1")
        assert (await north.place("anna", again, ("player", STAKE))).bets
        await dealer.close_betting(again)
        over = await north.round_in("t1", partner.ROUND_STATE_PAID)
        assert over.shoe_id == "t1-s2"
        # What cannot be laid open stays told.
        await until_health(running, "custodian", NOT_SERVING)
        ledger = await running.ledger()
        assert len(ledger.stakes) == 2
