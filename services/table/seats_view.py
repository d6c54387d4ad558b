"""Seats and turns of blackjack as everyone may see them, followed event by event (VIS-1, VIS-3).

Nothing of accounts, partners or stakes is in it, and of the hole card nothing until it is turned
over. Doing an event twice is doing it once.
"""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.games.blackjack import is_blackjack, total
from services.games.blackjack_bets import seat_of

SEAT_CHANGES: frozenset[type[Message]] = frozenset(
    (
        rules.InsuranceOffered,
        rules.ActionCalled,
        rules.SideBetDecided,
        rules.DrawRecalled,
        shoes.HoleChecked,
        tables.ActionTaken,
        tables.InsuranceClosed,
    )
)
"""What changes the view besides the cards and what ends the round. So does a further stake that is
reserved, which `is_further` tells from the stakes of the betting window."""

_TAKEN = {
    "double": rules.ACTION_DOUBLE,
    "split": rules.ACTION_SPLIT,
    "insurance": rules.ACTION_INSURE,
}
OFFER_TURN = 1
"""The offer of insurance comes before any action (rule BJ-13)."""
_FIRST_HANDS = range(rules.HAND_SEAT_1, rules.HAND_SEAT_7 + 1)
_SECOND_HANDS = range(rules.HAND_SEAT_1_SPLIT, rules.HAND_SEAT_7_SPLIT + 1)


SEATING: frozenset[type[Message]] = frozenset(
    (
        tables.BetsPlaced,
        limits.BetsRefused,
        limits.WithdrawalApproved,
        wallets.StakeDeclined,
    )
)
"""What may change who holds which seat while bets are taken; each names its table."""


def is_further(body: Message) -> bool:
    """Whether this is the stake of an action that took effect."""
    return isinstance(body, wallets.StakeReserved) and bool(body.stage)


def follow_seats(view: partners.Round, body: Message) -> None:
    """Change a view by an event of its round."""
    match body:
        case shoes.CardsDealt() | floor.CardCorrected() | rules.HandsCorrected():
            _show_hands(view)
        case shoes.HoleChecked():
            if body.source != shoes.CARD_SOURCE_VIRTUAL:  # A look of the custodian is no news.
                view.hole_look.blackjack = body.blackjack
                view.hole_look.source = body.source
        case rules.DrawRecalled():
            if body.turn and view.turn.turn == body.turn:
                view.ClearField("turn")
        case rules.InsuranceOffered():
            actions = (rules.ACTION_INSURE, rules.ACTION_DECLINE_INSURANCE)
            _begin(view, partners.Turn(turn=body.turn, seats=body.seats, actions=actions))
        case rules.ActionCalled():
            hand, seats = body.hand, [body.seat]
            turn = partners.Turn(turn=body.turn, seats=seats, hand=hand, actions=body.actions)
            _begin(view, turn)
        case rules.SideBetDecided():
            side_bets = _seat(view, body.seat).side_bets
            for one in side_bets:
                if one.bet == body.bet:
                    one.line = body.line  # A card was corrected.
                    return
            side_bets.add(bet=body.bet, line=body.line)
        case tables.ActionTaken():
            if not body.HasField("extra"):
                by_system = body.source == tables.SOURCE_TIMER
                _acted(view, body.turn, body.seat, body.hand, body.action, by_system=by_system)
        case wallets.StakeReserved():
            for bet in body.bets:
                seat, action = seat_of(bet.position), _TAKEN.get(bet.bet)
                if seat is not None and action is not None:
                    _staked(view, seat, action)
        case tables.InsuranceClosed():
            if not view.turn.hand:
                view.ClearField("turn")
        case tables.ResultAccepted() | tables.RoundVoided():
            view.ClearField("turn")
        case _:
            pass


def show_held(view: partners.Round, seats: Iterable[int]) -> bool:
    """While bets are taken: the seats that somebody holds. Whether that is news."""
    held = sorted(seats)
    if view.state != partners.ROUND_STATE_BETTING or held == [one.seat for one in view.seats]:
        return False
    del view.seats[:]
    view.seats.extend(partners.Seat(seat=seat) for seat in held)
    return True


def _begin(view: partners.Round, turn: partners.Turn) -> None:
    """A turn is open for those of its seats that have not answered it; not where a later one is."""
    if view.state != partners.ROUND_STATE_DEALING or view.turn.turn > turn.turn:
        return
    answered = {seat.seat for seat in view.seats for one in seat.actions if one.turn >= turn.turn}
    open_seats = [seat for seat in turn.seats if seat not in answered]
    later = any(one.turn > turn.turn for seat in view.seats for one in seat.actions)
    if open_seats and not later:
        view.turn.CopyFrom(turn)
        view.turn.seats[:] = open_seats


def _staked(view: partners.Round, seat: int, action: rules.Action.ValueType) -> None:
    """A further stake is on: each kind comes once a round to a seat."""
    known = any(one.action == action for one in _seat(view, seat).actions)
    if known:
        return
    if action == rules.ACTION_INSURE:
        # Its time may be over since it was taken; the stake is on all the same.
        _acted(view, OFFER_TURN, seat, 0, action)
    elif seat in view.turn.seats:
        _acted(view, view.turn.turn, seat, view.turn.hand, action)


def _acted(
    view: partners.Round,
    turn: int,
    seat: int,
    hand: int,
    action: rules.Action.ValueType,
    *,
    by_system: bool = False,
) -> None:
    shown = _seat(view, seat)
    if any(one.turn == turn for one in shown.actions):
        return  # It was told before.
    shown.actions.add(turn=turn, hand=hand, action=action, by_system=by_system)
    _show_hands(view)
    if view.turn.turn != turn:
        return
    if list(view.turn.seats) == [seat]:
        view.ClearField("turn")
    elif seat in view.turn.seats:
        view.turn.seats.remove(seat)


def _seat(view: partners.Round, number: int) -> partners.Seat:
    """A seat of the view, added in its place where it is not there."""
    for seat in view.seats:
        if seat.seat == number:
            return seat
    view.seats.add(seat=number)
    view.seats.sort(key=lambda one: one.seat)
    return next(seat for seat in view.seats if seat.seat == number)


def _show_hands(view: partners.Round) -> None:
    """Lay the open cards out, hand by hand; after a split the second card is the second hand's."""
    open_cards = [card for card in view.cards if card.card]
    dealer = [card.card for card in open_cards if card.hand == rules.HAND_DEALER]
    hole = [card.card for card in open_cards if card.hand == rules.HAND_HOLE]
    if not dealer:
        return
    view.dealer.CopyFrom(_hand(0, [dealer[0], *hole, *dealer[1:]]))
    for place, where in enumerate(_FIRST_HANDS):
        first = [card.card for card in open_cards if card.hand == where]
        if first:
            second = [card.card for card in open_cards if card.hand == _SECOND_HANDS[place]]
            _show_seat(_seat(view, place + 1), first, second)


def _show_seat(seat: partners.Seat, first: list[str], second: list[str]) -> None:
    taken = {action.action for action in seat.actions}
    if rules.ACTION_SPLIT in taken:
        first, second = [first[0], *first[2:]], [first[1], *second]
    hands = [
        _hand(number, cards, split=bool(second))
        for number, cards in enumerate((first, second), 1)
        if cards
    ]
    hands[0].doubled = rules.ACTION_DOUBLE in taken
    del seat.hands[:]
    seat.hands.extend(hands)


def _hand(number: int, cards: list[str], *, split: bool = False) -> partners.SeatHand:
    points, soft = total(cards)
    return partners.SeatHand(
        hand=number,
        cards=cards,
        total=points,
        soft=soft,
        blackjack=is_blackjack(cards, split=split),
    )
