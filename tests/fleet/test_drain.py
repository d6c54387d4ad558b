"""SIGTERM to a process under load: health first, calls that run come to their end, then exit 0."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.table.v1 import bet_pb2
from services.cli.uuid7 import uuid7
from tests.fleet.clients import PATIENCE_S, Partner, Servers, money, reason_of, table_spec
from tests.fleet.running import NOT_SERVING, on_one_server

DRAIN_S = 2 * PATIENCE_S
"""What hangs is ended then, and by that it is found out here."""
AT_ONCE = 60
"""Bets under way when the signal comes, a few of them decided already."""


async def test_a_process_under_load_drains_on_sigterm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SABOT_DRAIN_S", str(DRAIN_S))
    async with on_one_server(tmp_path, {"table": 2}) as running:
        operator, north = running.operator(), running.partner("north")
        await operator.open_table(table_spec("t1"))
        await north.open_account("anna", 100_000_00)
        round_id = await operator.open_round("t1")
        for name in ("table", "table-2"):
            child = running.fleet.child(name)
            process = child.process
            assert process is not None
            direct = Partner(
                Servers(f"127.0.0.1:{child.port}", again=False),
                running.fleet.tokens["partner:north"],
            )
            watching = asyncio.create_task(watch_to_the_end(direct))
            healths = asyncio.create_task(health_to_the_end(child.port))
            bets = [asyncio.create_task(bet(direct, round_id)) for _ in range(AT_ONCE)]
            await asyncio.wait(bets, return_when=asyncio.FIRST_COMPLETED)

            os.kill(child.pid, signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                code = await process.wait()
            assert code == 0
            assert (await healths)[-1] == NOT_SERVING
            outcomes = [await task for task in bets]
            # What was taken was brought to its end and told; the rest was turned away unmistakably.
            assert set(outcomes) <= {"on", "NOT_READY"}, outcomes
            assert outcomes.count("on") > 1
            # Streams end with a word, so that their callers go on elsewhere at once.
            assert await watching == "NOT_READY"
            await direct.servers.close()

            # Meanwhile the other takes bets, and the one that ended comes back.
            placed = await north.place("anna", round_id, ("player", 1_00))
            assert placed.bets
            await running.until_ready([child])
        await operator.close_betting(round_id)
        await north.round_in("t1", partner.ROUND_STATE_PAID)
        ledger = await running.proven(north=north)
        assert len(ledger.stakes) >= outcomes.count("on")
        assert running.alarms() == []


async def bet(north: Partner, round_id: str) -> str:
    """One sending of one bet: `on`, or the reason why not."""
    request = partner.PlaceBetsRequest(
        request_id=uuid7(),
        account_id="anna",
        table_id="t1",
        round_id=round_id,
        bets=[bet_pb2.BetRequest(bet="player", stake=money(1_00))],
    )
    try:
        await north.bets.PlaceBets(request, metadata=north.metadata, timeout=PATIENCE_S)
    except grpc.aio.AioRpcError as error:
        return reason_of(error) or str(error.details())
    return "on"


async def health_to_the_end(port: int) -> list[int]:
    """All that a process says of itself until it ends, one thing after the other."""
    said: list[int] = []
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        with suppress(grpc.aio.AioRpcError):
            async for answer in stub.Watch(health_pb2.HealthCheckRequest()):
                said.append(answer.status)  # noqa: PERF401 - what came before the end counts
    return said


async def watch_to_the_end(north: Partner) -> str:
    """Why a stream ended."""
    try:
        async for _ in north.bets.WatchBets(partner.WatchBetsRequest(), metadata=north.metadata):
            pass
    except grpc.aio.AioRpcError as error:
        return reason_of(error) or str(error.details())
    return "without a word"
