"""What partners may ask of the table's projection: their requests and what became of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as logs
from sabot.partner.v1 import partner_service_pb2 as partner_v1
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import Event
from tests.unit.asking import Asking, asking_at, bets_of, failed, retry_of
from tests.unit.projecting import ON_BOTH
from tests.unit.projection_log import START_US

pytestmark = ON_BOTH


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Asking]:
    async with asking_at(tmp_path) as one:
        yield one


# ---- requests ----------------------------------------------------------------------------------


async def test_a_request_is_pending_until_its_chain_ends(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    asked = log.ask_bets(round_id, "p", "a", ("banker",), "r1")
    assert await asking.outcome(asked) == "pending"
    placed = log.place(asked)
    assert await asking.outcome(asked) == "pending"
    approved = log.approve(placed)
    assert await asking.outcome(asked) == "pending"
    reserved = log.reserve(approved)
    assert await asking.outcome(asked) == "reserved"
    found = await asking.queries.request("partner:p", round_id, "r1")
    assert found is not None
    assert found[0] == asked.position
    assert found[1].reserved == reserved.body
    assert await asking.queries.request("partner:q", round_id, "r1") is None
    assert await asking.queries.request("partner:p", "t1-2", "r1") is None
    assert await asking.queries.outcome_at(placed.position) is None
    assert await asking.links() == 0


@pytest.mark.parametrize("restart_after", [1, 2, 3])
async def test_a_restart_in_the_middle_of_a_chain(asking: Asking, restart_after: int) -> None:
    log = asking.log
    round_id = log.open_round(1)
    asked = log.ask_bets(round_id, "p", "a", ("banker",), "r1")
    event = asked
    for number, step in enumerate((log.place, log.approve, log.reserve), 1):
        if number == restart_after:
            await asking.read()
            await asking.restart()
        event = step(event)
    assert await asking.outcome(asked) == "reserved"
    assert await asking.links() == 0
    ((_, bet),) = await bets_of(asking, "p")
    assert bet.state == partner_v1.BET_STATE_ACCEPTED


async def test_a_repeat_is_no_request_of_its_own(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    asked, _ = log.bet(round_id, "p", "a", request_id="r1")
    again = log.ask_bets(round_id, "p", "a", ("banker",), "r1")
    await asking.read()
    log.add("table", logs.RequestRepeated(request_id="r1"), again)
    assert await (await asking.read()).outcome_at(again.position) is None
    found = await asking.queries.request("partner:p", round_id, "r1")
    assert found is not None
    assert found[0] == asked.position


async def test_an_id_with_another_body_leaves_the_first_outcome(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    early = log.ask_bets(round_id, "p", "a", ("banker",), "r1")
    log.add("table", rejected(early, table.REFUSAL_UNKNOWN_ROUND), early)
    asked, _ = log.bet(round_id, "p", "a", request_id="r1")
    reused = log.ask_bets(round_id, "p", "a", ("tie",), "r1")
    log.add("table", rejected(reused, table.REFUSAL_REQUEST_ID_REUSED), reused)
    found = await (await asking.read()).request("partner:p", round_id, "r1")
    assert found is not None
    assert (found[0], found[1].WhichOneof("outcome")) == (asked.position, "reserved")
    assert await asking.outcome(reused) == "rejected"


def rejected(asked: Event, refusal: table.Refusal.ValueType) -> table.BetsRejected:
    body = asked.body
    assert isinstance(body, table.PlaceBets)
    return table.BetsRejected(
        request_id=body.request_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        refusal=refusal,
    )


@pytest.mark.parametrize("steps", [0, 1, 2])
async def test_a_bet_whose_path_failed_is_refused(asking: Asking, steps: int) -> None:
    log = asking.log
    round_id = log.open_round(1)
    asked = event = log.ask_bets(round_id, "p", "a", ("banker",), "r1")
    for step in (log.place, log.approve)[:steps]:
        event = step(event)
    service = ("table", "limits", "wallet")[steps]
    # Another service's failure over the same event is not this request's.
    log.add("settlement", failed(event.body), event)
    assert await asking.outcome(asked) == "pending"
    log.add(service, failed(event.body), event)
    assert await asking.outcome(asked) == "refused"
    found = await asking.queries.outcome_at(asked.position)
    assert found is not None
    assert (found.refused.request_id, found.refused.account_id) == ("r1", "a")
    assert [one.limit for one in found.refused.violations] == [limits.LIMIT_FAILED]
    states = [bet.state for _, bet in await bets_of(asking, "p")]
    assert states == ([partner_v1.BET_STATE_REFUSED] if steps else [])


@pytest.mark.parametrize("restart", [False, True])
async def test_a_retry_that_succeeds_ends_the_chain_anew(asking: Asking, restart: bool) -> None:
    log = asking.log
    round_id = log.open_round(1)
    asked = log.ask_bets(round_id, "p", "a", ("banker",), "r1")
    placed = log.place(asked)
    log.add("limits", failed(placed.body), placed)
    retry = log.add("table", retry_of(placed), actor="operator:ann")
    log.add("table", logs.InputNoted(), retry)
    log.add("limits", failed(placed.body), retry)
    assert await asking.outcome(asked) == "refused"
    if restart:
        await asking.restart()
    again = log.add("table", retry_of(placed), actor="operator:ann")
    body = log.approve(placed).body
    log.entries.pop()
    approved = log.add("limits", body, again)
    log.reserve(approved)
    assert await asking.outcome(asked) == "reserved"
    assert await asking.links() == 0


async def test_a_withdrawal_that_failed_leaves_the_bets_on(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    _, reserved = log.bet(round_id, "p", "a")
    assert isinstance(reserved.body, wallet.StakeReserved)
    at: dict[str, Any] = {"account_id": "a", "table_id": "t1", "round_id": round_id}
    asked = log.add(
        "table", table.WithdrawBets(request_id="w", **at), partner="p", actor="partner:p"
    )
    out = log.add(
        "table", table.BetsWithdrawn(request_id="w", **at, bets=reserved.body.bets), asked
    )
    log.add("limits", failed(out.body), out)
    found = await (await asking.read()).outcome_at(asked.position)
    assert found is not None
    assert found.withdrawal_refused.violations[0].limit == limits.LIMIT_FAILED
    assert list(found.withdrawal_refused.bet_ids) == [one.bet_id for one in reserved.body.bets]
    ((_, bet),) = await bets_of(asking, "p")
    assert bet.state == partner_v1.BET_STATE_ACCEPTED


async def test_requests_about_accounts_are_answered_too(asking: Asking) -> None:
    log = asking.log
    log.open_account("p", "a", 100)
    asked, outcome = log.deposit("p", "a", 50)
    assert await asking.outcome(asked) == "deposited"
    body = asked.body
    assert isinstance(body, wallet.Deposit)
    found = await asking.queries.request("partner:p", "", body.request_id)
    assert found is not None
    assert found == (asked.position, partner_v1.RequestOutcome(deposited=outcome.body))  # type: ignore[arg-type]  # it is a FundsDeposited
    assert await asking.outcome(log.events[0]) == "account_opened"
    broken = log.add(
        "wallet",
        wallet.Withdraw(request_id="out", account_id="a"),
        partner="p",
        actor="partner:p",
    )
    log.add("wallet", failed(broken.body), broken)
    found = await (await asking.read()).request("partner:p", "", "out")
    assert found is not None
    assert found[1].account_declined.decline == wallet.DECLINE_FAILED
    assert found[1].account_declined.account_id == "a"


async def test_a_timer_s_order_is_no_request(asking: Asking) -> None:
    asking.log.open_round(1)
    assert await (await asking.read()).outcome_at(asking.log.events[0].position) is None
    assert asking.log.events[0].time_us > START_US
