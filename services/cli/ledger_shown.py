"""Journals, statements and balances as text, CSV and JSON. Amounts stand twice where programs read:
as whole minor units, and as a decimal number by the currency's exponent."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from sabot.log.v1.entry_pb2 import Position as PositionMessage
from sabot.money.v1.money_pb2 import Money
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from services.cli.find import Columns
from services.cli.moments import place, written
from services.games.currencies import decimal
from services.kernel.event import Position

JOURNAL_COLUMNS = (
    *("position", "time", "kind", "partner", "account", "table", "round", "request", "bets"),
    *("rule_set_hash", "cause", "event", "leg", "ledger_kind", "ledger_account", "currency"),
    *("amount_minor", "amount", "balance_minor", "balance"),
)
TRIAL_COLUMNS = ("currency", "partner", "kind", "accounts", "balance_minor", "balance")


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    """Rows as RFC 4180 has them."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue()


def journal_rows(entries: Iterable[ledgers.JournalEntry]) -> list[tuple[object, ...]]:
    """For CSV: a heading, and a row a leg."""
    rows: list[tuple[object, ...]] = [JOURNAL_COLUMNS]
    for entry in entries:
        for number, leg in enumerate(entry.legs):
            rows.append(
                (
                    where(entry.position),
                    when(entry.time),
                    entry_kind(entry.kind),
                    entry.partner_id,
                    entry.account_id,
                    entry.table_id,
                    entry.round_id,
                    entry.request_id,
                    " ".join(entry.bet_ids),
                    entry.rule_set_hash.hex(),
                    where(entry.cause),
                    entry.event_type,
                    number,
                    ledger_kind(leg.kind),
                    leg.account_id,
                    leg.amount.currency_code,
                    leg.amount.minor_units,
                    units(leg.amount),
                    leg.balance.minor_units,
                    units(leg.balance),
                )
            )
    return rows


def journal_lines(entries: Iterable[ledgers.JournalEntry]) -> list[str]:
    """For people: a line a leg."""
    table = Columns(
        [("position", "log time", "kind", "account", "round", "leg", "amount", "after")]
    )
    for entry in entries:
        first = (
            where(entry.position),
            when(entry.time),
            entry_kind(entry.kind),
            f"{entry.partner_id}/{entry.account_id}",
            entry.round_id or "-",
        )
        for number, leg in enumerate(entry.legs):
            named = first if not number else ("",) * len(first)
            table.rows.append(
                (*named, ledger_kind(leg.kind), signed(leg.amount), amount(leg.balance))
            )
    return list(table.lines())


def statement_lines(told: ledgers.GetStatementResponse, whose: str) -> list[str]:
    """For people."""
    until = "" if told.over else ", which is not over"
    lines = [
        f"{whose}, from {when(told.from_time)} to {when(told.to_time)}{until}",
        f"opening: {_held(told.opening)}",
        *(journal_lines(told.entries) if told.entries else ["nothing moved"]),
        f"closing: {_held(told.closing)}",
    ]
    return lines + [
        f"{entry_kind(one.kind)}: {one.entries} entries, {signed(one.amount)}" for one in told.sums
    ]


def trial_rows(told: ledgers.GetTrialBalanceResponse) -> list[tuple[object, ...]]:
    """For CSV."""
    rows: list[tuple[object, ...]] = [TRIAL_COLUMNS]
    rows += [
        (
            line.balance.currency_code,
            line.partner_id,
            ledger_kind(line.kind),
            line.accounts,
            line.balance.minor_units,
            units(line.balance),
        )
        for line in told.lines
    ]
    return rows


def trial_lines(told: ledgers.GetTrialBalanceResponse) -> list[str]:
    """For people: the accounts summed up, and the sum of each currency."""
    table = Columns([("partner", "kind", "accounts", "balance")])
    for line in told.lines:
        table.rows.append(
            (line.partner_id, ledger_kind(line.kind), str(line.accounts), amount(line.balance))
        )
    return [*table.lines(), *(f"sum {one.currency_code}: {units(one)}" for one in told.sums)]


def totals_rows(told: ledgers.GetReconciliationResponse, partner: str) -> list[tuple[object, ...]]:
    """A period's totals, for CSV."""
    currency = told.commission.currency_code
    period = (partner, currency, when(told.from_time), when(told.to_time))
    rows: list[tuple[object, ...]] = [
        ("partner", "currency", "from", "to", "what", "entries", "bets", "amount_minor", "amount")
    ]
    for what, moved in (
        ("stakes", told.stakes),
        ("returned", told.returned),
        ("voided", told.voided),
        ("payouts", told.payouts),
        ("deposits", told.deposits),
        ("withdrawals", told.withdrawals),
    ):
        cells = (moved.entries, moved.bets, moved.amount.minor_units, units(moved.amount))
        rows.append((*period, what, *cells))
    for what, one in (
        ("commission", told.commission),
        ("corrected", told.corrected),
        ("open_reservations", told.open_reservations),
        ("due", told.due),
    ):
        count = told.corrections if what == "corrected" else ""
        rows.append((*period, what, count, "", one.minor_units, units(one)))
    return rows


def totals_lines(told: ledgers.GetReconciliationResponse, partner: str) -> list[str]:
    """A period's totals, for people."""
    _, *rows = totals_rows(told, partner)
    table = Columns([("", "entries", "bets", "amount")])
    for _, currency, _, _, what, entries, bets, _, decimals in rows:
        table.rows.append((str(what), str(entries), str(bets), f"{decimals} {currency}"))
    until = "" if told.over else ", which is not over"
    head = f"{partner}, from {when(told.from_time)} to {when(told.to_time)}{until}"
    transactions = f"{told.digest.count} transactions, digest {told.digest.digest.hex()}"
    return [head, *table.lines(), transactions]


def entry_kind(kind: int) -> str:
    """A kind of entries in words."""
    return ledgers.EntryKind.Name(ledgers.EntryKind.ValueType(kind))[11:].lower()


def ledger_kind(kind: int) -> str:
    """A kind of the ledger's accounts in words."""
    return ledgers.LedgerKind.Name(ledgers.LedgerKind.ValueType(kind))[12:].lower()


def where(position: PositionMessage) -> str:
    """A position."""
    return place(Position(position.segment, position.sequence, position.index))


def when(time: Timestamp) -> str:
    """A log time."""
    return written(time.ToMicroseconds())


def units(one: Money) -> str:
    """An amount as a decimal number."""
    return decimal(one.minor_units, one.currency_code)


def amount(one: Money) -> str:
    """An amount with its currency."""
    return f"{units(one)} {one.currency_code}"


def signed(one: Money) -> str:
    """An amount with its sign and currency."""
    return f"{'+' if one.minor_units > 0 else ''}{amount(one)}"


def _held(held: ledgers.AccountBalance) -> str:
    owed = f", owes {amount(held.receivable)}" if held.receivable.minor_units else ""
    return f"available {amount(held.available)}, reserved {amount(held.reserved)}{owed}"
