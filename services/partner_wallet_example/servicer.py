"""PartnerWalletService over the books: token, form, decision, answer."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import grpc
import protovalidate
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.money.v1.money_pb2 import Money
from sabot.partnerwallet.v1 import partner_reconciliation_service_pb2 as reconciling
from sabot.partnerwallet.v1 import partner_reconciliation_service_pb2_grpc as reconciling_grpc
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from sabot.partnerwallet.v1 import partner_wallet_service_pb2_grpc as wallet_grpc
from services.partner_wallet_example.book import Book, DoneBefore, IdInUse
from services.partner_wallet_example.digests import answer
from services.partner_wallet_example.guard import Guard

Question = TypeVar("Question")
Answer = TypeVar("Answer")
Context = grpc.aio.ServicerContext[Any, Any]
Asked = (
    wallet.DebitRequest
    | wallet.CreditRequest
    | wallet.RollbackRequest
    | wallet.GetBalanceRequest
    | reconciling.GetDigestRequest
)


class PartnerWallet(
    wallet_grpc.PartnerWalletServiceServicer, reconciling_grpc.PartnerReconciliationServiceServicer
):
    """Both services. SQLite waits for the disk: it works in a thread of its own, call by call."""

    def __init__(self, book: Book, guard: Guard) -> None:
        self._book = book
        self._guard = guard
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="book")

    def close(self) -> None:
        """Finish what is being decided."""
        self._thread.shutdown()

    async def Debit(self, request: wallet.DebitRequest, context: Context) -> wallet.DebitResponse:  # noqa: N802 - gRPC's name
        await self._let_in("Debit", request.transaction_id, request, context)
        return await self._decided(self._book.debit, request, context)

    async def Credit(  # noqa: N802 - gRPC's name
        self, request: wallet.CreditRequest, context: Context
    ) -> wallet.CreditResponse:
        await self._let_in("Credit", request.transaction_id, request, context)
        return await self._decided(self._book.credit, request, context)

    async def Rollback(  # noqa: N802 - gRPC's name
        self, request: wallet.RollbackRequest, context: Context
    ) -> wallet.RollbackResponse:
        await self._let_in("Rollback", request.transaction_id, request, context)
        return await self._decided(self._book.rollback, request, context)

    async def GetBalance(  # noqa: N802 - gRPC's name
        self, request: wallet.GetBalanceRequest, context: Context
    ) -> wallet.GetBalanceResponse:
        await self._let_in("GetBalance", "", request, context)
        account = await self._decided(self._book.account, request.account_id, context)
        if account is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such account")
        balance = Money(currency_code=account.currency_code, minor_units=account.balance_minor)
        return wallet.GetBalanceResponse(account_id=account.account_id, balance=balance)

    async def GetDigest(  # noqa: N802 - gRPC's name
        self, request: reconciling.GetDigestRequest, context: Context
    ) -> reconciling.GetDigestResponse:
        await self._let_in("GetDigest", "", request, context)
        return await self._decided(partial(answer, self._book), request, context)

    def add_to(self, server: grpc.aio.Server) -> None:
        """Serve it there."""
        wallet_grpc.add_PartnerWalletServiceServicer_to_server(self, server)
        reconciling_grpc.add_PartnerReconciliationServiceServicer_to_server(self, server)

    async def _let_in(
        self, method: str, transaction_id: str, request: Asked, context: Context
    ) -> None:
        """Go on only with a good token and a request that keeps the rules of the proto."""
        account_id = "" if isinstance(request, reconciling.GetDigestRequest) else request.account_id
        refused = self._guard.refuses(
            context.invocation_metadata(), method, transaction_id, account_id
        )
        if refused:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, refused)
        try:
            protovalidate.validate(request)
        except protovalidate.ValidationError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        for field, value in request.ListFields():
            if isinstance(value, Timestamp) and not _can_be(value):
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{field.name}: is no time")

    async def _decided(
        self, decide: Callable[[Question], Answer], question: Question, context: Context
    ) -> Answer:
        """What the books say. A caller that goes away meanwhile changes nothing about it."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, decide, question)
        except IdInUse as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except DoneBefore:
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, "done before")
        except sqlite3.Error:
            # Whether it is written is not known now; the same call will find out.
            logging.getLogger(__name__).exception("the books cannot be written")
            await context.abort(grpc.StatusCode.UNAVAILABLE, "try again")


def _can_be(time: Timestamp) -> bool:
    """Whether it is a time of the years 1 to 9999; the fields of the message hold more."""
    try:
        time.ToMicroseconds()
    except ValueError:
        return False
    return True
