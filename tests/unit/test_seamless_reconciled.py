"""The books of a cell and of a seamless partner, compared by their digests after rounds whose calls
were lost, late and repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.partnerwallet.v1 import partner_reconciliation_service_pb2 as partners
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from services.cli.ledger_log import books_of
from services.cli.reconcile import CalledSide, Comparison, TreeSide, compare
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.partner_wallet_example.book import Book
from services.partner_wallet_example.digests import answer
from services.simulator.virtual_time import run_virtual
from services.wallet.domain.seamless_state import Movement
from services.wallet.partner_replies import Verdict
from services.wallet.periods import Period
from tests.fleet.small_cell import PARTNER, SmallCell
from tests.unit.partner_in_memory import PartnerInMemory, no_answer, seamless_cell

ALWAYS = Period(0, (1 << 32) * 1_000_000)
Story = Callable[[SmallCell, PartnerInMemory], Awaitable[None]]
Compared = tuple[Comparison, ledgers.GetReconciliationResponse]


def played(story: Story, *accounts: str, debit_per_bet: bool = False) -> tuple[MemoryStore, Book]:
    """The log and the partner's books, when all is confirmed."""
    kept: list[tuple[MemoryStore, Book]] = []

    async def main() -> None:
        async with seamless_cell(*accounts, debit_per_bet=debit_per_bet) as (cell, there, store):
            await story(cell, there)
            await cell.until(
                lambda: not cell.process.state("wallet").seamless.movements, "all is confirmed"
            )
            kept.append((store, there.book))

    run_virtual(main())
    return kept[0]


def compared(store: MemoryStore, book: Book) -> Compared:
    """Both sides' digests, as calls would ask for them."""

    async def ask(prefix: str) -> partners.GetDigestResponse:
        request = partners.GetDigestRequest(
            currency_code="EUR", to_time=Timestamp(seconds=1 << 32), prefix=prefix
        )
        request.from_time.SetInParent()
        return answer(book, request)

    async def main() -> Compared:
        async with books_of(MemoryLog(store)) as log:
            _, tree = await log.books.tree(PARTNER, "EUR", ALWAYS, log.at)
            year = ledgers.LocalDays(time_zone="UTC")
            year.first_date, year.last_date = "2023-06-01", "2024-05-31"
            request = ledgers.GetReconciliationRequest(currency_code="EUR", days=year)
            totals = await log.books.reconciliation(PARTNER, request, log.at)
            trial = await log.books.trial_balance(log.at)
            assert not any(one.minor_units for one in trial.sums)
            assert log.check.first is None
            return await compare(TreeSide(tree), CalledSide(ask)), totals

    return asyncio.run(main())


async def rounds(cell: SmallCell, there: PartnerInMemory) -> None:
    """Paid, withdrawn, voided; some answers lost after the money moved, some debits never made."""
    turn = 0

    async def lose(method: str, movement: Movement) -> Verdict | None:
        nonlocal turn
        turn += 1
        lost = turn % 3 == 0 and movement.calls == 0
        return no_answer() if lost else None

    there.after = lose
    for number in range(4):
        round_id = await cell.open_round()
        for account in ("ann", "bob"):
            await cell.bet(round_id, account, ("player", 500), ("tie", 100))
        if number == 1:
            await cell.withdraw(round_id, "ann")
        if number == 2:
            void = table.VoidRound(
                table_id="t1", round_id=round_id, reason=table.ROUND_REASON_SYSTEM
            )

            async def order(body: table.VoidRound = void) -> object:
                return await cell.order(body, "operator:super1")

            await cell.over(round_id, order)
        else:
            await cell.close_betting(round_id)


@pytest.mark.parametrize("debit_per_bet", [False, True])
def test_both_books_agree_whatever_became_of_calls(debit_per_bet: bool) -> None:
    store, book = played(rounds, "ann", "bob", debit_per_bet=debit_per_bet)
    found, totals = compared(store, book)
    assert found.agree, found.differing
    assert found.ours == found.theirs > 5
    assert totals.due.minor_units == totals.open_reservations.minor_units == 0
    assert totals.stakes.amount.minor_units == (
        totals.voided.amount.minor_units
        + totals.returned.amount.minor_units
        + 600 * (totals.stakes.entries - totals.voided.entries - totals.returned.entries)
    )


def test_what_was_tampered_with_is_found_with_both_versions() -> None:
    store, book = played(rounds, "ann", "bob")
    rows = book._sql.execute(
        "SELECT transaction_id, moved_minor FROM movements WHERE kind = 'Debit' AND transaction_id"
        " NOT IN (SELECT debit_id FROM cancelled_debits) AND moved_minor <> 0"
    ).fetchall()
    victim, moved_minor = rows[len(rows) // 2]
    book._sql.execute(
        "UPDATE movements SET moved_minor = moved_minor + 1 WHERE transaction_id = ?", (victim,)
    )
    (one,) = compared(store, book)[0].differing
    assert one.transaction_id == victim
    assert one.ours is not None
    assert one.theirs is not None
    assert (one.ours.amount_minor, one.theirs.amount_minor) == (moved_minor, moved_minor + 1)
    assert one.ours.account_id == one.theirs.account_id
    assert one.ours.time_us == one.theirs.time_us


def test_a_debit_that_was_never_answered_is_in_neither() -> None:
    """Declined here and rolled back there, whether it was taken or not."""

    async def story(cell: SmallCell, there: PartnerInMemory) -> None:
        async def silent(method: str, movement: Movement) -> Verdict | None:
            del movement
            return no_answer() if method == "Debit" else None

        there.after = silent
        round_id = await cell.open_round()
        placing = asyncio.ensure_future(cell.bet(round_id, "ann", ("player", 500)))
        await cell.until(lambda: there.times("Debit") > 0, "the partner was asked")
        await cell.close_betting(round_id)
        assert isinstance(await placing, wallets.StakeDeclined)

    store, book = played(story)
    assert book._sql.execute("SELECT count(*) FROM cancelled_debits").fetchone() == (1,)
    found, totals = compared(store, book)
    assert found.agree
    assert found.ours == totals.stakes.entries == 0
