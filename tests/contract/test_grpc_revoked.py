"""A token that is taken out of the token file: its calls are refused, and its streams end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from sabot.partner.v1 import partner_service_pb2 as partners
from services.kernel import tokens
from services.kernel.call import EVERY_ROLE, Call, rpc
from services.kernel.grpc_server import Server
from services.kernel.tokens import Caller, Tokens, write_tokens
from tests.contract.places import PATIENCE_S
from tests.contract.serving import GET_TABLE, PARTNER, WATCH, MadeUp, info_of, made_up, unary

WATCH_BETS = "/sabot.partner.v1.PartnerService/WatchBets"
NORTH, SOUTH = Caller(partner="north"), Caller(partner="south")
REQUEST = partners.WatchTableRequest(table_id="t1").SerializeToString()


class Beats:
    """Says something on every stream whenever the test does, as heartbeats do by the clock."""

    def __init__(self) -> None:
        self.heard: list[asyncio.Queue[None]] = []

    def beat(self) -> None:
        for queue in self.heard:
            queue.put_nowait(None)

    def streams(self, kind: type[Any]) -> Any:
        async def watch(_request: Any, call: Call) -> AsyncIterator[Any]:
            del call
            queue: asyncio.Queue[None] = asyncio.Queue()
            self.heard.append(queue)
            yield kind(heartbeat=True)
            while True:
                await queue.get()
                yield kind(heartbeat=True)

        return rpc(partners=True, roles=EVERY_ROLE)(watch)


def watching(beats: Beats) -> MadeUp:
    servicer: Any = made_up(PARTNER, partners=True)
    servicer.watch_table = beats.streams(partners.WatchTableResponse)
    servicer.watch_bets = beats.streams(partners.WatchBetsResponse)
    servicer.does["get_table"] = lambda _request, _call: partners.GetTableResponse()
    found: MadeUp = servicer
    return found


@pytest.mark.parametrize("method", [WATCH, WATCH_BETS])
async def test_a_stream_ends_with_its_token_and_no_other_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(tokens, "LOOK_EVERY_S", 0.0)
    path = tmp_path / "tokens.json"
    write_tokens(path, {"n-token": NORTH, "s-token": SOUTH})
    beats = Beats()
    server = Server(Tokens(path))
    server.add(PARTNER, watching(beats))
    port = server.listen("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        opened: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(method)
        streams = {
            token: opened(
                REQUEST if method == WATCH else b"",
                metadata=(("authorization", f"Bearer {token}"),),
                timeout=PATIENCE_S,
            )
            for token in ("n-token", "s-token")
        }
        for stream in streams.values():
            assert await stream.read() is not grpc.aio.EOF
        beats.beat()
        for stream in streams.values():
            assert await stream.read() is not grpc.aio.EOF

        write_tokens(path, {"s-token": SOUTH})
        beats.beat()
        async with asyncio.timeout(PATIENCE_S):
            assert await streams["s-token"].read() is not grpc.aio.EOF
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await streams["n-token"].read()
        assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert info_of(ended.value).reason == "TOKEN_UNKNOWN"
        asked = partners.GetTableRequest(table_id="t1").SerializeToString()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await unary(channel, GET_TABLE)(
                asked, metadata=(("authorization", "Bearer n-token"),), timeout=PATIENCE_S
            )
        assert info_of(refused.value).reason == "TOKEN_UNKNOWN"
    await server.stop(0)
