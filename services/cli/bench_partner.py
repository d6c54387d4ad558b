"""A partner's wallet that says yes to everything at once: what calls to partners cost us, and none
of what their books cost them."""

from __future__ import annotations

from typing import Any

import grpc

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from services.cli.bench_child import say, until_stopped
from services.kernel import event_loop

_SERVICE = "/sabot.partnerwallet.v1.PartnerWalletService/"


async def _debit(raw: bytes, context: object) -> bytes:
    del context
    request = partner_wallet.DebitRequest.FromString(raw)
    return partner_wallet.DebitResponse(
        transaction_id=request.transaction_id, outcome=partner_wallet.DEBIT_OUTCOME_TAKEN
    ).SerializeToString()


async def _credit(raw: bytes, context: object) -> bytes:
    del context
    request = partner_wallet.CreditRequest.FromString(raw)
    return partner_wallet.CreditResponse(
        transaction_id=request.transaction_id, outcome=partner_wallet.CREDIT_OUTCOME_CREDITED
    ).SerializeToString()


async def _rollback(raw: bytes, context: object) -> bytes:
    del context
    request = partner_wallet.RollbackRequest.FromString(raw)
    return partner_wallet.RollbackResponse(
        transaction_id=request.transaction_id, outcome=partner_wallet.ROLLBACK_OUTCOME_DONE
    ).SerializeToString()


_METHODS = {"Debit": _debit, "Credit": _credit, "Rollback": _rollback}


class _Handlers(grpc.GenericRpcHandler):
    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        method: str = handler_call_details.method
        answer = _METHODS.get(method.removeprefix(_SERVICE))
        return None if answer is None else grpc.unary_unary_rpc_method_handler(answer)


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
