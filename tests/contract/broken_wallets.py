"""Partners' wallets with one fault each, planted into the example, as real ones have had them."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import jwt

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from services.partner_wallet_example.book import Book
from services.partner_wallet_example.guard import Guard
from services.partner_wallet_example.servicer import PartnerWallet
from tests.contract.partner_wallets import RunningWallet

Context = grpc.aio.ServicerContext[Any, Any]


class _LooksThenTakes(Book):
    def is_new(self, request: wallet.DebitRequest) -> bool:
        return self._movement(request.transaction_id) is None

    def take(self, request: wallet.DebitRequest) -> wallet.DebitResponse:
        """Takes without looking again."""
        with self._decision():
            decline = self._decline(request)
            if decline or self._is_cancelled(request.transaction_id):
                pass
            elif self._movement(request.transaction_id) is not None:
                self._sql.execute(
                    "UPDATE accounts SET balance_minor = balance_minor - ? WHERE account_id = ?",
                    (request.amount.minor_units, request.account_id),
                )
        return self.debit(request)


class _LooksThenTakesServicer(PartnerWallet):
    async def Debit(  # noqa: N802 - gRPC's name
        self, request: wallet.DebitRequest, context: Context
    ) -> wallet.DebitResponse:
        await self._let_in("Debit", request.transaction_id, request, context)
        book = self._book
        assert isinstance(book, _LooksThenTakes)
        if await self._decided(book.is_new, request, context):
            # Another system is asked meanwhile.
            await asyncio.sleep(0.001)
            return await self._decided(book.take, request, context)
        return await self._decided(book.debit, request, context)


class DebitsTwiceAtOnce(RunningWallet):
    """A debit that comes again while the first is being decided is taken again."""

    book_type = _LooksThenTakes
    servicer_type = _LooksThenTakesServicer


class _NoTombstones(Book):
    def _is_cancelled(self, debit_id: str) -> bool:
        return super()._is_cancelled(debit_id) and self._movement(debit_id) is not None


class ForgetsTombstones(RunningWallet):
    """The rollback of a debit that did not come yet is done, and forgotten."""

    book_type = _NoTombstones


class _CreditsInMemory(Book):
    def credit(self, request: wallet.CreditRequest) -> wallet.CreditResponse:
        seen: set[str] = self.__dict__.setdefault("seen", set())
        if request.transaction_id not in seen:
            with self._decision():
                self._sql.execute(
                    "UPDATE movements SET transaction_id = transaction_id || '#' || number"
                    " WHERE transaction_id = ? AND kind = 'Credit'",
                    (request.transaction_id,),
                )
                self._sql.execute(
                    "DELETE FROM credited_debits WHERE credit_id = ?", (request.transaction_id,)
                )
        answer = super().credit(request)
        if answer.outcome == wallet.CREDIT_OUTCOME_CREDITED:
            seen.add(request.transaction_id)
        return answer


class CreditsTwiceAfterRestart(RunningWallet):
    """Which credits there were is kept in memory."""

    book_type = _CreditsInMemory


class _NoSignature(Guard):
    def _claims(self, token: str) -> dict[str, Any]:
        return jwt.decode(
            token,
            audience=self._partner,
            issuer=self._cell,
            options={"verify_signature": False, "verify_exp": True, "verify_aud": True,
                     "verify_iss": True, "require": ["exp", "iat", "sub"]},
        )  # fmt: skip


class AcceptsForeignTokens(RunningWallet):
    """Claims are read, and nobody checks who signed them."""

    guard_type = _NoSignature


class _AnyCall(Guard):
    def refuses(self, metadata: Any, *_call: str) -> str | None:
        sent = dict(metadata or ()).get("authorization", "")
        try:
            claims = self._claims(str(sent).removeprefix("Bearer "))
        except jwt.PyJWTError as error:
            return str(error)
        return None if claims["exp"] - claims["iat"] <= 60 else "too long"


class AcceptsTokensOfOtherCalls(RunningWallet):
    """Who signed is checked, and not what was signed for."""

    guard_type = _AnyCall


class _DecidesAgain(Book):
    def debit(self, request: wallet.DebitRequest) -> wallet.DebitResponse:
        with self._decision():
            self._sql.execute(
                "DELETE FROM movements WHERE transaction_id = ? AND kind = 'Debit' AND outcome = ?",
                (request.transaction_id, wallet.DEBIT_OUTCOME_DECLINED),
            )
        return super().debit(request)


class DecidesDeclinedDebitsAgain(RunningWallet):
    """A declined debit leaves nothing behind, and is taken when it comes again."""

    book_type = _DecidesAgain


class _RollsBackWhatIsThere(Book):
    def rollback(self, request: wallet.RollbackRequest) -> wallet.RollbackResponse:
        answer = super().rollback(request)
        if answer.returned and not answer.duplicate:
            return answer
        with self._decision():
            debit = self._movement(request.debit_transaction_id)
            if answer.duplicate and answer.returned and debit is not None:
                self._sql.execute(
                    "UPDATE accounts SET balance_minor = balance_minor + ? WHERE account_id = ?",
                    (debit.amount_minor, request.account_id),
                )
        return answer


class GivesBackTwice(RunningWallet):
    """A repeated rollback gives back again."""

    book_type = _RollsBackWhatIsThere
