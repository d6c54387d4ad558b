"""Act: what is appended, what its caller is told, and what GetRequest and watchers know of it."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.call import position_message
from services.kernel.errors import Refused
from services.kernel.event import Position
from services.table.answers import ACTED, STAKED
from services.table.domain.state import Phase, Round, Table
from services.table.domain.turns import Seat, Turn
from tests.unit.blackjack_facts import spec
from tests.unit.front import FIRST, NORTH, REPEATED, SAM, Door

PLACE: dict[str, Any] = {"table_id": "t1", "round_id": "t1-7"}
DOUBLE = bet_pb2.Bet(bet_id="t1-7.3", bet="double", stake_minor=40, position="2")


def act(**change: Any) -> partners.ActRequest:
    content: dict[str, Any] = {
        "request_id": "r-3",
        "account_id": "a-1",
        "seat": 2,
        "turn": 4,
        "action": rules.ACTION_HIT,
        **PLACE,
    }
    return partners.ActRequest(**{**content, **change})


def seated(*held: int, phase: Phase = Phase.DEALING) -> Table:
    """A table of blackjack whose round 7 runs."""
    table = Table(spec=spec(), revision=1, bets=("main",), number=7)
    table.running = Round("t1-7", 7, "t1-s1", phase=phase, seated=True)
    table.running.seats = {seat: Seat("north", "a-1", 1) for seat in held}
    return table


async def test_an_action_is_appended_as_asked() -> None:
    door = Door(tables.ActionTaken(action=rules.ACTION_HIT))
    request = act()
    request.client_send_time.FromMicroseconds(1_700_000_000_123_456)
    answer = await door.partner.act(request, NORTH)
    assert answer.position == position_message(door.edge.position)
    assert not answer.HasField("extra")
    assert not answer.replayed
    (asked,) = door.edge.submitted
    assert (asked.service, asked.partner, asked.actor) == ("table", "north", "partner:north")
    assert asked.until == ACTED
    body = asked.body
    assert (body.seat, body.turn, body.action) == (2, 4, rules.ACTION_HIT)
    assert (body.extra_minor, body.currency_code) == (0, "")
    assert body.client_time_us == 1_700_000_000_123_456


@pytest.mark.parametrize("action", [rules.ACTION_DOUBLE, rules.ACTION_SPLIT, rules.ACTION_INSURE])
async def test_a_further_stake_is_waited_for(action: rules.Action.ValueType) -> None:
    door = Door(wallets.StakeReserved(bets=[DOUBLE]))
    extra = Money(currency_code="EUR", minor_units=40)
    answer = await door.partner.act(act(action=action, extra=extra), NORTH)
    assert answer.extra == DOUBLE
    (asked,) = door.edge.submitted
    assert asked.until == STAKED
    assert (asked.body.extra_minor, asked.body.currency_code) == (40, "EUR")


async def test_the_hash_covers_all_that_is_asked_and_not_the_clients_clock() -> None:
    money = Money(currency_code="EUR", minor_units=40)
    changes: list[dict[str, Any]] = [
        {},
        {"account_id": "a-2"},
        {"table_id": "t2"},
        {"round_id": "t1-8"},
        {"request_id": "r-9"},
        {"seat": 3},
        {"turn": 5},
        {"action": rules.ACTION_STAND},
        {"extra": money},
        {"extra": Money(currency_code="USD", minor_units=40)},
        {"extra": Money(currency_code="EUR", minor_units=41)},
    ]
    hashes = []
    for change in changes:
        door = Door(tables.ActionTaken())
        await door.partner.act(act(**change), NORTH)
        hashes.append(door.edge.submitted[0].body.request_hash)
    assert len(set(hashes)) == len(changes)
    door = Door(tables.ActionTaken())
    late = act()
    late.client_send_time.FromSeconds(5)
    await door.partner.act(late, NORTH)
    assert door.edge.submitted[0].body.request_hash == hashes[0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (wallets.StakeDeclined(decline=wallets.DECLINE_INSUFFICIENT_FUNDS), "INSUFFICIENT_FUNDS"),
        (
            limits.BetsRefused(violations=[limits.Violation(limit=limits.LIMIT_ACCOUNT_MAXIMUM)]),
            "ACCOUNT_MAXIMUM",
        ),
        (tables.ActionRejected(refusal=tables.REFUSAL_NOT_YOUR_SEAT), "NOT_YOUR_SEAT"),
        (tables.ActionRejected(refusal=tables.REFUSAL_NOT_YOUR_TURN), "NOT_YOUR_TURN"),
        (tables.ActionRejected(refusal=tables.REFUSAL_ACTION_PENDING), "ACTION_PENDING"),
        (tables.ActionRejected(refusal=tables.REFUSAL_ACTION_NOT_ALLOWED), "ACTION_NOT_ALLOWED"),
        (tables.ActionRejected(refusal=tables.REFUSAL_BAD_EXTRA_STAKE), "BAD_EXTRA_STAKE"),
        (tables.ActionRejected(refusal=tables.REFUSAL_ROUND_SUSPENDED), "ROUND_SUSPENDED"),
        (log.InputFailed(), "DECISION_FAILED"),
        (log.InputNoted(), "UNEXPECTED_OUTCOME"),
    ],
)
async def test_whatever_refuses_an_action_is_told(answer: Message, reason: str) -> None:
    for action in (rules.ACTION_HIT, rules.ACTION_DOUBLE):
        with pytest.raises(Refused) as caught:
            await Door(answer).partner.act(act(action=action), NORTH)
        assert caught.value.reason.name == reason
        assert caught.value.text("en")
        assert caught.value.text("fr")


async def test_a_repeat_gets_the_first_outcome() -> None:
    for outcome in (
        partners.RequestOutcome(action_taken=tables.ActionTaken()),
        partners.RequestOutcome(reserved=wallets.StakeReserved(bets=[DOUBLE])),
    ):
        door = Door(REPEATED)
        door.queries.outcomes[FIRST] = [partners.RequestOutcome(pending=True), outcome]
        answer = await door.partner.act(act(), NORTH)
        assert answer.replayed
        assert answer.HasField("extra") == outcome.HasField("reserved")
    refused = Door(REPEATED)
    rejected = tables.ActionRejected(refusal=tables.REFUSAL_NOT_YOUR_TURN)
    refused.queries.outcomes[FIRST] = [partners.RequestOutcome(action_rejected=rejected)]
    with pytest.raises(Refused) as caught:
        await refused.partner.act(act(), NORTH)
    assert caught.value.reason.name == "NOT_YOUR_TURN"


async def test_an_operator_acts_for_nobody() -> None:
    with pytest.raises(Refused) as caught:
        await Door().partner.act(act(), SAM)
    assert caught.value.reason.name == "PERMISSION_DENIED"


# ---- what is shown -----------------------------------------------------------------------------


def opened() -> tables.RoundOpened:
    return tables.RoundOpened(**PLACE, number=7, shoe_id="t1-s1", round_in_shoe=1)


async def test_the_seats_that_are_held_are_shown_while_bets_are_taken() -> None:
    door = Door()
    door.state.tables["t1"] = seated(phase=Phase.BETTING)
    door.edge.happens(opened())
    request = partners.WatchTableRequest(table_id="t1")
    stream = door.partner.watch_table(request, NORTH)
    first = await anext(stream)
    assert list(first.state.round.seats) == []
    door.state.tables["t1"] = seated(5, 2, phase=Phase.BETTING)
    door.edge.happens(tables.BetsPlaced(**PLACE))
    news = await anext(stream)
    assert [seat.seat for seat in news.round.seats] == [2, 5]
    door.edge.happens(tables.BetsPlaced(**PLACE))  # Nothing new: the same seats.
    door.state.tables["t1"] = seated(5, phase=Phase.BETTING)
    door.edge.happens(wallets.StakeDeclined(**PLACE))
    news = await anext(stream)
    assert [seat.seat for seat in news.round.seats] == [5]
    table = await door.tables.table("t1")
    assert table is not None
    assert [seat.seat for seat in table.round.seats] == [5]
    door.edge.happens(tables.BettingClosed(**PLACE))
    assert list((await anext(stream)).round.seats) == []


async def test_a_turn_is_shown_with_its_time_and_an_action_with_its_seat() -> None:
    door = Door(tables.ActionTaken())
    table = door.state.tables["t1"] = seated(2)
    running = table.running
    assert running is not None
    door.edge.happens(opened())
    door.edge.happens(tables.BettingClosed(**PLACE))
    names = (("TS", 12), ("9C", 7), ("6S", 12), ("", 8))
    cards = [
        shoes.DealtCard(index=place, card=card, hand=rules.Hand.ValueType(hand))
        for place, (card, hand) in enumerate(names)
    ]
    door.edge.happens(shoes.CardsDealt(**PLACE, cards=cards))
    running.turn = Turn(4, 1_700_000_000_000_000, Position(1, 9, 0), seat=2, hand=1)
    actions = [rules.ACTION_HIT, rules.ACTION_STAND]
    door.edge.happens(rules.ActionCalled(**PLACE, turn=4, seat=2, hand=1, actions=actions))
    shown = await door.tables.table("t1")
    assert shown is not None
    assert shown.round.turn.due_time.ToMicroseconds() == 1_700_000_000_000_000
    running.turn.due_us = None
    door.edge.happens(tables.RoundSuspended(**PLACE))
    shown = await door.tables.table("t1")
    assert shown is not None
    assert not shown.round.turn.HasField("due_time")
    answer = await door.partner.act(act(), NORTH)
    assert [list(hand.cards) for hand in answer.seat.hands] == [["TS", "6S"]]
    assert door.tables.seat("t1", "t1-6", 2) is None
    assert door.tables.seat("t1", "t1-7", 3) is None
