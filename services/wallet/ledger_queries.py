"""What may be asked of the journal, by SQL.

Journal rows never change, and their positions grow with log time. So a period is a range of
positions, and several queries that end at one position fit together whatever was added meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    and_,
    distinct,
    func,
    literal,
    select,
    union_all,
)

from services.kernel.databases import position_key, position_of_key
from services.kernel.event import Position
from services.kernel.projection_reads import ProjectionReads
from services.wallet.domain.digests import Transaction, TransactionKind
from services.wallet.domain.journal import EntryKind
from services.wallet.domain.postings import Kind
from services.wallet.journal_rows import (
    ENTRIES,
    KINDS_BACK,
    LEDGER_KINDS,
    LEDGERS,
    POSTINGS,
    ROWS_AT_ONCE,
)
from services.wallet.movement_rows import DONE as MOVEMENT_DONE
from services.wallet.movement_rows import MOVEMENTS
from services.wallet.periods import Period
from services.wallet.projection import ACCOUNTS

MAX_PAGE = 500
"""Entries of a page at most: with their legs some hundred KiB."""
_OF_ACCOUNT = (Kind.CASH, Kind.RESERVED, Kind.RECEIVABLE)
TRANSACTION_KINDS = {
    EntryKind.DEPOSIT: TransactionKind.DEPOSIT,
    EntryKind.WITHDRAWAL: TransactionKind.WITHDRAWAL,
    EntryKind.STAKE: TransactionKind.STAKE,
    EntryKind.STAKE_WITHDRAWN: TransactionKind.STAKE_RETURNED,
    EntryKind.STAKE_LATE: TransactionKind.STAKE_RETURNED,
    EntryKind.STAKE_VOIDED: TransactionKind.STAKE_RETURNED,
    EntryKind.PAYOUT: TransactionKind.PAYOUT,
    EntryKind.CORRECTION: TransactionKind.CORRECTION,
    EntryKind.RECEIVABLE_SETTLED: TransactionKind.CORRECTION,
}


class Span(NamedTuple):
    """Positions from `first` on and before `last`, as keys."""

    first: int
    last: int


class LegRow(NamedTuple):
    """One leg of an entry."""

    kind: Kind
    account_id: str
    """Empty where it is on a partner's account."""
    currency_code: str
    amount_minor: int
    balance_minor: int
    """What the ledger's account has afterwards."""


class EntryRow(NamedTuple):
    """A journal entry. See services.wallet.domain.journal.Entry."""

    key: int
    position: Position
    time_us: int
    kind: EntryKind
    partner: str
    account_id: str
    currency_code: str
    table_id: str
    round_id: str
    request_id: str
    bet_ids: tuple[str, ...]
    rule_set_hash: bytes
    cause: Position
    event_type: str
    legs: tuple[LegRow, ...]


class Balances(NamedTuple):
    """What an account has, minor units."""

    available_minor: int = 0
    reserved_minor: int = 0
    receivable_minor: int = 0
    """Not above 0: what it owes."""


class TrialLine(NamedTuple):
    """Accounts of one kind of a partner in a currency."""

    currency_code: str
    partner: str
    kind: Kind
    accounts: int
    balance_minor: int


class KindTotal(NamedTuple):
    """Entries of one kind."""

    entries: int = 0
    bets: int = 0
    amount_minor: int = 0
    """What they move. See services.wallet.domain.journal.Entry."""


class Totals(NamedTuple):
    """What a partner's accounts came to in a period and a currency."""

    by_kind: dict[EntryKind, KindTotal]
    commission_minor: int
    open_minor: int
    """Stakes reserved at its end."""
    due_minor: int
    """Ordered of the partner's own wallet and not confirmed at its end."""


def end_key(position: Position) -> int:
    """The key behind everything up to a position."""
    return position_key(position) + 1


class SqlLedgerQueries(ProjectionReads):
    """Reads of the journal. Every method may raise ProjectionUnavailable."""

    async def first_key(self, time_us: int, end: int) -> int:
        """The key of the first entry of a log time not before `time_us`; `end` where there is none
        before that key."""
        row = ENTRIES.c
        query = (
            select(row.position)
            .where(row.time_us >= time_us)
            .order_by(row.time_us, row.position)
            .limit(1)
        )
        found = await self._value(query)
        return end if found is None else min(int(found), end)

    async def account_currency(self, partner: str, account_id: str) -> str | None:
        """An account's currency; None where there is no such account."""
        row = ACCOUNTS.c
        query = select(row.currency_code).where(
            row.partner == partner, row.account_id == account_id
        )
        found = await self._value(query)
        return None if found is None else str(found)

    async def balances(self, partner: str, account_id: str, end: int) -> Balances:
        """What an account had after every entry before the key `end`: one look into an index for
        each of its three accounts of the ledger."""
        found: dict[Kind, int] = {}
        for kind, ledger in (await self._ledgers(partner, account_id)).items():
            found[kind] = await self._balance(ledger, end)
        return Balances(*(found.get(kind, 0) for kind in _OF_ACCOUNT))

    async def entries(
        self,
        span: Span,
        limit: int,
        *,
        partner: str,
        account_id: str = "",
        round_id: str = "",
    ) -> list[EntryRow]:
        """Entries in the order of the log, with their legs: of a partner; of one account and of one
        round where named."""
        row = ENTRIES.c
        query = (
            select(ENTRIES)
            .where(row.position >= span.first, row.position < span.last, row.partner == partner)
            .order_by(row.position)
            .limit(min(limit, MAX_PAGE + 1))
        )
        if account_id:
            query = query.where(row.account_id == account_id)
        if round_id:
            query = query.where(row.round_id == round_id)
        entries = await self._rows(query)
        legs = await self._legs([one["position"] for one in entries])
        return [_entry(one, legs[one["position"]]) for one in entries]

    async def sums(
        self, partner: str, account_id: str, span: Span
    ) -> dict[EntryKind, tuple[int, int]]:
        """By kind of an account's entries: how many, and what all its accounts of the ledger have
        more by them."""
        ledgers = (await self._ledgers(partner, account_id)).values()
        query = (
            select(
                ENTRIES.c.kind,
                func.count(distinct(POSTINGS.c.position)).label("entries"),
                func.sum(POSTINGS.c.amount_minor).label("amount"),
            )
            .join_from(POSTINGS, ENTRIES, POSTINGS.c.position == ENTRIES.c.position)
            .where(POSTINGS.c.ledger.in_(ledgers), _within(POSTINGS.c.position, span))
            .group_by(ENTRIES.c.kind)
            .order_by(ENTRIES.c.kind)
        )
        return {
            EntryKind(one["kind"]): (one["entries"], int(one["amount"]))
            for one in await self._rows(query)
        }

    async def trial_balance(self, end: int) -> list[TrialLine]:
        """Every account of the ledger as it stood before a key, summed up: what it has now, less
        what moved since."""
        row = LEDGERS.c
        group = (row.currency_code, row.partner, row.kind)
        now = (
            select(*group, func.count().label("accounts"), func.sum(row.balance_minor).label("sum"))
            .where(row.opened < end)
            .group_by(*group)
        )
        since = (
            select(*group, literal(0).label("accounts"), -func.sum(POSTINGS.c.amount_minor))
            .join_from(POSTINGS, LEDGERS, POSTINGS.c.ledger == row.ledger)
            .where(POSTINGS.c.position >= end, row.opened < end)
            .group_by(*group)
        )
        # In one statement, so that both see the same.
        both = union_all(now, since).subquery()
        named = (both.c.currency_code, both.c.partner, both.c.kind)
        lines = select(
            *named, func.sum(both.c.accounts).label("accounts"), func.sum(both.c.sum).label("sum")
        ).group_by(*named)
        return sorted(
            TrialLine(
                one["currency_code"],
                one["partner"],
                KINDS_BACK[one["kind"]],
                int(one["accounts"]),
                int(one["sum"]),
            )
            for one in await self._rows(lines)
        )

    async def totals(self, partner: str, currency_code: str, span: Span) -> Totals:
        """A partner's movements in a currency."""
        row = ENTRIES.c
        query = (
            select(
                row.kind,
                func.count().label("entries"),
                func.sum(row.bets).label("bets"),
                func.sum(row.amount_minor).label("amount"),
            )
            .where(_within(row.position, span), row.partner == partner)
            .where(row.currency_code == currency_code)
            .group_by(row.kind)
        )
        by_kind = {
            EntryKind(one["kind"]): KindTotal(one["entries"], int(one["bets"]), int(one["amount"]))
            for one in await self._rows(query)
        }
        commission = await self._moved(partner, currency_code, Kind.COMMISSION, span)
        open_minor = await self._stood(partner, currency_code, Kind.RESERVED, span.last)
        due_minor = await self._stood(partner, currency_code, Kind.DUE, span.last)
        return Totals(by_kind, commission, open_minor, due_minor)

    async def transactions(
        self, partner: str, currency_code: str, period: Period, end: int, limit: int
    ) -> list[Transaction]:
        """What a partner's accounts may have more or less by each movement of a period: by the
        journal's entries before the key `end`, and by the calls of a partner's own wallet that it
        has confirmed. At most `limit` of either."""
        row, moved = ENTRIES.c, MOVEMENTS.c
        entries = (
            select(row.position, row.account_id, row.cash_minor, row.kind, row.time_us)
            .where(_in_period(row.time_us, period), row.position < end)
            .where(row.partner == partner, row.currency_code == currency_code)
            .where(row.cash_minor != 0)
            .order_by(row.position)
            .limit(limit)
        )
        movements = (
            select(
                moved.transaction_id,
                moved.account_id,
                moved.amount_minor,
                moved.kind,
                moved.time_us,
            )
            .where(moved.partner == partner, moved.currency_code == currency_code)
            .where(_in_period(moved.time_us, period), moved.ordered < end)
            .where(moved.state == MOVEMENT_DONE, moved.amount_minor != 0)
            .order_by(moved.transaction_id)
            .limit(limit)
        )
        found: list[Transaction] = []
        async with self._projector.connect() as connection:
            # A part at a time: a whole day in one go would hold everybody else up.
            async for rows in (await connection.stream(entries)).partitions(ROWS_AT_ONCE):
                found += [
                    Transaction(
                        str(position_of_key(position)),
                        account_id,
                        cash_minor,
                        TRANSACTION_KINDS[EntryKind(kind)],
                        time_us,
                    )
                    for position, account_id, cash_minor, kind, time_us in rows
                ]
                await asyncio.sleep(0)
            async for rows in (await connection.stream(movements)).partitions(ROWS_AT_ONCE):
                found += [
                    Transaction(named, account_id, amount, TransactionKind(kind), time_us)
                    for named, account_id, amount, kind, time_us in rows
                ]
                await asyncio.sleep(0)
        return found

    # ---- parts of them -------------------------------------------------------------------------

    async def _ledgers(self, partner: str, account_id: str) -> dict[Kind, int]:
        row = LEDGERS.c
        query = select(row.kind, row.ledger).where(
            row.partner == partner, row.account_id == account_id
        )
        return {KINDS_BACK[one["kind"]]: one["ledger"] for one in await self._rows(query)}

    async def _balance(self, ledger: int, end: int) -> int:
        row = POSTINGS.c
        query = (
            select(row.balance_minor)
            .where(row.ledger == ledger, row.position < end)
            .order_by(row.position.desc(), row.leg.desc())
            .limit(1)
        )
        return int(await self._value(query) or 0)

    async def _stood(self, partner: str, currency_code: str, kind: Kind, end: int) -> int:
        """What a partner's accounts of a kind came to before a key: what they have now, less what
        moved since. In one statement, so that both see the same."""
        held = and_(
            LEDGERS.c.kind == LEDGER_KINDS[kind],
            LEDGERS.c.partner == partner,
            LEDGERS.c.currency_code == currency_code,
        )
        now = select(func.sum(LEDGERS.c.balance_minor)).where(held).scalar_subquery()
        since = (
            select(func.sum(POSTINGS.c.amount_minor))
            .join_from(POSTINGS, LEDGERS, POSTINGS.c.ledger == LEDGERS.c.ledger)
            .where(POSTINGS.c.position >= end, held)
            .scalar_subquery()
        )
        return int(await self._value(select(func.coalesce(now, 0) - func.coalesce(since, 0))))

    async def _moved(self, partner: str, currency_code: str, kind: Kind, span: Span) -> int:
        row = LEDGERS.c
        query = (
            select(func.sum(POSTINGS.c.amount_minor))
            .join_from(POSTINGS, LEDGERS, POSTINGS.c.ledger == row.ledger)
            .where(_within(POSTINGS.c.position, span), row.kind == LEDGER_KINDS[kind])
            .where(row.partner == partner, row.currency_code == currency_code)
        )
        return int(await self._value(query) or 0)

    async def _legs(self, keys: Sequence[int]) -> dict[int, tuple[LegRow, ...]]:
        query = (
            select(POSTINGS, LEDGERS.c.kind, LEDGERS.c.account_id, LEDGERS.c.currency_code)
            .join_from(POSTINGS, LEDGERS, POSTINGS.c.ledger == LEDGERS.c.ledger)
            .where(POSTINGS.c.position.in_(keys))
            .order_by(POSTINGS.c.position, POSTINGS.c.leg)
        )
        found: dict[int, tuple[LegRow, ...]] = {}
        for one in await self._rows(query):
            leg = LegRow(
                KINDS_BACK[one["kind"]],
                one["account_id"],
                one["currency_code"],
                one["amount_minor"],
                one["balance_minor"],
            )
            found[one["position"]] = (*found.get(one["position"], ()), leg)
        return found


def _within(column: ColumnElement[Any], span: Span) -> ColumnElement[bool]:
    return and_(column >= span.first, column < span.last)


def _in_period(column: ColumnElement[Any], period: Period) -> ColumnElement[bool]:
    return and_(column >= period.from_us, column < period.to_us)


def _entry(row: RowMapping, legs: tuple[LegRow, ...]) -> EntryRow:
    return EntryRow(
        row["position"],
        position_of_key(row["position"]),
        row["time_us"],
        EntryKind(row["kind"]),
        row["partner"],
        row["account_id"],
        row["currency_code"],
        row["table_id"],
        row["round_id"],
        row["request_id"],
        tuple(row["bet_ids"].split()),
        bytes(row["rule_set_hash"]),
        position_of_key(row["cause"]),
        row["event_type"],
        legs,
    )
