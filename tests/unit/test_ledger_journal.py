"""The journal: entries that name what they are for, and balances at any position of the log."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sabot.limits.v1 import events_pb2 as limits
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import Position
from services.wallet.books import Books, as_of, days_of
from services.wallet.domain.digests import Transaction, TransactionKind
from services.wallet.domain.journal import EntryKind, JournalFold
from services.wallet.domain.postings import Kind
from services.wallet.journal_rows import LEDGER_KINDS, LEDGERS, POSTINGS
from services.wallet.ledger_queries import Balances, EntryRow, Span, end_key
from services.wallet.periods import Period
from services.wallet.projection import WalletProjection
from tests.unit.ledger_facts import CURRENCIES, PARTNERS, MoneyLog, projected, some_money
from tests.unit.projecting import ON_BOTH, folded, opened, rows_of, url_of
from tests.unit.projection_log import RULES, HandMadeLog, busy_log

EVERYTHING = Span(0, 1 << 62)
KINDS = {
    EntryKind.DEPOSIT: "deposit",
    EntryKind.WITHDRAWAL: "withdrawal",
    EntryKind.STAKE: "stake",
    EntryKind.STAKE_VOIDED: "voided",
    EntryKind.PAYOUT: "payout",
}


def own(entry: EntryRow, kind: Kind) -> int:
    return sum(leg.amount_minor for leg in entry.legs if leg.kind is kind)


@ON_BOTH
async def test_an_entry_names_round_bets_rules_cause_and_time(tmp_path: Path) -> None:
    made = some_money()
    projector, queries = await projected(made, tmp_path)
    entries = await queries.entries(EVERYTHING, 100, partner="north", account_id="a")
    assert [KINDS[one.kind] for one in entries] == [
        *("deposit", "stake", "payout", "stake", "voided", "withdrawal", "stake"),
    ]
    events = {event.position: event for event in made.log.events}
    for one in entries:
        event = events[one.position]
        assert one.cause == event.cause
        assert one.time_us == event.time_us
        assert one.event_type == event.body.DESCRIPTOR.full_name
    _, stake, payout, _, voided, withdrawal, _ = entries
    assert (stake.table_id, stake.round_id) == ("t1", "t1-1")
    assert stake.bet_ids == payout.bet_ids == ("b1", "b2")
    assert voided.bet_ids == ("b4",)
    assert {stake.rule_set_hash, payout.rule_set_hash, voided.rule_set_hash} == {RULES}
    assert (withdrawal.round_id, withdrawal.bet_ids, withdrawal.rule_set_hash) == ("", (), b"")
    assert [(leg.kind, leg.account_id, leg.amount_minor, leg.balance_minor) for leg in payout.legs]
    assert [(leg.kind, leg.amount_minor, leg.balance_minor) for leg in payout.legs] == [
        (Kind.RESERVED, -600, 0),
        (Kind.HOUSE, 600, 600),
        (Kind.HOUSE, -1_000, -400),
        (Kind.CASH, 975, 10_375),
        (Kind.COMMISSION, 25, 25),
    ]
    of_round = await queries.entries(EVERYTHING, 100, partner="south", round_id="t1-1")
    assert [one.account_id for one in of_round] == ["a", "a"]
    await projector.close()


async def test_a_changed_table_governs_later_rounds_only(tmp_path: Path) -> None:
    made = MoneyLog()
    made.open("north", "a", "EUR")
    made.move("north", "a", 1_000)
    made.log.open_table()
    first = made.open_round()
    other = bytes(reversed(RULES))
    made.log.open_table(rules=other)
    made.bet(first, "north", "a", [10])
    second = made.open_round()
    made.bet(second, "north", "a", [10])
    projector, queries = await projected(made, tmp_path)
    entries = await queries.entries(EVERYTHING, 100, partner="north")
    assert [one.rule_set_hash for one in entries] == [b"", RULES, other]
    await projector.close()


async def test_every_entry_balances_and_all_sum_to_zero(tmp_path: Path) -> None:
    """Invariant 1."""
    projector, queries = await projected(busy_log(rounds=8, bets=30), tmp_path)
    lines = await queries.trial_balance(end_key(queries.position))
    assert sum(line.balance_minor for line in lines) == 0
    assert {line.kind for line in lines} == {
        *(Kind.CASH, Kind.RESERVED, Kind.HOUSE, Kind.COMMISSION, Kind.EXTERNAL),
    }
    assert {line.accounts for line in lines if line.kind is Kind.CASH} == {10}
    pages: list[EntryRow] = []
    while page := await queries.entries(
        Span(pages[-1].key + 1 if pages else 0, 1 << 62), 97, partner="p0"
    ):
        pages += page
    assert len(pages) > 97
    assert all(sum(leg.amount_minor for leg in one.legs) == 0 for one in pages)
    for number in range(0, 20, 2):
        mine = [one for one in pages if one.account_id == f"a{number}"]
        held = await queries.balances("p0", f"a{number}", end_key(queries.position))
        assert held == Balances(
            sum(own(one, Kind.CASH) for one in mine), sum(own(one, Kind.RESERVED) for one in mine)
        )
    await projector.close()


async def test_a_restart_goes_on_with_what_the_journal_remembers(tmp_path: Path) -> None:
    """Among them a settlement whose payout is still to come, and a running round."""
    made = some_money()
    expected = await folded(WalletProjection, made.log, tmp_path)
    settled = [
        event.position.sequence
        for event in made.log.events
        if isinstance(event.body, settlements.BetsSettled)
    ]
    assert len(settled) == 2
    for cut in (3, *settled, len(made.log.entries) - 2):
        short = HandMadeLog()
        short.entries = made.log.entries[:cut]
        first = await opened(WalletProjection(), url_of(tmp_path, f"cut-{cut}"), short.read)
        assert await first.caught_up(20)
        await first.close()
        second = await opened(WalletProjection(), url_of(tmp_path, f"cut-{cut}"), made.log.read)
        assert await second.caught_up(20)
        assert await rows_of(second) == expected
        await second.close()


async def test_what_is_remembered_ends_with_what_it_is_for(tmp_path: Path) -> None:
    projector, _ = await projected(busy_log(rounds=3, bets=5), tmp_path)
    rows = await rows_of(projector)
    assert rows["unpaid_settlements"] == []
    assert rows["rules_in_force"] == [("table", "t1", RULES)]
    await projector.close()


def test_the_pure_fold_gives_the_same_entries() -> None:
    made = some_money()
    fold = JournalFold()
    entries = [entry for event in made.log.events if (entry := fold.see(event)) is not None]
    assert [one.position for one in entries] == [line[0] for line in made.lines]
    assert [one.cash_minor for one in entries] == [line[5] for line in made.lines]
    assert all(sum(leg.minor for leg in one.legs) == 0 for one in entries)
    assert [one.amount_minor for one in entries[:6]] == [10_000] * 3 + [600, 300, 975]


# ---- random books ------------------------------------------------------------------------------


def paid(stake: int) -> tuple[tuple[int, int], ...]:
    """Lost, pushed, or won at even money less a commission: (payout, commission)."""
    return (0, 0), (stake, 0), (2 * stake - stake // 20, stake // 20)


@st.composite
def books(draw: st.DrawFn) -> MoneyLog:
    """A random log: accounts in three currencies, money in and out, rounds paid and voided."""
    made = MoneyLog(HandMadeLog(entry_events=draw(st.integers(1, 5))))
    made.log.open_table()
    for number in range(draw(st.integers(1, 4))):
        made.open(PARTNERS[number % 2], f"a{number}", draw(st.sampled_from(CURRENCIES)))
    accounts = list(made.currency)
    running: list[str] = []
    for _ in range(draw(st.integers(0, 25))):
        partner, account = draw(st.sampled_from(accounts))
        made.wait(made.log._time_us + draw(st.integers(0, 20)) * 3_600_000_000)
        cash = made.held[partner, account][0]
        match draw(st.sampled_from(("in", "out", "round", "bet", "bet", "pay", "void"))):
            case "in":
                made.move(partner, account, draw(st.integers(1, 10**12)))
            case "out" if cash:
                made.move(partner, account, -draw(st.integers(1, cash)))
            case "round":
                running.append(made.open_round())
            case "bet" if running and cash > 1:
                stake = draw(st.integers(1, cash // 2))
                made.bet(draw(st.sampled_from(running)), partner, account, [stake, stake])
            case "pay" if running:
                ending = running.pop()
                won = {
                    bet: draw(
                        st.sampled_from(
                            ((0, 0), (stake, 0), (2 * stake - stake // 20, stake // 20))
                        )
                    )
                    for of, _, _, bet, stake in made.stakes
                    if of == ending
                }
                made.end(ending, won)
            case "void" if running:
                made.end(running.pop(), None)
            case _:
                pass
    made.log.flush()
    return made


async def statements_add_up(made: MoneyLog, books: Books, data: st.DataObject) -> None:
    """Of every account, on some local days: what the simple model has."""
    zone = ZoneInfo(data.draw(st.sampled_from(("Europe/Paris", "Asia/Tokyo", "UTC"))))
    ends = (made.log.events[0].time_us, made.log.events[-1].time_us)
    first, last = sorted(data.draw(st.integers(*ends)) for _ in range(2))
    days = [datetime.fromtimestamp(one // 1_000_000, zone).date() for one in (first, last)]
    request = ledgers.GetStatementRequest(
        days=ledgers.LocalDays(first_date=str(days[0]), last_date=str(days[1]), time_zone=str(zone))
    )
    period = days_of(request.days)
    at = as_of(made.log.events[-1].position, 0)
    for partner, account in made.currency:
        request.account_id = account
        told, rows, more = await books.statement(partner, request, at, -1, 500)
        mine = [one for one in made.lines if one[3:5] == (partner, account)]
        within = [one for one in mine if period.from_us <= one[1] < period.to_us]
        assert not more
        assert [row.position for row in rows] == [one[0] for one in within]
        for balance, until_us in ((told.opening, period.from_us), (told.closing, period.to_us)):
            before = [one for one in mine if one[1] < until_us]
            assert balance.available.minor_units == sum(one[5] for one in before)
            assert balance.reserved.minor_units == sum(one[6] for one in before)
        moved = sum(one.amount.minor_units for one in told.sums)
        assert moved == sum(one[5] + one[6] for one in within)
        assert sum(one.entries for one in told.sums) == len(within)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(books(), st.data())
def test_random_books_balance_at_every_position(made: MoneyLog, data: st.DataObject) -> None:
    """Every balance, at any position, is what the simple model has; every entry and every currency
    sums to zero; what is projected in pieces equals what is projected at once."""

    async def main(folder: Path) -> None:
        projector, queries = await projected(made, folder)
        last = made.log.events[-1].position
        index = data.draw(st.integers(0, len(made.log.events) - 1))
        somewhere = made.log.events[index].position
        for position in (somewhere, last):
            behind = position._replace(index=position.index + 1)
            for partner, account in made.currency:
                cash, reserved = made.had(partner, account, behind)
                found = await queries.balances(partner, account, end_key(position))
                assert found == Balances(cash, reserved)
            sums: dict[str, int] = {}
            for line in await queries.trial_balance(end_key(position)):
                sums[line.currency_code] = sums.get(line.currency_code, 0) + line.balance_minor
            assert not any(sums.values())
        by_kind = {
            (line.partner, line.currency_code): line.balance_minor
            for line in await queries.trial_balance(end_key(last))
            if line.kind is Kind.COMMISSION
        }
        assert by_kind == {key: kept for key, kept in made.commission.items() if kept}
        for partner in PARTNERS:
            for one in await queries.entries(EVERYTHING, 500, partner=partner):
                assert sum(leg.amount_minor for leg in one.legs) == 0
                assert {leg.currency_code for leg in one.legs} == {
                    made.currency[one.partner, one.account_id]
                }
        await statements_add_up(made, Books(queries), data)
        rows = await rows_of(projector)
        await projector.close()
        pieces = HandMadeLog()
        pieces.entries = made.log.entries[: index % len(made.log.entries)]
        first, _ = await projected(pieces, folder, "pieces")
        await first.close()
        second, _ = await projected(made, folder, "pieces")
        assert await rows_of(second) == rows
        await second.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))


# ---- how it grows ------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["balance", "first entry of a time"])
async def test_a_look_into_a_long_journal_is_one_look_into_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """By SQLite's own plan: no table is scanned."""
    projector, queries = await projected(some_money(), tmp_path)
    plans: list[str] = []

    async def explain(select: Any) -> Any:
        text = str(select.compile(projector.engine, compile_kwargs={"literal_binds": True}))
        async with projector.connect() as connection:
            told = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")
            plans.extend(row.detail for row in told)
            return (await connection.execute(select)).scalar()

    monkeypatch.setattr(queries, "_value", explain)
    if query == "balance":
        await queries.balances("north", "a", end_key(Position(1, 30, 0)))
    else:
        await queries.first_key(made_us := 1_700_000_000_000_000, made_us)
    assert plans
    assert all(plan.startswith("SEARCH") for plan in plans), plans
    await projector.close()


def test_every_kind_of_ledger_account_has_a_number() -> None:
    assert set(LEDGER_KINDS) == set(Kind)
    assert len(set(LEDGER_KINDS.values())) == len(Kind)
    assert LEDGERS.name != POSTINGS.name


@ON_BOTH
async def test_corrections_and_partners_confirmations_are_entries(tmp_path: Path) -> None:
    made = some_money()
    log = made.log
    at: dict[str, Any] = {"partner_id": "north", "account_id": "a", "currency_code": "EUR"}
    round_: dict[str, Any] = {"table_id": "t1", "round_id": "t1-1"}
    cause = log.events[-1]
    corrected = corrections.CorrectionPosted(
        **at, **round_, payout_delta_minor=-10_000, commission_delta_minor=-25,
        receivable_minor=675, bet_ids=["b1"], rule_set_hash=RULES,
    )  # fmt: skip
    log.add("wallet", corrected, cause)
    log.add("wallet", corrections.ReceivableSettled(**at, amount_minor=75), cause)
    ordered = seamless.CreditOrdered(
        **at, **round_, transaction_id="c1", amount_minor=40, rule_set_hash=RULES,
        bets=[bet_pb2.Bet(bet_id="b1")],
    )  # fmt: skip
    log.add("wallet", ordered, cause)
    due = wallets.PayoutPosted(
        **at, **round_, stake_minor=50, payout_minor=40, due=True, transaction_id="c1"
    )
    log.add("wallet", due, cause)
    closed = tables.RoundClosed(table_id="t1", round_id="t1-1", end=tables.ROUND_END_PAID)
    log.add("table", closed, cause)
    confirmed = seamless.MovementConfirmed(**at, **round_, transaction_id="c1", amount_minor=40)
    log.add("wallet", confirmed, cause)
    projector, queries = await projected(made, tmp_path)
    *_, first, second, third, last = await queries.entries(EVERYTHING, 100, partner="north")
    assert [one.kind for one in (first, second, third, last)] == [
        EntryKind.CORRECTION,
        EntryKind.RECEIVABLE_SETTLED,
        EntryKind.PAYOUT,
        EntryKind.CONFIRMED,
    ]
    assert (first.bet_ids, first.rule_set_hash) == (("b1",), RULES)
    assert [(leg.kind, leg.amount_minor) for leg in first.legs] == [
        (Kind.CORRECTIONS, 10_025),
        (Kind.CASH, -9_325),
        (Kind.RECEIVABLE, -675),
        (Kind.COMMISSION, -25),
    ]
    assert [(leg.kind, leg.amount_minor, leg.balance_minor) for leg in last.legs] == [
        (Kind.DUE, -40, 0),
        (Kind.EXTERNAL, 40, -8_960),
    ]
    assert (last.bet_ids, last.rule_set_hash) == (("b1",), RULES)
    found = await queries.balances("north", "a", 1 << 62)
    assert found == Balances(-75, 0, -600)
    assert (await rows_of(projector))["unconfirmed_orders"] == []
    period = Period(0, 1 << 60)
    transactions = await queries.transactions("north", "EUR", period, 1 << 62, 100)
    assert (
        Transaction("c1", "a", 40, TransactionKind.CREDIT, log.events[-4].time_us) in transactions
    )
    await projector.close()


@ON_BOTH
async def test_debits_count_once_taken_and_never_once_rolled_back(tmp_path: Path) -> None:
    log = HandMadeLog()
    at: dict[str, Any] = {
        "partner_id": "north", "account_id": "a", "currency_code": "EUR", "table_id": "t1",
        "round_id": "t1-1", "amount_minor": 5,
    }  # fmt: skip
    cause = log.add("table", tables.OpenRound(table_id="t1"))
    for transaction in ("taken", "rolled back", "unknown", "late"):
        log.add("wallet", seamless.DebitOrdered(**at, transaction_id=transaction), cause)
    for transaction in ("taken", "rolled back"):
        reserved = wallets.StakeReserved(
            account_id="a", currency_code="EUR", transaction_ids=[transaction]
        )
        log.add("wallet", reserved, log.add("limits", limits.BetsApproved(), partner="north"))
    for number, transaction in enumerate(("rolled back", "late")):
        undone = seamless.RollbackOrdered(
            **at, transaction_id=f"r{number}", debit_transaction_id=transaction
        )
        log.add("wallet", undone, cause)
        done = seamless.MovementConfirmed(partner_id="north", transaction_id=f"r{number}")
        log.add("wallet", done, cause)
    collected = corrections.ReceivableSettled(
        partner_id="north", account_id="a", currency_code="EUR", amount_minor=5, at_partner=True,
        transaction_id="correction",
    )  # fmt: skip
    log.add("wallet", seamless.DebitOrdered(**at, transaction_id="correction"), cause)
    log.add("wallet", collected, cause)
    log.add("wallet", seamless.DebitOrdered(**at, transaction_id="correction declined"), cause)
    projector, queries = await projected(log, tmp_path)
    period = Period(0, 1 << 60)
    another, found = await queries.transactions("north", "EUR", period, 1 << 62, 100)
    assert another[:4] == ("correction", "a", -5, TransactionKind.DEBIT)
    assert found[:4] == ("taken", "a", -5, TransactionKind.DEBIT)
    assert await queries.transactions("south", "EUR", period, 1 << 62, 100) == []
    await projector.close()
