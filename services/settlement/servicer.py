"""SettlementService: what bets were paid, and what a correction would change of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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
from services.kernel.errors import PAGE_TOKEN_INVALID, Refused
from services.kernel.event import NEWEST_BEHAVIOUR, Position
from services.kernel.tokens import Role
from services.refusals.table import ROUND_NOT_FOUND
from services.settlement.previewing import preview
from services.settlement.queries import SettlementQueries

ACCOUNTS_PAGE = 50
DIFFERENCES_PAGE = 100
"""Accounts of a page where the caller does not say."""

LAG_S = 1.0
"""How long a dry run waits for what this process has read already."""


class SettlementServicer:
    """Partners see their own accounts; operators see all."""

    def __init__(
        self,
        queries: SettlementQueries,
        head: Callable[[], Position],
        behaviour: Callable[[], int] = lambda: NEWEST_BEHAVIOUR,
    ) -> None:
        self._queries = queries
        self._head = head
        """How far this process has read the log."""
        self._behaviour = behaviour
        """Which one is in force there."""

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
        shown = [(one.partner_id, one.account_id) for one in found[:count]]
        response = settlements.GetSettlementResponse(
            accounts=found[:count],
            corrections=await self._queries.corrections(request.round_id, shown),
            position=position_message(position),
        )
        if count < len(found):
            last = found[count - 1]
            response.next_page_token = seal_token(scope, last.partner_id, last.account_id)
        return response

    @rpc(roles=(Role.SUPERVISOR, Role.AUDITOR))
    async def preview_correction(
        self, request: settlements.PreviewCorrectionRequest, call: Call
    ) -> settlements.PreviewCorrectionResponse:
        """What a correction would change; nothing is changed."""
        if request.HasField("at_least"):
            await await_position(self._queries.reached, request.at_least, call)
        else:
            # The round may have been paid a moment ago.
            await self._queries.reached(self._head(), call.wait_s(LAG_S))
        first = 0
        scope = ("PreviewCorrection", request.round_id)
        if request.page_token:
            (told,) = open_token(request.page_token, scope, 1)
            if not told.isascii() or not told.isdecimal() or len(told) > 9:
                raise Refused(PAGE_TOKEN_INVALID)
            first = int(told)
        position = self._queries.position
        facts = await self._queries.facts(request.round_id)
        limit = request.page_size or DIFFERENCES_PAGE
        # It is worked out in a thread: a round of ten thousand bets takes a good part of a second.
        response, left = await asyncio.to_thread(
            preview,
            request.round_id,
            request.outcome,
            facts,
            first,
            limit,
            self._behaviour(),
        )
        response.position.CopyFrom(position_message(position))
        if left:
            response.next_page_token = seal_token(scope, str(first + len(response.differences)))
        return response
