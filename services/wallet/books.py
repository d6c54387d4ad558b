"""The answers of the ledger's calls, made of what the journal's queries find. Whoever asks has been
let in already; `LedgerServicer` does that for callers, the command for operators."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from sabot.money.v1.money_pb2 import Money
from sabot.reconciliation.v1 import digest_pb2 as digests
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from services.kernel.call import position_message
from services.kernel.errors import INVALID_REQUEST, FieldViolation, Refused
from services.kernel.event import Position
from services.refusals.wallet import ACCOUNT_NOT_FOUND, PERIOD_TOO_LARGE
from services.wallet.domain.digests import DigestTree, Node, Transaction
from services.wallet.domain.journal import EntryKind
from services.wallet.journal_rows import LEDGER_KINDS
from services.wallet.ledger_queries import (
    Balances,
    EntryRow,
    KindTotal,
    Span,
    SqlLedgerQueries,
    end_key,
)
from services.wallet.periods import BadPeriod, Period, local_days

MAX_TRANSACTIONS = 250_000
"""Of a period that is compared: their tree takes some 100 MB, and two seconds of a thread of the
process that also decides about stakes. Whoever has more in a day compares hours."""
TREES_KEPT = 4
TREE_S = 30.0
"""How many trees are kept, and how long one answers: the calls of one search fit together, and what
happens meanwhile is seen soon."""
MAX_LISTED = 64
"""Transactions of a digest's answer at most."""


class AsOf(NamedTuple):
    """What an answer stands for."""

    end: int
    """The key behind the last position that it takes in."""
    position: Position
    over_us: int
    """Periods that end no later than this log time are over: nothing is added to them."""


def as_of(position: Position, over_us: int) -> AsOf:
    """Everything up to a position."""
    return AsOf(end_key(position), position, over_us)


class Books:
    """See the module. Every method may raise Refused and ProjectionUnavailable."""

    def __init__(self, queries: SqlLedgerQueries) -> None:
        self.queries = queries
        self._trees: OrderedDict[tuple[str, str, Period], tuple[float, Position, DigestTree]] = (
            OrderedDict()
        )
        self._growing = asyncio.Lock()
        """One tree at a time: whoever asks for many waits longer, and nobody else notices."""

    # ---- journal and statement -----------------------------------------------------------------

    async def journal(
        self, partner: str, request: ledgers.ListJournalRequest, at: AsOf, after: int, limit: int
    ) -> tuple[list[EntryRow], bool]:
        """A page of entries behind the key `after`, and whether there are more."""
        span = Span(0, at.end)
        if request.HasField("days"):
            span = await self._span(days_of(request.days), at)
        found = await self.queries.entries(
            Span(max(span.first, after + 1), span.last),
            limit + 1,
            partner=partner,
            account_id=request.account_id,
            round_id=request.round_id,
        )
        return found[:limit], len(found) > limit

    async def statement(
        self, partner: str, request: ledgers.GetStatementRequest, at: AsOf, after: int, limit: int
    ) -> tuple[ledgers.GetStatementResponse, list[EntryRow], bool]:
        """A statement without its entries, a page of those, and whether there are more."""
        account_id = request.account_id
        currency = await self.queries.account_currency(partner, account_id)
        if currency is None:
            raise Refused(ACCOUNT_NOT_FOUND, {"account_id": account_id})
        period = days_of(request.days)
        span = await self._span(period, at)
        opening = await self.queries.balances(partner, account_id, span.first)
        closing = await self.queries.balances(partner, account_id, span.last)
        sums = await self.queries.sums(partner, account_id, span)
        found = await self.queries.entries(
            Span(max(span.first, after + 1), span.last),
            limit + 1,
            partner=partner,
            account_id=account_id,
        )
        response = ledgers.GetStatementResponse(
            currency_code=currency,
            from_time=moment(period.from_us),
            to_time=moment(period.to_us),
            opening=balance_message(opening, currency),
            closing=balance_message(closing, currency),
            sums=[
                ledgers.KindSum(
                    kind=ledgers.EntryKind.ValueType(kind.value),
                    entries=entries,
                    amount=money(amount, currency),
                )
                for kind, (entries, amount) in sums.items()
            ],
            over=period.to_us <= at.over_us,
            position=position_message(at.position),
        )
        return response, found[:limit], len(found) > limit

    async def balances(
        self, partner: str, account_id: str, end: int
    ) -> tuple[str, Balances] | None:
        """An account's currency, and what it had before a key; None where there is no account."""
        currency = await self.queries.account_currency(partner, account_id)
        if currency is None:
            return None
        return currency, await self.queries.balances(partner, account_id, end)

    async def end_of(self, time_us: int, at: AsOf) -> int:
        """The key behind everything up to a log time."""
        return await self.queries.first_key(time_us + 1, at.end)

    # ---- all of it -----------------------------------------------------------------------------

    async def trial_balance(self, at: AsOf) -> ledgers.GetTrialBalanceResponse:
        """Every account of the ledger, summed up."""
        lines = await self.queries.trial_balance(at.end)
        sums: dict[str, int] = {}
        for line in lines:
            sums[line.currency_code] = sums.get(line.currency_code, 0) + line.balance_minor
        return ledgers.GetTrialBalanceResponse(
            lines=[
                ledgers.TrialBalanceLine(
                    kind=ledgers.LedgerKind.ValueType(LEDGER_KINDS[line.kind]),
                    partner_id=line.partner,
                    accounts=line.accounts,
                    balance=money(line.balance_minor, line.currency_code),
                )
                for line in lines
            ],
            sums=[money(minor, currency) for currency, minor in sorted(sums.items())],
            position=position_message(at.position),
        )

    # ---- what two sides compare ----------------------------------------------------------------

    async def reconciliation(
        self,
        partner: str,
        request: ledgers.GetReconciliationRequest,
        at: AsOf,
        *,
        fresh: bool = False,
    ) -> ledgers.GetReconciliationResponse:
        """A period's totals, and the digest of its transactions, unless there are too many."""
        period = days_of(request.days)
        currency = request.currency_code
        totals = await self.queries.totals(partner, currency, await self._span(period, at))
        digest = None
        try:
            _, tree = await self.tree(partner, currency, period, at, fresh=fresh)
            digest = digest_message(tree.node())
        except Refused as refused:
            if refused.reason is not PERIOD_TOO_LARGE:
                raise
        kinds = totals.by_kind
        corrections = kinds.get(EntryKind.CORRECTION, KindTotal())
        return ledgers.GetReconciliationResponse(
            from_time=moment(period.from_us),
            to_time=moment(period.to_us),
            stakes=_movements(kinds, currency, EntryKind.STAKE),
            returned=_movements(kinds, currency, EntryKind.STAKE_WITHDRAWN, EntryKind.STAKE_LATE),
            voided=_movements(kinds, currency, EntryKind.STAKE_VOIDED),
            payouts=_movements(kinds, currency, EntryKind.PAYOUT),
            commission=money(totals.commission_minor, currency),
            deposits=_movements(kinds, currency, EntryKind.DEPOSIT),
            withdrawals=_movements(kinds, currency, EntryKind.WITHDRAWAL),
            corrections=corrections.entries,
            corrected=money(corrections.amount_minor, currency),
            open_reservations=money(totals.open_minor, currency),
            due=money(totals.due_minor, currency),
            digest=digest,
            over=period.to_us <= at.over_us,
            position=position_message(at.position),
        )

    async def tree(
        self, partner: str, currency: str, period: Period, at: AsOf, *, fresh: bool = False
    ) -> tuple[Position, DigestTree]:
        """The tree of a period's transactions, and the position that it stands for: at most half a
        minute old, made anew where it must be `fresh`."""
        key = (partner, currency, period)
        async with self._growing:
            known = self._trees.get(key)
            if known is not None and not fresh and time.monotonic() - known[0] < TREE_S:
                return known[1], known[2]
            tree = await self._grown(partner, currency, period, at)
            self._trees[key] = (time.monotonic(), at.position, tree)
            self._trees.move_to_end(key)
            while len(self._trees) > TREES_KEPT:
                self._trees.popitem(last=False)
        return at.position, tree

    async def _grown(self, partner: str, currency: str, period: Period, at: AsOf) -> DigestTree:
        found = await self.queries.transactions(
            partner, currency, period, at.end, MAX_TRANSACTIONS + 1
        )
        if len(found) > MAX_TRANSACTIONS:
            raise Refused(PERIOD_TOO_LARGE, {"most": MAX_TRANSACTIONS})
        return await asyncio.to_thread(_built, found)

    async def _span(self, period: Period, at: AsOf) -> Span:
        first = await self.queries.first_key(period.from_us, at.end)
        return Span(first, await self.queries.first_key(period.to_us, at.end))


def days_of(days: ledgers.LocalDays) -> Period:
    """The period of local days. Raises Refused."""
    try:
        return local_days(days.first_date, days.last_date, days.time_zone)
    except BadPeriod as error:
        told = FieldViolation(f"days.{error.field}", "days.known", str(error))
        raise Refused(INVALID_REQUEST, fields=[told]) from error


def digest_answer(tree: DigestTree, prefix: str) -> ledgers.GetDigestResponse:
    """The digest of a prefix, and what is below it; without a position."""
    node = tree.node(prefix)
    listed = tree.transactions(prefix) if node.size <= MAX_LISTED else ()
    return ledgers.GetDigestResponse(
        digest=digest_message(node),
        children=[digest_message(one) for one in tree.children(prefix)],
        transactions=[_transaction(one) for one in listed],
    )


def entry_message(row: EntryRow) -> ledgers.JournalEntry:
    """An entry as it goes out."""
    return ledgers.JournalEntry(
        position=position_message(row.position),
        time=moment(row.time_us),
        kind=ledgers.EntryKind.ValueType(row.kind.value),
        partner_id=row.partner,
        account_id=row.account_id,
        table_id=row.table_id,
        round_id=row.round_id,
        request_id=row.request_id,
        bet_ids=row.bet_ids,
        rule_set_hash=row.rule_set_hash,
        cause=position_message(row.cause),
        event_type=row.event_type,
        legs=[
            ledgers.Leg(
                kind=ledgers.LedgerKind.ValueType(LEDGER_KINDS[leg.kind]),
                account_id=leg.account_id,
                amount=money(leg.amount_minor, leg.currency_code),
                balance=money(leg.balance_minor, leg.currency_code),
            )
            for leg in row.legs
        ],
    )


def balance_message(held: Balances, currency: str) -> ledgers.AccountBalance:
    """What an account has, as it goes out."""
    return ledgers.AccountBalance(
        available=money(held.available_minor, currency),
        reserved=money(held.reserved_minor, currency),
        receivable=money(-held.receivable_minor, currency),
    )


def money(minor: int, currency: str) -> Money:
    """An amount."""
    return Money(currency_code=currency, minor_units=minor)


def moment(time_us: int) -> Timestamp:
    """A log time as it goes out."""
    return Timestamp(seconds=time_us // 1_000_000, nanos=time_us % 1_000_000 * 1_000)


def digest_message(node: Node) -> digests.Digest:
    """A digest as it goes out."""
    return digests.Digest(prefix=node.prefix, count=node.size, digest=node.digest)


def _built(found: Sequence[Transaction]) -> DigestTree:
    tree = DigestTree(found)
    tree.node()  # The work of all later answers is done here, aside.
    return tree


def _transaction(one: Transaction) -> digests.Transaction:
    return digests.Transaction(
        transaction_id=one.transaction_id,
        account_id=one.account_id,
        amount_minor=one.amount_minor,
        kind=digests.TransactionKind.ValueType(one.kind.value),
        time=moment(one.time_us),
    )


def _movements(
    kinds: Mapping[EntryKind, KindTotal], currency: str, *of: EntryKind
) -> ledgers.Movements:
    found = [kinds.get(kind, KindTotal()) for kind in of]
    return ledgers.Movements(
        entries=sum(one.entries for one in found),
        bets=sum(one.bets for one in found),
        amount=money(sum(one.amount_minor for one in found), currency),
    )
