"""A correction where every service is a process of its own, and those that recall and confirm are
killed in the middle of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from sabot.table.v1 import correction_service_pb2 as corrections
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1.correction_events_pb2 import CorrectedOutcome
from services.cli.correct import Client
from services.cli.replay import verify
from services.kernel.call_again import CALL_AGAIN
from tests.fleet.clients import AGAIN_S, PATIENCE_S, table_spec
from tests.fleet.running import Running, kill, on_one_server

BETS = (("player", 1_000), ("tie", 200))


def client(running: Running, service: str, operator: str) -> tuple[grpc.aio.Channel, Client]:
    """An operator at the address of a service."""
    address = f"127.0.0.1:{running.fleet.child(service).port}"
    channel = grpc.aio.insecure_channel(address, CALL_AGAIN)
    return channel, Client(channel, address, running.fleet.tokens[f"operator:{operator}"])


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_correction_outlives_the_processes_that_recall_and_confirm(tmp_path: Path) -> None:
    async with on_one_server(tmp_path) as running:
        north, boss = running.partner("north"), running.operator()
        await boss.open_table(table_spec())
        await north.open_account("ann", 100_000)
        round_id = await boss.open_round("t1")
        assert not (await north.place("ann", round_id, *BETS)).refused
        await boss.close_betting(round_id)
        await until_paid(north, "ann")
        at_settlement, settlement = client(running, "settlement", "sam")
        at_table, proposer = client(running, "table", "sam")
        other, approver = client(running, "table", "rosa")
        dry = await settlement.preview(round_id, CorrectedOutcome(voided=True))
        reason = tables.ROUND_REASON_SYSTEM
        told = await proposer.propose(dry, round_id, reason, "INC-9")
        approving = asyncio.create_task(approver.approve(told.correction_id))
        await asyncio.sleep(0.02)
        for service in ("settlement", "audit"):
            child = running.fleet.child(service)
            kill(child.pid)
            assert child.process is not None
            await child.process.wait()
        found = await approving
        assert found.state == corrections.CORRECTION_STATE_POSTED
        available, reserved = await north.balance("ann")
        assert (available, reserved) == (100_000, 0)
        await running.until_ready()
        async with running.log() as log:
            verified = await verify(log)
        assert verified.right, verified.line()
        for channel in (at_settlement, at_table, other):
            await channel.close()


async def until_paid(north: Any, account: str) -> None:
    """Wait until nothing of the account is reserved."""
    async with asyncio.timeout(PATIENCE_S):
        while (await north.balance(account))[1]:  # noqa: ASYNC110 - other processes' doing
            await asyncio.sleep(AGAIN_S)
