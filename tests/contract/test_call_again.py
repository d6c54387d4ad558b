"""A call that a server does not take for a moment is sent once more, by gRPC itself."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from sabot.partner.v1 import partner_service_pb2_grpc
from services.kernel.call import Call
from services.kernel.call_again import ATTEMPTS, CALL_AGAIN
from services.kernel.edge import EdgeNotReady
from tests.contract.places import PATIENCE_S
from tests.contract.serving import accepts, place, serving


@pytest.mark.parametrize(("refusals", "sent"), [(2, 3), (ATTEMPTS, ATTEMPTS)])
async def test_a_call_is_sent_again_while_it_is_not_taken(refusals: int, sent: int) -> None:
    async with serving() as served:

        def not_yet(request: Any, call: Call) -> Any:
            if len(served.partner.seen) <= refusals:
                raise EdgeNotReady("the log is being read")
            return accepts(request, call)

        served.partner.does["place_bets"] = not_yet
        address = f"127.0.0.1:{served.port}"
        async with grpc.aio.insecure_channel(address, CALL_AGAIN) as channel:
            stub: Any = partner_service_pb2_grpc.PartnerServiceStub(channel)
            called = stub.PlaceBets(
                place(), timeout=PATIENCE_S, metadata=(("authorization", "Bearer n-token"),)
            )
            assert await called.code() is (
                grpc.StatusCode.OK if sent > refusals else grpc.StatusCode.UNAVAILABLE
            )
        seen = served.partner.seen
        assert len(seen) == sent
        assert {request.request_id for request, _ in seen} == {"r-1"}
