"""Seamless partners through all cores, the shells and the log, with wallets that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.cli.replay import verify
from services.kernel.event import Event
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.simulator.virtual_time import run_virtual
from services.wallet.domain.seamless_state import Movement
from services.wallet.domain.state import sums
from services.wallet.partner_replies import Verdict
from services.wallet.partner_wallet import PartnerWallets
from tests.fleet.small_cell import PARTNER, SmallCell
from tests.unit.partner_in_memory import (
    OPENED,
    PartnerInMemory,
    give_order,
    no_answer,
    nothing,
    seamless_cell,
)

Story = Callable[[SmallCell, PartnerInMemory, MemoryStore], Awaitable[None]]


def told(story: Story, *accounts: str, **changed: Any) -> None:
    """Run a story, then hold both books against each other and decide the log again."""

    async def main() -> None:
        async with seamless_cell(*accounts, **changed) as (cell, there, store):
            await story(cell, there, store)
            await cell.until(lambda: not movements(cell), "the partner confirmed all")
            state = cell.process.state("wallet")
            assert not any(sums(state).values())
            own = [one for (owner, _), one in state.accounts.items() if owner == PARTNER]
            assert not any(one.available_minor for one in own)
            held = sum(there.has(one) for one in accounts or ("ann",))
            opened = OPENED * len(accounts or ("ann",))
            external = state.ledgers.get(("external", PARTNER, "EUR"), 0)
            reserved = sum(one.reserved_minor for one in state.accounts.values())
            assert reserved == 0
            assert held - opened == external, "both books agree"
            assert not state.ledgers.get(("due", PARTNER, "EUR"))
        found = await verify(MemoryLog(store), lambda *_: None, {})
        assert found.differences == []

    run_virtual(main())


def movements(cell: SmallCell) -> dict[str, Movement]:
    found: dict[str, Movement] = cell.process.state("wallet").seamless.movements
    return found


def heard(cell: SmallCell, *kinds: type[Any]) -> list[Any]:
    """Everything of these kinds that the log says from here on."""
    bodies: list[Any] = []

    def listen(events: list[Event]) -> None:
        bodies.extend(event.body for event in events if isinstance(event.body, kinds))

    cell.process.follow(listen)
    return bodies


def test_a_bet_of_an_account_whose_money_is_elsewhere() -> None:
    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store
        round_id = await cell.open_round()
        placed = await cell.bet(round_id, "ann", ("player", 500), ("tie", 100))
        assert isinstance(placed, wallet.StakeReserved)
        assert there.has("ann") == OPENED - 600
        refused = await cell.bet(round_id, "ann", ("tie", 99_900))
        assert isinstance(refused, wallet.StakeDeclined)
        assert refused.decline == wallet.DECLINE_INSUFFICIENT_FUNDS
        paid = heard(cell, wallet.PayoutPosted)
        await cell.close_betting(round_id)
        (one,) = paid
        await cell.until(lambda: not movements(cell), "the payout is confirmed")
        assert there.has("ann") == OPENED - 600 + one.payout_minor

    told(story)


@pytest.mark.parametrize("debit_per_bet", [False, True])
def test_withdrawn_stakes_go_back_to_the_partner(debit_per_bet: bool) -> None:
    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store
        round_id = await cell.open_round()
        placed = await cell.bet(round_id, "ann", ("player", 500), ("tie", 300))
        assert isinstance(placed, wallet.StakeReserved)
        assert len(placed.transaction_ids) == (2 if debit_per_bet else 1)
        tie = next(bet.bet_id for bet in placed.bets if bet.bet == "tie")
        back = await cell.withdraw(round_id, "ann", tie)
        assert isinstance(back, wallet.StakeReturned)
        assert [bet.stake_minor for bet in back.bets] == [300]
        await cell.until(lambda: not movements(cell), "the return is confirmed")
        assert there.has("ann") == OPENED - 500
        rest = await cell.withdraw(round_id, "ann")
        assert isinstance(rest, wallet.StakeReturned)
        await cell.until(lambda: not movements(cell), "the rest is confirmed")
        assert there.has("ann") == OPENED
        assert there.times("Rollback") == (2 if debit_per_bet else 0)
        assert there.times("Credit") == (0 if debit_per_bet else 2)

    told(story, debit_per_bet=debit_per_bet)


def test_a_voided_round_gives_every_stake_back() -> None:
    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store
        round_id = await cell.open_round()
        await cell.bet(round_id, "ann", ("player", 500))
        await cell.bet(round_id, "bob", ("banker", 900), ("tie", 100))
        void = table.VoidRound(table_id="t1", round_id=round_id, reason=table.ROUND_REASON_SYSTEM)
        await cell.over(round_id, lambda: cell.order(void, "operator:super1"))
        await cell.until(lambda: not movements(cell), "the partner confirmed")
        assert (there.has("ann"), there.has("bob")) == (OPENED, OPENED)

    told(story, "ann", "bob")


def test_wal_03_parallel_bets_do_not_overspend_a_partners_balance() -> None:
    """20 bets of 100 at once against 1000: ten are on."""

    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store
        there.book._sql.execute("UPDATE accounts SET opened_minor = 1000, balance_minor = 1000")

        async def slowly(method: str, movement: Movement) -> Verdict | None:
            del movement
            await asyncio.sleep(cell.random.uniform(0.001, 0.05) if method == "Debit" else 0)
            return None

        there.before = there.after = slowly
        round_id = await cell.open_round()
        outcomes = await asyncio.gather(
            *[cell.bet(round_id, "ann", ("tie", 100)) for _ in range(20)]
        )
        on = [one for one in outcomes if isinstance(one, wallet.StakeReserved)]
        off = [one for one in outcomes if isinstance(one, wallet.StakeDeclined)]
        assert (len(on), len(off)) == (10, 10)
        assert {one.decline for one in off} == {wallet.DECLINE_INSUFFICIENT_FUNDS}
        assert there.has("ann") == 0
        await cell.close_betting(round_id)
        await cell.until(lambda: not movements(cell), "all is confirmed")
        # As the helper expects: what the account was opened with.
        there.book._sql.execute(
            "UPDATE accounts SET balance_minor = balance_minor + ?", (OPENED - 1000,)
        )

    told(story)


# ---- no answer, late answers --------------------------------------------------------------------


def test_wal_04_a_rollback_may_overtake_its_debit() -> None:
    """The debit comes to the wallet only after its rollback: it is refused there for ever, and no
    stake of it is in the round."""

    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store
        orders = heard(cell, seamless.DebitOrdered)

        async def lost(method: str, movement: Movement) -> Verdict | None:
            return no_answer() if method == "Debit" else None

        there.before = lost
        round_id = await cell.open_round()
        betting = asyncio.create_task(cell.bet(round_id, "ann", ("tie", 400)))
        await cell.until(lambda: there.times("Debit") > 0, "the wallet is called")
        began = asyncio.get_running_loop().time()
        closed = heard(cell, table.BettingClosed, wallet.StakesSealed)
        await cell.close_betting(round_id)
        assert asyncio.get_running_loop().time() - began < 5.0, "the round was not held up"
        assert len(closed) == 2
        declined = await betting
        assert isinstance(declined, wallet.StakeDeclined)
        assert declined.decline == wallet.DECLINE_PARTNER_UNANSWERED
        await cell.until(lambda: not movements(cell), "the rollback is confirmed")
        assert there.has("ann") == OPENED
        # Now the debit arrives, and its sender's repeats.
        (order,) = orders
        request = partner_wallet.DebitRequest(
            transaction_id=order.transaction_id,
            account_id="ann",
            table_id="t1",
            round_id=round_id,
            reason=order.reason,
        )
        request.amount.currency_code, request.amount.minor_units = "EUR", 400
        answers = [there.book.debit(request) for _ in range(2)]
        assert {one.outcome for one in answers} == {partner_wallet.DEBIT_OUTCOME_DECLINED}
        assert {one.decline for one in answers} == {partner_wallet.DEBIT_DECLINE_ROLLED_BACK}
        assert there.has("ann") == OPENED

    told(story)


@pytest.mark.parametrize("lost", ["before", "after"])
def test_wal_06_a_debit_without_an_answer_is_never_paid(lost: str) -> None:
    """The wallet fails or answers too late, whether it had taken the stake or not: the bet was
    never in the round, nothing is credited, and the balance is what it was."""

    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store

        async def fails(method: str, movement: Movement) -> Verdict | None:
            del movement
            return no_answer("INTERNAL") if method == "Debit" else None

        setattr(there, lost, fails)
        round_id = await cell.open_round()
        credits_ordered = heard(cell, seamless.CreditOrdered)
        betting = asyncio.create_task(cell.bet(round_id, "ann", ("tie", 1000)))
        await cell.until(lambda: there.times("Debit") > 0, "the wallet is called")
        await cell.close_betting(round_id)
        declined = await betting
        assert isinstance(declined, wallet.StakeDeclined)
        await cell.until(lambda: not movements(cell), "the rollback is confirmed")
        assert there.times("Rollback") >= 1
        assert there.has("ann") == OPENED
        assert not credits_ordered

    told(story)


def test_wal_06_a_wallet_that_says_yes_and_takesnothing_is_an_alarm() -> None:
    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store
        round_id = await cell.open_round()

        def unchanged(response: Any) -> Any:
            response.balance.minor_units = OPENED
            return response

        there.answer_of = unchanged
        declined = await cell.bet(round_id, "ann", ("tie", 1000))
        there.answer_of = lambda response: response
        assert isinstance(declined, wallet.StakeDeclined)
        assert declined.decline == wallet.DECLINE_PARTNER_CONTRADICTS
        assert [kind for kind, _ in cell.alarms] == ["movement_disputed"]
        assert cell.alarms[0][1]["problem"] == "BALANCE_UNCHANGED"
        await cell.close_betting(round_id)

    told(story)


def test_an_answer_about_another_transaction_is_an_alarm_andnothing_is_lost() -> None:
    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store
        round_id = await cell.open_round()

        def other(response: Any) -> Any:
            response.transaction_id = "another"
            return response

        there.answer_of = other
        declined = await cell.bet(round_id, "ann", ("tie", 1000))
        assert isinstance(declined, wallet.StakeDeclined)
        there.answer_of = lambda response: response
        await cell.until(lambda: movements(cell) != {}, "it is rolled back")
        disputed = [one for one in movements(cell).values() if one.standing.name == "DISPUTED"]
        for transaction in list(movements(cell)) if disputed else []:
            body = seamless.ResolveMovement(
                transaction_id=transaction,
                action=seamless.MOVEMENT_ACTION_RETRY,
                reason="the wallet is mended",
            )
            assert isinstance(await give_order(cell, body), seamless.MovementRetried)
        await cell.close_betting(round_id)

    told(story)


def test_a_dead_partner_hurts_only_its_own_accounts() -> None:
    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store
        await cell.open_account("rich", 50_000, partner="north")

        async def hangs(method: str, movement: Movement) -> Verdict | None:
            del method, movement
            await asyncio.sleep(1.0)
            return no_answer()

        there.before = hangs
        loop = asyncio.get_running_loop()
        for _ in range(3):
            round_id = await cell.open_round()
            betting = [
                asyncio.create_task(cell.bet(round_id, one, ("tie", 100)))
                for one in ("ann", "bob", "ann")
            ]
            await asyncio.sleep(0.2)
            began = loop.time()
            on = await cell.bet(round_id, "rich", ("player", 1000), partner="north")
            assert isinstance(on, wallet.StakeReserved)
            assert loop.time() - began < 0.2
            began = loop.time()
            await cell.close_betting(round_id)
            assert loop.time() - began < 3.5
            for one in await asyncio.gather(*betting):
                assert isinstance(one, wallet.StakeDeclined)
                assert one.decline == wallet.DECLINE_PARTNER_UNANSWERED
        assert len(movements(cell)) == 9
        await asyncio.sleep(40)
        assert "movements_overdue" in [kind for kind, _ in cell.alarms]
        there.before = nothing

    told(story, "ann", "bob")


def test_a_credit_is_retried_until_it_is_taken() -> None:
    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store
        lose = 7

        async def loses(method: str, movement: Movement) -> Verdict | None:
            nonlocal lose
            if method != "Credit" or lose == 0:
                return None
            lose -= 1
            return no_answer("UNAVAILABLE")

        there.after = loses
        for _ in range(4):
            round_id = await cell.open_round()
            placed = await cell.bet(round_id, "ann", ("player", 100), ("tie", 100))
            assert isinstance(placed, wallet.StakeReserved)
            await cell.close_betting(round_id)
        await cell.until(lambda: not movements(cell), "every credit is confirmed")

    told(story, end_of_round=True)


def test_what_a_process_ordered_before_it_died_is_carried_out_by_the_next() -> None:
    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store

        async def hangs(method: str, movement: Movement) -> Verdict | None:
            del method, movement
            await asyncio.sleep(3600)
            return None

        there.before = hangs
        round_id = await cell.open_round()
        betting = asyncio.create_task(cell.bet(round_id, "ann", ("tie", 400)))
        await cell.until(lambda: there.times("Debit") == 1, "the first shell calls")
        there.before = nothing
        # A second shell, as after a restart: it knows nothing but the state.
        second = asyncio.create_task(PartnerWallets(there).run(cell.process))
        placed = await betting
        assert isinstance(placed, wallet.StakeReserved)
        assert [transaction for _, transaction in there.calls] == [placed.transaction_ids[0]] * 2
        await cell.close_betting(round_id)
        await cell.until(lambda: not movements(cell), "all is confirmed")
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)

    told(story)


def test_several_calls_at_once_make_no_balance_suspicious() -> None:
    """A stake and a payout of the same amount cross: the balance is as it was, and rightly so."""

    async def story(cell: SmallCell, there: PartnerInMemory, store: MemoryStore) -> None:
        del store

        async def slowly(method: str, movement: Movement) -> Verdict | None:
            del method, movement
            await asyncio.sleep(cell.random.uniform(0.0, 0.05))
            return None

        there.before = there.after = slowly
        round_id = await cell.open_round()
        for _ in range(15):
            one, two = await asyncio.gather(
                cell.bet(round_id, "ann", ("tie", 100)), cell.bet(round_id, "ann", ("tie", 100))
            )
            assert isinstance(one, wallet.StakeReserved)
            assert isinstance(two, wallet.StakeReserved)
            back = [bet.bet_id for bet in one.bets]
            again, _ = await asyncio.gather(
                cell.bet(round_id, "ann", ("tie", 100)), cell.withdraw(round_id, "ann", *back)
            )
            assert isinstance(again, wallet.StakeReserved)
        assert cell.alarms == []
        await cell.close_betting(round_id)

    told(story)
