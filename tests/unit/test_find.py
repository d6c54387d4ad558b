"""`sabot find`: what concerns a round, an account, a bet, a request, a trace; and no more."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any, NamedTuple

import pytest

from sabot.log.v1 import events_pb2 as logs
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.find import NothingFound, Sought, event_json, event_lines, find
from services.cli.moments import Moment
from services.cli.partner_view import OPEN_TO_ALL, may_see
from services.cli.playthrough import playthrough
from services.events import event_types
from services.kernel.event import Event
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import LogBroken, LogReader
from services.kernel.recovery import entries_until
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import PLACED, SmallCell, memory_cell, spec

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
REQUEST = "ann-asks-once"
TYPES = event_types()


class Past(NamedTuple):
    """Two tables, accounts of two partners, a request that was traced and repeated."""

    store: MemoryStore
    events: list[Event]


async def ask_traced(cell: SmallCell, round_id: str) -> None:
    body = tables.PlaceBets(
        request_id=REQUEST,
        account_id="ann",
        table_id="t1",
        round_id=round_id,
        currency_code="EUR",
        bets=[bet_pb2.Bet(bet="player", stake_minor=200)],
    )
    body.request_hash = hashlib.sha256(body.SerializeToString(deterministic=True)).digest()
    await cell.process.submit(
        "table",
        body,
        partner="acme",
        actor="partner:acme",
        until=PLACED | {logs.RequestRepeated},
        wait_s=30.0,
        traceparent=f"00-{TRACE}-00f067aa0ba902b7-01",
    )


@pytest.fixture(scope="module")
def past() -> Past:
    async def main() -> Past:
        async with memory_cell() as (cell, store):
            for table_id in ("t1", "t2"):
                await cell.open_table(spec(table_id))
            for account in ("ann", "ben"):
                await cell.open_account(account, 100_000)
            await cell.open_account("ann", 100_000, partner="other")
            for number in range(2):
                one, two = await cell.open_round("t1"), await cell.open_round("t2")
                if number == 0:
                    await ask_traced(cell, one)
                    await ask_traced(cell, one)
                await cell.bet(one, "ben", ("banker", 300))
                await cell.bet(two, "ben", ("tie", 400))
                await cell.bet(one, "ann", ("player", 500), partner="other")
                await cell.close_betting(one)
                await cell.close_betting(two)
        log = MemoryLog(store)
        last = (await log.info(wait_s=1.0)).last_sequence
        events: list[Event] = []
        async for some in entries_until(log, LogReader(log.cell, TYPES), last):
            events += [event for entry in some for event in entry.events]
        return Past(store, events)

    return run_virtual(main())


def found(past: Past, partner: str = "", **ids: str) -> list[Event]:
    return searched(past, Sought(ids, partner))


def searched(past: Past, sought: Sought) -> list[Event]:
    async def main() -> list[Event]:
        return await find(MemoryLog(past.store), sought)

    return run_virtual(main())


def field(event: Event, name: str) -> Any:
    return getattr(event.body, name)


def kinds(events: list[Event]) -> Counter[str]:
    return Counter(type(event.body).__name__ for event in events)


def test_a_round_is_what_its_playthrough_shows(past: Past) -> None:
    async def main(round_id: str) -> list[Event]:
        shown = (await playthrough(MemoryLog(past.store), round_id)).shown
        return [one.event for one in shown]

    for round_id in ("t1-1", "t1-2", "t2-1", "t2-2"):
        assert found(past, round=round_id) == run_virtual(main(round_id))


def test_an_account_of_a_partner_with_what_it_asked_and_got(past: Past) -> None:
    told = found(past, account="ben", round="t2-1")
    names = kinds(told)
    assert names["PlaceBets"] == names["StakeReserved"] == names["PayoutPosted"] == 1
    mine = found(past, "acme", account="ann")
    others = found(past, "other", account="ann")
    assert kinds(mine)["FundsDeposited"] == kinds(others)["FundsDeposited"] == 1
    assert kinds(mine)["StakeReserved"] == 1
    assert kinds(others)["StakeReserved"] == 2
    both = found(past, account="ann")
    assert kinds(both)["StakeReserved"] == 3


def test_a_bet_from_its_request_to_its_payout(past: Past) -> None:
    reserved = next(
        event.body for event in past.events
        if isinstance(event.body, wallets.StakeReserved) and event.body.account_id == "ben"
    )  # fmt: skip
    told = found(past, bet=reserved.bets[0].bet_id)
    assert [type(event.body).__name__ for event in told] == [
        "PlaceBets", "BetsPlaced", "BetsApproved", "StakeReserved",
        "ResultAccepted", "BetsSettled", "PayoutPosted",
    ]  # fmt: skip
    assert {event.body.account_id for event in told if hasattr(event.body, "account_id")} == {"ben"}


def test_a_request_with_its_repetition(past: Past) -> None:
    told = found(past, request=REQUEST)
    assert kinds(told) == {
        "PlaceBets": 2, "BetsPlaced": 1, "BetsApproved": 1, "StakeReserved": 1,
        "RequestRepeated": 1,
    }  # fmt: skip


def test_a_trace_from_its_request_on(past: Past) -> None:
    told = found(past, trace=TRACE)
    traced = [event for event in told if TRACE in event.traceparent]
    assert traced == [event for event in past.events if TRACE in event.traceparent]
    assert type(traced[-1].body).__name__ == "PayoutPosted"
    # What the payout comes from is shown with it: the round's result, which nobody traced.
    assert [type(one.body).__name__ for one in told if one not in traced] == ["ResultAccepted"]


def test_a_table_and_a_time(past: Past) -> None:
    told = found(past, table="t2")
    assert {getattr(event.body, "table_id", "t2") for event in told} == {"t2"}
    closes = [event for event in told if isinstance(event.body, tables.RoundClosed)]
    assert [field(event, "round_id") for event in closes] == ["t2-1", "t2-2"]
    first, last = told[5].time_us, told[-5].time_us
    within = searched(past, Sought({"table": "t2"}, since=Moment(first), until=Moment(last)))
    assert within == [event for event in told if first <= event.time_us <= last]
    every = searched(past, Sought({}, since=Moment(first), until=Moment(last)))
    assert every == [event for event in past.events if first <= event.time_us <= last]


def test_a_partner_sees_its_own_and_what_is_nobodys(past: Past) -> None:
    told = found(past, "other", round="t1-1")
    whole = found(past, round="t1-1")
    hidden = [event for event in whole if event not in told]
    assert kinds(told)["BetsSettled"] == 1
    assert kinds(told)["CardsDealt"] == kinds(whole)["CardsDealt"]
    for event in hidden:
        owner = event.partner or getattr(event.body, "partner_id", "")
        assert owner == "acme" or type(event.body) not in OPEN_TO_ALL
    assert all(b"acme" not in event.body.SerializeToString() for event in told)


def test_what_does_not_say_whose_an_account_is_is_shown_to_nobody(past: Past) -> None:
    event = next(event for event in past.events if isinstance(event.body, settlements.BetsSettled))
    assert may_see(field(event, "partner_id"), event, TYPES)
    unsigned = settlements.BetsSettled(account_id=field(event, "account_id"))
    assert not may_see("acme", event._replace(body=unsigned, partner=""), TYPES)
    failed = logs.InputFailed(
        input_type=unsigned.DESCRIPTOR.full_name, input_body=event.body.SerializeToString()
    )
    assert not may_see("stranger", event._replace(body=failed, partner=""), TYPES)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("round", "t1-9"), ("account", "eve"), ("bet", "none"), ("table", "t"), ("trace", "0" * 32)],
)
def test_nothing_is_said_so(past: Past, kind: str, value: str) -> None:
    with pytest.raises(NothingFound, match=f"nothing in this log concerns {kind} {value}"):
        found(past, **{kind: value})


def test_a_damaged_entry_is_named(past: Past) -> None:
    entries = past.store._entries
    sequence, whole = next(
        (place, one) for place, one in enumerate(entries) if one and one.subject.endswith("let.in")
    )
    damaged = bytearray(whole.payload)
    damaged[-1] ^= 1
    entries[sequence] = whole._replace(payload=bytes(damaged))
    try:
        with pytest.raises(LogBroken):
            found(past, round="t1-1")
    finally:
        entries[sequence] = whole


def test_it_is_told_in_lines_and_as_json(past: Past) -> None:
    told = found(past, account="ben", round="t2-1")
    head, *lines = event_lines(told)
    assert head.split()[:3] == ["position", "cause", "log"]
    assert len(lines) == len(told)
    assert lines[0].startswith(str(told[0].position))
    one = event_json(told[0])
    assert (one["position"], one["cause"], one["event"]) == (
        str(told[0].position), None, "PlaceBets",
    )  # fmt: skip
    assert one["body"]["account_id"] == "ben"
