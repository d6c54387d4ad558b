"""The port of health alone: open before the log is read, true about readiness, closed last."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.events import event_types
from services.kernel import host
from services.kernel.health_port import LIVE, READY, HealthPort, health_port
from services.kernel.held_ports import HeldPorts
from services.kernel.log import LogInfo
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.nats_process import write_private
from services.kernel.preflight import Preflight
from services.kernel.settings import ServiceSettings
from services.kernel.tokens import Caller
from tests.contract.places import PATIENCE_S

CELL = "probed"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
ROOT = Path(__file__).parents[2]


class Nobody:
    def caller(self, token: str) -> Caller | None:
        del token
        return None


class HeldLog(MemoryLog):
    """A log that tells where it ends only when the test lets it: until then it is being read."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def info(self, *, wait_s: float) -> LogInfo:
        self.asked.set()
        await self.go.wait()
        return await super().info(wait_s=wait_s)


async def strong() -> Preflight:
    return Preflight((), ())


async def told(port: int, name: str) -> int:
    """What health says of a name, as a probe asks it: in plain text and without a token."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its stubs lack the methods
        request = health_pb2.HealthCheckRequest(service=name)
        answer = await stub.Check(request, timeout=PATIENCE_S, wait_for_ready=True)
        return int(answer.status)


async def becomes(port: int, name: str, wanted: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await told(port, name) != wanted:  # noqa: ASYNC110 -- probes poll, too
            await asyncio.sleep(0.01)


async def on_held_log(
    settings: ServiceSettings, during: Callable[[HealthPort, HeldLog], Awaitable[None]]
) -> None:
    """Begin a start whose log is still being read, run `during` beside it, and end it."""
    log = HeldLog(MemoryStore(CELL, host.clock_us))
    async with health_port(settings) as probed:
        assert probed is not None
        starting = asyncio.create_task(
            host.start(
                [],
                name="probed",
                log=log,
                types=event_types(),
                settings=settings,
                tokens=Nobody(),
                preflight=strong,
                build="test",
                probed=probed,
            )
        )
        asked = asyncio.create_task(log.asked.wait())
        await asyncio.wait({asked, starting}, return_when=asyncio.FIRST_COMPLETED)
        assert not starting.done(), starting.result()
        try:
            await during(probed, log)
        finally:
            log.go.set()
            running = await starting
            await running.stop(1.0)
            assert await told(probed.port, READY) == NOT_SERVING, "drained, it takes no calls"
            assert await told(probed.port, LIVE) == SERVING, "and it lives until it has ended"


async def test_a_process_that_reads_its_log_lives_and_is_not_ready(tmp_path: Path) -> None:
    async def during(probed: HealthPort, log: HeldLog) -> None:
        assert await told(probed.port, LIVE) == SERVING
        assert await told(probed.port, READY) == NOT_SERVING
        assert await told(probed.port, "") == NOT_SERVING
        log.go.set()
        await becomes(probed.port, READY, SERVING)
        assert await told(probed.port, "") == SERVING

    await on_held_log(ServiceSettings(cell=CELL, data=tmp_path, health_port=0), during)


async def test_probes_need_no_certificate_where_calls_have_tls(tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("localhost")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    for part in issued.cert_chain_pems:
        part.write_to_path(chain, append=True)
    issued.private_key_pem.write_to_path(key)

    async def during(probed: HealthPort, log: HeldLog) -> None:
        log.go.set()
        await becomes(probed.port, READY, SERVING)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{calls}") as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE, "calls are taken by TLS alone"

    with HeldPorts(1) as held:
        (calls,) = held.numbers
        settings = ServiceSettings(
            cell=CELL, data=tmp_path, port=calls, health_port=0, tls_certificate=chain, tls_key=key
        )
        await on_held_log(settings, during)


async def test_nothing_but_health_is_served_there(tmp_path: Path) -> None:
    async with health_port(ServiceSettings(data=tmp_path, health_port=0)) as probed:
        assert probed is not None
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await told(probed.port, "sabot.wallet.v1.WalletService")
        assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
        async with grpc.aio.insecure_channel(f"127.0.0.1:{probed.port}") as channel:
            call: Any = channel.unary_unary("/sabot.wallet.v1.WalletService/GetAccount")
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(b"", timeout=PATIENCE_S)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_without_a_port_there_is_none_and_a_taken_one_is_said() -> None:
    async with health_port(ServiceSettings()) as probed:
        assert probed is None
    async with health_port(ServiceSettings(health_port=0)) as first:
        assert first is not None
        with pytest.raises(RuntimeError, match=str(first.port)):
            async with health_port(ServiceSettings(health_port=first.port)):
                pytest.fail("two processes on one port")


async def test_a_service_answers_probes_while_it_waits_for_the_log_s_servers(
    tmp_path: Path,
) -> None:
    write_private(tmp_path / "tokens.json", "{}")
    with HeldPorts(2) as held:
        port, nobody = held.numbers
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "services.wallet",
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT}:{ROOT / 'protos' / 'gen'}",
                "SABOT_NATS_URL": f"nats://127.0.0.1:{nobody}",
                "SABOT_NATS_MONITOR_URLS": f"http://127.0.0.1:{nobody}",
                "SABOT_DATA": str(tmp_path),
                "SABOT_TOKEN_FILE": str(tmp_path / "tokens.json"),
                "SABOT_HEALTH_PORT": str(port),
            },
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await becomes(port, LIVE, SERVING)
            assert await told(port, READY) == NOT_SERVING
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 1, "it gives up its start"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
