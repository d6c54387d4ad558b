"""WalletService: accounts and their money."""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.money.v1.money_pb2 import Money
from sabot.wallet.v1 import events_pb2 as events
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from services.games.currencies import EXPONENTS
from services.kernel.ask import Told, ask, await_position
from services.kernel.call import Call, position_message, position_of, request_hash, rpc
from services.kernel.edge import Edge
from services.kernel.errors import INVALID_REQUEST, UNEXPECTED_OUTCOME, FieldViolation, Refused
from services.kernel.event import Position
from services.kernel.tokens import Role
from services.refusals.limits import refused as limits_refused
from services.refusals.wallet import ACCOUNT_NOT_FOUND, declined
from services.wallet.books import Books, as_of
from services.wallet.domain.state import Standing, WalletState
from services.wallet.ledger_queries import end_key
from services.wallet.queries import WalletQueries

_STATES = {
    Standing.OPEN: wallets.ACCOUNT_STATE_OPEN,
    Standing.BLOCKED: wallets.ACCOUNT_STATE_BLOCKED,
    Standing.CLOSED: wallets.ACCOUNT_STATE_CLOSED,
}
_Request = (
    events.OpenAccount
    | events.CloseAccount
    | events.BlockAccount
    | events.UnblockAccount
    | events.Deposit
    | events.Withdraw
)

LAG_S = 2.0
"""How long a question about the past waits for the projection to have all that was read."""


class WalletServicer:
    """Partners act on their own accounts; supervisors block and unblock those of any partner."""

    def __init__(self, edge: Edge, queries: WalletQueries, books: Books) -> None:
        self._edge = edge
        self._queries = queries
        self._books = books

    @rpc(partners=True, deadline=True)
    async def open_account(
        self, request: wallets.OpenAccountRequest, call: Call
    ) -> wallets.OpenAccountResponse:
        """An account with one currency."""
        if request.currency_code not in EXPONENTS:
            told = FieldViolation("currency_code", "currency.known", "is no currency of ISO 4217")
            raise Refused(INVALID_REQUEST, fields=[told])
        body = events.OpenAccount(
            request_id=request.request_id,
            account_id=request.account_id,
            currency_code=request.currency_code,
            jurisdiction=request.jurisdiction,
            age=request.age,
        )
        opened = await self._ask(body, events.AccountOpened, call, call.partner())
        return wallets.OpenAccountResponse(
            position=position_message(opened.position), replayed=opened.replayed
        )

    @rpc(partners=True, deadline=True)
    async def close_account(
        self, request: wallets.CloseAccountRequest, call: Call
    ) -> wallets.CloseAccountResponse:
        """An empty account ends."""
        body = events.CloseAccount(request_id=request.request_id, account_id=request.account_id)
        told = await self._ask(body, events.AccountClosed, call, call.partner())
        return wallets.CloseAccountResponse(
            position=position_message(told.position), replayed=told.replayed
        )

    @rpc(roles=(Role.SUPERVISOR,), deadline=True)
    async def block_account(
        self, request: wallets.BlockAccountRequest, call: Call
    ) -> wallets.BlockAccountResponse:
        """An account stands still."""
        body = events.BlockAccount(request_id=request.request_id, account_id=request.account_id)
        told = await self._ask(
            body, events.AccountBlocked, call, request.partner_id, request.partner_id
        )
        return wallets.BlockAccountResponse(
            position=position_message(told.position), replayed=told.replayed
        )

    @rpc(roles=(Role.SUPERVISOR,), deadline=True)
    async def unblock_account(
        self, request: wallets.UnblockAccountRequest, call: Call
    ) -> wallets.UnblockAccountResponse:
        """A blocked account goes on."""
        body = events.UnblockAccount(request_id=request.request_id, account_id=request.account_id)
        told = await self._ask(
            body, events.AccountUnblocked, call, request.partner_id, request.partner_id
        )
        return wallets.UnblockAccountResponse(
            position=position_message(told.position), replayed=told.replayed
        )

    @rpc(partners=True, deadline=True)
    async def deposit(self, request: wallets.DepositRequest, call: Call) -> wallets.DepositResponse:
        """Money comes in."""
        body = events.Deposit(
            request_id=request.request_id,
            account_id=request.account_id,
            currency_code=request.amount.currency_code,
            amount_minor=request.amount.minor_units,
        )
        told = await self._ask(body, events.FundsDeposited, call, call.partner())
        return wallets.DepositResponse(
            position=position_message(told.position), replayed=told.replayed
        )

    @rpc(partners=True, deadline=True)
    async def withdraw(
        self, request: wallets.WithdrawRequest, call: Call
    ) -> wallets.WithdrawResponse:
        """Money goes out."""
        body = events.Withdraw(
            request_id=request.request_id,
            account_id=request.account_id,
            currency_code=request.amount.currency_code,
            amount_minor=request.amount.minor_units,
        )
        told = await self._ask(body, events.FundsWithdrawn, call, call.partner())
        return wallets.WithdrawResponse(
            position=position_message(told.position), replayed=told.replayed
        )

    @rpc(partners=True)
    async def get_balance(
        self, request: wallets.GetBalanceRequest, call: Call
    ) -> wallets.GetBalanceResponse:
        """What the partner's account has, from the state that every bet is decided by; what it had,
        from the journal."""
        if request.HasField("at_least"):
            await await_position(self._reached, request.at_least, call)
        if request.HasField("at") or request.HasField("at_time"):
            return await self._balance_before(request, call)
        state: WalletState = self._edge.state("wallet")
        account = state.accounts.get((call.partner(), request.account_id))
        if account is None:
            raise Refused(ACCOUNT_NOT_FOUND, {"account_id": request.account_id})
        code = account.currency_code
        return wallets.GetBalanceResponse(
            available=Money(currency_code=code, minor_units=account.available_minor),
            reserved=Money(currency_code=code, minor_units=account.reserved_minor),
            owed=Money(currency_code=code, minor_units=account.owed_minor),
            state=_STATES[account.standing],
            position=position_message(self._edge.position),
        )

    async def _balance_before(
        self, request: wallets.GetBalanceRequest, call: Call
    ) -> wallets.GetBalanceResponse:
        if request.HasField("at") and request.HasField("at_time"):
            raise _no_place("at_time", "comes instead of a position, not beside one")
        if request.HasField("at"):
            await await_position(self._books.queries.reached, request.at, call)
            position = position_of(request.at)
            end = end_key(position)
        else:
            await self._books.queries.reached(self._edge.position, call.wait_s(LAG_S))
            position = self._books.queries.position
            try:
                time_us = request.at_time.ToMicroseconds()
            except ValueError as error:
                raise _no_place("at_time", "is no time") from error
            if time_us > self._edge.log_time_us:
                raise _no_place("at_time", "has not come yet")
            end = await self._books.end_of(time_us, as_of(position, 0))
        state: WalletState = self._edge.state("wallet")
        account = state.accounts.get((call.partner(), request.account_id))
        found = await self._books.balances(call.partner(), request.account_id, end)
        if account is None or found is None:
            raise Refused(ACCOUNT_NOT_FOUND, {"account_id": request.account_id})
        code, held = found
        return wallets.GetBalanceResponse(
            available=Money(currency_code=code, minor_units=held.available_minor),
            reserved=Money(currency_code=code, minor_units=held.reserved_minor),
            state=_STATES[account.standing],
            position=position_message(position),
        )

    async def _reached(self, position: Position, wait_s: float) -> bool:
        return await self._edge.reached(position, wait_s=wait_s)

    async def _ask(
        self, body: _Request, answer: type[Message], call: Call, partner: str, owner: str = ""
    ) -> Told:
        """Put a request into the log and wait until `answer` says that it is done. `owner`: the
        account's partner as an operator named it, part of what is asked. Raises Refused."""
        body.request_hash = request_hash(body, owner)
        until = frozenset((answer, events.AccountRequestDeclined))
        told = await ask(
            self._edge, self._queries, "wallet", body, call, partner=partner, until=until
        )
        if isinstance(told.body, events.AccountRequestDeclined):
            facts = {"request_id": body.request_id, "account_id": body.account_id}
            if told.body.decline == events.DECLINE_LIMITS:
                raise limits_refused(told.body.violations, facts)
            raise declined(told.body.decline, facts)
        if not isinstance(told.body, answer):
            raise Refused(UNEXPECTED_OUTCOME)
        return told


def _no_place(field: str, why: str) -> Refused:
    return Refused(INVALID_REQUEST, fields=[FieldViolation(field, "place.in_log", why)])
