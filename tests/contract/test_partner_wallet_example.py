"""The example of a partner's wallet: what certification does not look at."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest

from sabot.money.v1.money_pb2 import Money
from sabot.partnerwallet.v1 import partner_reconciliation_service_pb2 as reconciling
from sabot.partnerwallet.v1 import partner_reconciliation_service_pb2_grpc as reconciling_grpc
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from sabot.partnerwallet.v1 import partner_wallet_service_pb2_grpc as wallet_grpc
from services.kernel.call_tokens import load_or_create_call_keys, signer_of
from services.partner_wallet_example.book import GREATEST_MINOR, Book
from services.wallet.domain.digests import DigestTree, Transaction, TransactionKind
from tests.contract.partner_wallets import CELL, USUAL, RunningWallet, running
from tests.contract.places import PATIENCE_S


def debit(transaction_id: str, minor: int, account_id: str = "anna") -> wallet.DebitRequest:
    return wallet.DebitRequest(
        transaction_id=transaction_id,
        account_id=account_id,
        amount=Money(currency_code="EUR", minor_units=minor),
        reason=wallet.DEBIT_REASON_STAKE,
        table_id="t1",
        round_id="t1-1",
    )


def rollback(transaction_id: str, debit_id: str, minor: int) -> wallet.RollbackRequest:
    return wallet.RollbackRequest(
        transaction_id=transaction_id,
        debit_transaction_id=debit_id,
        account_id="anna",
        amount=Money(currency_code="EUR", minor_units=minor),
        reason=wallet.ROLLBACK_REASON_VOIDED,
        table_id="t1",
        round_id="t1-1",
    )


def credit(transaction_id: str, debit_id: str, minor: int) -> wallet.CreditRequest:
    return wallet.CreditRequest(
        transaction_id=transaction_id,
        account_id="anna",
        amount=Money(currency_code="EUR", minor_units=minor),
        table_id="t1",
        round_id="t1-1",
        reason=wallet.CREDIT_REASON_WINNINGS,
        debit_transaction_ids=[debit_id],
        round_ended=True,
    )


@pytest.fixture
def book(tmp_path: Path) -> Book:
    book = Book(tmp_path / "wallet.db", USUAL)
    book.open_account("anna", "EUR", 100)
    return book


def test_what_an_account_has_is_what_it_was_opened_with_and_all_that_moved(
    book: Book, tmp_path: Path
) -> None:
    book.debit(debit("d1", 30))
    book.debit(debit("d2", 500))
    book.debit(debit("d3", 20))
    book.rollback(rollback("r3", "d3", 20))
    book.close()
    with sqlite3.connect(tmp_path / "wallet.db") as sql:
        opened, balance = sql.execute("SELECT opened_minor, balance_minor FROM accounts").fetchone()
        (moved,) = sql.execute("SELECT sum(moved_minor) FROM movements").fetchone()
    sql.close()
    assert (opened, balance, moved) == (100, 70, -30)


def test_wal_04_a_rollback_before_its_debit_is_remembered(book: Book) -> None:
    first = book.rollback(rollback("r1", "b1", 40))
    assert (first.outcome, first.returned) == (wallet.ROLLBACK_OUTCOME_DONE, False)
    late = book.debit(debit("b1", 40))
    assert late.decline == wallet.DEBIT_DECLINE_ROLLED_BACK
    for _ in range(2):
        again = book.rollback(rollback("r1", "b1", 40))
        assert (again.outcome, again.returned) == (first.outcome, first.returned)
        assert again.duplicate
    assert again.balance.minor_units == 100
    book.close()


def test_wal_04_a_settled_debit_is_not_rolled_back(book: Book) -> None:
    assert book.debit(debit("b1", 40)).balance.minor_units == 60
    assert book.credit(credit("c1", "b1", 80)).balance.minor_units == 140
    refused = book.rollback(rollback("r1", "b1", 40))
    assert refused.refusal == wallet.ROLLBACK_REFUSAL_ALREADY_SETTLED
    assert refused.balance.minor_units == 140
    book.close()


async def test_wal_04_a_call_for_another_partner_reaches_no_account(tmp_path: Path) -> None:
    async with running(RunningWallet(tmp_path)) as one:
        one.book.open_account("anna", "EUR", 100)
        one.book.debit(debit("b1", 40))
        signer = signer_of(load_or_create_call_keys(one.keys), CELL)
        token = signer.token("south", "Rollback", "r1", "anna", int(time.time()))
        async with grpc.aio.insecure_channel(one.address) as channel:
            stub: wallet_grpc.PartnerWalletServiceAsyncStub
            stub = wallet_grpc.PartnerWalletServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Rollback(
                    rollback("r1", "b1", 40),
                    metadata=(("authorization", f"Bearer {token}"),),
                    timeout=PATIENCE_S,
                )
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        anna = one.book.account("anna")
        assert anna is not None
        assert anna.balance_minor == 60


def test_wal_06_nothing_is_paid_for_a_debit_that_was_not_taken(book: Book) -> None:
    unknown = book.credit(credit("c1", "b1", 360))
    assert unknown.refusal == wallet.CREDIT_REFUSAL_DEBIT_NOT_TAKEN
    assert book.debit(debit("b2", 101)).outcome == wallet.DEBIT_OUTCOME_DECLINED
    declined = book.credit(credit("c2", "b2", 360))
    assert declined.refusal == wallet.CREDIT_REFUSAL_DEBIT_NOT_TAKEN
    assert declined.balance.minor_units == 100
    book.close()


def test_a_field_of_a_later_release_makes_no_other_call_of_a_repeat(book: Book) -> None:
    assert book.debit(debit("d1", 30)).outcome == wallet.DEBIT_OUTCOME_TAKEN
    newer = wallet.DebitRequest.FromString(debit("d1", 30).SerializeToString() + b"\xa2\x06\x01x")
    again = book.debit(newer)
    assert again.outcome == wallet.DEBIT_OUTCOME_TAKEN
    assert again.duplicate
    assert again.balance.minor_units == 70
    book.close()


def test_a_rollback_that_the_balance_cannot_take_is_refused_and_not_an_error(book: Book) -> None:
    book.debit(debit("d1", 30))
    book.open_account("full", "EUR", GREATEST_MINOR)
    book._sql.execute("UPDATE accounts SET balance_minor = ? WHERE account_id = 'anna'",
                      (GREATEST_MINOR - 29,))  # fmt: skip
    refused = book.rollback(rollback("r1", "d1", 30))
    assert refused.outcome == wallet.ROLLBACK_OUTCOME_REFUSED
    assert refused.refusal == wallet.ROLLBACK_REFUSAL_OTHER
    book.close()


async def test_it_says_nothing_of_its_inside_when_its_books_cannot_be_written(
    tmp_path: Path,
) -> None:
    async with running(RunningWallet(tmp_path)) as one:
        one.book.open_account("anna", "EUR", 100)
        one.book._sql.execute("DROP TABLE movements")
        async with grpc.aio.insecure_channel(one.address) as channel:
            stub: wallet_grpc.PartnerWalletServiceAsyncStub
            stub = wallet_grpc.PartnerWalletServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Debit(
                    debit("d1", 30),
                    metadata=one.metadata("Debit", "d1", "anna"),
                    timeout=PATIENCE_S,
                )
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert caught.value.details() == "try again"


async def test_its_digests_are_those_of_the_ledger(tmp_path: Path) -> None:
    """Both sides have the same tree over what moved and was not taken back, by the cell's time."""
    begin_us = 1_700_000_000_000_000
    moved = []
    async with running(RunningWallet(tmp_path)) as one:
        one.book.open_account("anna", "EUR", 1_000_000)
        for number in range(300):
            stake = debit(f"d{number}", 10 + number)
            stake.time.FromMicroseconds(begin_us + number)
            assert one.book.debit(stake).outcome == wallet.DEBIT_OUTCOME_TAKEN
            if number % 7 == 0:
                back = rollback(f"r{number}", stake.transaction_id, 10 + number)
                assert one.book.rollback(back).returned
            elif number < 200:
                moved.append(Transaction(f"d{number}", "anna", -10 - number, TransactionKind.DEBIT))
        assert one.book.debit(debit("beyond", 2_000_000)).decline
        tree = DigestTree(moved)
        async with grpc.aio.insecure_channel(one.address) as channel:
            stub: reconciling_grpc.PartnerReconciliationServiceAsyncStub
            stub = reconciling_grpc.PartnerReconciliationServiceStub(channel)
            for prefix in ("", "0", "a", "a1", "f" * 64):
                request = reconciling.GetDigestRequest(currency_code="EUR", prefix=prefix)
                request.from_time.FromMicroseconds(begin_us)
                request.to_time.FromMicroseconds(begin_us + 200)
                told = await stub.GetDigest(
                    request, metadata=one.metadata("GetDigest", "", ""), timeout=PATIENCE_S
                )
                node = tree.node(prefix)
                assert (told.digest.count, told.digest.digest) == (node.size, node.digest)
                assert [(child.prefix, child.count, child.digest) for child in told.children] == [
                    tuple(child) for child in tree.children(prefix)
                ]
                if node.size <= 64:
                    listed = [
                        Transaction(
                            each.transaction_id,
                            each.account_id,
                            each.amount_minor,
                            TransactionKind(each.kind),
                        )
                        for each in told.transactions
                    ]
                    assert listed == list(tree.transactions(prefix))
                else:
                    assert not told.transactions
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.GetDigest(request, timeout=PATIENCE_S)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_time_that_cannot_be_is_refused_and_moves_nothing(tmp_path: Path) -> None:
    async with running(RunningWallet(tmp_path)) as one:
        one.book.open_account("anna", "EUR", 100)
        async with grpc.aio.insecure_channel(one.address) as channel:
            digests: reconciling_grpc.PartnerReconciliationServiceAsyncStub
            digests = reconciling_grpc.PartnerReconciliationServiceStub(channel)
            wallets: wallet_grpc.PartnerWalletServiceAsyncStub
            wallets = wallet_grpc.PartnerWalletServiceStub(channel)
            for seconds, nanos in ((2**63 - 1, 0), (-(2**63), 0), (253_402_300_800, 0), (1, -1)):
                asked = reconciling.GetDigestRequest(currency_code="EUR")
                asked.from_time.FromMicroseconds(0)
                asked.to_time.seconds, asked.to_time.nanos = seconds, nanos
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await digests.GetDigest(
                        asked, metadata=one.metadata("GetDigest", "", ""), timeout=PATIENCE_S
                    )
                assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
                stake = debit("b1", 40)
                stake.time.seconds, stake.time.nanos = seconds, nanos
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await wallets.Debit(
                        stake, metadata=one.metadata("Debit", "b1", "anna"), timeout=PATIENCE_S
                    )
                assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        anna = one.book.account("anna")
        assert anna is not None
        assert anna.balance_minor == 100


def test_as_a_command_it_listens_and_ends_in_order(tmp_path: Path) -> None:
    keys = RunningWallet(tmp_path)._published
    program = [sys.executable, "-m", "services.partner_wallet_example", "--db",
               str(tmp_path / "books.db"), "--keys", str(keys), "--cell", "main",
               "--partner", "north", "--open", "anna:EUR:100", "--block", "anna"]  # fmt: skip
    with subprocess.Popen(
        [*program, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listens on 127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    book = Book(tmp_path / "books.db", USUAL)
    anna = book.account("anna")
    assert anna is not None
    assert (anna.currency_code, anna.balance_minor, anna.blocked) == ("EUR", 100, True)
    book.close()
    open_to_all = subprocess.run(
        [*program, "--listen", "0.0.0.0:0"], capture_output=True, text=True, check=False
    )
    assert open_to_all.returncode == 1
    assert "--tls-cert and --tls-key are needed" in open_to_all.stderr
