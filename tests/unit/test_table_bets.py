"""The table: bets placed and taken back, accepted and refused, and the order of refusals."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.table.v1 import events_pb2 as table
from services.table.domain import evolve as evolve_module
from services.table.domain.core import CORE
from services.table.domain.state import (
    MAX_ACCOUNT_REQUESTS,
    MAX_BET_REQUESTS,
    MAX_BETS,
    TableState,
)
from tests.unit.deciding import Deciding, Fact, by
from tests.unit.table_facts import (
    R2,
    bets_rejected,
    close_betting,
    declined,
    open_round,
    open_table,
    paid,
    place,
    placed,
    refused_by_limits,
    resolved,
    resume,
    shoe_opened,
    shoe_started,
    suspend,
    void,
    withdraw,
    withdrawal_approved,
    withdrawal_refused,
    withdrawal_rejected,
    withdrawn,
)

BET = ("t1-1.1", "player", 500)


def betting() -> Deciding[TableState]:
    """Round t1-1 takes bets."""
    return Deciding(CORE).given(open_table(), shoe_opened(), shoe_started(), open_round())


def repeated(request: str, first: tuple[int, int, int]) -> log.RequestRepeated:
    segment, sequence, index = first
    return log.RequestRepeated(
        request_id=request,
        first=entry_pb2.Position(segment=segment, sequence=sequence, index=index),
    )


# ---- PlaceBets ---------------------------------------------------------------------------------


def test_bets_are_placed_with_ids_that_count_through_the_round() -> None:
    log_so_far = betting().given(place("q0", ("tie", 100), account="bob"))
    log_so_far.when(place("q1", ("player", 500), ("tie", 200))).then(
        placed("q1", ("t1-1.2", "player", 500), ("t1-1.3", "tie", 200))
    )


def test_two_partners_may_use_one_request_id_and_one_account_id() -> None:
    log_so_far = betting().given(place("q1"))
    log_so_far.when(by(place("q1"), partner="other")).then(placed("q1", ("t1-1.2", "player", 500)))
    log_so_far.when(by(withdraw("w1"), partner="other")).then(
        withdrawn("w1", ("t1-1.2", "player", 500))
    )


def test_a_request_for_an_unknown_table_is_refused() -> None:
    betting().when(place(table_id="t9", round_id="t9-1")).then(
        bets_rejected(table.REFUSAL_UNKNOWN_TABLE, table_id="t9", round_id="t9-1")
    )


@pytest.mark.parametrize(
    "round_id", ["t1-2", "t1-0", "t1-01", "t1--1", "t1-x", "t1", "t1-", "1", "", "t2-1", "t1-1.1"]
)
def test_a_round_that_the_table_never_had_is_unknown(round_id: str) -> None:
    betting().when(place(round_id=round_id)).then(
        bets_rejected(table.REFUSAL_UNKNOWN_ROUND, round_id=round_id)
    )


def test_a_round_that_is_over_has_forgotten_its_requests() -> None:
    log_so_far = betting().given(place(), close_betting(), resolved(), paid())
    log_so_far.when(place()).then(bets_rejected(table.REFUSAL_REQUEST_EXPIRED))
    log_so_far.given(open_round(20))
    log_so_far.when(place()).then(bets_rejected(table.REFUSAL_REQUEST_EXPIRED))
    log_so_far.when(place(round_id=R2)).then_only(table.BetsPlaced)


def test_a_repeat_is_answered_with_the_position_of_the_first() -> None:
    log_so_far = betting().given(place())
    first = log_so_far.last.position
    log_so_far.when(place()).then(repeated("q1", first))
    log_so_far.given(close_betting())
    log_so_far.when(place()).then(repeated("q1", first))


def test_a_refused_request_is_remembered_too() -> None:
    log_so_far = betting().given(place("q1", ("dragon_7", 500)))
    first = log_so_far.last.position
    log_so_far.when(place("q1", ("dragon_7", 500))).then(repeated("q1", first))


def test_an_id_that_was_used_with_other_content_is_refused() -> None:
    log_so_far = betting().given(place())
    log_so_far.when(place(request_hash=b"other")).then(
        bets_rejected(table.REFUSAL_REQUEST_ID_REUSED)
    )
    log_so_far.when(withdraw("q1")).then(withdrawal_rejected(table.REFUSAL_REQUEST_ID_REUSED, "q1"))


def test_no_bets_after_the_close() -> None:
    log_so_far = betting().given(close_betting())
    log_so_far.when(place()).then(bets_rejected(table.REFUSAL_BETTING_CLOSED))
    log_so_far.given(resolved())
    log_so_far.when(place("q2")).then(bets_rejected(table.REFUSAL_BETTING_CLOSED, "q2"))


def test_no_bets_in_a_voided_round() -> None:
    betting().given(void()).when(place()).then(bets_rejected(table.REFUSAL_ROUND_VOIDED))


def test_no_bets_while_the_round_is_suspended() -> None:
    log_so_far = betting().given(suspend())
    log_so_far.when(place()).then(bets_rejected(table.REFUSAL_ROUND_SUSPENDED))
    log_so_far.given(resume())
    log_so_far.when(place("q2")).then(placed("q2"))


def test_one_currency_a_table() -> None:
    betting().when(place(currency="USD")).then(bets_rejected(table.REFUSAL_CURRENCY_MISMATCH))


def test_a_request_with_one_unknown_bet_is_refused_whole() -> None:
    betting().when(place("q1", ("player", 500), ("dragon_7", 500))).then(
        bets_rejected(table.REFUSAL_UNKNOWN_BET)
    )


def test_an_account_has_at_most_so_many_bets_in_a_round() -> None:
    log_so_far = betting()
    log_so_far.careful = False
    thirty = [("player", 100)] * 25
    log_so_far.given(*(place(f"q{n}", *thirty) for n in range(20)))
    log_so_far.when(place("more")).then(bets_rejected(table.REFUSAL_TOO_MANY_BETS, "more"))
    log_so_far.when(place("q1", account="bob", request_hash=b"z")).then(
        bets_rejected(table.REFUSAL_REQUEST_ID_REUSED, account="bob")
    )
    log_so_far.given(refused_by_limits("t1-1.1"))
    log_so_far.when(place("again")).then(placed("again", ("t1-1.501", "player", 500)))


def test_an_account_has_at_most_so_many_requests_and_may_still_withdraw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evolve_module, "MAX_BET_REQUESTS", 2)
    monkeypatch.setattr(evolve_module, "MAX_ACCOUNT_REQUESTS", 3)
    log_so_far = betting().given(place("q1"), place("q2"))
    log_so_far.when(place("q3")).then(bets_rejected(table.REFUSAL_TOO_MANY_REQUESTS, "q3"))
    log_so_far.when(place("q3")).then(bets_rejected(table.REFUSAL_TOO_MANY_REQUESTS, "q3"))
    log_so_far.when(withdraw("w1", "t1-1.1")).then(withdrawn("w1", BET))
    log_so_far.when(withdraw("w2")).then(withdrawal_rejected(table.REFUSAL_TOO_MANY_REQUESTS, "w2"))
    log_so_far.when(place("q3", account="bob")).then(
        placed("q3", ("t1-1.3", "player", 500), account="bob")
    )


def test_a_round_keeps_at_most_so_many_request_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evolve_module, "MAX_ROUND_REQUESTS", 1)
    log_so_far = betting().given(place("q1"))
    log_so_far.when(place("q2", account="bob")).then(
        bets_rejected(table.REFUSAL_TOO_MANY_REQUESTS, "q2", account="bob")
    )
    running = log_so_far.state.tables["t1"].running
    assert running is not None
    assert len(running.accounts) == 1


def test_a_bet_whose_decision_failed_stays_off_when_it_is_decided_again() -> None:
    log_so_far = betting().given(place())
    log_so_far.retry(log_so_far.last).then(bets_rejected(table.REFUSAL_FAILED))
    log_so_far.given(withdraw())
    log_so_far.retry(log_so_far.last).then(withdrawal_rejected(table.REFUSAL_FAILED))


# Each request breaks one more rule than the one before; the rule that stands first is named.

ORDER_OF_REFUSALS: list[tuple[table.Refusal.ValueType, list[Message | Fact], table.PlaceBets]] = [
    (
        table.REFUSAL_UNKNOWN_TABLE,
        [close_betting()],
        place("q1", ("x", 1), table_id="t9", round_id="z", currency="USD"),
    ),
    (
        table.REFUSAL_UNKNOWN_ROUND,
        [close_betting()],
        place("q1", ("x", 1), round_id="z", currency="USD"),
    ),
    (
        table.REFUSAL_REQUEST_EXPIRED,
        [place(), close_betting(), resolved(), paid()],
        place("q1", ("x", 1), currency="USD"),
    ),
    (
        table.REFUSAL_REQUEST_ID_REUSED,
        [place(), close_betting()],
        place("q1", ("x", 1), currency="USD", request_hash=b"other"),
    ),
    (
        table.REFUSAL_BETTING_CLOSED,
        [close_betting(), suspend()],
        place("q1", ("x", 1), currency="USD"),
    ),
    (table.REFUSAL_ROUND_VOIDED, [suspend(), void()], place("q1", ("x", 1), currency="USD")),
    (table.REFUSAL_ROUND_SUSPENDED, [suspend()], place("q1", ("x", 1), currency="USD")),
    (table.REFUSAL_CURRENCY_MISMATCH, [], place("q1", ("x", 1), currency="USD")),
    (table.REFUSAL_UNKNOWN_BET, [], place("q1", *[("x", 1)] * 501)),
    (table.REFUSAL_TOO_MANY_BETS, [], place("q1", *[("tie", 1)] * 501)),
]


@pytest.mark.parametrize(
    ("refusal", "happened", "request_"),
    ORDER_OF_REFUSALS,
    ids=[table.Refusal.Name(refusal) for refusal, _, _ in ORDER_OF_REFUSALS],
)
def test_order_of_refusals(
    refusal: table.Refusal.ValueType, happened: list[Message | Fact], request_: table.PlaceBets
) -> None:
    log_so_far = betting().given(*happened)
    log_so_far.when(request_).then(
        bets_rejected(refusal, round_id=request_.round_id, table_id=request_.table_id)
    )


def test_too_many_requests_comes_before_what_depends_on_the_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evolve_module, "MAX_BET_REQUESTS", 1)
    log_so_far = betting().given(place("q1"), close_betting())
    log_so_far.when(place("q2")).then(bets_rejected(table.REFUSAL_TOO_MANY_REQUESTS, "q2"))


# ---- WithdrawBets ------------------------------------------------------------------------------


def test_a_named_bet_is_withdrawn() -> None:
    log_so_far = betting().given(place("q1", ("player", 500), ("tie", 200)))
    log_so_far.when(withdraw("w1", "t1-1.2")).then(withdrawn("w1", ("t1-1.2", "tie", 200)))


def test_without_names_all_that_is_on_is_withdrawn() -> None:
    log_so_far = betting().given(
        place("q1", ("player", 500), ("tie", 200)),
        place("q2", account="bob"),
        place("q3", ("tie", 300)),
        refused_by_limits("t1-1.2"),
    )
    log_so_far.when(withdraw()).then(
        withdrawn("w1", BET, ("t1-1.4", "tie", 300)),
    )
    log_so_far.when(withdraw("w2")).then(withdrawal_rejected(table.REFUSAL_NO_SUCH_BET, "w2"))


@pytest.mark.parametrize("named", [("t1-1.9",), ("t1-1.2",), ("t1-1.1", "t1-1.1"), ("",)])
def test_a_bet_that_is_not_this_accounts_or_named_twice_is_no_such_bet(
    named: tuple[str, ...],
) -> None:
    log_so_far = betting().given(place(), place("q2", account="bob"))
    log_so_far.when(withdraw("w1", *named)).then(withdrawal_rejected(table.REFUSAL_NO_SUCH_BET))


def test_an_account_without_bets_has_none_to_withdraw() -> None:
    betting().when(withdraw()).then(withdrawal_rejected(table.REFUSAL_NO_SUCH_BET))


@pytest.mark.parametrize(
    "fate", [refused_by_limits("t1-1.1"), declined(BET)], ids=["refused", "declined"]
)
def test_a_bet_that_is_not_on_cannot_be_withdrawn(fate: Message) -> None:
    betting().given(place(), fate).when(withdraw("w1", "t1-1.1")).then(
        withdrawal_rejected(table.REFUSAL_NO_SUCH_BET)
    )


def test_a_bet_is_withdrawn_once_until_limits_refuse() -> None:
    log_so_far = betting().given(place(), withdraw())
    log_so_far.when(withdraw("w2", "t1-1.1")).then(
        withdrawal_rejected(table.REFUSAL_NO_SUCH_BET, "w2")
    )
    log_so_far.given(withdrawal_refused("t1-1.1"))
    log_so_far.when(withdraw("w3", "t1-1.1")).then(withdrawn("w3", BET))
    log_so_far.given(withdrawal_approved(BET))
    log_so_far.when(withdraw("w4", "t1-1.1")).then(
        withdrawal_rejected(table.REFUSAL_NO_SUCH_BET, "w4")
    )


def test_a_repeated_withdrawal_finds_the_first() -> None:
    log_so_far = betting().given(place(), withdraw())
    first = log_so_far.last.position
    log_so_far.when(withdraw()).then(repeated("w1", first))


@pytest.mark.parametrize(
    ("refusal", "happened", "request_"),
    [
        (table.REFUSAL_UNKNOWN_TABLE, [], withdraw(table_id="t9")),
        (table.REFUSAL_UNKNOWN_ROUND, [], withdraw(round_id=R2)),
        (table.REFUSAL_REQUEST_EXPIRED, [close_betting(), resolved(), paid()], withdraw()),
        (table.REFUSAL_BETTING_CLOSED, [close_betting(), suspend()], withdraw("w1", "no")),
        (table.REFUSAL_ROUND_VOIDED, [void()], withdraw("w1", "no")),
        (table.REFUSAL_ROUND_SUSPENDED, [suspend()], withdraw("w1", "no")),
        (table.REFUSAL_NO_SUCH_BET, [], withdraw("w1", "no")),
    ],
)
def test_order_of_refusals_of_a_withdrawal(
    refusal: table.Refusal.ValueType, happened: list[Message | Fact], request_: table.WithdrawBets
) -> None:
    betting().given(*happened).when(request_).then(
        withdrawal_rejected(refusal, round_id=request_.round_id, table_id=request_.table_id)
    )


def test_news_of_a_round_that_is_over_changes_nothing() -> None:
    log_so_far = betting().given(place(), close_betting(), resolved(), paid())
    before = repr(log_so_far.state)
    log_so_far.given(
        refused_by_limits("t1-1.1"),
        declined(BET),
        withdrawal_refused("t1-1.1"),
        withdrawal_approved(BET),
    )
    assert repr(log_so_far.state) == before


def test_whoever_may_not_bet_any_more_may_still_take_bets_back() -> None:
    assert MAX_ACCOUNT_REQUESTS > MAX_BET_REQUESTS >= MAX_BETS
