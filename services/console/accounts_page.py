"""Accounts: the books in one view, and an account with its statement and journal."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from sabot.wallet.v1.ledger_service_pb2_grpc import LedgerServiceStub
from services.console.calls import NotDone
from services.console.web import Refusal, Visit, page
from services.games.currencies import EXPONENTS

DAYS = 1
"""A statement's days where nobody says which: today and the day before."""
ENTRIES = 100
ZONE = "Etc/UTC"
"""Days of pages are those of log times."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_PARTNER = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_ACCOUNT = re.compile(r"[!-~]{1,64}")


async def index(visit: Visit) -> Response:
    """All books together, and the accounts that the log opened."""
    partner, account = visit.query("partner"), visit.query("account")
    if partner and account:
        if not _PARTNER.fullmatch(partner) or not _ACCOUNT.fullmatch(account):
            raise Refusal(404, "refused.account", account=account[:64], partner=partner[:32])
        return RedirectResponse(f"/accounts/{partner}/{account}", 303)
    calls = visit.calls
    stub = visit.desk.fleet.stub("wallet", LedgerServiceStub)
    told: ledgers.GetTrialBalanceResponse = await calls.ask(
        stub.GetTrialBalance, ledgers.GetTrialBalanceRequest()
    )
    accounts = visit.desk.archive.history.accounts
    return visit.page(
        "accounts.html",
        lines=list(told.lines),
        sums=list(told.sums),
        position=f"{told.position.segment}/{told.position.sequence}",
        known=sorted(accounts),
        partner=partner,
    )


async def show(visit: Visit) -> Response:
    """One account: opening and closing balance, what moved, and the chart of what was available."""
    partner, account = visit.path("partner"), visit.path("account")
    first, last = days_of(visit, DAYS)
    request = ledgers.GetStatementRequest(
        partner_id=partner,
        account_id=account,
        days=ledgers.LocalDays(
            first_date=first.isoformat(), last_date=last.isoformat(), time_zone=ZONE
        ),
        page_size=ENTRIES,
        page_token=visit.query("page"),
    )
    stub = visit.desk.fleet.stub("wallet", LedgerServiceStub)
    try:
        told: ledgers.GetStatementResponse = await visit.calls.ask(stub.GetStatement, request)
    except NotDone as error:
        if error.reason in {"ACCOUNT_NOT_FOUND", "INVALID_REQUEST"}:
            raise Refusal(
                404, "refused.account", account=account[:64], partner=partner[:32]
            ) from None
        raise
    return visit.page(
        "account.html",
        partner=partner,
        account=account,
        first=first.isoformat(),
        last=last.isoformat(),
        told=told,
        entries=[_entry(one) for one in told.entries],
        chart=_chart(told),
        position=f"{told.position.segment}/{told.position.sequence}",
    )


def days_of(visit: Visit, before: int) -> tuple[date, date]:
    """The days asked for; where nobody says, today and so many before. Raises Refusal."""
    today = datetime.now(UTC).date()
    told = [visit.query("from"), visit.query("to")]
    if any(text and not _DATE.fullmatch(text) for text in told):
        raise Refusal(400, "refused.days")
    try:
        last = date.fromisoformat(told[1]) if told[1] else today
        first = date.fromisoformat(told[0]) if told[0] else last - timedelta(days=before)
    except (ValueError, OverflowError):
        raise Refusal(400, "refused.days") from None
    if first > last:
        raise Refusal(400, "refused.days")
    return first, last


def _entry(one: ledgers.JournalEntry) -> dict[str, Any]:
    at = one.position
    own = {ledgers.LEDGER_KIND_CASH, ledgers.LEDGER_KIND_RESERVED, ledgers.LEDGER_KIND_RECEIVABLE}
    return {
        "position": f"{at.segment}/{at.sequence}/{at.index}",
        "time_us": one.time.ToMicroseconds(),
        "kind": ledgers.EntryKind.Name(one.kind),
        "table_id": one.table_id,
        "round_id": one.round_id,
        "bet_ids": list(one.bet_ids),
        "legs": [
            (
                ledgers.LedgerKind.Name(leg.kind),
                leg.amount.minor_units,
                leg.balance.minor_units,
                leg.kind in own,
            )
            for leg in one.legs
        ],
    }


def _chart(told: ledgers.GetStatementResponse) -> list[list[float]]:
    """What was available after each entry: seconds since 1970, and units of the currency."""
    times, values = [], []
    unit = 10 ** EXPONENTS.get(told.currency_code, 2)
    for one in sorted(told.entries, key=lambda one: one.time.ToMicroseconds()):
        for leg in one.legs:
            if leg.kind == ledgers.LEDGER_KIND_CASH:
                times.append(one.time.ToMicroseconds() / 1_000_000)
                values.append(leg.balance.minor_units / unit)
    return [times, values]


async def books_balance(visit: Visit) -> bool | None:
    """Whether every currency's accounts sum to zero; None: nobody tells now."""
    stub = visit.desk.fleet.stub("wallet", LedgerServiceStub)
    try:
        async with asyncio.timeout(3):
            told = await visit.calls.ask(stub.GetTrialBalance, ledgers.GetTrialBalanceRequest())
    except (NotDone, TimeoutError):
        return None
    return not any(one.minor_units for one in told.sums)


ROUTES = [
    Route("/accounts", page(index)),
    Route("/accounts/{partner}/{account}", page(show)),
]
