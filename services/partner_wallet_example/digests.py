"""What the books hold of a period, as digests: the form is `sabot/reconciliation/v1/digest.proto`.

A call reads the whole period. A wallet with millions of movements a day keeps the digests of days
that are over instead of computing them again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from sabot.partnerwallet.v1 import partner_reconciliation_service_pb2 as reconciling
from sabot.reconciliation.v1 import digest_pb2 as form
from services.partner_wallet_example.book import Book

DIGITS = "0123456789abcdef"
KEY_DIGITS = 64
NOTHING = bytes(32)
TOLD = 64
"""So many transactions are told one by one, as the service says."""
KINDS = {"Debit": form.TRANSACTION_KIND_DEBIT, "Credit": form.TRANSACTION_KIND_CREDIT}

# A debit that was rolled back is none, and a rollback never is; see the message `Transaction`.
_PERIOD = """
SELECT transaction_id, account_id, moved_minor, kind, time_us FROM movements
WHERE currency_code = ? AND time_us >= ? AND time_us < ? AND moved_minor <> 0
  AND kind IN ('Debit', 'Credit')
  AND transaction_id NOT IN (SELECT debit_id FROM cancelled_debits)
"""


class Entry(NamedTuple):
    """A transaction at its place."""

    key: str
    """SHA-256 of its id, hexadecimal."""
    transaction: form.Transaction

    def leaf(self) -> bytes:
        """Its digest."""
        one = self.transaction
        texts = [text.encode() for text in (one.transaction_id, one.account_id)]
        framed = b"".join(struct.pack(">I", len(text)) + text for text in texts)
        return sha256(b"\0" + framed + struct.pack(">qB", one.amount_minor, one.kind)).digest()


def answer(book: Book, request: reconciling.GetDigestRequest) -> reconciling.GetDigestResponse:
    """The digest of a prefix, and what lies below it."""
    rows = book.rows(
        _PERIOD,
        request.currency_code,
        request.from_time.ToMicroseconds(),
        request.to_time.ToMicroseconds(),
    )
    entries = [entry for row in rows if (entry := _entry(*row)).key.startswith(request.prefix)]
    entries.sort(key=lambda one: one.key)
    told = reconciling.GetDigestResponse(digest=_digest(request.prefix, entries))
    if len(entries) > 1 and len(request.prefix) < KEY_DIGITS:
        for digit in DIGITS:
            told.children.append(_digest(request.prefix + digit, entries))
    if len(entries) <= TOLD:
        told.transactions.extend(entry.transaction for entry in entries)
    return told


def _entry(
    transaction_id: str, account_id: str, moved_minor: int, kind: str, time_us: int
) -> Entry:
    transaction = form.Transaction(
        transaction_id=transaction_id,
        account_id=account_id,
        amount_minor=moved_minor,
        kind=KINDS[kind],
    )
    transaction.time.FromMicroseconds(time_us)
    return Entry(sha256(transaction_id.encode()).hexdigest(), transaction)


def _digest(prefix: str, entries: Sequence[Entry]) -> form.Digest:
    below = [entry for entry in entries if entry.key.startswith(prefix)]
    return form.Digest(prefix=prefix, count=len(below), digest=_folded(len(prefix), below))


def _folded(depth: int, entries: Sequence[Entry]) -> bytes:
    """The digest of transactions that have their first digits in common. No two have one id."""
    if not entries:
        return NOTHING
    if len(entries) == 1:
        return entries[0].leaf()
    parts = [_folded(depth + 1, [one for one in entries if one.key[depth] == digit])
             for digit in DIGITS]  # fmt: skip
    return sha256(b"\1" + b"".join(parts)).digest()
