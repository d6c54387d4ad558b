"""Traces of what ends a bet: which of several requests, and what else is linked."""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import Event, Position
from services.kernel.traces import MAX_MATTERS, Traces
from services.settlement.domain.core import CORE as SETTLEMENT
from services.wallet.domain.core import CORE as WALLET

BET, AGAIN, SECOND, CLOSE = (
    f"00-{trace * 32}-{span * 16}-01" for trace, span in ("a1", "a2", "b1", "c1")
)


def settling() -> Traces:
    return Traces(SETTLEMENT.service, SETTLEMENT.begins, SETTLEMENT.ends)


def reserved(round_id: str = "t1-1") -> wallet.StakeReserved:
    return wallet.StakeReserved(account_id="anna", round_id=round_id)


def bill(account: str = "anna") -> settlement.BetsSettled:
    return settlement.BetsSettled(partner_id="north", account_id=account, round_id="t1-1")


def cause(body: Message, service: str = "table", traceparent: str = "") -> Event:
    return Event(
        Position(1, 9, 0), service, False, body, Position(1, 8, 0), "", "", 0, 1,
        traceparent=traceparent,
    )  # fmt: skip


def test_an_untraced_round_ends_in_the_trace_of_the_bet() -> None:
    traces = settling()
    result = cause(table.ResultAccepted())
    assert traces.of_answer(bill(), "", result) == ("", [])
    traces.heard(reserved(), "north", "")
    assert traces.of_answer(bill(), "", result) == ("", []), "an untraced bet begins nothing"
    traces.heard(reserved(), "north", BET)
    traces.heard(reserved(), "north", AGAIN)
    assert traces.of_answer(bill(), "", result) == (BET, [])
    traces.heard(reserved(), "north", SECOND)
    assert traces.of_answer(bill(), "", result) == (BET, [SECOND])


def test_whoever_ended_the_round_is_linked_and_the_round_is_theirs() -> None:
    traces = settling()
    traces.heard(reserved(), "north", BET)
    result = cause(table.ResultAccepted(), traceparent=CLOSE)
    assert traces.of_answer(bill(), "", result) == (BET, [CLOSE])
    assert traces.of_answer(settlement.RoundSettled(), "", result) == (CLOSE, [])
    assert traces.of_answer(bill("ben"), "", result) == (CLOSE, [])
    same = cause(table.ResultAccepted(), traceparent=AGAIN)
    assert traces.of_answer(bill(), "", same) == (AGAIN, []), "the same trace goes on where it is"


def test_other_accounts_partners_and_rounds_are_other_matters() -> None:
    traces = settling()
    result = cause(table.ResultAccepted())
    traces.heard(reserved(), "south", BET)
    traces.heard(reserved("t1-2"), "north", BET)
    assert traces.of_answer(bill(), "", result) == ("", [])


def test_a_step_behind_an_accounts_settlement_is_not_that_accounts() -> None:
    traces = settling()
    traces.heard(reserved(), "north", BET)
    step = cause(bill(), "settlement", traceparent=BET)
    assert traces.of_answer(bill("ben"), "", step) == ("", [])
    assert traces.of_answer(settlement.RoundSettled(), "", step) == ("", [])


def test_a_withdrawal_stays_in_the_trace_of_its_request() -> None:
    traces = Traces(WALLET.service, WALLET.begins, WALLET.ends)
    traces.heard(reserved(), "north", BET)
    back = wallet.StakeReturned(partner_id="north", account_id="anna", round_id="t1-1")
    void = cause(wallet.StakeReturned(), "limits")
    assert traces.of_answer(back, "", void) == (BET, [])
    back.request_id = "withdraw"
    assert traces.of_answer(back, "north", cause(back, "limits", SECOND)) == (SECOND, [])


def test_the_oldest_are_forgotten() -> None:
    traces = settling()
    traces.heard(reserved(), "north", BET)
    for number in range(MAX_MATTERS):
        traces.heard(reserved(f"t2-{number}"), "north", BET)
    assert traces.of_answer(bill(), "", cause(table.ResultAccepted())) == ("", [])
