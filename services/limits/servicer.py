"""LimitsService: the limits in force, and what they would say to bets."""

from __future__ import annotations

from sabot.limits.v1 import limits_service_pb2 as limits
from sabot.table.v1 import bet_pb2 as bets
from services.kernel.call import EVERY_ROLE, Call, position_message, rpc
from services.kernel.edge import Edge
from services.kernel.errors import Refused
from services.limits.domain.queries import Unbookable, check, exposure_at, limits_at
from services.refusals.table import (
    BET_NOT_OFFERED,
    NOT_ON_LAYOUT,
    NOT_WHOLE_CHIPS,
    TABLE_NOT_FOUND,
)
from services.refusals.wallet import MIXED_CURRENCIES

UNBOOKABLE = {
    Unbookable.NOT_OFFERED: BET_NOT_OFFERED,
    Unbookable.NOT_ON_LAYOUT: NOT_ON_LAYOUT,
    Unbookable.NOT_WHOLE_CHIPS: NOT_WHOLE_CHIPS,
}
"""What the table would refuse such bets with."""


class LimitsServicer:
    """Answers from the state that every bet is judged by."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_limits(
        self, request: limits.GetLimitsRequest, call: Call
    ) -> limits.GetLimitsResponse:
        """The limits at an open table, and what its running round still takes."""
        del call
        found = limits_at(self._edge.state("limits"), request.table_id)
        if found is None:
            raise Refused(TABLE_NOT_FOUND, {"table_id": request.table_id})
        found.position.CopyFrom(position_message(self._edge.position))
        return found

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
            [
                bets.Bet(bet=bet.bet, position=bet.position, stake_minor=bet.stake.minor_units)
                for bet in request.bets
            ],
        )
        if violations is None:
            raise Refused(TABLE_NOT_FOUND, {"table_id": request.table_id})
        if isinstance(violations, Unbookable):
            raise Refused(UNBOOKABLE[violations], {"table_id": request.table_id})
        return limits.CheckBetsResponse(
            violations=violations, position=position_message(self._edge.position)
        )

    @rpc(roles=EVERY_ROLE)
    async def get_exposure(
        self, request: limits.GetExposureRequest, call: Call
    ) -> limits.GetExposureResponse:
        """All partners' stakes together: nothing for partners."""
        del call
        found = exposure_at(self._edge.state("limits"), request.table_id)
        if found is None:
            raise Refused(TABLE_NOT_FOUND, {"table_id": request.table_id})
        found.position.CopyFrom(position_message(self._edge.position))
        return found
