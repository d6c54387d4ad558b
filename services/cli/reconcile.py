"""Two books of a period against one another: where their digests differ it goes on, elsewhere it
has no need to look. With one difference among n transactions that takes a few calls of each side,
about the logarithm of n to the base of 16.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from sabot.partnerwallet.v1 import partner_reconciliation_service_pb2 as partners
from sabot.reconciliation.v1 import digest_pb2 as digests
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from services.cli.moments import parse_time, written
from services.games.currencies import decimal
from services.wallet.domain.digests import (
    DIGITS,
    KEY_DIGITS,
    DigestTree,
    Transaction,
    TransactionKind,
)
from services.wallet.periods import Period

MAX_SHOWN = 1_000
"""Differences that are shown: whoever has more has another period, or another partner."""
CSV_COLUMNS = ("transaction_id", "account_id", "currency", "kind", "amount_minor", "time")


class BadBooks(Exception):
    """A side's books cannot be read, or its answers do not fit together."""


class Below(NamedTuple):
    """What a side says of a prefix."""

    size: int
    digest: bytes
    children: Mapping[str, tuple[int, bytes]]
    """By longer prefix; empty where there are no two transactions."""
    transactions: list[Transaction] | None
    """All of them, where they are few."""


class Side(Protocol):
    """One side's books of the period."""

    async def below(self, prefix: str) -> Below:
        """What lies below a prefix. Raises BadBooks."""
        ...


class Differing(NamedTuple):
    """A transaction that the two sides have otherwise, or that one of them lacks."""

    transaction_id: str
    ours: Transaction | None
    theirs: Transaction | None


@dataclass(slots=True)
class Comparison:
    """What came of it."""

    ours: int = 0
    theirs: int = 0
    """Transactions of either side."""
    calls: int = 0
    """Questions to each side."""
    differing: list[Differing] = field(default_factory=list[Differing])
    more: bool = False
    """Whether there are more differences than are shown."""

    @property
    def agree(self) -> bool:
        """Whether the books are the same."""
        return not self.differing and not self.more


async def compare(ours: Side, theirs: Side) -> Comparison:
    """Find every transaction in which two books differ. Raises BadBooks."""
    found = Comparison()
    prefixes = [""]
    while prefixes:
        prefix = prefixes.pop()
        mine, other = await ours.below(prefix), await theirs.below(prefix)
        found.calls += 1
        if not prefix:
            found.ours, found.theirs = mine.size, other.size
        if mine.digest == other.digest:
            continue
        if mine.transactions is not None and other.transactions is not None:
            found.differing += _differing(mine.transactions, other.transactions)
        elif len(prefix) == KEY_DIGITS:
            raise BadBooks(f"a side has more than 64 transactions of one id, at {prefix}")
        else:
            names = [prefix + digit for digit in reversed(DIGITS)]
            prefixes += [one for one in names if _child(mine, one) != _child(other, one)]
        if len(found.differing) > MAX_SHOWN:
            del found.differing[MAX_SHOWN:]
            found.more = True
            break
    found.differing.sort()
    return found


def _child(of: Below, prefix: str) -> bytes:
    if of.children:
        return of.children[prefix][1]
    return DigestTree(of.transactions or ()).node(prefix).digest


def _differing(ours: Iterable[Transaction], theirs: Iterable[Transaction]) -> list[Differing]:
    here, there = _by_id(ours), _by_id(theirs)
    found: list[Differing] = []
    for named in {**here, **there}:
        left, right = list(here.get(named, ())), list(there.get(named, ()))
        for one in list(left):
            match = next((each for each in right if each[:4] == one[:4]), None)
            if match is not None:
                left.remove(one)
                right.remove(match)
        found += [Differing(named, mine, other) for mine, other in zip_longest(left, right)]
    return found


def _by_id(transactions: Iterable[Transaction]) -> dict[str, list[Transaction]]:
    found: dict[str, list[Transaction]] = {}
    for one in transactions:
        found.setdefault(one.transaction_id, []).append(one)
    return found


# ---- sides -------------------------------------------------------------------------------------


class TreeSide:
    """Books that lie here: a log's, or a file's."""

    def __init__(self, tree: DigestTree) -> None:
        self._tree = tree

    async def below(self, prefix: str) -> Below:
        """See Side."""
        node = self._tree.node(prefix)
        return Below(
            node.size,
            node.digest,
            {one.prefix: (one.size, one.digest) for one in self._tree.children(prefix)},
            list(self._tree.transactions(prefix)) if node.size <= 64 else None,
        )


Answer = ledgers.GetDigestResponse | partners.GetDigestResponse


class CalledSide:
    """Books that are asked by calls: a cell's, or a partner's wallet."""

    def __init__(self, call: Callable[[str], Awaitable[Answer]]) -> None:
        """`call`: GetDigest of the period, by prefix."""
        self._call = call

    async def below(self, prefix: str) -> Below:
        """See Side."""
        told = await self._call(prefix)
        size = told.digest.count
        if told.digest.prefix != prefix:
            raise BadBooks(f"asked for the prefix {prefix!r}, told {told.digest.prefix!r}")
        children = {one.prefix: (one.count, one.digest) for one in told.children}
        listed = [_transaction(one) for one in told.transactions]
        whole = len(listed) == size
        names = [prefix + digit for digit in DIGITS]
        if children and list(children) != names:
            raise BadBooks(f"the digests below {prefix!r} are not those of its sixteen digits")
        if children and sum(count for count, _ in children.values()) != size:
            raise BadBooks(f"the digests below {prefix!r} are not of {size} transactions")
        if not whole and not children:
            raise BadBooks(f"of {size} transactions below {prefix!r} nothing is told")
        if whole and DigestTree(listed).node(prefix).digest != told.digest.digest:
            raise BadBooks(f"the digest of {prefix!r} is not that of its transactions")
        return Below(size, told.digest.digest, children, listed if whole else None)


def _transaction(one: digests.Transaction) -> Transaction:
    return Transaction(
        one.transaction_id,
        one.account_id,
        one.amount_minor,
        TransactionKind(one.kind),
        one.time.ToMicroseconds(),
    )


def read_csv(path: Path, currency: str, period: Period) -> DigestTree:
    """A partner's copy of a period: a heading as CSV_COLUMNS, and a row a transaction. Rows of
    other currencies and of other times are left out. Raises BadBooks."""
    found: list[Transaction] = []
    try:
        text = path.read_text(encoding="utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""))
        rows = list(reader)
    except UnicodeDecodeError:
        raise BadBooks(f"{path} is no CSV file: it is no text") from None
    except csv.Error as error:
        raise BadBooks(f"{path} is no CSV file: {error}") from error
    missing = set(CSV_COLUMNS[:5]) - set(reader.fieldnames or ())
    if missing:
        raise BadBooks(f"{path} has no column {', '.join(sorted(missing))}")
    for number, row in enumerate(rows, 2):
        try:
            one = Transaction(
                row["transaction_id"],
                row["account_id"],
                int(row["amount_minor"]),
                TransactionKind[row["kind"].upper()],
                _time(row.get("time") or ""),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadBooks(f"{path}, line {number}: {error}") from error
        within = not one.time_us or period.from_us <= one.time_us < period.to_us
        if row["currency"] == currency and within and one.amount_minor:
            found.append(one)
    return DigestTree(found)


def csv_rows(transactions: Iterable[Transaction], currency: str) -> list[tuple[object, ...]]:
    """Transactions as `read_csv` reads them."""
    rows: list[tuple[object, ...]] = [CSV_COLUMNS]
    rows += [
        (
            one.transaction_id,
            one.account_id,
            currency,
            one.kind.name.lower(),
            one.amount_minor,
            written(one.time_us),
        )
        for one in transactions
    ]
    return rows


def differing_rows(found: Comparison, currency: str) -> list[tuple[object, ...]]:
    """Each difference with both versions, for CSV."""
    sides = [(f"ours_{name}", f"theirs_{name}") for name in ("account", "kind", "amount_minor")]
    rows: list[tuple[object, ...]] = [
        ("transaction_id", "currency", *(name for pair in sides for name in pair))
    ]
    for one in found.differing:
        told = zip(_version(one.ours), _version(one.theirs), strict=True)
        rows.append((one.transaction_id, currency, *(cell for pair in told for cell in pair)))
    return rows


def differing_lines(found: Comparison, currency: str, *, over: bool) -> list[str]:
    """For people."""
    lines = []
    for one in found.differing:
        lines.append(f"{one.transaction_id}:")
        lines += [
            f"  {side}: {_told(version, currency)}"
            for side, version in (("ours  ", one.ours), ("theirs", one.theirs))
        ]
    if found.more:
        lines.append(f"and more than {MAX_SHOWN}")
    verdict = "the books agree" if found.agree else f"{len(found.differing)} transactions differ"
    lines.append(
        f"{verdict}: {found.ours} transactions here, {found.theirs} there, "
        f"{found.calls} calls of each side"
    )
    if not over:
        lines.append("the period is not over: what is under way may stand on one side only")
    return lines


def _version(one: Transaction | None) -> tuple[str, str, object]:
    if one is None:
        return "", "", ""
    return one.account_id, one.kind.name.lower(), one.amount_minor


def _told(one: Transaction | None, currency: str) -> str:
    if one is None:
        return "-"
    amount = f"{decimal(one.amount_minor, currency)} {currency}"
    return f"{one.kind.name.lower()} of {one.account_id}, {amount}, {written(one.time_us)}"


def _time(text: str) -> int:
    return parse_time(text).time_us if text else 0


def asked_of_partner(
    currency: str, from_time: Timestamp, to_time: Timestamp, prefix: str
) -> partners.GetDigestRequest:
    """What a partner's wallet is asked."""
    return partners.GetDigestRequest(
        currency_code=currency, from_time=from_time, to_time=to_time, prefix=prefix
    )
