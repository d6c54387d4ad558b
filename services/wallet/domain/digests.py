"""Transactions as two sides compare them, and the digest tree over a set of them.

A transaction's place in the tree is the hash of its id: it does not depend on what else is there,
so one that is missing on one side moves no other. The digests are defined in
`sabot/reconciliation/v1/digest.proto`; docs/adr says why they are what they are.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

KEY_DIGITS = 64
"""Hexadecimal digits of a key."""
EMPTY = bytes(32)
"""The digest of no transaction."""
DIGITS = "0123456789abcdef"
_REMEMBERED_FROM = 64
"""Digests of so many transactions or more are kept: fewer are as quickly made again."""


class TransactionKind(IntEnum):
    """The numbers are those of reconciliation.v1.TransactionKind; they go into digests."""

    DEBIT = 1
    CREDIT = 2
    DEPOSIT = 3
    WITHDRAWAL = 4
    STAKE = 5
    STAKE_RETURNED = 6
    PAYOUT = 7
    CORRECTION = 8


class Transaction(NamedTuple):
    """A movement of money as both sides have it."""

    transaction_id: str
    account_id: str
    amount_minor: int
    """What the account has more afterwards, minor units."""
    kind: TransactionKind
    time_us: int = 0
    """By which it belongs to a period, microseconds since 1970 UTC. No part of the digest."""


class Node(NamedTuple):
    """The transactions whose key begins with a prefix, as a digest."""

    prefix: str
    size: int
    """How many there are."""
    digest: bytes


def key_of(transaction_id: str) -> bytes:
    """A transaction's place in the tree: 32 bytes."""
    return hashlib.sha256(transaction_id.encode()).digest()


def leaf_of(one: Transaction) -> bytes:
    """The digest of one transaction."""
    named = one.transaction_id.encode()
    owner = one.account_id.encode()
    return hashlib.sha256(
        b"\0"
        + struct.pack(">I", len(named))
        + named
        + struct.pack(">I", len(owner))
        + owner
        + struct.pack(">qB", one.amount_minor, one.kind)
    ).digest()


class DigestTree:
    """The digests over a set of transactions. Those that have one id on one side, which is a fault
    of its books, lie together at the end of their key."""

    def __init__(self, transactions: Iterable[Transaction]) -> None:
        placed = sorted((key_of(one.transaction_id), one) for one in transactions)
        self._keys = [key for key, _ in placed]
        self._transactions = [one for _, one in placed]
        self._known: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def node(self, prefix: str = "") -> Node:
        """The digest of a prefix."""
        first, last = self._range(prefix)
        return Node(prefix, last - first, self._digest(prefix, first, last))

    def children(self, prefix: str = "") -> list[Node]:
        """Those of the sixteen longer prefixes, in order; none where there are no two transactions,
        or the prefix is a whole key."""
        first, last = self._range(prefix)
        if last - first < 2 or len(prefix) == KEY_DIGITS:
            return []
        return [self.node(prefix + digit) for digit in DIGITS]

    def transactions(self, prefix: str = "") -> Sequence[Transaction]:
        """The transactions of a prefix, by key."""
        first, last = self._range(prefix)
        return self._transactions[first:last]

    def _range(self, prefix: str) -> tuple[int, int]:
        low = bytes.fromhex(prefix.ljust(KEY_DIGITS, "0"))
        high = bytes.fromhex(prefix.ljust(KEY_DIGITS, "f"))
        return bisect_left(self._keys, low), bisect_right(self._keys, high)

    def _digest(self, prefix: str, first: int, last: int) -> bytes:
        count = last - first
        if count == 0:
            return EMPTY
        if count == 1:
            return leaf_of(self._transactions[first])
        known = self._known.get(prefix)
        if known is not None:
            return known
        if len(prefix) == KEY_DIGITS:
            made = hashlib.sha256(b"\2")
            for one in self._transactions[first:last]:
                made.update(leaf_of(one))
        else:
            made = hashlib.sha256(b"\1")
            for digit, (begin, end) in zip(
                DIGITS, pairwise(self._bounds(prefix, first, last)), strict=True
            ):
                made.update(self._digest(prefix + digit, begin, end))
        digest = made.digest()
        if count >= _REMEMBERED_FROM:
            self._known[prefix] = digest
        return digest

    def _bounds(self, prefix: str, first: int, last: int) -> list[int]:
        """Where each of the sixteen longer prefixes begins, and where the last ends."""
        place, high = divmod(len(prefix), 2)
        if last - first < _REMEMBERED_FROM:
            bounds = [first] * 17
            bounds[16] = last
            sizes = [0] * 16
            for key in self._keys[first:last]:
                byte = key[place]
                sizes[byte & 15 if high else byte >> 4] += 1
            for number, size in enumerate(sizes):
                bounds[number + 1] = bounds[number] + size
            return bounds
        found = [first]
        for digit in DIGITS[1:]:
            low = bytes.fromhex((prefix + digit).ljust(KEY_DIGITS, "0"))
            found.append(bisect_left(self._keys, low, found[-1], last))
        return [*found, last]
