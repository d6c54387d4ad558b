"""The ledger's calls, on a real projection: statements by local days, pages, who sees what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.log.v1.entry_pb2 import Position as PositionMessage
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from services.games.currencies import EXPONENTS, decimal
from services.kernel.call import Call, position_message
from services.kernel.errors import (
    INVALID_REQUEST,
    PAGE_TOKEN_INVALID,
    PERMISSION_DENIED,
    POSITION_NOT_REACHED,
    Refused,
)
from services.kernel.event import Position
from services.kernel.tokens import Caller, Role
from services.refusals.wallet import ACCOUNT_NOT_FOUND, PERIOD_TOO_LARGE
from services.wallet import books as books_module
from services.wallet.books import Books
from services.wallet.domain.digests import DigestTree
from services.wallet.domain.state import Account, Standing, WalletState
from services.wallet.ledger_servicer import LedgerServicer
from services.wallet.periods import BadPeriod, local_days, microseconds
from services.wallet.servicer import WalletServicer
from tests.unit.fake_edge import FakeEdge, FakeQueries
from tests.unit.ledger_facts import MoneyLog, projected, some_money
from tests.unit.projecting import ON_BOTH

NORTH = Call(Caller(partner="north"), method="M")
SOUTH = Call(Caller(partner="south"), method="M")
AUDITOR = Call(Caller(operator="ada", roles=frozenset({Role.AUDITOR})), method="M")
FOREVER = ledgers.LocalDays(first_date="2023-11-14", last_date="2023-11-15", time_zone="UTC")
"""Around the time of hand-made logs."""

# ---- days --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("day", "zone", "hours", "begins"),
    [
        ("2026-03-29", "Europe/Paris", 23, "2026-03-28T23:00:00+00:00"),
        ("2026-10-25", "Europe/Paris", 25, "2026-10-24T22:00:00+00:00"),
        ("2026-10-26", "Europe/Paris", 24, "2026-10-25T23:00:00+00:00"),
        ("2026-03-29", "Asia/Tokyo", 24, "2026-03-28T15:00:00+00:00"),
        ("2026-10-25", "Asia/Tokyo", 24, "2026-10-24T15:00:00+00:00"),
        ("2026-10-25", "UTC", 24, "2026-10-25T00:00:00+00:00"),
        # Clocks that go on at midnight: there is no 00:00, the day begins at 01:00.
        ("2026-09-06", "America/Santiago", 23, "2026-09-06T04:00:00+00:00"),
        # And back at midnight: the day before has 25 hours.
        ("2026-04-04", "America/Santiago", 25, "2026-04-04T03:00:00+00:00"),
        # Midnight comes twice, and both belong to the day.
        ("2026-11-01", "America/Havana", 25, "2026-11-01T04:00:00+00:00"),
    ],
)
def test_a_day_is_as_long_as_its_places_clock_says(
    day: str, zone: str, hours: int, begins: str
) -> None:
    period = local_days(day, day, zone)
    assert period.from_us == microseconds(datetime.fromisoformat(begins))
    assert period.to_us - period.from_us == hours * 3_600_000_000


def test_days_follow_one_another_without_gap_or_overlap() -> None:
    for zone in ("Europe/Paris", "Asia/Tokyo", "America/Santiago", "Australia/Lord_Howe", "UTC"):
        days = [(date(2026, 1, 1) + timedelta(days=one)).isoformat() for one in range(365)]
        periods = [local_days(day, day, zone) for day in days]
        for before, after in pairwise(periods):
            assert before.to_us == after.from_us
        year = local_days("2026-01-01", "2026-12-31", zone)
        assert (year.from_us, year.to_us) == (periods[0].from_us, periods[-1].to_us)


@pytest.mark.parametrize(
    ("first", "last", "zone", "field"),
    [
        ("2026-02-30", "2026-03-01", "UTC", "first_date"),
        ("2026-02-01", "2026-13-01", "UTC", "last_date"),
        ("2026-02-02", "2026-02-01", "UTC", "last_date"),
        ("2026-01-01", "2027-01-03", "UTC", "last_date"),
        ("0001-01-01", "0001-01-01", "UTC", "first_date"),
        ("2026-01-01", "2026-01-01", "Europe/Nowhere", "time_zone"),
        ("2026-01-01", "2026-01-01", "Europe", "time_zone"),
        ("2026-01-01", "2026-01-01", "../../etc/passwd", "time_zone"),
        ("2026-01-01", "2026-01-01", "/etc/localtime", "time_zone"),
    ],
)
def test_days_that_are_none_are_told(first: str, last: str, zone: str, field: str) -> None:
    with pytest.raises(BadPeriod) as caught:
        local_days(first, last, zone)
    assert caught.value.field == field


# ---- calls -------------------------------------------------------------------------------------


class Ledger:
    """The servicers over a projected log."""

    def __init__(self, made: MoneyLog, books: Books) -> None:
        self.made = made
        last = made.log.events[-1]
        state = WalletState()
        for partner, account in made.currency:
            state.accounts[partner, account] = Account("EUR", Standing.OPEN)
        self.edge = FakeEdge(states={"wallet": state})
        self.edge.position, self.edge.log_time_us = last.position, last.time_us
        self.calls = LedgerServicer(self.edge, books)
        self.wallet = WalletServicer(self.edge, FakeQueries(), books)


async def ledger_of(made: MoneyLog, folder: Path) -> AsyncIterator[Ledger]:
    projector, queries = await projected(made, folder)
    yield Ledger(made, Books(queries))
    await projector.close()


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    async for one in ledger_of(some_money(), tmp_path):
        yield one


def switching(zone: str) -> MoneyLog:
    """A deposit of 1 at every hour from local midnight on, on three days around both changes of
    the clocks of Paris."""
    made = MoneyLog()
    made.log._time_us = microseconds(datetime(2026, 1, 1, tzinfo=UTC))
    made.open("north", "a", "EUR")
    place = ZoneInfo(zone)
    for day in (datetime(2026, 3, 28, tzinfo=place), datetime(2026, 10, 24, tzinfo=place)):
        begin = microseconds(day)
        for hour in range(72):
            made.wait(begin + hour * 3_600_000_000)
            made.move("north", "a", 1)
    made.wait(microseconds(datetime(2026, 12, 1, tzinfo=UTC)))
    made.move("north", "a", 1)
    made.log.flush()
    return made


@pytest.mark.parametrize("zone", ["Europe/Paris", "Asia/Tokyo"])
async def test_statements_of_days_of_23_and_25_hours(tmp_path: Path, zone: str) -> None:
    async for ledger in ledger_of(switching(zone), tmp_path):
        paris = zone == "Europe/Paris"
        before = 0
        for day, hours in (
            *(("2026-03-28", 24), ("2026-03-29", 23 if paris else 24)),
            *(("2026-03-30", 24), ("2026-03-31", 1 if paris else 0)),
            *(("2026-10-24", 24), ("2026-10-25", 25 if paris else 24)),
            *(("2026-10-26", 23 if paris else 24), ("2026-10-27", 0)),
        ):
            days = ledgers.LocalDays(first_date=day, last_date=day, time_zone=zone)
            told = await ledger.calls.get_statement(
                ledgers.GetStatementRequest(account_id="a", days=days), NORTH
            )
            assert len(told.entries) == hours, day
            assert told.opening.available.minor_units == before
            before += hours
            assert told.closing.available.minor_units == before
            assert told.over


def shown(amount: Any) -> tuple[str, int]:
    return amount.currency_code, amount.minor_units


@ON_BOTH
async def test_a_statement_adds_up(ledger: Ledger) -> None:
    request = ledgers.GetStatementRequest(account_id="a", days=FOREVER)
    told = await ledger.calls.get_statement(request, NORTH)
    assert told.currency_code == "EUR"
    assert shown(told.opening.available) == ("EUR", 0)
    assert shown(told.closing.available) == ("EUR", 9_325)
    assert shown(told.closing.reserved) == ("EUR", 50)
    assert not told.over
    assert {ledgers.EntryKind.Name(one.kind): shown(one.amount) for one in told.sums} == {
        "ENTRY_KIND_DEPOSIT": ("EUR", 10_000),
        "ENTRY_KIND_WITHDRAWAL": ("EUR", -1_000),
        "ENTRY_KIND_STAKE": ("EUR", 0),
        "ENTRY_KIND_STAKE_VOIDED": ("EUR", 0),
        "ENTRY_KIND_PAYOUT": ("EUR", 375),
    }
    assert sum(one.entries for one in told.sums) == len(told.entries) == 7
    cash = [
        leg.balance.minor_units
        for entry in told.entries
        for leg in entry.legs
        if leg.kind == ledgers.LEDGER_KIND_CASH
    ]
    assert cash == [10_000, 9_400, 10_375, 10_175, 10_375, 9_375, 9_325]
    for entry in told.entries:
        assert sum(leg.amount.minor_units for leg in entry.legs) == 0


async def test_pages_hold_at_the_position_of_the_first(ledger: Ledger) -> None:
    whole = await ledger.calls.get_statement(
        ledgers.GetStatementRequest(account_id="a", days=FOREVER), NORTH
    )
    request = ledgers.GetStatementRequest(account_id="a", days=FOREVER, page_size=3)
    entries: list[ledgers.JournalEntry] = []
    pages = 0
    while True:
        page = await ledger.calls.get_statement(request, NORTH)
        assert (page.opening, page.closing) == (whole.opening, whole.closing)
        assert list(page.sums) == list(whole.sums)
        assert page.position == whole.position
        entries += page.entries
        pages += 1
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert pages == 3
    assert entries == list(whole.entries)
    other = ledgers.GetStatementRequest(account_id="b", days=FOREVER, page_token=request.page_token)
    for bad in (other, ledgers.ListJournalRequest(page_token=request.page_token)):
        with pytest.raises(Refused) as caught:
            await getattr(
                ledger.calls,
                "get_statement" if bad is other else "list_journal",
            )(bad, NORTH)
        assert caught.value.reason is PAGE_TOKEN_INVALID


@ON_BOTH
async def test_a_journal_is_listed_whole_and_in_parts(ledger: Ledger) -> None:
    whole = await ledger.calls.list_journal(ledgers.ListJournalRequest(), NORTH)
    assert len(whole.entries) == 8
    request = ledgers.ListJournalRequest(page_size=5)
    first = await ledger.calls.list_journal(request, NORTH)
    request.page_token = first.next_page_token
    second = await ledger.calls.list_journal(request, NORTH)
    assert [*first.entries, *second.entries] == list(whole.entries)
    assert not second.next_page_token
    of_b = await ledger.calls.list_journal(ledgers.ListJournalRequest(account_id="b"), NORTH)
    assert [shown(leg.amount) for leg in of_b.entries[0].legs] == [
        *(("JPY", -10_000), ("JPY", 10_000)),
    ]
    of_round = ledgers.ListJournalRequest(round_id="t1-2", partner_id="north")
    assert [
        ledgers.EntryKind.Name(one.kind)
        for one in (await ledger.calls.list_journal(of_round, AUDITOR)).entries
    ] == ["ENTRY_KIND_STAKE", "ENTRY_KIND_STAKE_VOIDED"]
    none = ledgers.LocalDays(first_date="2023-11-13", last_date="2023-11-13", time_zone="UTC")
    empty = await ledger.calls.list_journal(ledgers.ListJournalRequest(days=none), NORTH)
    assert list(empty.entries) == []


async def test_partners_see_what_is_theirs_and_operators_name_whom_they_mean(
    ledger: Ledger,
) -> None:
    mine = await ledger.calls.list_journal(ledgers.ListJournalRequest(), SOUTH)
    assert {entry.partner_id for entry in mine.entries} == {"south"}
    days = FOREVER
    asked: list[tuple[Any, Any]] = [
        (ledger.calls.list_journal, ledgers.ListJournalRequest()),
        (ledger.calls.get_statement, ledgers.GetStatementRequest(account_id="a", days=days)),
        (
            ledger.calls.get_reconciliation,
            ledgers.GetReconciliationRequest(currency_code="EUR", days=days),
        ),
        (ledger.calls.get_digest, ledgers.GetDigestRequest(currency_code="EUR")),
    ]
    for method, request in asked:
        with pytest.raises(Refused) as caught:
            await method(request, AUDITOR)
        assert caught.value.reason is INVALID_REQUEST
        assert caught.value.fields[0].field == "partner_id"
        request.partner_id = "south"
        with pytest.raises(Refused) as caught:
            await method(request, NORTH)
        assert caught.value.reason is PERMISSION_DENIED
        await method(request, AUDITOR)
    with pytest.raises(Refused) as caught:
        await ledger.calls.get_statement(
            ledgers.GetStatementRequest(account_id="b", days=days), SOUTH
        )
    assert caught.value.reason is ACCOUNT_NOT_FOUND


async def test_a_position_that_is_not_read_yet_is_told(ledger: Ledger) -> None:
    ahead = PositionMessage(segment=1, sequence=10_000)
    call = Call(Caller(partner="north"), method="M", deadline=0.0)
    asked: list[tuple[Any, Any]] = [
        (ledger.calls.list_journal, ledgers.ListJournalRequest(at_least=ahead)),
        (ledger.wallet.get_balance, wallets.GetBalanceRequest(account_id="a", at=ahead)),
    ]
    for method, request in asked:
        with pytest.raises(Refused) as caught:
            await method(request, call)
        assert caught.value.reason is POSITION_NOT_REACHED


# ---- balances ----------------------------------------------------------------------------------


async def balance(ledger: Ledger, **at: Any) -> tuple[int, int]:
    request = wallets.GetBalanceRequest(account_id="a", **at)
    told = await ledger.wallet.get_balance(request, NORTH)
    return told.available.minor_units, told.reserved.minor_units


@ON_BOTH
async def test_a_balance_at_any_position_and_time(ledger: Ledger) -> None:
    for position, time_us, *_ in ledger.made.lines:
        for place in (position, position._replace(index=0xFFFFFFFF)):
            behind = Position(place.segment, place.sequence, place.index + 1)
            expected = ledger.made.had("north", "a", behind)
            assert await balance(ledger, at=position_message(place)) == expected
        when = Timestamp()
        when.FromMicroseconds(time_us)
        assert await balance(ledger, at_time=when) == ledger.made.had(
            "north", "a", Position(position.segment, position.sequence, position.index + 1)
        )
        when.FromMicroseconds(time_us - 1)
        assert await balance(ledger, at_time=when) == ledger.made.had("north", "a", position)
    assert await balance(ledger, at=PositionMessage(segment=1, sequence=1)) == (0, 0)


async def test_a_balance_of_the_future_is_refused(ledger: Ledger) -> None:
    when = Timestamp()
    when.FromMicroseconds(ledger.edge.log_time_us + 1)
    at = PositionMessage(segment=1, sequence=1)
    for wrong in ({"at_time": when}, {"at_time": Timestamp(seconds=1), "at": at}):
        with pytest.raises(Refused) as caught:
            await balance(ledger, **wrong)
        assert caught.value.reason is INVALID_REQUEST
        assert caught.value.fields[0].field == "at_time"


# ---- all of it ---------------------------------------------------------------------------------


@ON_BOTH
async def test_a_trial_balance_at_the_end_and_before(ledger: Ledger) -> None:
    told = await ledger.calls.get_trial_balance(ledgers.GetTrialBalanceRequest(), AUDITOR)
    assert [shown(one) for one in told.sums] == [("EUR", 0), ("JPY", 0)]
    lines = {
        (ledgers.LedgerKind.Name(one.kind)[12:], one.partner_id): shown(one.balance)
        for one in told.lines
        if one.balance.currency_code == "EUR"
    }
    assert lines == {
        ("CASH", "north"): ("EUR", 9_325),
        ("RESERVED", "north"): ("EUR", 50),
        ("HOUSE", "north"): ("EUR", -400),
        ("COMMISSION", "north"): ("EUR", 25),
        ("EXTERNAL", "north"): ("EUR", -9_000),
        ("CASH", "south"): ("EUR", 10_000),
        ("RESERVED", "south"): ("EUR", 0),
        ("HOUSE", "south"): ("EUR", 0),
        ("EXTERNAL", "south"): ("EUR", -10_000),
    }
    first = ledger.made.lines[0][0]
    at = position_message(first)
    early = await ledger.calls.get_trial_balance(ledgers.GetTrialBalanceRequest(at=at), AUDITOR)
    assert [(one.kind, shown(one.balance)) for one in early.lines] == [
        (ledgers.LEDGER_KIND_CASH, ("EUR", 10_000)),
        (ledgers.LEDGER_KIND_EXTERNAL, ("EUR", -10_000)),
    ]
    assert early.position == at


@ON_BOTH
async def test_a_reconciliation_counts_what_moved(ledger: Ledger) -> None:
    request = ledgers.GetReconciliationRequest(currency_code="EUR", days=FOREVER)
    told = await ledger.calls.get_reconciliation(request, NORTH)
    found = {
        name: (one.entries, one.bets, shown(one.amount)[1])
        for name in ("stakes", "returned", "voided", "payouts", "deposits", "withdrawals")
        if (one := getattr(told, name))
    }
    assert found == {
        "stakes": (3, 4, 850),
        "returned": (0, 0, 0),
        "voided": (1, 1, 200),
        "payouts": (1, 2, 975),
        "deposits": (1, 0, 10_000),
        "withdrawals": (1, 0, 1_000),
    }
    assert shown(told.commission) == ("EUR", 25)
    assert shown(told.open_reservations) == ("EUR", 50)
    assert (told.corrections, shown(told.corrected)) == (0, ("EUR", 0))
    assert told.digest.count == 7
    nobody = ledgers.GetReconciliationRequest(currency_code="KWD", days=FOREVER)
    empty = await ledger.calls.get_reconciliation(nobody, NORTH)
    assert (empty.digest.count, empty.digest.digest) == (0, bytes(32))
    early = ledgers.GetReconciliationRequest(currency_code="EUR", days=FOREVER)
    early.days.first_date = early.days.last_date = "2023-11-13"
    before = await ledger.calls.get_reconciliation(early, NORTH)
    assert shown(before.open_reservations) == ("EUR", 0)
    assert before.over


@ON_BOTH
async def test_a_digest_lists_what_is_below_it(ledger: Ledger) -> None:
    totals = await ledger.calls.get_reconciliation(
        ledgers.GetReconciliationRequest(currency_code="EUR", days=FOREVER), NORTH
    )
    request = ledgers.GetDigestRequest(
        currency_code="EUR", from_time=totals.from_time, to_time=totals.to_time
    )
    root = await ledger.calls.get_digest(request, NORTH)
    assert root.digest == totals.digest
    assert len(root.children) == 16
    assert [one.transaction_id for one in root.transactions] == [
        one.transaction_id for one in DigestTree(await _transactions(ledger)).transactions()
    ]
    for child in root.children:
        request.prefix = child.prefix
        below = await ledger.calls.get_digest(request, NORTH)
        assert below.digest == child
        assert len(below.transactions) == child.count
    request.prefix = "0" * 64
    assert list((await ledger.calls.get_digest(request, NORTH)).children) == []


async def _transactions(ledger: Ledger) -> Any:
    books = ledger.calls._books
    period = books_module.days_of(FOREVER)
    return await books.queries.transactions("north", "EUR", period, 1 << 62, 100)


async def test_of_too_many_transactions_there_is_no_digest(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books_module, "MAX_TRANSACTIONS", 6)
    told = await ledger.calls.get_reconciliation(
        ledgers.GetReconciliationRequest(currency_code="EUR", days=FOREVER), NORTH
    )
    assert told.stakes.entries == 3
    assert not told.HasField("digest")
    request = ledgers.GetDigestRequest(
        currency_code="EUR", from_time=told.from_time, to_time=told.to_time
    )
    with pytest.raises(Refused) as caught:
        await ledger.calls.get_digest(request, NORTH)
    assert caught.value.reason is PERIOD_TOO_LARGE


async def test_the_answers_of_one_search_hold_at_one_position(tmp_path: Path) -> None:
    made = some_money()
    projector, queries = await projected(made, tmp_path)
    ledger = Ledger(made, Books(queries))
    period = books_module.days_of(FOREVER)
    request = ledgers.GetDigestRequest(currency_code="EUR")
    request.from_time.FromMicroseconds(period.from_us)
    request.to_time.FromMicroseconds(period.to_us)
    first = await ledger.calls.get_digest(request, NORTH)
    known = len(made.log.entries)
    made.move("north", "a", 5)
    made.log.flush()
    for entry in made.log.entries[known:]:
        projector.feed(*entry)
    last = made.log.events[-1].position
    assert await projector.reached(last, 20)
    assert await ledger.calls.get_digest(request, NORTH) == first
    request.at_least.CopyFrom(position_message(last))
    later = await ledger.calls.get_digest(request, NORTH)
    assert later.digest.count == first.digest.count + 1
    await projector.close()


@pytest.mark.parametrize(
    ("minor", "currency", "shown"),
    [
        (1_234, "EUR", "12.34"),
        (1_234, "JPY", "1234"),
        (1_234, "KWD", "1.234"),
        (-5, "EUR", "-0.05"),
        (-5, "KWD", "-0.005"),
        (0, "EUR", "0.00"),
        (0, "JPY", "0"),
        (10**15, "USD", "10000000000000.00"),
    ],
)
def test_mon_3_an_amount_has_its_currencys_decimals(minor: int, currency: str, shown: str) -> None:
    assert decimal(minor, currency) == shown
    assert Decimal(shown) * 10 ** EXPONENTS[currency] == minor


def test_mon_3_no_currency_is_guessed() -> None:
    with pytest.raises(KeyError):
        decimal(1, "XXX")
