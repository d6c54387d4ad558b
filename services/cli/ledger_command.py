"""The verbs `journal`, `statement`, `trial-balance` and `reconcile`: the books of a log."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.certify_command import KEYS
from services.cli.commands import DATA, EXIT_CODES, RIGHT, WRONG, AsJson, Data, dump, opened, run
from services.games.currencies import EXPONENTS

if TYPE_CHECKING:
    from sabot.wallet.v1 import ledger_service_pb2 as ledgers
    from services.cli.ledger_log import LogBooks
    from services.cli.reconcile import Comparison

PAGE = 500
"""Entries that are read at once."""


class Form(Enum):
    """How it is printed."""

    TEXT = 1
    CSV = 2
    JSON = 3


Partner = Annotated[str, typer.Option("--partner", metavar="ID", help="Whose accounts.")]
From = Annotated[
    str, typer.Option("--from", metavar="DATE", help="The first day, such as 2026-03-29.")
]
To = Annotated[str, typer.Option("--to", metavar="DATE", help="The last day; else the first.")]
Zone = Annotated[
    str,
    typer.Option("--zone", metavar="NAME", help="By whose clock: Europe/Paris, Asia/Tokyo."),
]
AsCsv = Annotated[bool, typer.Option("--csv", help="For spreadsheets and programs.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command."""
    app.command(epilog=EXIT_CODES)(journal)
    app.command(epilog=EXIT_CODES)(statement)
    app.command("trial-balance", epilog=EXIT_CODES)(trial_balance)
    app.command(epilog=EXIT_CODES)(reconcile)


def journal(
    partner: Partner,
    data: Data = DATA,
    account: Annotated[str, typer.Option(metavar="ID", help="Of this account only.")] = "",
    round_id: Annotated[
        str, typer.Option("--round", metavar="ID", help="Of this round only.")
    ] = "",
    first: From = "",
    last: To = "",
    zone: Zone = "UTC",
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Journal entries of a partner with their legs, in the order of the log."""
    if bool(last) and not first:
        raise typer.BadParameter("give the first day too", param_hint="--from")
    days = _chosen(first, last, zone)
    run(_journal(data, partner, account, round_id, days, _form(as_csv, as_json)))


def statement(
    partner: Partner,
    account: Annotated[str, typer.Option(metavar="ID", help="The account.")],
    first: From,
    data: Data = DATA,
    last: To = "",
    zone: Zone = "UTC",
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """What an account had at the beginning of some days, what moved, and what it had at the end."""
    days = _chosen(first, last, zone)
    run(_statement(data, partner, account, days, _form(as_csv, as_json)))


def trial_balance(
    data: Data = DATA,
    at: Annotated[
        str, typer.Option(metavar="POSITION", help="1/123/0, or 123 for all of an entry.")
    ] = "",
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Every account of the ledger summed up by kind, partner and currency: each comes to 0.

    Every entry up to the end of the log is looked at. The first that does not sum to 0 is named."""
    raise typer.Exit(run(_trial_balance(data, at, _form(as_csv, as_json))))


def reconcile(
    partner: Partner,
    currency: Annotated[str, typer.Option(metavar="CODE", help="The currency, such as EUR.")],
    first: From,
    data: Data = DATA,
    last: To = "",
    zone: Zone = "UTC",
    against: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT|FILE",
            help="The partner's books: its wallet, or a CSV file. Else totals are printed.",
        ),
    ] = "",
    transactions: Annotated[
        bool, typer.Option("--transactions", help="Print the transactions, not totals.")
    ] = False,
    cell: Annotated[str, typer.Option(metavar="NAME", help="The cell that signs.")] = "main",
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="The keys that sign calls to partners' wallets; else the data folder's.",
        ),
    ] = None,
    root_certificates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="PEM: who signed the wallet's certificate."
        ),
    ] = None,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """What a partner's bets came to in some days; or where its books and these differ.

    Both sides are asked for digests, and only where those differ for what is below them."""
    days, form = _chosen(first, last, zone), _form(as_csv, as_json)
    if currency not in EXPONENTS:
        raise typer.BadParameter(
            f"{currency!r} is no currency such as EUR", param_hint="--currency"
        )
    if not against:
        run(_totals(data, partner, currency, days, form, transactions=transactions))
        return
    wallet = (cell, keys or data / KEYS.name, root_certificates)
    file = Path(against) if Path(against).is_file() else None
    raise typer.Exit(run(_against(data, partner, currency, days, file or against, wallet, form)))


# ---- how they do it ----------------------------------------------------------------------------

Days = tuple[str, str, str]


def _form(as_csv: bool, as_json: bool) -> Form:
    if as_csv and as_json:
        raise typer.BadParameter("either --csv or --json")
    return Form.CSV if as_csv else Form.JSON if as_json else Form.TEXT


@asynccontextmanager
async def _books(data: Path) -> AsyncIterator[LogBooks]:
    from services.cli.ledger_log import LedgerRefused, books_of
    from services.cli.progress import progress
    from services.kernel.errors import Refused

    async with opened(data) as (log, accepted):
        with progress("folding") as shown:
            async with books_of(log, accepted, shown) as found:
                shown.close()
                try:
                    yield found
                except Refused as error:
                    told = "; ".join(f"{one.field} {one.description}" for one in error.fields)
                    raise LedgerRefused(told or error.text("en")) from error


def _days(days: Days) -> ledgers.LocalDays:
    from sabot.wallet.v1 import ledger_service_pb2 as ledgers

    first, last, zone = days
    return ledgers.LocalDays(first_date=first, last_date=last, time_zone=zone)


def _print_csv(text: str) -> None:
    sys.stdout.reconfigure(newline="")  # type: ignore[union-attr]  # a TextIOWrapper
    sys.stdout.write(text)


async def _journal(
    data: Path, partner: str, account: str, round_id: str, days: Days, form: Form
) -> None:
    from sabot.wallet.v1 import ledger_service_pb2 as ledgers
    from services.cli.ledger_shown import as_csv, journal_lines, journal_rows
    from services.cli.readable import readable
    from services.wallet.books import entry_message

    request = ledgers.ListJournalRequest(partner_id=partner, account_id=account, round_id=round_id)
    if days[0]:
        request.days.CopyFrom(_days(days))
    async with _books(data) as log:
        entries, after, more = [], -1, True
        while more:
            rows, more = await log.books.journal(partner, request, log.at, after, PAGE)
            after = rows[-1].key if rows else after
            entries += [entry_message(row) for row in rows]
    if form is Form.JSON:
        dump({"entries": readable(entries)})
    elif form is Form.CSV:
        _print_csv(as_csv(journal_rows(entries)))
    else:
        print("\n".join(journal_lines(entries)))


async def _statement(data: Path, partner: str, account: str, days: Days, form: Form) -> None:
    from sabot.wallet.v1 import ledger_service_pb2 as ledgers
    from services.cli.ledger_shown import as_csv, journal_rows, statement_lines
    from services.cli.readable import readable
    from services.wallet.books import entry_message

    request = ledgers.GetStatementRequest(partner_id=partner, account_id=account, days=_days(days))
    async with _books(data) as log:
        told, rows, more = await log.books.statement(partner, request, log.at, -1, PAGE)
        while more:
            _, page, more = await log.books.statement(partner, request, log.at, rows[-1].key, PAGE)
            rows += page
        told.entries.extend(entry_message(row) for row in rows)
    if form is Form.JSON:
        dump(readable(told))
    elif form is Form.CSV:
        _print_csv(as_csv(journal_rows(told.entries)))
    else:
        print("\n".join(statement_lines(told, f"{partner}/{account}")))


def _chosen(first: str, last: str, zone: str) -> tuple[str, str, str]:
    """First and last day, and by whose clock."""
    for text, option in ((first, "--from"), (last, "--to")):
        try:
            date.fromisoformat(text or "2026-01-01")
        except ValueError:
            raise typer.BadParameter(
                f"{text!r} is no date such as 2026-03-29", param_hint=option
            ) from None
    return first, last or first, zone


async def _trial_balance(data: Path, at: str, form: Form) -> int:
    from services.cli.inspect_state import PositionUnknown
    from services.cli.ledger_shown import as_csv, trial_lines, trial_rows
    from services.cli.moments import parse_position, place
    from services.cli.readable import readable
    from services.wallet.books import as_of

    try:
        wanted = parse_position(at) if at else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--at") from None
    async with _books(data) as log:
        if wanted is not None and wanted.sequence > log.at.position.sequence:
            raise PositionUnknown(f"the log ends at {place(log.at.position)}, before {at}")
        stands = log.at if wanted is None else as_of(wanted, log.at.over_us)
        told = await log.books.trial_balance(stands)
        first = log.check.first
    bad = None
    if first is not None:
        bad = {
            "position": str(first.position),
            "event": first.event_type,
            "legs": first.told,
            "entries": log.check.found,
        }
    if form is Form.JSON:
        dump({**readable(told), "entries_checked": log.check.entries, "first_unbalanced": bad})
    elif form is Form.CSV:
        _print_csv(as_csv(trial_rows(told)))
    else:
        print("\n".join(trial_lines(told)))
        print(f"{log.check.entries} entries looked at, {log.check.found} do not sum to 0")
    if bad is not None:
        print(
            f"the first that does not sum to 0: {bad['position']} {bad['event']}: "
            f"{', '.join(first.told if first else ())}",
            file=sys.stderr,
        )
    right = bad is None and not any(one.minor_units for one in told.sums)
    return RIGHT if right else WRONG


async def _totals(
    data: Path, partner: str, currency: str, days: Days, form: Form, *, transactions: bool
) -> None:
    from sabot.wallet.v1 import ledger_service_pb2 as ledgers
    from services.cli.ledger_shown import as_csv, totals_lines, totals_rows
    from services.cli.readable import readable
    from services.cli.reconcile import csv_rows
    from services.wallet.books import days_of

    request = ledgers.GetReconciliationRequest(
        partner_id=partner, currency_code=currency, days=_days(days)
    )
    async with _books(data) as log:
        told = await log.books.reconciliation(partner, request, log.at)
        _, tree = await log.books.tree(partner, currency, days_of(request.days), log.at)
    listed = sorted(tree.transactions(), key=lambda one: (one.time_us, one.transaction_id))
    if form is Form.JSON:
        dump({**readable(told), **({"transactions": readable(listed)} if transactions else {})})
    elif form is Form.CSV or transactions:
        rows = csv_rows(listed, currency) if transactions else totals_rows(told, partner)
        _print_csv(as_csv(rows))
    else:
        print("\n".join(totals_lines(told, partner)))


async def _against(
    data: Path,
    partner: str,
    currency: str,
    days: Days,
    against: str | Path,
    wallet: tuple[str, Path, Path | None],
    form: Form,
) -> int:
    from services.cli.certify_wallet import parse_address
    from services.cli.partner_books import partner_side
    from services.cli.reconcile import TreeSide, compare, read_csv
    from services.wallet.books import days_of

    async with _books(data) as log:
        period = days_of(_days(days))
        _, tree = await log.books.tree(partner, currency, period, log.at)
        over = period.to_us <= log.at.over_us
    ours = TreeSide(tree)
    if isinstance(against, Path):
        found = await compare(ours, TreeSide(read_csv(against, currency, period)))
    else:
        try:
            address = parse_address(against)
        except ValueError:
            raise typer.BadParameter("no file and no HOST:PORT", param_hint="--against") from None
        async with partner_side(address, partner, currency, period, *wallet) as theirs:
            found = await compare(ours, theirs)
    _print_comparison(found, currency, form, over=over)
    return RIGHT if found.agree else WRONG


def _print_comparison(found: Comparison, currency: str, form: Form, *, over: bool) -> None:
    from services.cli.ledger_shown import as_csv
    from services.cli.readable import readable
    from services.cli.reconcile import differing_lines, differing_rows

    if form is Form.JSON:
        dump({**readable(found), "agree": found.agree, "over": over})
    elif form is Form.CSV:
        _print_csv(as_csv(differing_rows(found, currency)))
    else:
        print("\n".join(differing_lines(found, currency, over=over)))
