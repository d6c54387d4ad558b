"""What cases work with: accounts, calls in the words of a case, what a wallet must answer."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.money.v1.money_pb2 import Money
from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from sabot.table.v1.bet_pb2 import Bet
from services.certify.calling import (
    ALREADY_EXISTS,
    GOOD,
    OK,
    Answer,
    Caller,
    Fault,
    Request,
    Token,
    method_of,
)
from services.certify.cases import NotTried

TABLE = "certify"
RULES = bytes(range(32))
"""Stands for the hash of a rule set: a wallet keeps it and does not read it."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account that the partner has made ready."""

    account_id: str
    currency_code: str


class Kit:
    """One run of all cases against one wallet."""

    def __init__(
        self, caller: Caller, accounts: Sequence[Account], blocked: Account | None
    ) -> None:
        self.caller = caller
        self.main = accounts[0]
        self.accounts = accounts
        self._blocked = blocked
        self._run = uuid.uuid4().hex[:12]
        self._ids = 0
        self._rounds = 0
        self._open: dict[str, wallet.DebitRequest] = {}
        self.repeats = conventions.REPEAT_CONVENTION_UNSPECIFIED
        self.settled_rollbacks = conventions.SETTLED_ROLLBACK_CONVENTION_UNSPECIFIED
        self.overdraws = conventions.OVERDRAW_CONVENTION_UNSPECIFIED
        self.corrections: bool | None = None

    # ---- what a case is made of ----------------------------------------------------------------

    @property
    def other(self) -> Account:
        """A second account."""
        return self.accounts[1]

    @property
    def has_blocked(self) -> bool:
        """Whether there is a blocked account."""
        return self._blocked is not None

    @property
    def blocked(self) -> Account:
        """The blocked account. Raises NotTried."""
        if self._blocked is None:
            raise NotTried("no blocked account is named (--blocked)")
        return self._blocked

    def new_id(self) -> str:
        """A transaction id that no run ever had."""
        self._ids += 1
        return f"certify-{self._run}-{self._ids}"

    def new_round(self) -> str:
        """A round that no run ever had."""
        self._rounds += 1
        return f"certify-{self._run}-{self._rounds}"

    def debit(
        self,
        minor: int,
        *,
        account: Account | None = None,
        transaction_id: str | None = None,
        round_id: str | None = None,
        reason: wallet.DebitReason.ValueType = wallet.DEBIT_REASON_STAKE,
        currency_code: str | None = None,
    ) -> wallet.DebitRequest:
        """A debit."""
        account = account or self.main
        transaction_id = self.new_id() if transaction_id is None else transaction_id
        bets = [Bet(bet_id=f"{transaction_id[:40]}-1", bet="banker", stake_minor=max(minor, 0))]
        if reason == wallet.DEBIT_REASON_CORRECTION:
            bets = []
        return wallet.DebitRequest(
            transaction_id=transaction_id,
            account_id=account.account_id,
            amount=Money(currency_code=currency_code or account.currency_code, minor_units=minor),
            table_id=TABLE,
            round_id=round_id or self.new_round(),
            reason=reason,
            rule_set_hash=RULES,
            bets=bets,
            time=_now(),
        )

    def credit(
        self,
        minor: int,
        *debits: wallet.DebitRequest,
        reason: wallet.CreditReason.ValueType = wallet.CREDIT_REASON_WINNINGS,
        transaction_id: str | None = None,
        account: Account | None = None,
        currency_code: str | None = None,
        round_ended: bool = True,
    ) -> wallet.CreditRequest:
        """A credit for debits of one account and round."""
        whose = debits[0].account_id if account is None else account.account_id
        code = debits[0].amount.currency_code if account is None else account.currency_code
        return wallet.CreditRequest(
            transaction_id=transaction_id or self.new_id(),
            account_id=whose,
            amount=Money(currency_code=currency_code or code, minor_units=minor),
            table_id=TABLE,
            round_id=debits[0].round_id,
            reason=reason,
            rule_set_hash=RULES,
            bets=[bet for debit in debits for bet in debit.bets],
            debit_transaction_ids=[debit.transaction_id for debit in debits],
            round_ended=round_ended,
            time=_now(),
        )

    def rollback(
        self,
        debit: wallet.DebitRequest,
        *,
        transaction_id: str | None = None,
        minor: int | None = None,
    ) -> wallet.RollbackRequest:
        """The rollback of a debit."""
        return wallet.RollbackRequest(
            transaction_id=transaction_id or self.new_id(),
            account_id=debit.account_id,
            amount=Money(
                currency_code=debit.amount.currency_code,
                minor_units=debit.amount.minor_units if minor is None else minor,
            ),
            table_id=debit.table_id,
            round_id=debit.round_id,
            reason=wallet.ROLLBACK_REASON_UNANSWERED,
            rule_set_hash=debit.rule_set_hash,
            bets=debit.bets,
            debit_transaction_id=debit.transaction_id,
            time=_now(),
        )

    # ---- calling -------------------------------------------------------------------------------

    async def call(self, request: Request, token: Token = GOOD) -> Answer:
        """Call, and keep in mind what is to be undone when the case is over. Raises Fault."""
        self.remember(request)
        return await self.caller.call(request, token)

    def remember(self, request: Request) -> None:
        """Debits are rolled back when a case is over, unless it has done so or paid them."""
        if isinstance(request, wallet.DebitRequest):
            self._open[request.transaction_id] = request
        elif isinstance(request, wallet.CreditRequest):
            for debit_id in request.debit_transaction_ids:
                self._open.pop(debit_id, None)
        elif isinstance(request, wallet.RollbackRequest):
            self._open.pop(request.debit_transaction_id, None)

    def forget(self) -> None:
        """What the case has debited so far stays so."""
        self._open = {}

    async def tidy(self) -> None:
        """Give back what a case has left, so that the next one finds the account as it was."""
        left, self._open = self._open, {}
        for debit in left.values():
            if debit.amount.minor_units > 0 and debit.transaction_id:
                with suppress(Fault):
                    await self.caller.call(self.rollback(debit))

    async def balance(self, account: Account | None = None) -> int:
        """What an account has, minor units. Raises Fault."""
        account = account or self.main
        answer = await self.caller.call(wallet.GetBalanceRequest(account_id=account.account_id))
        if answer.status is not OK:
            raise Fault(f"GetBalance of {account.account_id}: {answer}")
        money = answer.told.balance
        if money.currency_code != account.currency_code:
            raise Fault(
                f"{account.account_id} is in {account.currency_code}, "
                f"its balance in {money.currency_code}"
            )
        return int(money.minor_units)

    @asynccontextmanager
    async def moves(self, minor: int, account: Account | None = None) -> AsyncIterator[None]:
        """What is done inside changes the balance by exactly this. Raises Fault."""
        before = await self.balance(account)
        yield
        changed = await self.balance(account) - before
        if changed != minor:
            raise Fault(f"the balance changed by {changed} and not by {minor} minor units")

    # ---- what must come back -------------------------------------------------------------------

    async def taken(self, request: wallet.DebitRequest) -> Answer:
        """Debit; it is taken."""
        return _must(await self.call(request), wallet.DEBIT_OUTCOME_TAKEN)

    async def declined(
        self, request: wallet.DebitRequest, *why: wallet.DebitDecline.ValueType
    ) -> Answer:
        """Debit; it is declined for one of these reasons."""
        return _must(await self.call(request), wallet.DEBIT_OUTCOME_DECLINED, "decline", why)

    async def credited(self, request: wallet.CreditRequest) -> Answer:
        """Credit; it is credited."""
        return _must(await self.call(request), wallet.CREDIT_OUTCOME_CREDITED)

    async def refused(
        self, request: wallet.CreditRequest, *why: wallet.CreditRefusal.ValueType
    ) -> Answer:
        """Credit; it is refused for one of these reasons."""
        return _must(await self.call(request), wallet.CREDIT_OUTCOME_REFUSED, "refusal", why)

    async def rolled_back(self, request: wallet.RollbackRequest) -> Answer:
        """Roll back; it is done."""
        return _must(await self.call(request), wallet.ROLLBACK_OUTCOME_DONE)

    async def status(
        self, request: Request, *wanted: grpc.StatusCode, token: Token = GOOD
    ) -> Answer:
        """Call; the status is one of these."""
        answer = await self.call(request, token)
        if answer.status not in wanted:
            names = " or ".join(one.name for one in wanted)
            raise Fault(f"{method_of(request)}: {answer}, and not {names}")
        return answer

    async def repeated(self, first: Answer) -> None:
        """The same call again: it is answered as this wallet answers repeats."""
        self.is_repeat(first, await self.caller.call(first.request))

    def is_repeat(self, first: Answer, again: Answer) -> None:
        """Whether an answer fits a call that was carried out before. Raises Fault."""
        method = method_of(first.request)
        if again.status is ALREADY_EXISTS:
            found = conventions.REPEAT_CONVENTION_ALREADY_EXISTS
        elif again.status is not OK:
            raise Fault(f"a repeated {method}: {again}, after {first}")
        else:
            found = conventions.REPEAT_CONVENTION_FIRST_ANSWER
            if again.told.outcome != first.told.outcome:
                raise Fault(f"a repeated {method}: {again}, after {first}")
            if not again.told.duplicate:
                raise Fault(f"a repeated {method} is answered as the first one, not as a duplicate")
            ids = [one.told.partner_transaction_id for one in (first, again)]
            if ids[0] != ids[1]:
                raise Fault(f"a repeated {method} has another id of the partner's: {ids}")
        self.observe(found)

    def observe(self, found: conventions.RepeatConvention.ValueType) -> None:
        """How a repeat was answered; all of them alike. Raises Fault."""
        if self.repeats and self.repeats != found:
            raise Fault("some repeats are answered with ALREADY_EXISTS and some with the answer")
        self.repeats = found


def _must(answer: Answer, outcome: int, field: str = "", why: Iterable[int] = ()) -> Answer:
    """Whether an answer is what it must be. Raises Fault."""
    method = method_of(answer.request)
    if answer.status is not OK:
        raise Fault(f"{method}: {answer}")
    told: Any = answer.told
    if told.outcome != outcome or (why and getattr(told, field) not in set(why)):
        wanted = type(told)(outcome=outcome)
        if why:
            setattr(wanted, field, next(iter(why)))
        raise Fault(f"{method}: {answer}, and not {Answer(answer.request, OK, wanted)}")
    return answer


def _now() -> Timestamp:
    """The time that a cell would send with a call."""
    now = Timestamp()
    now.GetCurrentTime()
    return now
