"""LimitsService: the limits in force, what they would say to bets, and orders to them."""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as events
from sabot.limits.v1 import limits_service_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.log.v1 import events_pb2 as log
from sabot.table.v1 import bet_pb2 as bets
from services.kernel.ask import Told, append
from services.kernel.call import EVERY_ROLE, Call, position_message, request_hash, rpc
from services.kernel.edge import Edge
from services.kernel.errors import (
    INPUT_FAILED,
    INVALID_REQUEST,
    PERMISSION_DENIED,
    UNEXPECTED_OUTCOME,
    FieldViolation,
    Refused,
)
from services.kernel.tokens import Role
from services.limits.domain.orders import Done, Order
from services.limits.domain.protection_queries import limits_beside, protection_of, timestamp
from services.limits.domain.queries import (
    Unbookable,
    check,
    exposure_at,
    limits_at,
    with_room,
    wrong_bet,
)
from services.limits.domain.state import LimitsState
from services.refusals.floor import EVERY_TABLE, check_table
from services.refusals.limits import order_refused
from services.refusals.table import (
    BET_NOT_OFFERED,
    NOT_ON_LAYOUT,
    NOT_WHOLE_CHIPS,
    TABLE_NOT_FOUND,
)
from services.refusals.table import wrong_bet as wrong_bet_refused
from services.refusals.wallet import ACCOUNT_NOT_FOUND, MIXED_CURRENCIES

UNBOOKABLE = {
    Unbookable.NOT_OFFERED: BET_NOT_OFFERED,
    Unbookable.NOT_ON_LAYOUT: NOT_ON_LAYOUT,
    Unbookable.NOT_WHOLE_CHIPS: NOT_WHOLE_CHIPS,
}
"""What the table would refuse such bets with."""
_SUPERVISORS = (Role.SUPERVISOR,)


class LimitsServicer:
    """Answers from the state that every bet is judged by; every order is an input."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    # ---- what limits say -----------------------------------------------------------------------

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_limits(
        self, request: limits.GetLimitsRequest, call: Call
    ) -> limits.GetLimitsResponse:
        """The limits at an open table, and what its running round still takes."""
        state = self._state()
        found = limits_at(state, request.table_id)
        if found is None:
            raise Refused(TABLE_NOT_FOUND, {"table_id": request.table_id})
        partner = _partner(request.partner_id, call, required=bool(request.account_id))
        account_id, now_us = request.account_id, self._edge.log_time_us
        beside = limits_beside(state, request.table_id, partner, account_id, now_us)
        if beside is None:
            raise Refused(ACCOUNT_NOT_FOUND, {"account_id": account_id})
        found.scoped.extend(beside)
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
        wagers = [
            bets.Bet(bet=bet.bet, position=bet.position, stake_minor=bet.stake.minor_units)
            for bet in request.bets
        ]
        state, facts = self._state(), {"table_id": request.table_id}
        violations = check(
            state,
            call.partner(),
            request.account_id,
            request.table_id,
            wagers,
            self._edge.log_time_us,
        )
        if violations is None:
            raise Refused(TABLE_NOT_FOUND, facts)
        if isinstance(violations, Unbookable):
            wrong = wrong_bet(state, request.table_id, wagers) or bets.Bet()
            game = state.tables[request.table_id].rule_set.game
            raise wrong_bet_refused(UNBOOKABLE[violations], game, wrong.bet, wrong.position, facts)
        return limits.CheckBetsResponse(
            violations=with_room(state, request.table_id, wagers, violations),
            position=position_message(self._edge.position),
        )

    @rpc(roles=EVERY_ROLE)
    async def get_exposure(
        self, request: limits.GetExposureRequest, call: Call
    ) -> limits.GetExposureResponse:
        """All partners' stakes together: nothing for partners."""
        del call
        found = exposure_at(self._state(), request.table_id)
        if found is None:
            raise Refused(TABLE_NOT_FOUND, {"table_id": request.table_id})
        found.position.CopyFrom(position_message(self._edge.position))
        return found

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_protection(
        self, request: limits.GetProtectionRequest, call: Call
    ) -> limits.GetProtectionResponse:
        """All that protects an account."""
        partner = _partner(request.partner_id, call)
        now_us = self._edge.log_time_us
        found = protection_of(self._state(), partner, request.account_id, now_us)
        if found is None:
            raise Refused(ACCOUNT_NOT_FOUND, {"account_id": request.account_id})
        found.position.CopyFrom(position_message(self._edge.position))
        return found

    # ---- orders --------------------------------------------------------------------------------

    @rpc(partners=True, roles=_SUPERVISORS, deadline=True)
    async def set_limits(
        self, request: limits.SetLimitsRequest, call: Call
    ) -> limits.SetLimitsResponse:
        """Limits of a scope."""
        of_account = request.scope == events.SCOPE_ACCOUNT
        if call.caller.partner and not of_account:
            facts = {"method": call.method, "allowed": "operators, but for accounts"}
            raise Refused(PERMISSION_DENIED, facts)
        of_table = request.scope == events.SCOPE_TABLE
        check_table(call.caller, request.scope_id if of_table else EVERY_TABLE)
        partner = _partner(request.partner_id, call) if of_account else ""
        body = protection.SetLimits(
            request_id=request.request_id,
            scope=request.scope,
            scope_id=request.scope_id,
            currency_code=request.currency_code,
            limits=request.limits,
            reason=request.reason,
        )
        told = await self._order(body, protection.LimitsSet, call, partner)
        response = limits.SetLimitsResponse(
            position=position_message(told.position), replayed=told.replayed
        )
        if isinstance(told.body, protection.LimitsSet) and told.body.looser_from_us:
            response.looser_from.CopyFrom(timestamp(told.body.looser_from_us))
        return response

    @rpc(partners=True, roles=_SUPERVISORS, deadline=True)
    async def exclude(self, request: limits.ExcludeRequest, call: Call) -> limits.ExcludeResponse:
        """An account is kept away."""
        body = protection.Exclude(
            request_id=request.request_id,
            account_id=request.account_id,
            kind=request.kind,
            term_s=request.term_s,
            reason=request.reason,
        )
        partner = _partner(request.partner_id, call)
        told = await self._order(body, protection.AccountExcluded, call, partner)
        response = limits.ExcludeResponse(
            position=position_message(told.position), replayed=told.replayed
        )
        if isinstance(told.body, protection.AccountExcluded) and told.body.until_us:
            response.until.CopyFrom(timestamp(told.body.until_us))
        return response

    @rpc(roles=_SUPERVISORS, deadline=True)
    async def lift_exclusion(
        self, request: limits.LiftExclusionRequest, call: Call
    ) -> limits.LiftExclusionResponse:
        """An exclusion without a term ends, a day later."""
        body = protection.LiftExclusion(
            request_id=request.request_id, account_id=request.account_id, reason=request.reason
        )
        told = await self._order(body, protection.ExclusionLifted, call, request.partner_id)
        response = limits.LiftExclusionResponse(
            position=position_message(told.position), replayed=told.replayed
        )
        if isinstance(told.body, protection.ExclusionLifted):
            response.until.CopyFrom(timestamp(told.body.until_us))
        return response

    @rpc(partners=True, deadline=True)
    async def describe_account(
        self, request: limits.DescribeAccountRequest, call: Call
    ) -> limits.DescribeAccountResponse:
        """What a partner says of an account of its own."""
        body = protection.DescribeAccount(
            request_id=request.request_id,
            account_id=request.account_id,
            jurisdiction=request.jurisdiction,
            age=request.age,
        )
        told = await self._order(body, protection.AccountDescribed, call, call.partner())
        response = limits.DescribeAccountResponse(
            position=position_message(told.position), replayed=told.replayed
        )
        if isinstance(told.body, protection.AccountDescribed) and told.body.former_until_us:
            response.former_until.CopyFrom(timestamp(told.body.former_until_us))
        return response

    def _state(self) -> LimitsState:
        state: LimitsState = self._edge.state("limits")
        return state

    async def _order(self, body: Order, answer: type[Done], call: Call, partner: str) -> Told:
        """Put an order into the log and wait for its answer. A repeat is told from the state, which
        keeps what was answered for as long as the request's id. Raises Refused."""
        body.request_hash = request_hash(body, "" if call.caller.partner else partner)
        until: frozenset[type[Message]] = frozenset((answer, protection.LimitsOrderRefused))
        outcome = await append(self._edge, "limits", body, call, until=until, partner=partner)
        found, position = outcome.event.body, outcome.event.position
        replayed = isinstance(found, log.RequestRepeated)
        if replayed:
            kept = self._state().outcomes.get((call.caller.actor, body.request_id))
            if kept is None:
                raise Refused(INPUT_FAILED)  # Nothing was answered to the first one but that.
            found = kept
        if isinstance(found, log.InputFailed):
            raise Refused(INPUT_FAILED)
        if isinstance(found, protection.LimitsOrderRefused):
            named = body.scope_id if isinstance(body, protection.SetLimits) else body.account_id
            facts = {
                "request_id": body.request_id,
                "account_id": found.account_id or named,
                "table_id": named,
            }
            raise order_refused(found, facts)
        if not isinstance(found, answer):
            raise Refused(UNEXPECTED_OUTCOME)
        return Told(found, position, replayed)


def _partner(named: str, call: Call, *, required: bool = True) -> str:
    """Whose account is meant: the caller's own, or the one that an operator names. Raises
    Refused."""
    own = call.caller.partner
    if own:
        if named not in ("", own):
            raise Refused(PERMISSION_DENIED, {"method": call.method, "allowed": "operators"})
        return own
    if not named and required:
        told = FieldViolation("partner_id", "partner_id.named", "is needed from an operator")
        raise Refused(INVALID_REQUEST, fields=[told])
    return named
