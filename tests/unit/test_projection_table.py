"""What partners may ask of the table's projection: rounds and bets, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.partner.v1 import partner_service_pb2 as partner_v1
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import Event, Position
from services.table.projection_queries import MAX_PAGE, BadPageKey
from services.table.queries import TableQueries
from tests.unit.asking import Asking, asking_at, bets_of, failed
from tests.unit.projecting import ON_BOTH
from tests.unit.projection_log import HandMadeLog, busy_log

pytestmark = ON_BOTH


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Asking]:
    async with asking_at(tmp_path) as one:
        yield one


def test_the_queries_are_those_that_the_shell_asks_for(asking: Asking) -> None:
    shell: TableQueries = asking.queries
    assert shell is asking.queries


# ---- rounds ------------------------------------------------------------------------------------


async def test_a_round_from_opening_to_payment(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    opened_us = log.events[-1].time_us
    _, outcome = log.bet(round_id, "p", "a")
    found = await (await asking.read()).round(round_id)
    assert found is not None
    assert (found.table_id, found.number, found.shoe_id, found.round_in_shoe) == (
        *("t1", 1, "t1-s1"),
        1,
    )
    assert found.state == partner_v1.ROUND_STATE_BETTING
    assert found.open_time.ToMicroseconds() == opened_us
    assert found.close_time.ToMicroseconds() == opened_us + 20_000_000
    assert not found.HasField("result")
    log.play(round_id, [("p", outcome)])
    found = await (await asking.read()).round(round_id)
    assert found is not None
    assert found.state == partner_v1.ROUND_STATE_PAID
    assert [card.card for card in found.cards] == ["4S", "9H", "2C", "KD", "7S"]
    assert found.result.baccarat.banker_total == 9
    closed = next(one for one in log.events if isinstance(one.body, table.BettingClosed))
    assert found.close_time.ToMicroseconds() == closed.time_us


async def test_a_round_that_was_suspended_and_voided(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    at: dict[str, Any] = {"table_id": "t1", "round_id": round_id}
    asked = log.add("table", table.SuspendRound(**at, request_id="r1"), actor="operator:ann")
    log.add("table", table.RoundSuspended(**at), asked)
    found = await (await asking.read()).round(round_id)
    assert found is not None
    assert found.suspended
    assert not found.HasField("close_time")
    asked = log.add("table", table.ResumeRound(**at, request_id="r2"), actor="operator:ann")
    resumed = log.add("table", table.RoundResumed(**at, closes_after_ms=5_000, timer=2), asked)
    found = await (await asking.read()).round(round_id)
    assert found is not None
    assert not found.suspended
    assert found.close_time.ToMicroseconds() == resumed.time_us + 5_000_000
    await asking.restart()
    log.void(round_id, [])
    found = await (await asking.read()).round(round_id)
    assert found is not None
    assert found.state == partner_v1.ROUND_STATE_RETURNED
    assert found.void_reason == table.ROUND_REASON_DEALER_ERROR
    assert await asking.outcome(asked) == "round_resumed"


async def test_an_order_that_a_fault_kept_from_being_decided_has_no_outcome(
    asking: Asking,
) -> None:
    log = asking.log
    asked = log.add("table", table.CloseTable(request_id="r1", table_id="t1"), actor="operator:ann")
    log.add("table", failed(asked.body), asked)
    assert await asking.outcome(asked) is None


async def test_an_unknown_round_is_none(asking: Asking) -> None:
    assert await (await asking.read()).round("t1-9") is None


# ---- bets --------------------------------------------------------------------------------------


async def test_a_bet_in_every_state(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    asked = log.ask_bets(round_id, "p", "a", ("banker", "tie"), "r1")
    placed = log.place(asked)
    (_, tie), (_, banker) = await bets_of(asking, "p")
    assert (banker.bet, tie.bet) == ("banker", "tie")
    assert banker.state == tie.state == partner_v1.BET_STATE_PENDING
    assert banker.stake.minor_units == 500
    assert banker.request_id == "r1"
    assert banker.place_time.ToMicroseconds() == placed.time_us
    assert not banker.HasField("payout")
    reserved = log.reserve(log.approve(placed))
    (_, tie), (_, banker) = await bets_of(asking, "p")
    assert banker.state == partner_v1.BET_STATE_ACCEPTED
    assert position_of(banker) == reserved.position
    log.play(round_id, [("p", reserved)])
    (_, tie), (_, banker) = await bets_of(asking, "p")
    assert banker.state == partner_v1.BET_STATE_SETTLED
    assert banker.outcome == settlement.OUTCOME_WON
    assert (banker.payout.minor_units, banker.commission.minor_units) == (975, 25)
    assert banker.payout.currency_code == "EUR"


async def test_bets_that_are_not_on(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    at: dict[str, Any] = {"account_id": "a", "table_id": "t1", "round_id": round_id}
    placed = log.place(log.ask_bets(round_id, "p", "a", ("player", "tie"), "refused"))
    assert isinstance(placed.body, table.BetsPlaced)
    ids = [bet.bet_id for bet in placed.body.bets]
    log.add("limits", limits.BetsRefused(request_id="refused", **at, bet_ids=ids), placed)
    approved = log.approve(log.place(log.ask_bets(round_id, "p", "a", ("banker",), "declined")))
    assert isinstance(approved.body, limits.BetsApproved)
    log.add(
        "wallet",
        wallet.StakeDeclined(request_id="declined", **at, bets=approved.body.bets),
        approved,
    )
    found = [bet.state for _, bet in await bets_of(asking, "p")]
    assert found == [partner_v1.BET_STATE_REFUSED] * 3


async def test_withdrawn_and_voided_bets_are_paid_back(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    _, first = log.bet(round_id, "p", "a")
    _, second = log.bet(round_id, "p", "a", ("tie",))
    asked, returned = withdraw(log, round_id, "p", first)
    assert await asking.outcome(asked) == "returned"
    log.void(round_id, [("p", second)])
    (_, tie), (_, banker) = await bets_of(asking, "p")
    assert (banker.state, tie.state) == (
        partner_v1.BET_STATE_WITHDRAWN,
        partner_v1.BET_STATE_VOIDED,
    )
    assert position_of(banker) == returned.position
    for bet in (banker, tie):
        assert bet.payout.minor_units == 500
        assert not bet.HasField("commission")


def position_of(bet: partner_v1.PlacedBet) -> Position:
    return Position(bet.position.segment, bet.position.sequence, bet.position.index)


def withdraw(log: HandMadeLog, round_id: str, partner: str, reserved: Event) -> tuple[Event, Event]:
    """The bets of a reservation are taken back: the input and its outcome."""
    body = reserved.body
    assert isinstance(body, wallet.StakeReserved)
    at: dict[str, Any] = {
        "account_id": body.account_id,
        "table_id": body.table_id,
        "round_id": round_id,
    }
    asked = log.add(
        "table",
        table.WithdrawBets(request_id="w1", **at),
        partner=partner,
        actor=f"partner:{partner}",
    )
    out = log.add("table", table.BetsWithdrawn(request_id="w1", **at, bets=body.bets), asked)
    approved = log.add(
        "limits", limits.WithdrawalApproved(request_id="w1", **at, bets=body.bets), out
    )
    returned = wallet.StakeReturned(
        request_id="w1",
        **at,
        currency_code="EUR",
        bets=body.bets,
        reason=wallet.RETURN_REASON_WITHDRAWN,
        partner_id=partner,
    )
    return asked, log.add("wallet", returned, approved)


async def test_bets_are_listed_for_their_partner_alone(asking: Asking) -> None:
    log = asking.log
    for number in (1, 2):
        round_id = log.open_round(number)
        for partner, account in (("p", "a"), ("p", "b"), ("q", "a")):
            log.bet(round_id, partner, account)
    queries = await asking.read()
    mine = [bet for _, bet in await queries.bets("p", None, None, 100, None)]
    assert [(bet.round_id, bet.account_id) for bet in mine] == [
        *(("t1-2", "b"), ("t1-2", "a")),
        *(("t1-1", "b"), ("t1-1", "a")),
    ]
    assert len(await queries.bets("p", "a", None, 100, None)) == 2
    assert len(await queries.bets("p", "a", "t1-1", 100, None)) == 1
    assert len(await queries.bets(None, None, "t1-1", 100, None)) == 3
    assert len(await queries.bets(None, None, None, 100, None)) == 6
    assert await queries.bets("nobody", None, None, 100, None) == []


@pytest.mark.parametrize("key", ["", "1", "1.", "-1.2", "1.2.3", "x.y", "1.²", "9" * 19 + ".0"])
async def test_a_page_key_that_no_page_ended_with_is_refused(asking: Asking, key: str) -> None:
    with pytest.raises(BadPageKey):
        await (await asking.read()).bets("p", None, None, 10, key)


async def test_bets_after_a_position_tell_every_change(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    reserved = [log.bet(round_id, "p", "a", ("player", "banker", "tie"))[1] for _ in range(4)]
    log.bet(round_id, "q", "a")
    start = Position(1, len(log.entries), 0)
    queries = await asking.read()
    bets, upto = await queries.bets_after("p", Position(1, 0, 0), 5)
    # Never only some of those that one event changed: 6 of 12.
    assert len(bets) == 6
    assert upto == reserved[1].position
    more, upto = await queries.bets_after("p", upto, 100)
    assert len(more) == 6
    assert upto == queries.position
    assert (await queries.bets_after("p", upto, 100)) == ([], upto)
    log.play(round_id, [("p", one) for one in reserved])
    queries = await asking.read()
    bets, _ = await queries.bets_after("p", start, 100)
    assert {bet.state for bet in bets} == {partner_v1.BET_STATE_SETTLED}
    assert len({bet.bet_id for bet in bets}) == len(bets) == 12
    assert [position_of(bet) for bet in bets] == sorted(position_of(bet) for bet in bets)


# ---- pages -------------------------------------------------------------------------------------


async def test_ten_thousand_bets_and_rounds_page_by_page(asking: Asking) -> None:
    log = busy_log(rounds=100, bets=50, entry_events=100)
    asking.log.entries = log.entries
    queries = await asking.read()
    seen: list[str] = []
    key: str | None = None
    while page := await queries.bets(None, None, None, 500, key):
        response = partner_v1.ListBetsResponse(bets=[bet for _, bet in page])
        assert response.ByteSize() < 4 * 1024 * 1024
        seen += [bet.bet_id for _, bet in page]
        key = page[-1][0]
    assert len(seen) == len(set(seen)) == 10_000
    positions = [tuple(int(part) for part in bet_id.split(".")[1:]) for bet_id in seen]
    assert positions == sorted(positions, reverse=True)
    listed: list[str] = []
    key = None
    while rounds := await queries.rounds(7, key):
        listed += [found.round_id for _, found in rounds]
        key = rounds[-1][0]
    assert listed == [f"t1-{number}" for number in range(100, 0, -1)]
    changed: list[str] = []
    upto = Position(1, 0, 0)
    while bets := (await queries.bets_after("p0", upto, 500)):
        changed += [bet.bet_id for bet in bets[0]]
        upto = bets[1]
        if upto == queries.position:
            break
    assert len(changed) == len(set(changed)) == 5_000


async def test_new_bets_do_not_shift_older_pages(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    for _ in range(10):
        log.bet(round_id, "p", "a")
    queries = await asking.read()
    page = await queries.bets("p", None, None, 4, None)
    for _ in range(10):
        log.bet(round_id, "p", "a")
    queries = await asking.read()
    rest = await queries.bets("p", None, None, 100, page[-1][0])
    assert len(rest) == 6
    assert not {key for key, _ in page} & {key for key, _ in rest}


async def test_a_page_has_an_end(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    for _ in range(MAX_PAGE // 10 + 1):
        log.bet(round_id, "p", "a", ("banker",) * 10)
    assert len(await (await asking.read()).bets("p", None, None, 10**9, None)) == MAX_PAGE
