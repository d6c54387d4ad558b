"""`sabot find` by every key, on a recorded log of all games: all that names it, and nothing that
names another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from google.protobuf.message import Message

from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.find import Sought, find
from services.cli.moments import Moment
from services.events import event_types
from services.kernel.event import Event
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import LogReader
from services.kernel.recovery import read_message
from services.simulator.virtual_time import run_virtual
from tests.histories.history import HERE, load

TABLES = ("demo-1", "demo-ez", "demo-blackjack", "demo-roulette", "demo-sicbo", "demo-dragon",
          "demo-football", "floor-wheel")  # fmt: skip


class Past(NamedTuple):
    log: MemoryLog
    events: list[Event]


@cache
def past() -> Past:
    history = load(HERE / "0002-all-games.jsonl.gz")
    store = MemoryStore(history.cell, lambda: 1)
    store._entries = list(history.messages)
    reader = LogReader(history.cell, event_types())
    events = [event for one in history.messages for event in read_message(reader, one).events]
    return Past(MemoryLog(store), events)


def found(**ids: str) -> list[Event]:
    return run_virtual(find(past().log, Sought(ids)))


def fields(message: Message) -> Iterator[tuple[str, Any]]:
    """Every field that is set, of a message and of those within."""
    for field, value in message.ListFields():
        for one in value if field.is_repeated else [value]:
            yield field.name, one
            if isinstance(one, Message):
                yield from fields(one)


def named(event: Event, *names: str) -> set[str]:
    """What an event's own fields of these names hold, wherever they lie in it."""
    told: set[str] = set()
    for name, value in fields(event.body):
        if name in names:
            told.add(str(value))
    return told


def last_at(table: str, kind: type[Message]) -> Event:
    """The last event of a type at a table."""
    return next(
        one
        for one in reversed(past().events)
        if isinstance(one.body, kind) and table in named(one, "table_id")
    )


def assert_found(told: list[Event], names: Callable[[Event], set[str]], value: str) -> None:
    """All that names it, in the log's order; what else is there names no other one and answers, or
    is answered by, something that is there."""
    assert told == [one for one in past().events if one in told]
    for one in past().events:
        if value in names(one):
            assert one in told, one.position
    there = {one.position for one in told} | {one.cause for one in told}
    for one in told:
        assert value in names(one) or not names(one), one.position
        assert one.position in there or one.cause in there


@pytest.mark.parametrize("table", TABLES)
def test_a_round_of_every_game(table: str) -> None:
    value = str(getattr(last_at(table, tables.RoundClosed).body, "round_id", ""))
    told = found(round=value)
    assert_found(told, lambda one: named(one, "round_id"), value)
    kinds = {type(one.body).__name__ for one in told}
    assert {"RoundOpened", "BettingClosed", "ResultAccepted", "RoundPaid", "RoundClosed"} <= kinds


@pytest.mark.parametrize("table", TABLES[:4])
def test_a_bet_and_its_request(table: str) -> None:
    settled: Any = last_at(table, settlements.BetsSettled).body
    bet = settled.bets[0].bet_id
    reserved = next(
        one
        for one in past().events
        if isinstance(one.body, wallets.StakeReserved) and bet in named(one, "bet_id")
    )
    told = found(bet=bet)
    assert reserved in told
    kinds = [type(one.body).__name__ for one in told]
    assert kinds[0] in {"PlaceBets", "Act"}
    assert {"ResultAccepted", "BetsSettled", "PayoutPosted"} <= set(kinds)
    request = str(getattr(told[0].body, "request_id", ""))
    asked = found(request=request)
    assert_found(asked, lambda one: named(one, "request_id"), request)
    assert told[0] in asked
    assert reserved in asked
    both = found(request=request, account=settled.account_id)
    assert told[0] in both


def test_an_account_and_a_table() -> None:
    body: Any = last_at("demo-sicbo", wallets.StakeReserved).body
    told = found(account=body.account_id)
    for one in past().events:
        if getattr(one.body, "account_id", "") == body.account_id:
            assert one in told
    assert all(named(one, "account_id") <= {body.account_id} for one in told if one.cause is None)
    table = "demo-dragon"
    there = found(table=table)
    for one in past().events:
        if table in named(one, "table_id"):
            assert one in there
    assert {table} == set().union(*(named(one, "table_id") for one in there))


def test_a_trace_and_a_time() -> None:
    traced = [one for one in past().events if one.traceparent]
    for trace in {one.traceparent.split("-")[1] for one in traced[:: max(1, len(traced) // 3)]}:
        assert found(trace=trace) == [one for one in traced if trace in one.traceparent]
    first, last = past().events[200].time_us, past().events[-200].time_us
    told = run_virtual(find(past().log, Sought({}, since=Moment(first), until=Moment(last))))
    assert told == [one for one in past().events if first <= one.time_us <= last]
    table = "demo-roulette"
    at = Sought({"table": table}, since=Moment(first), until=Moment(last))
    within = found(table=table)
    assert run_virtual(find(past().log, at)) == [
        one for one in within if first <= one.time_us <= last
    ]
