"""Corrections of paid rounds in a real fleet with a real nats-server, through the public calls: a
wrong number that was paid (OPS-01), a round voided before and after it was settled (WAL-05)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import settlement_service_pb2 as settlements
from sabot.settlement.v1 import settlement_service_pb2_grpc
from sabot.shoe.v1 import floor_events_pb2 as floor_events
from sabot.shoe.v1 import floor_service_pb2 as service
from sabot.table.v1 import bet_pb2, correction_service_pb2_grpc
from sabot.table.v1 import correction_events_pb2 as events
from sabot.table.v1 import correction_service_pb2 as corrections
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.wallet.v1 import receivable_service_pb2 as receivables
from sabot.wallet.v1 import receivable_service_pb2_grpc, wallet_operator_service_pb2_grpc
from sabot.wallet.v1 import wallet_operator_service_pb2 as wallet_operators
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from services.cli.demo_games import floor_tables
from services.cli.fleet import connect, fleet
from services.cli.main import app
from services.cli.replay import verify
from services.cli.uuid7 import uuid7
from tests.fleet.clients import PATIENCE_S, Partner, money, reason_of
from tests.fleet.ledger import read_events
from tests.fleet.partner_wallet_process import WalletProcess, opened
from tests.fleet.test_floor import AGAINST, WHEEL, Floor, by_hand, until_called
from tests.unit.seamless_facts import profile

Outcome = events.CorrectedOutcome
PROPOSER, APPROVER = "operator:sam", "operator:rosa"
MISREAD = tables.ROUND_REASON_MISREAD


def spin(number: int) -> Outcome:
    return Outcome(result=rules.Result(roulette=rules.RouletteResult(number=number)))


class Corrected(Floor):
    """A wheel on the floor, and two supervisors."""

    def __init__(self, running: Any) -> None:
        super().__init__(running)
        channel = self.north.servers.channel
        self.corrections: Any = correction_service_pb2_grpc.CorrectionServiceStub(channel)
        self.settlements: Any = settlement_service_pb2_grpc.SettlementServiceStub(channel)
        self.receivables: Any = receivable_service_pb2_grpc.ReceivableServiceStub(channel)

    def as_(self, actor: str) -> dict[str, Any]:
        return {"metadata": self.token(actor), "timeout": PATIENCE_S}

    async def stake(self, round_id: str, account: str, *bets: tuple[str, str, int]) -> Any:
        request = partner.PlaceBetsRequest(
            request_id=uuid7(),
            account_id=account,
            table_id=WHEEL,
            round_id=round_id,
            bets=[
                bet_pb2.BetRequest(bet=bet, stake=money(stake), position=position)
                for bet, position, stake in bets
            ],
        )
        return await self.north.bets.PlaceBets(
            request, metadata=self.north.metadata, timeout=PATIENCE_S
        )

    async def result(self, round_id: str, number: int) -> partner.Round:
        """Close betting, and tell what the wheel shows."""
        await self.boss.close_betting(round_id)
        await until_called(self)
        told = service.RecordSpinRequest(
            request_id=uuid7(),
            table_id=WHEEL,
            round_id=round_id,
            attempt=1,
            number=number,
            turns=4,
            direction=AGAINST,
        )
        await self.calls.RecordSpin(told, **self.as_("operator:dana"))
        return await self.over(WHEEL, round_id)

    async def preview(self, round_id: str, outcome: Outcome) -> Any:
        asked = settlements.PreviewCorrectionRequest(round_id=round_id, outcome=outcome)
        return await self.settlements.PreviewCorrection(asked, **self.as_(PROPOSER))

    async def propose(self, round_id: str, outcome: Outcome) -> str:
        dry = await self.preview(round_id, outcome)
        told = await self.corrections.ProposeCorrection(
            self.proposal(round_id, outcome, dry.dry_run), **self.as_(PROPOSER)
        )
        name: str = told.correction_id
        return name

    def proposal(
        self, round_id: str, outcome: Outcome, dry_run: bytes
    ) -> corrections.ProposeCorrectionRequest:
        return corrections.ProposeCorrectionRequest(
            request_id=uuid7(),
            table_id=WHEEL,
            round_id=round_id,
            outcome=outcome,
            reason=MISREAD,
            reference="INC-7",
            dry_run=dry_run,
        )

    async def approve(self, name: str, actor: str = APPROVER) -> Any:
        """Approve, and wait until it is over."""
        asked = corrections.ApproveCorrectionRequest(request_id=uuid7(), correction_id=name)
        told = await self.corrections.ApproveCorrection(asked, **self.as_(actor))
        return await self.closed(name, told.position)

    async def closed(self, name: str, at_least: Any) -> Any:
        going = (
            corrections.CORRECTION_STATE_PROPOSED,
            corrections.CORRECTION_STATE_APPROVED,
            corrections.CORRECTION_STATE_POSTING,
        )
        async with asyncio.timeout(PATIENCE_S):
            while True:
                asked = corrections.GetCorrectionRequest(correction_id=name, at_least=at_least)
                found = await self.corrections.GetCorrection(asked, **self.as_("operator:ada"))
                if found.correction.state not in going:
                    return found.correction
                await asyncio.sleep(0.02)

    async def refused(self, call: Callable[[], Awaitable[Any]]) -> str:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call()
        return reason_of(caught.value)

    async def available(self, account: str) -> int:
        return (await self.north.balance(account))[0]


@asynccontextmanager
async def corrected_hall(data: Path) -> AsyncIterator[Corrected]:
    async with fleet(data, port=0) as running:
        one = Corrected(running)
        wheel = next(table for table in floor_tables() if table.table_id == WHEEL)
        await one.boss.open_table(by_hand(wheel))
        yield one
        log = await connect(running.server)
        verified = await verify(log)
        await log.close()
        assert verified.right, verified.line()


@pytest.fixture
async def hall(tmp_path: Path) -> AsyncIterator[Corrected]:
    async with corrected_hall(tmp_path / "data") as one:
        yield one


async def test_ops_01_a_wrong_number_that_was_paid_is_corrected_later(hall: Corrected) -> None:
    bets = {
        "a": ("straight", "17", 1_000),
        "b": ("straight", "20", 1_000),
        "c": ("black", "", 1_000),
        "d": ("odd", "", 1_000),
        "e": ("even", "", 1_000),
    }
    for account in bets:
        await hall.north.open_account(account, 10_000)
    round_id = await hall.boss.open_round(WHEEL)
    placed = {who: await hall.stake(round_id, who, bet) for who, bet in bets.items()}
    await hall.result(round_id, 17)
    paid = {who: await hall.available(who) for who in bets}
    assert paid == {"a": 45_000, "b": 9_000, "c": 11_000, "d": 11_000, "e": 9_000}
    await withdraw(hall.north, "a", 35_000)

    # The dry run tells every difference, and changes nothing.
    dry = await hall.preview(round_id, spin(20))
    shown = {one.account_id: one.payout_delta_minor for one in dry.differences}
    assert shown == {"a": -36_000, "b": 36_000, "d": -2_000, "e": 2_000}
    assert (dry.accounts, dry.payout_delta_minor, dry.version) == (4, 0, 1)
    assert dry.in_force == spin(17)
    assert await hall.available("b") == 9_000

    name = await hall.propose(round_id, spin(20))
    assert await hall.refused(lambda: hall.approve(name, PROPOSER)) == "SAME_PERSON"
    assert await hall.refused(lambda: hall.approve(name, "operator:dana")) == "PERMISSION_DENIED"
    assert await hall.refused(lambda: hall.approve("correction-99")) == "CORRECTION_NOT_FOUND"
    done = await hall.approve(name)
    assert done.state == corrections.CORRECTION_STATE_POSTED
    assert (done.proposed_by, done.approved_by) == (PROPOSER, APPROVER)
    assert (done.reference, done.accounts, done.version) == ("INC-7", 4, 1)

    after = {who: await hall.available(who) for who in bets}
    assert after == {"a": 0, "b": 45_000, "c": 11_000, "d": 9_000, "e": 11_000}
    owing = await hall.receivables.ListReceivables(
        receivables.ListReceivablesRequest(), **hall.as_("operator:ada")
    )
    assert [(one.account_id, one.owed.minor_units) for one in owing.receivables] == [("a", 26_000)]

    await twice_is_once(hall, round_id, name, after)
    await both_versions_are_shown(hall, round_id, placed["a"].bets[0].bet_id)
    await pays_back(hall, "a")


async def withdraw(north: Partner, account: str, minor: int) -> None:
    request = wallets.WithdrawRequest(
        request_id=uuid7(), account_id=account, amount=Money(currency_code="EUR", minor_units=minor)
    )
    await north.wallet.Withdraw(request, metadata=north.metadata, timeout=PATIENCE_S)


async def twice_is_once(hall: Corrected, round_id: str, name: str, after: dict[str, int]) -> None:
    """The same correction once more, or another to the same result, changes nothing."""
    assert await hall.refused(lambda: hall.approve(name)) == "CORRECTION_OVER"
    assert await hall.refused(lambda: hall.preview(round_id, spin(20))) == "SAME_OUTCOME"
    again = hall.proposal(round_id, spin(20), bytes(32))
    assert (
        await hall.refused(lambda: hall.corrections.ProposeCorrection(again, **hall.as_(APPROVER)))
        == "SAME_OUTCOME"
    )
    # A dry run that nobody made ends without effect.
    invented = hall.proposal(round_id, spin(5), bytes(32))
    told = await hall.corrections.ProposeCorrection(invented, **hall.as_(PROPOSER))
    stale = await hall.approve(told.correction_id)
    assert stale.state == corrections.CORRECTION_STATE_REJECTED
    assert stale.fault == "CORRECTION_FAULT_DRY_RUN_STALE"
    assert {who: await hall.available(who) for who in after} == after


async def both_versions_are_shown(hall: Corrected, round_id: str, bet_id: str) -> None:
    listed = await hall.north.bets.ListBets(
        partner.ListBetsRequest(account_id="a"), metadata=hall.north.metadata, timeout=PATIENCE_S
    )
    bet = next(one for one in listed.bets if one.bet_id == bet_id)
    assert (bet.payout.minor_units, bet.correction.payout_before.minor_units) == (0, 36_000)
    assert (bet.correction.version, bet.correction.reason) == (1, MISREAD)
    seen = await hall.north.bets.GetRound(
        partner.GetRoundRequest(round_id=round_id), metadata=hall.north.metadata, timeout=PATIENCE_S
    )
    assert seen.round.result.roulette.number == 17
    assert seen.round.correction.result.roulette.number == 20
    told = await hall.settlements.GetSettlement(
        settlements.GetSettlementRequest(round_id=round_id), **hall.as_("partner:north")
    )
    first = next(one for one in told.accounts if one.account_id == "a")
    now = next(one for one in told.corrections if one.account_id == "a")
    assert (first.bets[0].payout_minor, now.bets[0].after.payout_minor) == (36_000, 0)
    for shown in (bet, seen, told):
        assert "operator" not in str(shown)
        assert "INC-7" not in str(shown)


async def pays_back(hall: Corrected, account: str) -> None:
    """What comes in later stays the account's, until a supervisor has it pay."""
    await hall.north.deposit(account, 30_000)
    assert await hall.available(account) == 30_000
    secret = hall.running.data / "sam.token"
    secret.write_text(hall.running.tokens[PROPOSER])
    at = ["--address", hall.running.address, "--token-file", str(secret)]

    async def sabot(*words: str) -> tuple[int, str]:
        done = await asyncio.to_thread(CliRunner().invoke, app, [*words, *at])
        return done.exit_code, done.output

    assert await sabot("receivables", "list", "--partner", "south") == (0, "")
    code, text = await sabot("receivables", "list")
    assert (code, text) == (1, f"north/{account} owes 260.00 EUR, has 300.00 EUR\n")
    paying = ("receivables", "settle", "north", account)
    why = ("--reason", "paid at the desk")
    code, text = await sabot(*paying, "99999", "EUR", *why)
    assert (code, "FAILED_PRECONDITION" in text) == (1, True), text
    code, text = await sabot(*paying, "0", "EUR", *why)
    assert code == 2
    code, text = await sabot(*paying, "20000", "EUR", *why)
    assert text.startswith(f"north/{account} has paid 20000 minor units: in the log at 1/"), text
    assert await hall.available(account) == 10_000
    asked = receivables.SettleReceivableRequest(
        request_id=uuid7(),
        partner_id="north",
        account_id=account,
        amount=money(6_000),
        reason="paid at the desk",
    )
    for replayed in (False, True):
        told = await hall.receivables.SettleReceivable(asked, **hall.as_(PROPOSER))
        assert told.replayed is replayed
    assert await hall.available(account) == 4_000
    assert await sabot("receivables", "list") == (0, "")
    code, text = await sabot("receivables", "policy", "north", "negative-balance", *why)
    assert text.startswith("north: negative-balance, in the log at 1/"), text
    await its_profile(hall.running.data / "profile.json", sabot)


async def its_profile(file: Path, sabot: Callable[..., Awaitable[tuple[int, str]]]) -> None:
    """What `partner-profile show` prints, `set` takes back."""
    code, text = await sabot("partner-profile", "show", "north")
    assert (code, json.loads(text)) == (0, {"mode": "WALLET_MODE_TRANSFER"})
    why = ("--reason", "as it was")
    await asyncio.to_thread(file.write_text, text)
    code, text = await sabot("partner-profile", "set", "north", str(file), *why)
    assert text.startswith("north: its profile is in the log at 1/"), text
    for wrong, status in (("{", 2), ('{"mood": 1}', 2), ("{}", 1)):
        await asyncio.to_thread(file.write_text, wrong)
        code, text = await sabot("partner-profile", "set", "north", str(file), *why)
        assert code == status, text
    code, text = await sabot("partner-profile", "set", "north", str(file) + ".none", *why)
    assert code == 1
    assert "no such file" in text.lower()


async def test_wal_05_a_void_returns_every_stake_once_before_and_after_settlement(
    hall: Corrected,
) -> None:
    await hall.north.open_account("ann", 20_000)
    bets = (("red", "", 5_000), ("straight", "5", 1_000))
    round_id = await hall.boss.open_round(WHEEL)
    await hall.stake(round_id, "ann", *bets)
    assert await hall.available("ann") == 14_000
    at: dict[str, Any] = {"table_id": WHEEL, "round_id": round_id}
    request_id = uuid7()
    voids = [
        operators.VoidRoundRequest(request_id=each, **at, reason=tables.ROUND_REASON_DISPUTE)
        for each in (request_id, request_id, uuid7(), uuid7())
    ]
    told = await asyncio.gather(
        *(hall.boss.tables.VoidRound(one, **hall.as_(PROPOSER)) for one in voids),
        return_exceptions=True,
    )
    assert (
        sum(isinstance(one, operators.VoidRoundResponse) and not one.replayed for one in told) == 1
    )
    seen = await hall.over(WHEEL, round_id)
    assert seen.state == partner.ROUND_STATE_RETURNED
    assert await hall.available("ann") == 20_000
    assert await hall.refused(lambda: hall.preview(round_id, Outcome(voided=True))) == (
        "ROUND_NOT_PAID"
    )

    round_id = await hall.boss.open_round(WHEEL)
    await hall.stake(round_id, "ann", *bets)
    await hall.result(round_id, 1)
    assert await hall.available("ann") == 24_000
    late = operators.VoidRoundRequest(
        request_id=uuid7(), table_id=WHEEL, round_id=round_id, reason=tables.ROUND_REASON_DISPUTE
    )
    assert await hall.refused(lambda: hall.boss.tables.VoidRound(late, **hall.as_(PROPOSER))) == (
        "ROUND_OVER"
    )
    dry = await hall.preview(round_id, Outcome(voided=True))
    (one,) = dry.differences
    assert (
        sum(bet.before.payout_minor for bet in one.bets),
        sum(bet.after.payout_minor for bet in one.bets),
    ) == (10_000, 6_000)
    await corrected_by_commands(hall, round_id)
    assert await hall.available("ann") == 20_000
    again = Outcome(voided=True)
    assert await hall.refused(lambda: hall.preview(round_id, again)) == "SAME_OUTCOME"
    assert await hall.available("ann") == 20_000
    log = await connect(hall.running.server)
    said = await read_events(log)
    await log.close()
    assert sum(isinstance(event.body, tables.RoundVoided) for event in said) == 1
    assert not any(isinstance(event.body, floor_events.FloorFaultFound) for event in said)


async def corrected_by_commands(hall: Corrected, round_id: str) -> None:
    """The same by `sabot correct`, as two supervisors would."""

    async def sabot(*words: str) -> tuple[int, str]:
        at = ("--address", hall.running.address, "--data", str(hall.running.data))
        done = await asyncio.to_thread(CliRunner().invoke, app, ["correct", *words, *at])
        return done.exit_code, done.output

    code, shown = await sabot("preview", round_id, "--void")
    assert code == 0
    assert "north/ann -40.00" in shown
    dry_run = shown.rpartition("dry run ")[2].partition(";")[0]
    told = ("--void", "--reason", "dispute", "--reference", "INC-8", "--dry-run", dry_run)
    code, shown = await sabot("propose", round_id, *told)
    assert code == 0
    name = shown.partition(" is proposed")[0].splitlines()[-1]
    code, shown = await sabot("approve", name, "--operator", "sam")
    assert (code, "cannot approve it" in shown) == (1, True)
    code, shown = await sabot("approve", name)
    assert code == 0
    assert f"{name} posted: round {round_id} → void, dispute, INC-8" in shown
    code, shown = await sabot("list", "--round", round_id)
    assert (code, name in shown) == (0, True)
    code, shown = await sabot("preview", round_id, "--void")
    assert (code, "has come to this already" in shown) == (1, True)


async def test_a_seamless_partners_account_gives_back_and_gets_at_the_partner(
    tmp_path: Path,
) -> None:
    there = tmp_path / "partner"
    there.mkdir()
    async with corrected_hall(tmp_path / "data") as hall:
        keys = hall.running.data / "call_keys.json"
        with WalletProcess(there, *opened(["ann:EUR:10000"]), partner="north", keys=keys) as theirs:
            stub: Any = wallet_operator_service_pb2_grpc.WalletOperatorServiceStub(
                hall.north.servers.channel
            )
            told = profile(address=theirs.address, reversal_after_settlement=True)
            order = wallet_operators.SetPartnerProfileRequest(
                request_id=uuid7(), partner_id="north", profile=told, reason="certified"
            )
            await stub.SetPartnerProfile(order, **hall.as_(PROPOSER))
            opening = wallets.OpenAccountRequest(
                request_id=uuid7(), account_id="ann", currency_code="EUR"
            )
            await hall.north.wallet.OpenAccount(
                opening, metadata=hall.north.metadata, timeout=PATIENCE_S
            )
            round_id = await hall.boss.open_round(WHEEL)
            await hall.stake(round_id, "ann", ("red", "", 5_000))
            await hall.result(round_id, 1)
            await until_there(theirs, 15_000)
            for outcome, left in ((spin(2), 5_000), (Outcome(voided=True), 10_000)):
                done = await hall.approve(await hall.propose(round_id, outcome))
                assert done.state == corrections.CORRECTION_STATE_POSTED
                await until_there(theirs, left)
            owing = await hall.receivables.ListReceivables(
                receivables.ListReceivablesRequest(), **hall.as_(PROPOSER)
            )
            assert list(owing.receivables) == []


async def until_there(theirs: WalletProcess, minor: int) -> None:
    """Wait until ann has so much at the partner."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with closing(sqlite3.connect(theirs.books)) as books:
                (row,) = books.execute("SELECT balance_minor FROM accounts").fetchall()
            if row[0] == minor:
                return
            await asyncio.sleep(0.05)
