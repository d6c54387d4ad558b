"""All answers to one input fit one entry, with the longest ids and the most bets of everything:
`Deciding` measures them. A partner that is slow, and an account that bets much, stop no table."""

from __future__ import annotations

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.table.v1 import bet_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.table.domain.state import MAX_BETS
from services.wallet.domain.core import CORE
from services.wallet.domain.seamless_debits import MAX_ORDERS
from services.wallet.domain.seamless_returns import MAX_LEAVING
from services.wallet.domain.state import sums
from tests.unit.deciding import Deciding, Fact, by, request_id
from tests.unit.seamless_facts import Game, ids, profile
from tests.unit.wallet_facts import SUPERVISOR

P, T, A = "p" * 32, "t" * 32, "a" * 64
R = f"{T}-{'9' * 20}"
EACH = 10**12


def game(*, debit_per_bet: bool = False) -> Game:
    """The partner is seamless, its one account is open."""
    made = Deciding(CORE, careful=False)
    told = seamless.SetPartnerProfile(
        request_id=request_id(1), profile=profile(debit_per_bet=debit_per_bet), reason="agreed"
    )
    opened = wallet.OpenAccount(request_id=request_id(2), account_id=A, currency_code="EUR")
    return made.given(by(told, partner=P, actor=SUPERVISOR), by(opened, partner=P))


def bets(first: int, count: int) -> list[bet_pb2.Bet]:
    return [
        bet_pb2.Bet(
            bet_id=f"{R}.{number:018d}",
            bet="banker_no_commission",
            stake_minor=EACH,
            position="34-35-36",
            announced="voisins",
        )
        for number in range(first, first + count)
    ]


def approved(number: int, first: int, count: int) -> Fact:
    body = limits.BetsApproved(
        request_id=f"{number:064d}",
        account_id=A,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=bets(first, count),
    )
    return by(body, partner=P)


def withdrawn(first: int, count: int) -> Fact:
    body = limits.WithdrawalApproved(
        request_id="w" * 64,
        account_id=A,
        table_id=T,
        round_id=R,
        bets=bets(first, count),
        partner_id=P,
    )
    return by(body, partner=P)


VOIDED = by(limits.BookVoided(table_id=T, round_id=R), partner="")


def take_all(made: Game) -> None:
    """The partner takes every debit that is under way, and confirms all that is ordered."""
    movements = made.state.seamless.movements
    for transaction in (one for _ in range(3) for one in list(movements)):
        if transaction not in movements:
            continue
        at = movements[transaction].asked_by
        body = seamless.RecordReply(
            transaction_id=transaction,
            asked_by=entry_pb2.Position(segment=at.segment, sequence=at.sequence, index=at.index),
            table_id=T,
            round_id=R,
            account_id=A,
            outcome=seamless.REPLY_OUTCOME_DONE,
            calls=1,
        )
        made.given(by(body, partner=P, actor="system:partnerwallets"))


def nothing_is_left(made: Game) -> bool:
    """Whether all stakes are home, the partner owes and is owed nothing, and all sums to zero."""
    take_all(made)
    account = made.state.accounts[P, A]
    ledgers = {kind: minor for (kind, _, _), minor in made.state.ledgers.items() if minor}
    return not (account.reserved_minor or ledgers or any(sums(made.state).values()))


@pytest.mark.parametrize("count", [MAX_ORDERS, MAX_BETS])
@pytest.mark.parametrize("debit_per_bet", [False, True])
def test_a_request_with_the_most_bets_may_take_every_way(debit_per_bet: bool, count: int) -> None:
    for end in (withdrawn(0, count), VOIDED):
        on = game(debit_per_bet=debit_per_bet).given(approved(1, 0, count))
        take_all(on)
        on.when(end)
        assert nothing_is_left(on)
        pending = game(debit_per_bet=debit_per_bet).given(approved(1, 0, count)).when(end)
        assert wallet.StakeDeclined in map(type, pending.answers)
        assert nothing_is_left(pending)


def test_beyond_the_most_calls_a_request_is_one_debit() -> None:
    made = game(debit_per_bet=True).when(approved(1, 0, MAX_ORDERS))
    assert len(ids(made, seamless.DebitOrdered)) == MAX_ORDERS
    made.when(approved(2, MAX_ORDERS, MAX_ORDERS + 1))
    assert len(ids(made, seamless.DebitOrdered)) == 1


def requests_of_one_bet() -> Game:
    made = game()
    for number in range(MAX_BETS):
        made.given(approved(number, number, 1))
    return made


def test_many_debits_go_back_by_rollbacks_and_one_credit_for_the_rest() -> None:
    made = requests_of_one_bet()
    take_all(made)
    made.when(withdrawn(0, MAX_BETS))
    assert len(ids(made, seamless.RollbackOrdered)) == MAX_ORDERS
    (credit,) = [one for one in made.answers if isinstance(one, seamless.CreditOrdered)]
    assert len(credit.debit_transaction_ids) == MAX_BETS - MAX_ORDERS
    assert credit.amount_minor == (MAX_BETS - MAX_ORDERS) * EACH
    assert nothing_is_left(made)


def test_many_requests_that_are_withdrawn_unanswered_go_back_as_the_partner_answers() -> None:
    made = requests_of_one_bet().when(withdrawn(0, MAX_BETS))
    assert sum(isinstance(one, wallet.StakeDeclined) for one in made.answers) == MAX_ORDERS
    assert nothing_is_left(made)


def test_many_requests_that_are_withdrawn_unanswered_are_off_with_a_void() -> None:
    made = requests_of_one_bet().given(withdrawn(0, MAX_BETS)).when(VOIDED)
    assert len(made.steps) > 1
    assert sum(isinstance(one, wallet.StakeDeclined) for one in made.answers) == (
        MAX_BETS - MAX_ORDERS
    )
    assert nothing_is_left(made)


def test_a_request_whose_bets_were_withdrawn_one_by_one_comes_on_with_what_is_left() -> None:
    made = game().given(approved(1, 0, MAX_BETS))
    for number in range(MAX_BETS - 1):
        made.given(withdrawn(number, 1))
    take_all(made)
    account = made.state.accounts[P, A]
    assert account.reserved_minor == EACH
    (money,) = made.state.seamless.rounds.values()
    assert not money.pending
    made.when(VOIDED)
    assert nothing_is_left(made)
    assert MAX_LEAVING < MAX_BETS


def test_a_void_gives_the_debits_of_one_account_back_in_steps() -> None:
    made = requests_of_one_bet()
    take_all(made)
    made.when(VOIDED)
    assert len(made.steps) > 2
    assert len(ids(made, seamless.RollbackOrdered)) == MAX_BETS
    assert nothing_is_left(made)
