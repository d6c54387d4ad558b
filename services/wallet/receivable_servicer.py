"""ReceivableService: what accounts owe after corrections, and how they pay it."""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.money.v1.money_pb2 import Money
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as events
from sabot.wallet.v1 import receivable_service_pb2 as service
from services.kernel.ask import Told, ask, await_position
from services.kernel.call import (
    EVERY_ROLE,
    Call,
    open_token,
    position_message,
    request_hash,
    rpc,
    seal_token,
)
from services.kernel.edge import Edge
from services.kernel.errors import UNEXPECTED_OUTCOME, Refused
from services.kernel.event import Position
from services.kernel.tokens import Role
from services.refusals.wallet import declined
from services.wallet.domain.state import WalletState
from services.wallet.queries import WalletQueries

ACCOUNTS_PAGE = 100
"""Accounts of a page where the caller does not say."""


class ReceivableServicer:
    """Supervisors order; partners see their own accounts, operators all."""

    def __init__(self, edge: Edge, queries: WalletQueries) -> None:
        self._edge = edge
        self._queries = queries

    @rpc(roles=(Role.SUPERVISOR,), deadline=True)
    async def set_shortfall_policy(
        self, request: service.SetShortfallPolicyRequest, call: Call
    ) -> service.SetShortfallPolicyResponse:
        """What is done where an account cannot give back."""
        body = corrections.SetShortfallPolicy(
            request_id=request.request_id,
            partner_id=request.partner_id,
            policy=request.policy,
            reason=request.reason,
        )
        told = await self._ask(body, corrections.ShortfallPolicySet, call, "")
        return service.SetShortfallPolicyResponse(
            position=position_message(told.position), replayed=told.replayed
        )

    @rpc(roles=(Role.SUPERVISOR,), deadline=True)
    async def settle_receivable(
        self, request: service.SettleReceivableRequest, call: Call
    ) -> service.SettleReceivableResponse:
        """An account pays of what it owes."""
        body = corrections.SettleReceivable(
            request_id=request.request_id,
            partner_id=request.partner_id,
            account_id=request.account_id,
            currency_code=request.amount.currency_code,
            amount_minor=request.amount.minor_units,
            reason=request.reason,
        )
        told = await self._ask(body, corrections.ReceivableSettled, call, request.account_id)
        return service.SettleReceivableResponse(
            position=position_message(told.position), replayed=told.replayed
        )

    @rpc(partners=True, roles=EVERY_ROLE)
    async def list_receivables(
        self, request: service.ListReceivablesRequest, call: Call
    ) -> service.ListReceivablesResponse:
        """From the state that every posting is decided by. It looks at all accounts: a supervisor
        asks now and then."""
        if request.HasField("at_least"):
            await await_position(self._reached, request.at_least, call)
        partner = call.caller.partner or request.partner_id
        limit = request.page_size or ACCOUNTS_PAGE
        scope = ("ListReceivables", partner)
        after = ("", "")
        if request.page_token:
            last_partner, last_account = open_token(request.page_token, scope, 2)
            after = (last_partner, last_account)
        state: WalletState = self._edge.state("wallet")
        owing = sorted(
            who
            for who, account in state.accounts.items()
            if (account.owed_minor or account.available_minor < 0)
            and (not partner or who[0] == partner)
            and who > after
        )
        response = service.ListReceivablesResponse(position=position_message(self._edge.position))
        for who in owing[:limit]:
            account = state.accounts[who]
            code = account.currency_code
            response.receivables.add(
                partner_id=who[0],
                account_id=who[1],
                owed=Money(currency_code=code, minor_units=account.owed_minor),
                available=Money(currency_code=code, minor_units=account.available_minor),
            )
        if len(owing) > limit:
            response.next_page_token = seal_token(scope, *owing[limit - 1])
        return response

    async def _reached(self, position: Position, wait_s: float) -> bool:
        return await self._edge.reached(position, wait_s=wait_s)

    async def _ask(
        self,
        body: corrections.SetShortfallPolicy | corrections.SettleReceivable,
        answer: type[Message],
        call: Call,
        account_id: str,
    ) -> Told:
        """Give an order and wait until `answer` says that it is obeyed. Raises Refused."""
        body.request_hash = request_hash(body)
        until = frozenset((answer, events.AccountRequestDeclined))
        told = await ask(
            self._edge, self._queries, "wallet", body, call, partner=body.partner_id, until=until
        )
        if isinstance(told.body, events.AccountRequestDeclined):
            facts = {"request_id": body.request_id, "account_id": account_id}
            raise declined(told.body.decline, facts)
        if not isinstance(told.body, answer):
            raise Refused(UNEXPECTED_OUTCOME)
        return told
