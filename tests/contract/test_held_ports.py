"""A port that is held is nobody else's, and a server starts on it as often as it likes."""

from __future__ import annotations

import asyncio
import socket

import grpc
import pytest

from services.kernel.grpc_server import Server
from services.kernel.held_ports import HOST, HeldPorts
from tests.contract.places import PATIENCE_S
from tests.contract.serving import GET_TABLE, KnownCallers, unary

ASKED = 20_000
"""So often is any free port asked for: there are some 28,000 that may be given."""


def given() -> int:
    """Any port, as servers ask for one."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


def test_who_asks_for_any_port_or_for_this_one_gets_another_or_none() -> None:
    with HeldPorts(50) as held:
        assert len(set(held.numbers)) == 50
        assert not {given() for _ in range(ASKED)} & set(held.numbers)
        with HeldPorts(50) as others, socket.socket() as one:
            assert not set(held.numbers) & set(others.numbers)
            with pytest.raises(OSError, match="in use"):
                one.bind((HOST, held.numbers[0]))
            with pytest.raises(ConnectionRefusedError):
                one.connect((HOST, held.numbers[0]))
    with socket.socket() as one:
        one.bind((HOST, held.numbers[0]))


async def test_servers_start_there_one_after_the_other() -> None:
    with HeldPorts(1) as held:
        (port,) = held.numbers
        for _ in range(3):
            server = Server(KnownCallers())
            assert server.listen(f"{HOST}:{port}") == port
            await server.start()
            async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
                with pytest.raises(grpc.aio.AioRpcError) as answered:
                    await unary(channel, GET_TABLE)(b"", timeout=PATIENCE_S)
                assert answered.value.code() is grpc.StatusCode.UNIMPLEMENTED
            second = Server(KnownCallers())
            with pytest.raises(RuntimeError):
                second.listen(f"{HOST}:{port}")
            await server.stop(0)
            listening = await asyncio.start_server(lambda *_: None, HOST, port)
            listening.close()
            await listening.wait_closed()
