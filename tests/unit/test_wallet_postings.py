"""The journal: every entry balances, and the state is the sum of the entries (invariant 1)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import InvariantViolated
from services.wallet.domain.core import CORE
from services.wallet.domain.postings import Kind, Posting, postings
from services.wallet.domain.state import sums
from tests.unit.deciding import Deciding, Fact, by
from tests.unit.wallet_facts import (
    BOOK_CLOSED,
    BOOK_VOIDED,
    ROUND_SETTLED,
    approved,
    block,
    close,
    deposit,
    deposit_approved,
    open_account,
    payout,
    reserved,
    returned,
    settled,
    unblock,
    withdraw,
    withdrawal,
)

MINOR = st.integers(1, 10**12)


def test_the_entries() -> None:
    cash = (Kind.CASH, "acme", "a1", "EUR")
    held = (Kind.RESERVED, "acme", "a1", "EUR")
    house = (Kind.HOUSE, "acme", "", "EUR")
    assert postings(reserved("r1", ("b1", "tie", 40), ("b2", "tie", 2)), "acme") == (
        Posting(*cash, -42),
        Posting(*held, 42),
    )
    back = returned("w1", wallet.RETURN_REASON_WITHDRAWN, ("b1", "tie", 40))
    assert postings(back, "") == (Posting(*held, -40), Posting(*cash, 40))
    assert postings(returned("w1", wallet.RETURN_REASON_WITHDRAWN), "") == ()
    assert postings(payout(100, 117, 3), "") == (
        Posting(*held, -100),
        Posting(*house, 100),
        Posting(*house, -120),
        Posting(*cash, 117),
        Posting(Kind.COMMISSION, "acme", "", "EUR", 3),
    )
    assert postings(payout(100, 0), "") == (Posting(*held, -100), Posting(*house, 100))
    assert postings(wallet.AccountOpened(account_id="a1", currency_code="EUR"), "acme") == ()


def test_names_of_ledger_accounts() -> None:
    assert Posting(Kind.CASH, "acme", "a:1", "EUR", 1).ledger_account == "cash:acme:a:1:EUR"
    assert Posting(Kind.HOUSE, "acme", "", "EUR", 1).ledger_account == "house:acme:EUR"


@given(MINOR, st.integers(0, 10**13), st.integers(0, 10**12))
def test_every_payout_balances(stake: int, paid: int, commission: int) -> None:
    legs = postings(payout(stake, paid, commission), "")
    assert sum(leg.minor for leg in legs) == 0
    assert all(leg.minor for leg in legs)


ACCOUNTS = ("a1", "a2", "a3")


@st.composite
def histories(draw: st.DrawFn) -> list[Fact]:
    """Any order of anything, sense or nonsense."""
    facts: list[Fact] = []
    account = st.sampled_from(ACCOUNTS)
    for number in range(draw(st.integers(1, 30))):
        name, minor = draw(account), draw(st.integers(1, 300))
        bet = (f"b{draw(st.integers(0, 12))}", "tie", minor)
        match draw(st.integers(0, 11)):
            case 0:
                facts.append(open_account(number, name))
            case 1 | 2:
                facts += [deposit(number, minor, name), by(deposit_approved(number, minor, name))]
            case 3:
                facts.append(withdraw(number, minor, name))
            case 4 | 5:
                facts.append(by(approved(f"r{number}", bet, account=name)))
            case 6:
                facts.append(by(withdrawal(f"w{number}", bet)))
            case 7:
                profit, kept = draw(st.integers(-minor, 500)), draw(st.integers(0, 20))
                facts.append(settled((*bet, profit, kept), account=name))
            case 8:
                facts.append(by(draw(st.sampled_from([BOOK_CLOSED, ROUND_SETTLED]))))
            case 9:
                facts.append(by(BOOK_VOIDED, partner=""))
            case 10:
                facts.append(close(number, name))
            case _:
                facts.append(draw(st.sampled_from([block, unblock]))(number, name))
    return facts


@settings(max_examples=200, deadline=None)
@given(histories())
def test_whatever_happens_the_books_balance(history: list[Fact]) -> None:
    game = Deciding(CORE).given(
        *(open_account(900 + place, name) for place, name in enumerate(ACCOUNTS)),
        *(deposit(800 + place, 500, name) for place, name in enumerate(ACCOUNTS)),
        *(deposit_approved(800 + place, 500, name) for place, name in enumerate(ACCOUNTS)),
    )
    ledger: Counter[tuple[str, str]] = Counter()
    for name in ACCOUNTS:
        ledger["cash", name] += 500
        ledger["external", ""] -= 500
    for fact in history:
        game.steps = []
        try:
            game.when(fact)
        except InvariantViolated:
            continue  # Nonsense: the kernel answers `InputFailed`, and nothing has moved.
        for answer in game.answers:
            legs = postings(answer, "acme")
            assert sum(leg.minor for leg in legs) == 0
            for leg in legs:
                ledger[leg.kind.value, leg.account_id] += leg.minor
        assert set(sums(game.state).values()) == {0}
        for (_, name), account in game.state.accounts.items():
            assert account.available_minor == ledger["cash", name] >= 0
            assert account.reserved_minor == ledger["reserved", name] >= 0
            held = sum(
                stake.stake_minor
                for stakes in game.state.rounds.values()
                for stake in stakes.stakes.get(("acme", name), {}).values()
            )
            assert account.reserved_minor == held
        for (kind, _, _), minor in game.state.ledgers.items():
            assert minor == ledger[kind, ""]
