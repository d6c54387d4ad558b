"""`sabot what-if` of a round whose accounts' money is at their partner's: what its wallet said in
the log holds again, though its movements have other ids then."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import events_pb2 as tables
from services.cli.rule_change import changed_spec
from services.cli.what_if import Change, WhatIf, what_if
from services.events import event_types
from services.kernel.event import Event, Position
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import LogReader
from services.kernel.recovery import entries_until
from services.simulator.virtual_time import run_virtual
from services.table.domain.state import Phase
from services.wallet.domain.seamless_state import Movement
from services.wallet.partner_replies import Verdict
from tests.unit.partner_in_memory import no_answer, seamless_cell

LATE_MINOR = 700


class Past(NamedTuple):
    store: MemoryStore
    round_id: str
    events: list[Event]


async def _lose_cids_debits(method: str, movement: Movement) -> Verdict | None:
    return no_answer() if method == "Debit" and movement.account_id == "cid" else None


@pytest.fixture(scope="module")
def past() -> Past:
    """Stakes of ann's are taken and one goes back, ben's first is declined, cid's is never
    answered; a bet of ben's comes too late."""

    async def main() -> Past:
        async with seamless_cell("ann", "ben", "cid") as (cell, there, store):
            there.before = _lose_cids_debits
            round_id = await cell.open_round()
            placed = await cell.bet(round_id, "ann", ("player", 1_000), ("tie", 200))
            await cell.withdraw(round_id, "ann", placed.bets[1].bet_id)  # type: ignore[attr-defined]  # StakeReserved
            await cell.bet(round_id, "ben", ("banker", 99_900), ("tie", 200))
            await cell.bet(round_id, "ben", ("banker", 500))
            unanswered = asyncio.create_task(cell.bet(round_id, "cid", ("tie", 300)))
            await cell.until(lambda: there.times("Debit") > 3, "cid's debit is called")
            closing = asyncio.create_task(cell.close_betting(round_id))
            running = cell.process.state("table").tables["t1"].running
            await cell.until(lambda: running.phase is not Phase.BETTING, "betting is closed")
            await cell.bet(round_id, "ben", ("banker", LATE_MINOR))  # Nobody may bet on both sides.
            await asyncio.gather(closing, unanswered)
            await cell.until(
                lambda: not cell.process.state("wallet").seamless.movements, "all is confirmed"
            )
        log = MemoryLog(store)
        events: list[Event] = []
        last = (await log.info(wait_s=1.0)).last_sequence
        async for some in entries_until(log, LogReader(log.cell, event_types()), last):
            events += [event for entry in some for event in entry.events]
        return Past(store, round_id, events)

    return run_virtual(main())


def asked(past: Past, change: Change) -> WhatIf:
    return run_virtual(what_if(MemoryLog(past.store), past.round_id, change))


def staked(found: WhatIf) -> dict[str, int]:
    return {one.key[1]: one.would_be.stake_minor for one in found.differences if one.key[1]}


def late(past: Past) -> Position:
    """Where the late bet stands."""
    return next(
        event.position
        for event in reversed(past.events)
        if isinstance(event.body, tables.PlaceBets)
    )


def test_without_a_change_partners_say_what_they_said(past: Past) -> None:
    found = asked(past, Change())
    assert found.recorded.end == "paid"
    assert staked(found) == {"ann": 1_000, "ben": 500}
    assert found.would_be == found.recorded
    assert found.notes == []


def test_other_cards_pay_at_partners_too(past: Past) -> None:
    hands: dict[int, list[int]] = {}
    for event in past.events:
        if isinstance(event.body, shoes.CardsDealt):
            for card in event.body.cards:
                hands.setdefault(card.hand, []).append(card.index)
    places = hands[rules.HAND_PLAYER][:2] + hands[rules.HAND_BANKER][:2]
    cards = dict(zip(places, ("9S", "KS", "2S", "3S"), strict=True))
    found = asked(past, Change(cards=cards))
    assert found.would_be.end == "paid"
    won = {one.key[1]: one.would_be.net_minor for one in found.differences}
    assert won == {"ann": 1_000, "ben": -500, "": -500}
    assert found.correction.startswith(f"sabot correct propose {past.round_id}")


def test_other_rules_hold_at_partners_too(past: Past) -> None:
    found = asked(past, Change(spec=lambda spec: changed_spec(spec, "baccarat", ["tie_pays=9"])))
    assert found.would_be == found.recorded


def test_a_stake_that_the_partner_was_never_asked_for_counts_as_taken(past: Past) -> None:
    found = asked(past, Change(closing=late(past)))
    assert found.would_be.end == "paid"
    assert staked(found) == {"ann": 1_000, "ben": 500 + LATE_MINOR}
    assert found.notes == ["1 stakes that partners were never asked for count as taken"]
