"""The books: accounts and movements in SQLite, and every decision of the wallet.

A decision is one transaction, which is on the disk before the answer is given. It begins with the
write lock, so no two decisions ever read the same balance, also where processes share a file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from sabot.money.v1.money_pb2 import Money
from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from services.partner_wallet_example.schema import SCHEMA

LOCK_WAIT_S = 5.0
"""How long a decision waits for another process's: as long as any caller waits for an answer."""
GREATEST_MINOR = 2**63 - 1
LEAST_MINOR = -(2**63)

MovesMoney = wallet.DebitRequest | wallet.CreditRequest | wallet.RollbackRequest


class IdInUse(Exception):
    """The transaction id is another call's. Nothing moved."""


class DoneBefore(Exception):
    """The call was carried out before; where that is told as a status."""


class Movement(NamedTuple):
    """A call that was decided before."""

    number: int
    kind: str
    content: bytes
    account_id: str
    currency_code: str
    amount_minor: int
    table_id: str
    round_id: str
    outcome: int
    refusal: int


class Account(NamedTuple):
    """An account as it stands."""

    account_id: str
    currency_code: str
    balance_minor: int
    blocked: bool


class Book:
    """One wallet's books. For one thread at a time."""

    def __init__(self, path: Path, conventions: conventions.WalletConventions) -> None:
        self.conventions = conventions
        self._sql = sqlite3.connect(
            path, timeout=LOCK_WAIT_S, isolation_level=None, check_same_thread=False
        )
        self._sql.execute("PRAGMA journal_mode = WAL")
        # FULL: a commit returns when it is on the disk. With less a power cut takes back answers.
        self._sql.execute("PRAGMA synchronous = FULL")
        self._sql.executescript(SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._sql.close()

    def open_account(self, account_id: str, currency_code: str, balance_minor: int) -> None:
        """Open an account with some money; one that is there stays as it is."""
        with self._decision():
            self._sql.execute(
                "INSERT OR IGNORE INTO accounts VALUES (?, ?, ?, ?, 0)",
                (account_id, currency_code, balance_minor, balance_minor),
            )

    def block_account(self, account_id: str) -> None:
        """Let an account place no more stakes."""
        with self._decision():
            self._sql.execute("UPDATE accounts SET blocked = 1 WHERE account_id = ?", (account_id,))

    def account(self, account_id: str) -> Account | None:
        """An account, or None."""
        row = self._sql.execute(
            "SELECT account_id, currency_code, balance_minor, blocked FROM accounts"
            " WHERE account_id = ?",
            (account_id,),
        ).fetchone()
        return Account(row[0], row[1], row[2], bool(row[3])) if row else None

    def rows(self, sql: str, *values: object) -> Sequence[tuple[Any, ...]]:
        """What a query finds."""
        return self._sql.execute(sql, values).fetchall()

    # ---- debits ------------------------------------------------------------------------------

    def debit(self, request: wallet.DebitRequest) -> wallet.DebitResponse:
        """Take money, or decline. Raises IdInUse, DoneBefore."""
        with self._decision():
            known = self._known("Debit", request)
            cancelled = self._is_cancelled(request.transaction_id)
            outcome: int
            if known is None:
                decline = wallet.DEBIT_DECLINE_ROLLED_BACK if cancelled else self._decline(request)
                taken = decline == wallet.DEBIT_DECLINE_UNSPECIFIED
                outcome = wallet.DEBIT_OUTCOME_TAKEN if taken else wallet.DEBIT_OUTCOME_DECLINED
                moved = -request.amount.minor_units if taken else 0
                number = self._record("Debit", request, moved, outcome, decline)
            else:
                number, outcome, decline = known.number, known.outcome, known.refusal
                if cancelled:
                    # Whatever was said before: nobody may take this debit for money any more.
                    outcome = wallet.DEBIT_OUTCOME_DECLINED
                    decline = wallet.DEBIT_DECLINE_ROLLED_BACK
                elif outcome == wallet.DEBIT_OUTCOME_TAKEN:
                    self._done_before()
            return wallet.DebitResponse(
                transaction_id=request.transaction_id,
                outcome=wallet.DebitOutcome.ValueType(outcome),
                decline=wallet.DebitDecline.ValueType(decline),
                balance=self._balance(request.account_id),
                partner_transaction_id=_own_id(number),
                duplicate=known is not None,
            )

    def _decline(self, request: wallet.DebitRequest) -> int:
        """Why a new debit is declined, in the order of the list; 0: it is not."""
        account = self.account(request.account_id)
        correction = request.reason == wallet.DEBIT_REASON_CORRECTION
        if account is None:
            return wallet.DEBIT_DECLINE_ACCOUNT_UNKNOWN
        if account.blocked and not correction:
            return wallet.DEBIT_DECLINE_ACCOUNT_BLOCKED
        if account.currency_code != request.amount.currency_code:
            return wallet.DEBIT_DECLINE_CURRENCY
        may_overdraw = (
            correction and self.conventions.overdraws == conventions.OVERDRAW_CONVENTION_TAKEN
        )
        least = LEAST_MINOR if may_overdraw else 0
        if account.balance_minor - request.amount.minor_units < least:
            return wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS
        return wallet.DEBIT_DECLINE_UNSPECIFIED

    # ---- credits -----------------------------------------------------------------------------

    def credit(self, request: wallet.CreditRequest) -> wallet.CreditResponse:
        """Give money, or refuse and forget. Raises IdInUse, DoneBefore."""
        with self._decision():
            known = self._known("Credit", request)
            answer = wallet.CreditResponse(
                transaction_id=request.transaction_id,
                outcome=wallet.CREDIT_OUTCOME_CREDITED,
                duplicate=known is not None,
            )
            if known is not None:
                self._done_before()
                answer.partner_transaction_id = _own_id(known.number)
            elif refusal := self._refusal_of_credit(request):
                answer.outcome = wallet.CREDIT_OUTCOME_REFUSED
                answer.refusal = wallet.CreditRefusal.ValueType(refusal)
            else:
                number = self._record("Credit", request, request.amount.minor_units, answer.outcome)
                self._sql.executemany(
                    "INSERT INTO credited_debits VALUES (?, ?)",
                    [(one, request.transaction_id) for one in request.debit_transaction_ids],
                )
                answer.partner_transaction_id = _own_id(number)
            self._add_balance(answer, request.account_id)
            return answer

    def _refusal_of_credit(self, request: wallet.CreditRequest) -> int:
        """Why a credit is refused, in the order of the list; 0: it is not. A block is no reason."""
        account = self.account(request.account_id)
        if account is None:
            return wallet.CREDIT_REFUSAL_ACCOUNT_UNKNOWN
        if account.currency_code != request.amount.currency_code:
            return wallet.CREDIT_REFUSAL_CURRENCY
        if not all(self._is_taken(one, request) for one in request.debit_transaction_ids):
            return wallet.CREDIT_REFUSAL_DEBIT_NOT_TAKEN
        if request.reason == wallet.CREDIT_REASON_STAKE_RETURNED and (
            request.amount.minor_units > self._returnable(request)
        ):
            return wallet.CREDIT_REFUSAL_EXCEEDS_DEBITS
        if account.balance_minor + request.amount.minor_units > GREATEST_MINOR:
            return wallet.CREDIT_REFUSAL_BALANCE_TOO_LARGE
        return wallet.CREDIT_REFUSAL_UNSPECIFIED

    def _is_taken(self, debit_id: str, request: wallet.CreditRequest) -> bool:
        """Whether a debit of this account and round took money that it did not give back."""
        debit = self._movement(debit_id)
        return (
            debit is not None
            and debit.kind == "Debit"
            and debit.outcome == wallet.DEBIT_OUTCOME_TAKEN
            and debit.account_id == request.account_id
            and debit.round_id == request.round_id
            and not self._is_cancelled(debit_id)
        )

    def _returnable(self, request: wallet.CreditRequest) -> int:
        """How much of the account's stakes of the round did not go back yet, minor units."""
        rows = self._sql.execute(
            "SELECT kind, reason, moved_minor FROM movements WHERE account_id = ? AND round_id = ?",
            (request.account_id, request.round_id),
        )
        left = 0
        for kind, reason, moved_minor in rows:
            stake = kind == "Debit" and reason != wallet.DEBIT_REASON_CORRECTION
            back = kind == "Credit" and reason == wallet.CREDIT_REASON_STAKE_RETURNED
            if stake or back or kind == "Rollback":
                left -= moved_minor
        return left

    # ---- rollbacks ---------------------------------------------------------------------------

    def rollback(self, request: wallet.RollbackRequest) -> wallet.RollbackResponse:
        """Cancel a debit, whether it came or not. Raises IdInUse, DoneBefore."""
        with self._decision():
            known = self._known("Rollback", request)
            if known is not None:
                outcome, refusal, number = known.outcome, known.refusal, known.number
                if outcome == wallet.ROLLBACK_OUTCOME_DONE:
                    self._done_before()
                moved = self._moved(number)
            else:
                debit = self._movement(request.debit_transaction_id)
                refusal = self._refusal_of_rollback(request, debit)
                outcome = (
                    wallet.ROLLBACK_OUTCOME_REFUSED if refusal else wallet.ROLLBACK_OUTCOME_DONE
                )
                moved = 0
                if not refusal and not self._is_cancelled(request.debit_transaction_id):
                    if debit is not None and debit.outcome == wallet.DEBIT_OUTCOME_TAKEN:
                        moved = debit.amount_minor
                    self._sql.execute(
                        "INSERT INTO cancelled_debits VALUES (?, ?)",
                        (request.debit_transaction_id, request.transaction_id),
                    )
                number = self._record("Rollback", request, moved, outcome, refusal)
            return wallet.RollbackResponse(
                transaction_id=request.transaction_id,
                outcome=wallet.RollbackOutcome.ValueType(outcome),
                refusal=wallet.RollbackRefusal.ValueType(refusal),
                balance=self._balance(request.account_id),
                partner_transaction_id=_own_id(number),
                duplicate=known is not None,
                returned=moved > 0,
            )

    def _refusal_of_rollback(self, request: wallet.RollbackRequest, debit: Movement | None) -> int:
        """Why a debit stands; 0: it is cancelled, as one that never came or was declined is."""
        if debit is None:
            return wallet.ROLLBACK_REFUSAL_UNSPECIFIED
        if debit.kind != "Debit" or (
            (debit.account_id, debit.currency_code, debit.amount_minor, debit.table_id)
            != (
                request.account_id,
                request.amount.currency_code,
                request.amount.minor_units,
                request.table_id,
            )
            or debit.round_id != request.round_id
        ):
            return wallet.ROLLBACK_REFUSAL_MISMATCH
        if self._is_cancelled(request.debit_transaction_id):
            return wallet.ROLLBACK_REFUSAL_UNSPECIFIED
        settled = self._sql.execute(
            "SELECT 1 FROM credited_debits WHERE debit_id = ?", (request.debit_transaction_id,)
        ).fetchone()
        refused = conventions.SETTLED_ROLLBACK_CONVENTION_REFUSED
        if settled and self.conventions.settled_rollbacks == refused:
            return wallet.ROLLBACK_REFUSAL_ALREADY_SETTLED
        account = self.account(request.account_id)
        if account and account.balance_minor + request.amount.minor_units > GREATEST_MINOR:
            return wallet.ROLLBACK_REFUSAL_OTHER
        return wallet.ROLLBACK_REFUSAL_UNSPECIFIED

    # ---- what all of them need ---------------------------------------------------------------

    @contextmanager
    def _decision(self) -> Iterator[None]:
        """One transaction: all of it is durable afterwards, or nothing happened."""
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._sql.execute("ROLLBACK")
            raise
        self._sql.execute("COMMIT")

    def _known(self, kind: str, request: MovesMoney) -> Movement | None:
        """What was decided of this call before. Raises IdInUse where the id is another call's."""
        known = self._movement(request.transaction_id)
        if known is not None and (known.kind, known.content) != (kind, _content(request)):
            raise IdInUse(f"{request.transaction_id} was a {known.kind} of other content")
        return known

    def _done_before(self) -> None:
        """Raises DoneBefore where the wallet tells repeats that way."""
        if self.conventions.repeats == conventions.REPEAT_CONVENTION_ALREADY_EXISTS:
            raise DoneBefore

    def _movement(self, transaction_id: str) -> Movement | None:
        row = self._sql.execute(
            "SELECT number, kind, content, account_id, currency_code, amount_minor, table_id,"
            " round_id, outcome, refusal FROM movements WHERE transaction_id = ?",
            (transaction_id,),
        ).fetchone()
        return Movement(*row) if row else None

    def _moved(self, number: int) -> int:
        row = self._sql.execute(
            "SELECT moved_minor FROM movements WHERE number = ?", (number,)
        ).fetchone()
        return int(row[0])

    def _is_cancelled(self, debit_id: str) -> bool:
        found = self._sql.execute("SELECT 1 FROM cancelled_debits WHERE debit_id = ?", (debit_id,))
        return found.fetchone() is not None

    def _record(
        self, kind: str, request: MovesMoney, moved_minor: int, outcome: int, refusal: int = 0
    ) -> int:
        """Write a decision down and move its money; its number."""
        self._sql.execute(
            "UPDATE accounts SET balance_minor = balance_minor + ? WHERE account_id = ?",
            (moved_minor, request.account_id),
        )
        written = self._sql.execute(
            "INSERT INTO movements (transaction_id, kind, content, account_id, currency_code,"
            " amount_minor, moved_minor, table_id, round_id, reason, outcome, refusal, time_us)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                request.transaction_id,
                kind,
                _content(request),
                request.account_id,
                request.amount.currency_code,
                request.amount.minor_units,
                moved_minor,
                request.table_id,
                request.round_id,
                request.reason,
                outcome,
                refusal,
                request.time.ToMicroseconds(),
            ),
        )
        return int(written.lastrowid or 0)

    def _balance(self, account_id: str) -> Money | None:
        account = self.account(account_id)
        if account is None:
            return None
        return Money(currency_code=account.currency_code, minor_units=account.balance_minor)

    def _add_balance(self, answer: wallet.CreditResponse, account_id: str) -> None:
        if (balance := self._balance(account_id)) is not None:
            answer.balance.CopyFrom(balance)


def _content(request: MovesMoney) -> bytes:
    """What a repeat must have in common with the first call.

    Without fields that this wallet does not know: a newer cell may send them in a repeat only.
    """
    known = deepcopy(request)
    known.DiscardUnknownFields()
    return sha256(known.SerializeToString(deterministic=True)).digest()


def _own_id(number: int) -> str:
    return f"w-{number}"
