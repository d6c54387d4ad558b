"""LimitsService: the limits in force, and what they would say to bets."""

from __future__ import annotations

from sabot.limits.v1 import limits_service_pb2 as limits
from services.kernel.call import EVERY_ROLE, Call, position_message, rpc
from services.kernel.edge import Edge
from services.kernel.errors import Refused
from services.limits.domain.judging import check, limits_at
from services.refusals.table import TABLE_NOT_FOUND
from services.refusals.wallet import MIXED_CURRENCIES


class LimitsServicer:
    """Answers from the state that every bet is judged by."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_limits(
        self, request: limits.GetLimitsRequest, call: Call
    ) -> limits.GetLimitsResponse:
        """The limits at an open table."""
        del call
        found = limits_at(self._edge.state("limits"), request.table_id)
        if found is None:
            raise Refused(TABLE_NOT_FOUND, {"table_id": request.table_id})
        return limits.GetLimitsResponse(
            limits=found, position=position_message(self._edge.position)
        )

    @rpc(partners=True)
    async def check_bets(
        self, request: limits.CheckBetsRequest, call: Call
    ) -> limits.CheckBetsResponse:
        """What bets of the partner's account would break if they were placed now."""
        currencies = {bet.stake.currency_code for bet in request.bets}
        if len(currencies) > 1:
            raise Refused(MIXED_CURRENCIES, {"currencies": ", ".join(sorted(currencies))})
        violations = check(
            self._edge.state("limits"),
            call.partner(),
            request.account_id,
            request.table_id,
            [(bet.bet, bet.stake.minor_units) for bet in request.bets],
        )
        if violations is None:
            raise Refused(TABLE_NOT_FOUND, {"table_id": request.table_id})
        return limits.CheckBetsResponse(
            violations=violations, position=position_message(self._edge.position)
        )
