"""Two books of a period are compared: the example of a partner's wallet over real calls, CSV files,
and books that contradict themselves."""

from __future__ import annotations

import hashlib
import random
import sqlite3
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sabot.money.v1.money_pb2 import Money
from sabot.partnerwallet.v1 import partner_reconciliation_service_pb2 as partners
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from sabot.reconciliation.v1 import digest_pb2 as digests
from services.cli.ledger_shown import as_csv
from services.cli.partner_books import partner_side
from services.cli.reconcile import (
    BadBooks,
    CalledSide,
    Comparison,
    TreeSide,
    compare,
    csv_rows,
    differing_lines,
    differing_rows,
    read_csv,
)
from services.wallet.domain.digests import DigestTree, Transaction, TransactionKind
from services.wallet.periods import Period
from tests.contract.partner_wallets import CELL, PARTNER, RunningWallet, running

PERIOD = Period(1_700_000_000_000_000, 1_700_086_400_000_000)
MANY = 3_000


def transactions(count: int) -> list[Transaction]:
    """Debits and credits of a period, by a seed."""
    rng = random.Random(7)
    return [
        Transaction(
            f"main-1-{number}",
            f"a{number % 20}",
            rng.choice((-1, 1)) * rng.randint(1, 10_000),
            rng.choice((TransactionKind.DEBIT, TransactionKind.CREDIT)),
            PERIOD.from_us + number,
        )
        for number in range(count)
    ]


def told_to(one: Transaction) -> wallet.DebitRequest | wallet.CreditRequest:
    """The call that a transaction is of."""
    kind = wallet.DebitRequest if one.kind is TransactionKind.DEBIT else wallet.CreditRequest
    call = kind(
        transaction_id=one.transaction_id,
        account_id=one.account_id,
        amount=Money(currency_code="EUR", minor_units=abs(one.amount_minor)),
        table_id="t1",
        round_id="t1-1",
    )
    call.time.FromMicroseconds(one.time_us)
    return call


def written_down(running: RunningWallet, made: list[Transaction]) -> None:
    """Have the partner's books hold transactions: in one commit, as quick as that."""
    book = running.book
    with book._decision():
        for one in made:
            kind = "Debit" if one.kind is TransactionKind.DEBIT else "Credit"
            book._record(kind, told_to(one), one.amount_minor, 1)


def signs(made: list[Transaction]) -> list[Transaction]:
    """Debits take, credits give."""
    return [
        one._replace(amount_minor=abs(one.amount_minor) * (-1 if one.kind == 1 else 1))
        for one in made
    ]


@pytest.fixture
async def partner(tmp_path: Path) -> AsyncIterator[RunningWallet]:
    async with running(RunningWallet(tmp_path)) as one:
        yield one


async def compared(partner: RunningWallet, made: list[Transaction]) -> Comparison:
    """The command's comparison, over the partner's own service."""
    books = partner_side(partner.address, PARTNER, "EUR", PERIOD, CELL, partner.keys, None)
    async with books as theirs:
        return await compare(TreeSide(DigestTree(made)), theirs)


async def test_books_that_are_the_same_need_one_call(partner: RunningWallet) -> None:
    made = signs(transactions(200))
    written_down(partner, made)
    found = await compared(partner, made)
    assert found.agree
    assert (found.ours, found.theirs, found.calls) == (200, 200, 1)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE movements SET moved_minor = moved_minor + 1 WHERE transaction_id = :id",
        "UPDATE movements SET account_id = 'a0' WHERE transaction_id = :id",
        "DELETE FROM movements WHERE transaction_id = :id",
        "UPDATE movements SET transaction_id = 'forged' WHERE transaction_id = :id",
    ],
)
async def test_the_one_transaction_that_was_tampered_with_is_found(
    partner: RunningWallet, tampering: str
) -> None:
    """In the partner's SQLite itself, behind its service's back, among 3,000."""
    made = signs(transactions(MANY))
    written_down(partner, made)
    victim = made[1_234]
    with sqlite3.connect(partner.books) as sql:
        sql.execute(tampering, {"id": victim.transaction_id})
    found = await compared(partner, made)
    assert found.differing
    named = {one.transaction_id: one for one in found.differing}
    assert named.pop(victim.transaction_id).ours == victim
    forged = {"forged"} if "forged" in tampering else set()
    assert set(named) == forged
    # The root, then a level with each digit: 3,000, 190, and 64 or fewer are listed.
    assert found.calls <= 3 * (1 + len(forged))
    shown = "\n".join(differing_lines(found, "EUR", over=True))
    assert victim.transaction_id in shown
    assert "calls of each side" in shown
    assert len(differing_rows(found, "EUR")) == 1 + len(found.differing)


async def test_a_debit_that_was_rolled_back_is_none(partner: RunningWallet) -> None:
    made = signs(transactions(5))
    written_down(partner, made)
    victim = next(one for one in made if one.kind is TransactionKind.DEBIT)
    with sqlite3.connect(partner.books) as sql:
        sql.execute("INSERT INTO cancelled_debits VALUES (?, 'r')", (victim.transaction_id,))
    found = await compared(partner, made)
    assert [(one.ours, one.theirs) for one in found.differing] == [(victim, None)]
    made.remove(victim)
    assert (await compared(partner, made)).agree


async def test_a_wallet_that_does_not_let_us_in_is_told(
    partner: RunningWallet, tmp_path: Path
) -> None:
    books = partner_side(partner.address, "another", "EUR", PERIOD, CELL, partner.keys, None)
    async with books as theirs:
        with pytest.raises(BadBooks, match="UNAUTHENTICATED"):
            await compare(TreeSide(DigestTree([])), theirs)


# ---- files -------------------------------------------------------------------------------------


async def test_a_copy_in_a_file_is_compared(tmp_path: Path) -> None:
    made = signs(transactions(50))
    file = tmp_path / "copy.csv"
    file.write_text(as_csv(csv_rows(made, "EUR")), newline="")
    tree = DigestTree(made)
    same = await compare(TreeSide(tree), TreeSide(read_csv(file, "EUR", PERIOD)))
    assert same.agree
    assert same.theirs == 50
    text = file.read_text().replace(made[9].transaction_id + ",", made[9].transaction_id + "x,", 1)
    file.write_text(text)
    found = await compare(TreeSide(tree), TreeSide(read_csv(file, "EUR", PERIOD)))
    assert [(one.ours, one.theirs is None) for one in found.differing] == [
        (made[9], True),
        (None, False),
    ]
    assert len(read_csv(file, "JPY", PERIOD)) == 0
    assert len(read_csv(file, "EUR", Period(0, PERIOD.from_us))) == 0


async def test_one_id_twice_in_a_file_is_a_difference(tmp_path: Path) -> None:
    made = signs(transactions(3))
    found = await compare(TreeSide(DigestTree(made)), TreeSide(DigestTree([*made, made[1]])))
    assert [(one.ours, one.theirs) for one in found.differing] == [(None, made[1])]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "no column account_id"),
        ("transaction_id,account_id,currency,kind,amount_minor\nx,a,EUR,stake,1.5\n", "line 2"),
        ("transaction_id,account_id,currency,kind,amount_minor\nx,a,EUR,gift,1\n", "line 2"),
        ("transaction_id,account_id,currency,kind,amount_minor\nx,a\n", "line 2"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "copy.csv"
    file.write_text(text)
    with pytest.raises(BadBooks, match=told):
        read_csv(file, "EUR", PERIOD)


# ---- answers that cannot be --------------------------------------------------------------------


def digest_of(tree: DigestTree, prefix: str) -> partners.GetDigestResponse:
    node = tree.node(prefix)
    return partners.GetDigestResponse(
        digest=digests.Digest(prefix=prefix, count=node.size, digest=node.digest),
        children=[
            digests.Digest(prefix=one.prefix, count=one.size, digest=one.digest)
            for one in tree.children(prefix)
        ],
    )


@pytest.mark.parametrize("fault", ["prefix", "children", "count", "nothing", "leaf"])
async def test_answers_that_do_not_fit_together_are_told(fault: str) -> None:
    tree = DigestTree(signs(transactions(100)))

    async def ask(prefix: str) -> partners.GetDigestResponse:
        told = digest_of(tree, prefix)
        if fault == "prefix":
            told.digest.prefix = prefix + "0"
        elif fault == "children":
            del told.children[3]
        elif fault == "count":
            told.children[0].count += 1
        elif fault == "nothing":
            del told.children[:]
        else:
            del told.children[:]
            told.digest.count = 1
            told.transactions.add(transaction_id="x", account_id="a", amount_minor=1, kind=1)
        return told

    with pytest.raises(BadBooks):
        await compare(TreeSide(DigestTree([])), CalledSide(ask))


# ---- the form ----------------------------------------------------------------------------------


def test_the_digest_is_what_the_proto_says() -> None:
    """Worked out by hand, so that nobody changes it unnoticed."""
    one = Transaction("1/7/0", "ann", -500, TransactionKind.STAKE)
    leaf = hashlib.sha256(
        b"\x00" + b"\x00\x00\x00\x051/7/0" + b"\x00\x00\x00\x03ann"
        + struct.pack(">q", -500) + b"\x05"
    ).digest()  # fmt: skip
    assert DigestTree([]).node().digest == bytes(32)
    assert DigestTree([one]).node().digest == leaf
    other = Transaction("1/8/0", "ben", 5, TransactionKind.PAYOUT)
    tree = DigestTree([one, other])
    first = hashlib.sha256(b"1/7/0").hexdigest()[0]
    second = hashlib.sha256(b"1/8/0").hexdigest()[0]
    assert first != second
    parts = [bytes(32)] * 16
    parts[int(first, 16)] = leaf
    parts[int(second, 16)] = DigestTree([other]).node().digest
    assert tree.node().digest == hashlib.sha256(b"\x01" + b"".join(parts)).digest()
    assert [one.prefix for one in tree.children()] == list("0123456789abcdef")


def test_a_tree_is_the_same_in_whatever_order_it_was_made() -> None:
    made = transactions(2_000)
    shuffled = list(made)
    random.Random(1).shuffle(shuffled)
    assert DigestTree(made).node() == DigestTree(shuffled).node()
    for prefix in ("", "a", "3f", "c01"):
        below = [one for one in DigestTree(made).children(prefix) if one.size]
        assert sum(one.size for one in below) == DigestTree(made).node(prefix).size or not below


@pytest.mark.parametrize("count", [100, 1_000, 10_000, 50_000])
async def test_calls_grow_as_the_logarithm(count: int) -> None:
    made = transactions(count)
    changed = list(made)
    changed[count // 2] = changed[count // 2]._replace(amount_minor=123_456)
    found = await compare(TreeSide(DigestTree(made)), TreeSide(DigestTree(changed)))
    assert len(found.differing) == 1
    assert found.calls <= {100: 2, 1_000: 3, 10_000: 4, 50_000: 4}[count]
