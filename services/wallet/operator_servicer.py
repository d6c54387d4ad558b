"""WalletOperatorService: how partners' money is kept, and what they have not confirmed of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.money.v1.money_pb2 import Money
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import partner_profile_pb2 as profiles
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1 import wallet_operator_service_pb2 as operators
from services.kernel.ask import Told, ask
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
from services.kernel.errors import UNEXPECTED_OUTCOME, Refused
from services.kernel.tokens import Role
from services.refusals.seamless import rejected
from services.wallet.domain.seamless_confirming import is_called, is_stuck, safe_actions
from services.wallet.domain.seamless_corrections import is_correction
from services.wallet.domain.seamless_state import (
    Movement,
    MovementKind,
    MovementStanding,
    SeamlessState,
)
from services.wallet.queries import WalletQueries

PAGE = 100
"""Movements of a page where the caller does not say."""
_PROFILED = frozenset((seamless.PartnerProfileSet, seamless.SeamlessOrderRejected))
_RESOLVED = frozenset(
    (
        seamless.MovementConfirmed,
        seamless.MovementWrittenOff,
        corrections.ReceivableSettled,
        seamless.MovementRetried,
        seamless.SeamlessOrderRejected,
    )
)

_REASONS: dict[MovementKind, tuple[Callable[[Any], str], str]] = {
    MovementKind.DEBIT: (partner_wallet.DebitReason.Name, "DEBIT_REASON_"),
    MovementKind.CREDIT: (partner_wallet.CreditReason.Name, "CREDIT_REASON_"),
    MovementKind.ROLLBACK: (partner_wallet.RollbackReason.Name, "ROLLBACK_REASON_"),
}


class WalletOperatorServicer:
    """Every order is an input; the wallet's core says whether it is obeyed."""

    def __init__(self, edge: Edge, queries: WalletQueries) -> None:
        self._edge = edge
        self._queries = queries

    @rpc(roles=(Role.SUPERVISOR,), deadline=True)
    async def set_partner_profile(
        self, request: operators.SetPartnerProfileRequest, call: Call
    ) -> operators.SetPartnerProfileResponse:
        """How a partner's money is kept."""
        body = seamless.SetPartnerProfile(
            request_id=request.request_id, profile=request.profile, reason=request.reason
        )
        body.request_hash = request_hash(body, request.partner_id)
        told = await self._order(body, call, request.partner_id, _PROFILED)
        return operators.SetPartnerProfileResponse(
            position=position_message(told.position), replayed=told.replayed
        )

    @rpc(roles=EVERY_ROLE)
    async def get_partner_profile(
        self, request: operators.GetPartnerProfileRequest, call: Call
    ) -> operators.GetPartnerProfileResponse:
        """As it is in force."""
        del call
        profile = self._state().profiles.get(request.partner_id)
        if profile is None:
            profile = profiles.PartnerProfile(mode=profiles.WALLET_MODE_TRANSFER)
        return operators.GetPartnerProfileResponse(
            profile=profile, position=position_message(self._edge.position)
        )

    @rpc(roles=EVERY_ROLE)
    async def list_unresolved(
        self, request: operators.ListUnresolvedRequest, call: Call
    ) -> operators.ListUnresolvedResponse:
        """The list of stuck money, from the state that every movement is decided by."""
        del call
        limit = request.page_size or PAGE
        scope = ("ListUnresolved", request.partner_id, str(request.fresh))
        after = open_token(request.page_token, scope, 1)[0] if request.page_token else ""
        now_us = self._edge.log_time_us
        found = [
            (transaction, movement)
            for transaction, movement in self._state().movements.items()
            if request.partner_id in ("", movement.partner)
            and (request.fresh or is_stuck(movement, now_us))
        ]
        total = len(found)
        # By order and id: what was confirmed meanwhile takes no other one off a later page.
        found.sort(key=_key)
        shown = [
            shown_as(transaction, movement)
            for transaction, movement in found
            if _key((transaction, movement)) > after
        ][: limit + 1]
        count = fill_page(shown, limit, lambda one: one.ByteSize())
        response = operators.ListUnresolvedResponse(
            movements=shown[:count], total=total, position=position_message(self._edge.position)
        )
        if count < len(shown):
            last = shown[count - 1].transaction_id
            movement = self._state().movements[last]
            response.next_page_token = seal_token(scope, _key((last, movement)))
        return response

    @rpc(roles=(Role.SUPERVISOR,), deadline=True)
    async def resolve_movement(
        self, request: operators.ResolveMovementRequest, call: Call
    ) -> operators.ResolveMovementResponse:
        """One of them, by a person's decision."""
        body = seamless.ResolveMovement(
            request_id=request.request_id,
            transaction_id=request.transaction_id,
            action=request.action,
            reason=request.reason,
        )
        body.request_hash = request_hash(body, request.partner_id)
        told = await self._order(body, call, request.partner_id, _RESOLVED, request.transaction_id)
        return operators.ResolveMovementResponse(
            position=position_message(told.position), replayed=told.replayed
        )

    def _state(self) -> SeamlessState:
        state: SeamlessState = self._edge.state("wallet").seamless
        return state

    async def _order(
        self,
        body: Message,
        call: Call,
        partner: str,
        until: frozenset[type[Message]],
        transaction_id: str = "",
    ) -> Told:
        """Give an order about a partner, and wait until it is obeyed. Raises Refused."""
        told = await ask(
            self._edge, self._queries, "wallet", body, call, partner=partner, until=until
        )
        if isinstance(told.body, seamless.SeamlessOrderRejected):
            raise rejected(told.body, transaction_id)
        if type(told.body) not in until:
            raise Refused(UNEXPECTED_OUTCOME)
        return told


def _key(item: tuple[str, Movement]) -> str:
    transaction, movement = item
    return f"{movement.ordered_us:020d} {transaction}"


def shown_as(transaction: str, movement: Movement) -> operators.UnresolvedMovement:
    """A movement as operators see it."""
    name_of, prefix = _REASONS[movement.kind]
    shown = operators.UnresolvedMovement(
        transaction_id=transaction,
        kind=operators.MovementKind.ValueType(movement.kind),
        partner_id=movement.partner,
        account_id=movement.account_id,
        table_id=movement.table_id,
        round_id=movement.round_id,
        amount=Money(currency_code=movement.currency_code, minor_units=movement.amount_minor),
        reason=name_of(movement.reason).removeprefix(prefix),
        debit_transaction_ids=movement.debits,
        order_time=_moment(movement.ordered_us),
        ordered_by=position_message(movement.asked_by),
        last_outcome=seamless.ReplyOutcome.ValueType(movement.last_outcome),
        last_reason=movement.last_reason,
        calls=movement.calls,
        retrying=is_called(movement),
        safe_actions=safe_actions(movement),
        advice=advice_of(movement),
    )
    if movement.last_us:
        shown.last_reply_time.CopyFrom(_moment(movement.last_us))
    return shown


def advice_of(movement: Movement) -> str:
    """What a person should do, in one sentence."""
    if is_correction(movement):
        return (
            "The account owes the amount until it is taken. Call again, or mark it done once the "
            "partner has collected it another way."
        )
    if movement.kind is MovementKind.DEBIT:
        return "Nothing: the round decides about it within two seconds of the end of betting."
    match movement.standing:
        case MovementStanding.REFUSED if movement.kind is MovementKind.CREDIT:
            return (
                "Settle the reason with the partner; the next call is taken then. Mark it done if "
                "it was paid another way, write it off if it never will be."
            )
        case MovementStanding.REFUSED:
            return (
                "The refusal is final: compare both books of the round, then mark it done or "
                "write it off."
            )
        case MovementStanding.DISPUTED:
            return (
                "Ask the partner what its books say; mark it done if it is, else have it called "
                "again once the wallet is mended."
            )
        case _:
            return (
                "Nothing: it is called again until the partner answers. Tell the partner if that "
                "takes long."
            )


def _moment(time_us: int) -> Timestamp:
    return Timestamp(seconds=time_us // 1_000_000, nanos=time_us % 1_000_000 * 1_000)
