"""SettlementService: what bets were paid."""

from __future__ import annotations

from sabot.settlement.v1 import settlement_service_pb2 as settlements
from services.kernel.ask import await_position
from services.kernel.call import (
    EVERY_ROLE,
    Call,
    fill_page,
    open_token,
    position_message,
    rpc,
    seal_token,
)
from services.kernel.errors import Refused
from services.refusals.table import ROUND_NOT_FOUND
from services.settlement.queries import SettlementQueries

ACCOUNTS_PAGE = 50
"""Accounts of a page where the caller does not say."""


class SettlementServicer:
    """Partners see their own accounts; operators see all."""

    def __init__(self, queries: SettlementQueries) -> None:
        self._queries = queries

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_settlement(
        self, request: settlements.GetSettlementRequest, call: Call
    ) -> settlements.GetSettlementResponse:
        """How a round was settled, account by account."""
        if request.HasField("at_least"):
            await await_position(self._queries.reached, request.at_least, call)
        partner = call.caller.partner or None
        limit = request.page_size or ACCOUNTS_PAGE
        scope = ("GetSettlement", partner or "", request.round_id)
        after = None
        if request.page_token:
            last_partner, last_account = open_token(request.page_token, scope, 2)
            after = (last_partner, last_account)
        position = self._queries.position
        found = await self._queries.settlement(request.round_id, partner, limit + 1, after)
        if found is None:
            raise Refused(ROUND_NOT_FOUND, {"round_id": request.round_id})
        count = fill_page(found, limit, lambda settled: settled.ByteSize())
        response = settlements.GetSettlementResponse(
            accounts=found[:count], position=position_message(position)
        )
        if count < len(found):
            last = found[count - 1]
            response.next_page_token = seal_token(scope, last.partner_id, last.account_id)
        return response
