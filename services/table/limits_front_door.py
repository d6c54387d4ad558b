"""The limits' calls at the partners' one endpoint, where limits run in another process."""

from __future__ import annotations

import grpc

from sabot.limits.v1 import limits_service_pb2 as limits
from sabot.limits.v1.limits_service_pb2_grpc import LimitsServiceStub
from services.kernel.call import EVERY_ROLE, Call, rpc
from services.table.front_door import pass_on


class LimitsFrontDoor:
    """LimitsService over a channel to limits, which say who may call what."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._limits = LimitsServiceStub(channel)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_limits(
        self, request: limits.GetLimitsRequest, call: Call
    ) -> limits.GetLimitsResponse:
        """Passed on."""
        return await pass_on(self._limits.GetLimits, request, call)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def check_bets(
        self, request: limits.CheckBetsRequest, call: Call
    ) -> limits.CheckBetsResponse:
        """Passed on."""
        return await pass_on(self._limits.CheckBets, request, call)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_exposure(
        self, request: limits.GetExposureRequest, call: Call
    ) -> limits.GetExposureResponse:
        """Passed on."""
        return await pass_on(self._limits.GetExposure, request, call)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_protection(
        self, request: limits.GetProtectionRequest, call: Call
    ) -> limits.GetProtectionResponse:
        """Passed on."""
        return await pass_on(self._limits.GetProtection, request, call)

    @rpc(partners=True, roles=EVERY_ROLE, deadline=True)
    async def set_limits(
        self, request: limits.SetLimitsRequest, call: Call
    ) -> limits.SetLimitsResponse:
        """Passed on."""
        return await pass_on(self._limits.SetLimits, request, call)

    @rpc(partners=True, roles=EVERY_ROLE, deadline=True)
    async def exclude(self, request: limits.ExcludeRequest, call: Call) -> limits.ExcludeResponse:
        """Passed on."""
        return await pass_on(self._limits.Exclude, request, call)

    @rpc(partners=True, roles=EVERY_ROLE, deadline=True)
    async def lift_exclusion(
        self, request: limits.LiftExclusionRequest, call: Call
    ) -> limits.LiftExclusionResponse:
        """Passed on."""
        return await pass_on(self._limits.LiftExclusion, request, call)

    @rpc(partners=True, roles=EVERY_ROLE, deadline=True)
    async def describe_account(
        self, request: limits.DescribeAccountRequest, call: Call
    ) -> limits.DescribeAccountResponse:
        """Passed on."""
        return await pass_on(self._limits.DescribeAccount, request, call)
