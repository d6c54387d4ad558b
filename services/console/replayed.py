"""A round as it stood behind any of its events, folded from those events alone: a replay, for
people to look at. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.console.tables_shown import HandShown, hands_of, points_of
from services.games.blackjack import total
from services.games.roulette import colour
from services.kernel.event import Event

BETTING, DEALING, PAYING, RETURNING, PAID, RETURNED = (
    partners.RoundState.Name(state)
    for state in (
        partners.ROUND_STATE_BETTING,
        partners.ROUND_STATE_DEALING,
        partners.ROUND_STATE_PAYING,
        partners.ROUND_STATE_RETURNING,
        partners.ROUND_STATE_PAID,
        partners.ROUND_STATE_RETURNED,
    )
)
PENDING, APPROVED, ON, OFF, BACK = "pending", "approved", "on", "refused", "returned"


@dataclass(slots=True)
class BetThen:
    """A bet as it stood."""

    account_id: str
    bet: str
    place: str
    stake_minor: int
    state: str
    """`pending`, `approved`, `on`, `refused`, `returned`, or its outcome."""
    payout_minor: int | None = None
    line: str = ""


@dataclass(slots=True)
class Picture:
    """A round as it stood."""

    state: str = ""
    suspended: bool = False
    cards: list[shoes.DealtCard] = field(default_factory=list[shoes.DealtCard])
    tosses: list[tuple[str, str, bool]] = field(default_factory=list[tuple[str, str, bool]])
    bets: dict[str, BetThen] = field(default_factory=dict[str, BetThen])
    resolved: bool = False
    corrected: bool = False

    @property
    def hands(self) -> list[HandShown]:
        """The cards by hand, with what they come to."""
        found = hands_of(self.cards)
        for hand in found:
            opened = [one for one in hand.cards if one]
            if hand.name in {"HAND_PLAYER", "HAND_BANKER"}:
                hand.total = str(points_of(opened))
            elif hand.name.startswith(("HAND_SEAT", "HAND_DEALER")) and opened:
                hand.total = str(total(opened).points)
        return found

    @property
    def stakes_minor(self) -> int:
        """What is on, or was when the round was paid."""
        return sum(
            one.stake_minor for one in self.bets.values() if one.state not in {OFF, BACK, PENDING}
        )

    @property
    def payouts_minor(self) -> int:
        """What was decided to be paid back so far."""
        return sum(one.payout_minor or 0 for one in self.bets.values())


def picture_at(events: Sequence[Event], index: int) -> Picture:
    """The round behind the event with this number among its events, from 0."""
    picture = Picture()
    for event in events[: index + 1]:
        if not event.is_input:
            _take(picture, event.body)
    return picture


def _take(picture: Picture, body: Message) -> None:
    match body:
        case tables.RoundOpened():
            picture.state = BETTING
        case tables.BettingClosed():
            picture.state = DEALING
        case tables.ResultAccepted():
            picture.state = PAYING
        case tables.RoundVoided():
            picture.state = RETURNING
        case wallets.RoundPaid():
            picture.state = PAID
        case wallets.RoundReturned():
            picture.state = RETURNED
        case tables.RoundSuspended() | tables.RoundResumed():
            picture.suspended = isinstance(body, tables.RoundSuspended)
        case rules.RoundResolved():
            picture.resolved = True
        case _:
            _take_outcome(picture, body)
            _take_bets(picture, body)


def _take_outcome(picture: Picture, body: Message) -> None:
    match body:
        case shoes.CardsDealt():
            picture.cards += body.cards
        case floor.CardCorrected():
            picture.corrected = True
            for place, one in enumerate(picture.cards):
                if one.index == body.index:
                    picture.cards[place] = shoes.DealtCard(
                        index=one.index, card=body.card, hand=one.hand
                    )
        case rules.HandsCorrected():
            now = {one.index: one.hand for one in body.cards}
            picture.cards = [
                shoes.DealtCard(index=one.index, card=one.card, hand=now.get(one.index, one.hand))
                for one in picture.cards
            ]
        case shoes.WheelSpun():
            picture.tosses.append((str(body.number), colour(body.number), True))
        case shoes.DiceRolled():
            told = " ".join(map(str, body.dice))
            picture.tosses.append((told, str(sum(body.dice)), True))
        case shoes.SpinInvalidated():
            picture.tosses.append(("", "", False))
        case floor.OutcomeCorrected():
            picture.corrected = True
            told = " ".join(map(str, body.numbers))
            about = colour(body.numbers[0]) if len(body.numbers) == 1 else str(sum(body.numbers))
            if picture.tosses:
                picture.tosses[-1] = (told, about, True)
        case _:
            pass


def _take_bets(picture: Picture, body: Message) -> None:
    match body:
        case tables.BetsPlaced():
            _place(picture, body.account_id, body.bets)
        case tables.ActionTaken():
            if body.extra.bet_id:
                _place(picture, body.account_id, [body.extra])
        case limits.BetsApproved():
            _mark(picture, body.bets, APPROVED)
        case limits.BetsRefused():
            for bet_id in body.bet_ids:
                if bet_id in picture.bets:
                    picture.bets[bet_id].state = OFF
        case wallets.StakeReserved():
            _mark(picture, body.bets, ON)
        case wallets.StakeDeclined():
            _mark(picture, body.bets, OFF)
        case wallets.StakeReturned():
            _mark(picture, body.bets, BACK)
        case settlements.BetsSettled():
            for one in body.bets:
                known = picture.bets.get(one.bet_id)
                if known is not None:
                    name = settlements.Outcome.Name(one.outcome)
                    known.state = name.removeprefix("OUTCOME_").lower()
                    known.payout_minor, known.line = one.payout_minor, one.line
        case _:
            pass


def _place(picture: Picture, account_id: str, bets: Iterable[bet_pb2.Bet]) -> None:
    for one in bets:
        picture.bets[one.bet_id] = BetThen(
            account_id, one.bet, one.position, one.stake_minor, PENDING
        )


def _mark(picture: Picture, bets: Iterable[bet_pb2.Bet], state: str) -> None:
    for one in bets:
        known = picture.bets.get(one.bet_id)
        if known is not None:
            known.state = state
