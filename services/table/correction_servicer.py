"""CorrectionService: corrections of rounds that are paid, from proposal to last posting."""

from __future__ import annotations

from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import correction_service_pb2 as service
from sabot.table.v1 import events_pb2 as tables
from services.kernel.ask import ask, await_position
from services.kernel.call import (
    EVERY_ROLE,
    Call,
    fill_page,
    open_token,
    position_message,
    request_hash,
    rpc,
    seal_token,
)
from services.kernel.edge import Edge
from services.kernel.errors import PAGE_TOKEN_INVALID, Refused
from services.kernel.tokens import Role
from services.refusals.corrections import CORRECTION_NOT_FOUND
from services.table.answers import facts_of, obeyed
from services.table.correction_queries import CorrectionQueries
from services.table.domain.paid_rounds import PROPOSAL_KEPT_US
from services.table.queries import TableQueries

CORRECTIONS_PAGE = 50
"""Corrections of a page where the caller does not say."""


class CorrectionServicer:
    """Two supervisors order; every operator sees."""

    def __init__(self, edge: Edge, outcomes: TableQueries, queries: CorrectionQueries) -> None:
        self._edge = edge
        self._outcomes = outcomes
        self._queries = queries

    @rpc(roles=(Role.SUPERVISOR,), deadline=True)
    async def propose_correction(
        self, request: service.ProposeCorrectionRequest, call: Call
    ) -> service.ProposeCorrectionResponse:
        """What a dry run has shown is proposed."""
        body = corrections.ProposeCorrection(
            request_id=request.request_id,
            table_id=request.table_id,
            round_id=request.round_id,
            outcome=request.outcome,
            reason=request.reason,
            reference=request.reference,
            dry_run=request.dry_run,
        )
        body.request_hash = request_hash(body)
        until = frozenset((corrections.CorrectionProposed, tables.OrderRejected))
        told = await ask(self._edge, self._outcomes, "table", body, call, partner="", until=until)
        facts = facts_of(request_id=body.request_id, table_id=body.table_id, round_id=body.round_id)
        obeyed(told, corrections.CorrectionProposed, facts)
        response = service.ProposeCorrectionResponse(
            position=position_message(told.position), replayed=told.replayed
        )
        if isinstance(told.body, corrections.CorrectionProposed):
            response.correction_id = told.body.correction_id
            response.version = told.body.version
        return response

    @rpc(roles=(Role.SUPERVISOR,), deadline=True)
    async def approve_correction(
        self, request: service.ApproveCorrectionRequest, call: Call
    ) -> service.ApproveCorrectionResponse:
        """Another person approves."""
        body = corrections.ApproveCorrection(
            request_id=request.request_id, correction_id=request.correction_id
        )
        body.request_hash = request_hash(body)
        until = frozenset((corrections.CorrectionApproved, tables.OrderRejected))
        told = await ask(self._edge, self._outcomes, "table", body, call, partner="", until=until)
        obeyed(told, corrections.CorrectionApproved, facts_of(request_id=body.request_id))
        return service.ApproveCorrectionResponse(
            position=position_message(told.position), replayed=told.replayed
        )

    @rpc(roles=EVERY_ROLE)
    async def get_correction(
        self, request: service.GetCorrectionRequest, call: Call
    ) -> service.GetCorrectionResponse:
        """How one stands."""
        if request.HasField("at_least"):
            await await_position(self._queries.reached, request.at_least, call)
        position = self._queries.position
        found = await self._queries.correction(request.correction_id)
        if found is None:
            raise Refused(CORRECTION_NOT_FOUND)
        return service.GetCorrectionResponse(
            correction=self._aged(found), position=position_message(position)
        )

    @rpc(roles=EVERY_ROLE)
    async def list_corrections(
        self, request: service.ListCorrectionsRequest, call: Call
    ) -> service.ListCorrectionsResponse:
        """All of them, or those of a round."""
        if request.HasField("at_least"):
            await await_position(self._queries.reached, request.at_least, call)
        limit = request.page_size or CORRECTIONS_PAGE
        scope = ("ListCorrections", request.round_id)
        before = None
        if request.page_token:
            (before,) = open_token(request.page_token, scope, 1)
            if not before.isascii() or not before.isdecimal() or len(before) > 19:
                raise Refused(PAGE_TOKEN_INVALID)
        position = self._queries.position
        found = await self._queries.corrections(
            request.round_id, limit + 1, None if before is None else int(before)
        )
        count = fill_page(found, limit, lambda one: one[1].ByteSize())
        response = service.ListCorrectionsResponse(
            corrections=[self._aged(one) for _, one in found[:count]],
            position=position_message(position),
        )
        if count < len(found):
            response.next_page_token = seal_token(scope, str(found[count - 1][0]))
        return response

    def _aged(self, correction: service.Correction) -> service.Correction:
        """A proposal that waited too long is over, though nothing in the log says so."""
        since_us = correction.propose_time.ToMicroseconds()
        waits = correction.state == service.CORRECTION_STATE_PROPOSED
        if waits and since_us + PROPOSAL_KEPT_US < self._edge.log_time_us:
            correction.state = service.CORRECTION_STATE_EXPIRED
        return correction
