"""What bettors see of a round on the floor: where cards, spins and dice come from, spins that do
not count, corrections, late bets (VIS-1, ROU-6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import UNLOGGED, Event
from services.table.outcome_view import OUTCOME_CHANGES
from services.table.round_view import CHANGES, follow
from tests.unit.asking import Asking, asking_at, bets_of

R = "t1-1"
AT: dict[str, Any] = {"table_id": "t1", "round_id": R}
DEVICE, MANUAL, DRAWN = (
    shoes.CARD_SOURCE_DEVICE,
    shoes.CARD_SOURCE_MANUAL,
    shoes.CARD_SOURCE_VIRTUAL,
)


def dealt(
    index: int, card: str, hand: rules.Hand.ValueType, source: shoes.CardSource.ValueType
) -> shoes.CardsDealt:
    return shoes.CardsDealt(
        **AT,
        shoe_id="t1-s1",
        cards=[shoes.DealtCard(index=index, card=card, hand=hand)],
        source=source,
    )


def hands(**by_index: rules.Hand.ValueType) -> rules.HandsCorrected:
    cards = [
        rules.CardInHand(index=int(index.removeprefix("at")), hand=hand)
        for index, hand in by_index.items()
    ]
    return rules.HandsCorrected(**AT, cards=cards)


HAPPENED: list[Message] = [
    dealt(8, "2S", rules.HAND_PLAYER, DEVICE),
    dealt(9, "3S", rules.HAND_BANKER, MANUAL),
    dealt(10, "4S", rules.HAND_PLAYER, DRAWN),
    shoes.SpinInvalidated(**AT, attempt=1, reason=shoes.INVALID_REASON_TOO_FEW_TURNS),
    shoes.WheelSpun(**AT, attempt=2, number=17, source=MANUAL),
    shoes.DiceRolled(**AT, attempt=3, dice=[1, 2, 3], source=DEVICE),
]
CORRECTED: list[Message] = [
    floor.CardCorrected(**AT, shoe_id="t1-s1", index=9, card="3H", read_as="3S"),
    floor.OutcomeCorrected(**AT, attempt=2, numbers=[18], read_as=[17]),
    hands(at8=rules.HAND_PLAYER, at9=rules.HAND_UNSPECIFIED),
]


def seen() -> partners.Round:
    """What is seen before anything was corrected."""
    return partners.Round(
        cards=[
            shoes.DealtCard(index=8, card="2S", hand=rules.HAND_PLAYER, source=DEVICE),
            shoes.DealtCard(index=9, card="3S", hand=rules.HAND_BANKER, source=MANUAL),
            shoes.DealtCard(index=10, card="4S", hand=rules.HAND_PLAYER),
        ],
        tosses=[
            partners.Toss(attempt=1, invalid=shoes.INVALID_REASON_TOO_FEW_TURNS),
            partners.Toss(attempt=2, numbers=[17], source=MANUAL),
            partners.Toss(attempt=3, numbers=[1, 2, 3], source=DEVICE),
        ],
    )


def seen_corrected() -> partners.Round:
    view = seen()
    view.cards[1].card = "3H"
    view.cards[1].hand = rules.HAND_UNSPECIFIED
    view.tosses[1].numbers[:] = [18]
    view.corrected = True
    return view


def event(body: Message) -> Event:
    return Event(UNLOGGED, "shoe", False, body, None, "", "", 0, 1)


def test_everything_that_is_seen_says_where_it_comes_from() -> None:
    view = partners.Round()
    for body in (*HAPPENED, *HAPPENED):  # Doing it twice is doing it once.
        follow(view, event(body), 0)
    assert view == seen()
    for body in (*CORRECTED, *CORRECTED):
        follow(view, event(body), 0)
    assert view == seen_corrected()


def test_what_changes_a_view_is_told_to_watchers() -> None:
    assert OUTCOME_CHANGES < CHANGES
    for kind in OUTCOME_CHANGES:
        assert {"table_id", "round_id"} <= set(kind.DESCRIPTOR.fields_by_name)


# ---- later, from the projection ---------------------------------------------------------------


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Asking]:
    async with asking_at(tmp_path) as one:
        yield one


async def test_a_round_tells_the_same_of_its_outcomes_later(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    cause = log.events[-1]
    for body in HAPPENED:
        log.add("shoe", body, cause)
    found = await (await asking.read()).round(round_id)
    assert found is not None
    assert (list(found.cards), list(found.tosses)) == (list(seen().cards), list(seen().tosses))
    assert not found.corrected
    await asking.restart()
    for body in CORRECTED:
        log.add("shoe", body, cause)
    found = await (await asking.read()).round(round_id)
    assert found is not None
    expected = seen_corrected()
    assert (list(found.cards), list(found.tosses)) == (list(expected.cards), list(expected.tosses))
    assert found.corrected


async def test_a_late_bet_is_told_as_late_and_paid_back(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    placed = log.place(log.ask_bets(round_id, "p", "a", ("tie",), "r1"))
    log.reserve(log.approve(placed))
    body = wallet.StakeReturned(
        account_id="a",
        table_id="t1",
        round_id=round_id,
        currency_code="EUR",
        bets=placed.body.bets,  # type: ignore[attr-defined] # BetsPlaced
        reason=wallet.RETURN_REASON_LATE,
        partner_id="p",
    )
    log.add("wallet", body, placed)
    [(_, bet)] = await bets_of(asking, "p")
    assert bet.state == partners.BET_STATE_LATE
    assert bet.payout == bet.stake


async def test_a_close_that_returns_late_bets_first_is_answered_by_the_close(
    asking: Asking,
) -> None:
    """In one step, or in several, with a restart between them."""
    log = asking.log
    round_id = log.open_round(1)
    at: dict[str, Any] = {"table_id": "t1", "round_id": round_id}
    late = table.BetsWithdrawn(**at, account_id="a", late=True, close=table.BettingClose())
    asked = log.add("table", table.CloseBetting(**at, request_id="r9"), actor="operator:ann")
    first = log.add("table", late, asked)
    second = log.add("table", late, asked)
    assert await asking.outcome(asked) == "pending"
    await asking.restart()
    log.add("limits", limits.WithdrawalApproved(**at, account_id="a"), first)
    log.add("wallet", wallet.StakeReturned(**at, account_id="a"), log.events[-1])
    assert await asking.outcome(asked) == "pending"
    log.add("table", table.BettingClosed(**at), second)  # It answers the last of the first step.
    assert await asking.outcome(asked) == "betting_closed"
    another = log.add("table", table.CloseBetting(**at, request_id="r10"), actor="operator:ann")
    log.add("table", late, another)
    log.add("table", table.BettingClosed(**at), another)
    assert await asking.outcome(another) == "betting_closed"
    assert await asking.links() == 0


@pytest.mark.parametrize(
    ("order", "ordered", "answer", "name"),
    [
        (
            orders.CorrectCard(request_id="r1", **AT),
            orders.CardCorrectionOrdered(**AT),
            floor.CardCorrected(**AT),
            "card_corrected",
        ),
        (
            orders.CorrectOutcome(request_id="r1", **AT),
            orders.OutcomeCorrectionOrdered(**AT),
            floor.OutcomeCorrected(**AT),
            "outcome_corrected",
        ),
        (
            orders.CorrectCard(request_id="r1", **AT),
            orders.CardCorrectionOrdered(**AT),
            floor.FloorRejected(**AT),
            "correction_rejected",
        ),
    ],
)
async def test_a_correction_is_answered_by_the_shoe(
    asking: Asking, order: Message, ordered: Message, answer: Message, name: str
) -> None:
    log = asking.log
    log.open_round(1)
    asked = log.add("table", order, actor="operator:sam")
    passed = log.add("table", ordered, asked)
    assert await asking.outcome(asked) == "pending"
    log.add("shoe", answer, passed)
    assert await asking.outcome(asked) == name


async def test_a_withdrawal_on_the_floor_is_answered_as_noted(asking: Asking) -> None:
    log = asking.log
    round_id = log.open_round(1)
    at: dict[str, Any] = {"table_id": "t1", "round_id": round_id, "request_id": "w1"}
    asked = log.add(
        "table", table.WithdrawBets(**at, account_id="a"), partner="p", actor="partner:p"
    )
    log.add("table", orders.WithdrawalNoted(**at, account_id="a"), asked)
    assert await asking.outcome(asked) == "withdrawal_noted"
