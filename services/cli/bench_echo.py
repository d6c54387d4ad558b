"""The floor of `sabot bench`: a bare grpc.aio unary server on the same event loop as the fleet. It
decodes nothing and answers at once, with as many bytes as PlaceBets answers."""

from __future__ import annotations

from typing import Any

import grpc

from sabot.log.v1.entry_pb2 import Position
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.table.v1 import bet_pb2
from services.cli.bench_child import say, until_stopped
from services.cli.bench_load import PLACE_BETS, STAKE_MINOR, TABLE
from services.kernel import event_loop

ANSWER = partners.PlaceBetsResponse(
    bets=[bet_pb2.Bet(bet_id=f"{TABLE}-10.5000", bet="banker", stake_minor=STAKE_MINOR)],
    position=Position(segment=1, sequence=50_000, index=20),
).SerializeToString()
"""A usual answer of PlaceBets to one bet."""


class _Handlers(grpc.GenericRpcHandler):
    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        if handler_call_details.method != PLACE_BETS:
            return None
        return grpc.unary_unary_rpc_method_handler(_echo)


async def _echo(raw: bytes, context: object) -> bytes:
    del raw, context
    return ANSWER


async def _main() -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Handlers(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    say(address=f"127.0.0.1:{port}")
    await until_stopped()
    await server.stop(None)


if __name__ == "__main__":
    event_loop.run(_main())
