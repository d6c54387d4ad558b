"""The path of one bet: read this first.

A real fleet on a real nats-server; a partner's account bets on Banker, and the bet goes its way
from PlaceBets to payout. What the partner sees comes from the public calls; what happened inside
stands in the log, where every answer names the event that it answers. docs/architecture.md draws
the same path.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log_events
from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.settlement.v1 import settlement_service_pb2, settlement_service_pb2_grpc
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import shoe_service_pb2, shoe_service_pb2_grpc
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.fleet import connect, fleet
from services.kernel.event import NEWEST_BEHAVIOUR, Event
from tests.fleet.clients import Operator, Partner, Servers, table_spec
from tests.fleet.ledger import Ledger, read_events

Body = TypeVar("Body", bound=Message)

DEPOSIT, STAKE = 100_00, 4_00
BACK_BY_WINNER = {
    rules.BACCARAT_WINNER_BANKER: STAKE + STAKE - STAKE // 20,  # even money less 5 % commission
    rules.BACCARAT_WINNER_TIE: STAKE,  # a push
    rules.BACCARAT_WINNER_PLAYER: 0,
}


async def test_the_path_of_one_bet(tmp_path: Path) -> None:
    async with fleet(tmp_path / "data", port=0) as running:
        front_door = Servers(running.address)
        north = Partner(front_door, running.tokens["partner:north"])
        dealer = Operator(front_door, running.tokens["operator:sam"])

        # An operator opens a table: rules, limits and pace are fixed by it. The custodian seals a
        # shoe for it, and commits to every card, before anyone can bet on it.
        await dealer.open_table(table_spec("t1"))
        # The log is new: what is decided in it is decided by the newest behaviour.
        assert running.host.process.behaviour == NEWEST_BEHAVIOUR
        # A partner's account is an opaque id with a balance.
        await north.open_account("anna", DEPOSIT)
        round_id = await dealer.open_round("t1")
        assert await north.balance("anna") == (DEPOSIT, 0)

        # PlaceBets returns when the wallet has reserved the stake and the log has that for good.
        placed = await north.place("anna", round_id, ("banker", STAKE), request_id="bet-no-1")
        ((bet_id, kind, stake),) = placed.bets
        assert (bet_id, kind, stake) == (f"{round_id}.1", "banker", STAKE)
        assert await north.balance("anna") == (DEPOSIT - STAKE, STAKE)
        # Sent again under the same id it is the same bet.
        assert (
            await north.place("anna", round_id, ("banker", STAKE), request_id="bet-no-1") == placed
        )
        assert await north.balance("anna") == (DEPOSIT - STAKE, STAKE)

        # The dealer closes betting; the rest happens by itself, until the round is over.
        await dealer.close_betting(round_id)
        over = await north.round_in("t1", partner.ROUND_STATE_PAID)
        result = over.result.baccarat
        back = BACK_BY_WINNER[result.winner]

        log = await connect(running.server)
        events = await read_events(log)
        await log.close()
        closed = follow_in_the_log(events, round_id, bet_id, back)

        # What the partner may ask for afterwards, all of it from `closed` on.
        at = entry_pb2.Position(segment=1, sequence=closed.position.sequence)
        assert await north.balance("anna", at_least=at) == (DEPOSIT - STAKE + back, 0)
        (listed,) = await north.list_bets(at, account_id="anna")
        assert (listed.bet_id, listed.state) == (bet_id, partner.BET_STATE_SETTLED)
        assert (listed.stake.minor_units, listed.payout.minor_units) == (STAKE, back)
        await everything_can_be_asked(north, over, bet_id, back, at)


def follow_in_the_log(events: Sequence[Event], round_id: str, bet_id: str, back: int) -> Event:
    """From the partner's request to the round's end, each answer by the event that it answers."""

    def the_input(kind: type[Body], at: int = 0) -> tuple[Event, Body]:
        found = [event for event in events if event.is_input and isinstance(event.body, kind)]
        body = found[at].body
        assert isinstance(body, kind)
        return found[at], body

    def answer_of(cause: Event, service: str, kind: type[Body]) -> tuple[Event, Body]:
        """The one answer of this service, and kind, to an event; it stands behind its cause."""
        (found,) = (
            event
            for event in events
            if event.cause == cause.position
            and event.service == service
            and isinstance(event.body, kind)
        )
        assert found.position > cause.position
        body = found.body
        assert isinstance(body, kind)
        return found, body

    # ---- the bet: table, limits, wallet ----------------------------------------------------------
    asked, request = the_input(table.PlaceBets)
    assert (asked.partner, asked.actor) == ("north", "partner:north")
    assert (request.account_id, request.round_id) == ("anna", round_id)
    placed, _ = answer_of(asked, "table", table.BetsPlaced)  # open round, new request, well formed
    approved, _ = answer_of(placed, "limits", limits.BetsApproved)  # within the table's limits
    reserved, stake = answer_of(approved, "wallet", wallet.StakeReserved)  # the caller's answer
    assert [(bet.bet_id, bet.stake_minor) for bet in stake.bets] == [(bet_id, STAKE)]
    again, _ = the_input(table.PlaceBets, 1)
    repeated, first = answer_of(again, "table", log_events.RequestRepeated)
    assert first.first.sequence == asked.position.sequence

    # ---- the close: markers run down the same path behind the last bet ---------------------------
    call, _ = the_input(table.CloseBetting)
    assert call.actor == "operator:sam"
    no_more, _ = answer_of(call, "table", table.BettingClosed)
    book, _ = answer_of(no_more, "limits", limits.BookClosed)  # every bet before it is decided
    sealed, _ = answer_of(book, "wallet", wallet.StakesSealed)  # every stake is certain
    assert reserved.position < sealed.position
    assert repeated.position < no_more.position

    # ---- the cards: called by rules, opened from the sealed shoe, dealt by shoe ------------------
    drawn, _ = answer_of(sealed, "rules", rules.DrawCalled)
    cards = 0
    while True:
        opened = next(
            event
            for event in events
            if isinstance(event.body, shoe.OpenCards)
            and event.body.asked_by.sequence == drawn.position.sequence
        )
        assert opened.actor == "system:custodian"
        dealt, hand = answer_of(opened, "shoe", shoe.CardsDealt)
        cards += len(hand.cards)
        (said,) = (e for e in events if e.cause == dealt.position and e.service == "rules")
        if isinstance(said.body, rules.RoundResolved):
            break
        drawn = said  # a third card
    assert 4 <= cards <= 6

    # ---- the end: result, settlement, payout -----------------------------------------------------
    accepted, _ = answer_of(said, "table", table.ResultAccepted)  # from here on it counts
    settled, bill = answer_of(accepted, "settlement", settlement.BetsSettled)
    assert [(bet.bet_id, bet.payout_minor) for bet in bill.bets] == [(bet_id, back)]
    summed, total = answer_of(accepted, "settlement", settlement.RoundSettled)
    assert (total.accounts, total.bets) == (1, 1)
    _, payout = answer_of(settled, "wallet", wallet.PayoutPosted)
    assert (payout.account_id, payout.stake_minor, payout.payout_minor) == ("anna", STAKE, back)
    paid, _ = answer_of(summed, "wallet", wallet.RoundPaid)
    closed, _ = answer_of(paid, "table", table.RoundClosed)  # the next round may open

    assert Ledger(events).at_rest() == []
    return closed


async def everything_can_be_asked(
    north: Partner, over: partner.Round, bet_id: str, back: int, at: entry_pb2.Position
) -> None:
    """What became of the request, the round, its settlement, and the proof of its cards."""
    became = await north.bets.GetRequest(
        partner.GetRequestRequest(request_id="bet-no-1", round_id=over.round_id, at_least=at),
        metadata=north.metadata,
    )
    assert [bet.bet_id for bet in became.outcome.reserved.bets] == [bet_id]

    told = await north.bets.GetRound(
        partner.GetRoundRequest(round_id=over.round_id, at_least=at), metadata=north.metadata
    )
    assert told.round.result == over.result
    assert [card.card for card in told.round.cards] == [card.card for card in over.cards]

    channel = north.servers.channel
    bill = await settlement_of(channel, north, over.round_id, at)
    assert [(each.account_id, each.bets[0].payout_minor) for each in bill.accounts] == [
        ("anna", back)
    ]

    stub: shoe_service_pb2_grpc.ShoeServiceAsyncStub
    stub = shoe_service_pb2_grpc.ShoeServiceStub(channel)
    shown = await stub.GetShoe(
        shoe_service_pb2.GetShoeRequest(shoe_id=over.shoe_id), metadata=north.metadata
    )
    opened = {card.index: card for card in shown.opened}
    for index, card in opened.items():  # each is the one that was committed to before the round
        facts = card.salt + over.shoe_id.encode() + index.to_bytes(4, "big") + card.card.encode()
        assert shown.commitments[32 * index : 32 * index + 32] == sha256(facts).digest()
    for dealt in over.cards:
        assert opened[dealt.index].card == dealt.card


async def settlement_of(
    channel: grpc.aio.Channel, north: Partner, round_id: str, at: entry_pb2.Position
) -> settlement_service_pb2.GetSettlementResponse:
    stub: settlement_service_pb2_grpc.SettlementServiceAsyncStub
    stub = settlement_service_pb2_grpc.SettlementServiceStub(channel)
    request = settlement_service_pb2.GetSettlementRequest(round_id=round_id, at_least=at)
    return await stub.GetSettlement(request, metadata=north.metadata)
