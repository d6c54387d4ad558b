"""A round of blackjack: what it is told, and what it calls for (rules BJ-2 to BJ-7, BJ-13).

The machine of `games/blackjack.py` says what comes next; here it is fed from the log. One thing is
outstanding at a time: cards, a look at the hole card, the answers to an offer of insurance, or the
action of a hand. A hit and a stand take effect with `ActionTaken`; a double and a split with their
`StakeReserved`, and where that is refused nothing has happened here: the turn is as it was (BJ-14).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import blackjack
from services.games.bets import Judged
from services.games.blackjack import (
    DEALER,
    HOLE,
    Action,
    Draw,
    LookAtHole,
    NotPossible,
    OfferInsurance,
    Options,
    Over,
    RevealHole,
    Round,
    Seat,
    Spot,
    Turn,
)
from services.games.blackjack_bets import SIDE_BETS, perfect_pairs, seat_of, twenty_one_plus_3
from services.games.blackjack_result import result_of
from services.games.blackjack_strategy import Advice
from services.games.cards import is_card
from services.kernel.event import InvariantViolated

SEAT_HANDS = 10
"""A seat's hand is numbered by this and the seat."""
SPLIT_HANDS = 20
"""The same for its second hand."""

_ACTIONS = {
    Action.HIT: rules.ACTION_HIT,
    Action.STAND: rules.ACTION_STAND,
    Action.DOUBLE: rules.ACTION_DOUBLE,
    Action.SPLIT: rules.ACTION_SPLIT,
}
_PLAIN = {rules.ACTION_HIT: Action.HIT, rules.ACTION_STAND: Action.STAND}
"""Actions that take effect as they are taken."""
_STAKED = {"double": Action.DOUBLE, "split": Action.SPLIT}
"""Actions that take effect as their further stake is reserved, by its bet."""
_ADVICE = {Advice.HIT: rules.ACTION_HIT, Advice.STAND: rules.ACTION_STAND}


class SeatBet(NamedTuple):
    """A stake of the betting window that is reserved."""

    bet: str
    seat: int
    stake_minor: int


@dataclass(slots=True)
class Blackjack:
    """What a round of blackjack has come to."""

    options: Options
    bets: dict[str, SeatBet] = field(default_factory=dict[str, SeatBet])
    """By bet id, until the window's stakes are sealed; then only side bets are asked for."""
    game: Round | None = None
    """From the seal on."""
    turn: int = 0
    """Turns given so far; the offer of insurance is one."""
    spot: Spot | None = None
    """The hand that has the turn."""
    asked: bool = False
    """A question is open: to the seats, to a hand, or about the hole card."""
    side_bets_decided: bool = False
    fault: str = ""
    """Why the round cannot go on: something came that cannot be."""


Told = (
    wallet.StakeReserved
    | wallet.StakeReturned
    | wallet.StakesSealed
    | shoe.CardsDealt
    | shoe.HoleChecked
    | table.ActionTaken
    | rules.HoleCalled
    | rules.InsuranceOffered
    | rules.ActionCalled
    | rules.SideBetDecided
)
"""What a round of blackjack is told."""


def follow(one: Blackjack, body: Told) -> None:
    """Fold one event of the round."""
    try:
        _follow(one, body)
    except NotPossible as fault:
        one.fault = one.fault or str(fault)


def _follow(one: Blackjack, body: Told) -> None:
    match body:
        case wallet.StakeReserved():
            for bet in body.bets:
                _reserved(one, body.stage, bet)
        case wallet.StakeReturned():
            for bet in body.bets:
                one.bets.pop(bet.bet_id, None)
        case wallet.StakesSealed():
            _sealed(one, body)
        case shoe.CardsDealt():
            for card in body.cards:
                _card(one, card)
        case shoe.HoleChecked():
            if one.game is not None and one.game.peeked is None:
                one.game.peeked = body.blackjack
                one.asked = False
        case table.ActionTaken():
            action = _PLAIN.get(body.action)
            if action is not None and body.turn == one.turn:
                _act(one, body.seat, action)
        case rules.HoleCalled():
            one.asked = True
        case rules.InsuranceOffered():
            one.turn = body.turn
            one.asked = True
        case rules.ActionCalled():
            one.turn = body.turn
            one.spot = Spot(body.seat, body.hand)
            one.asked = True
        case rules.SideBetDecided():
            one.side_bets_decided = True
        case _:
            assert_never(body)


def _reserved(one: Blackjack, stage: int, bet: bet_pb2.Bet) -> None:
    seat = seat_of(bet.position) or 0
    match stage:
        case bet_pb2.STAGE_UNSPECIFIED:
            one.bets[bet.bet_id] = SeatBet(bet.bet, seat, bet.stake_minor)
        case bet_pb2.STAGE_PLAY if bet.bet in _STAKED:
            _act(one, seat, _STAKED[bet.bet])
        case _:
            pass  # Insurance changes nothing of the play.


def _sealed(one: Blackjack, body: wallet.StakesSealed) -> None:
    """Only seats with a main bet are dealt (BJ-2)."""
    if body.stage == bet_pb2.STAGE_INSURANCE:
        if one.game is not None:
            one.game.insurance_over = True
            one.asked = False
        return
    mains: dict[int, int] = {}
    for bet in one.bets.values():
        if bet.bet == "main":
            mains[bet.seat] = mains.get(bet.seat, 0) + bet.stake_minor
    seats = {seat: Seat(mains[seat]) for seat in sorted(mains)}
    one.game = Round(one.options, seats)


def _card(one: Blackjack, card: shoe.DealtCard) -> None:
    spot = spot_of(card.hand)
    if one.game is None or spot is None:
        raise NotPossible(f"hand {card.hand} gets a card")
    hidden = spot == HOLE and not card.card
    if not hidden and not is_card(card.card):
        raise NotPossible(f"no such card: {card.card!r}")
    if spot == HOLE and not hidden:
        one.asked = False
        blackjack.open_hole(one.game, card.card)
    else:
        blackjack.take_card(one.game, spot, card.card)


def _act(one: Blackjack, seat: int, action: Action) -> None:
    if one.game is None or one.spot is None or one.spot.seat != seat:
        raise NotPossible(f"seat {seat} acts out of turn")
    blackjack.act(one.game, one.spot, action)
    one.spot = None
    one.asked = False


def spot_of(hand: int) -> Spot | None:
    """Where a card of this `sabot.rules.v1.Hand` lies; None for those of other games."""
    match hand:
        case rules.HAND_DEALER:
            return DEALER
        case rules.HAND_HOLE:
            return HOLE
        case _:
            kind, seat = (hand - 1) // SEAT_HANDS * SEAT_HANDS, hand % SEAT_HANDS
            numbers = {SEAT_HANDS: 1, SPLIT_HANDS: 2}
            known = kind in numbers and 1 <= seat <= blackjack.SEATS
            return Spot(seat, numbers[kind]) if known else None


def _hand_of(spot: Spot) -> rules.Hand.ValueType:
    if spot == DEALER:
        return rules.HAND_DEALER
    if spot == HOLE:
        return rules.HAND_HOLE
    first = SEAT_HANDS if spot.hand == 1 else SPLIT_HANDS
    return rules.Hand.ValueType(first + spot.seat)


# ---- what comes next ---------------------------------------------------------------------------


def next_calls(
    one: Blackjack, table_id: str, round_id: str, shoe_id: str, called: int, *, suspended: bool
) -> Sequence[Message]:
    """What rules answers once every card that was called has come. A suspension holds calls and
    turns; what is known is told nevertheless. Raises InvariantViolated."""
    if one.fault:
        raise InvariantViolated(f"{round_id}: {one.fault}")
    if one.game is None or one.asked:
        return ()
    answers: list[Message] = []
    if one.game.hole_dealt and not one.side_bets_decided:
        answers.extend(_side_bets(one, one.game, table_id, round_id))
    step = blackjack.next_step(one.game)
    if isinstance(step, Over):
        result = rules.Result(blackjack=result_of(one.game))
        answers.append(rules.RoundResolved(table_id=table_id, round_id=round_id, result=result))
    elif not suspended:
        answers.append(
            _call(
                one,
                one.game,
                step,
                rules.DrawCalled(
                    table_id=table_id, round_id=round_id, shoe_id=shoe_id, called_before=called
                ),
            )
        )
    return answers


def _call(
    one: Blackjack,
    game: Round,
    step: Draw | OfferInsurance | LookAtHole | Turn | RevealHole,
    draw: rules.DrawCalled,
) -> Message:
    """`draw`: a call for cards that names everything but the cards."""
    table_id, round_id, turn = draw.table_id, draw.round_id, one.turn + 1
    match step:
        case Draw():
            draw.hands.extend(_hand_of(spot) for spot in step.spots)
            return draw
        case OfferInsurance():
            return rules.InsuranceOffered(
                table_id=table_id,
                round_id=round_id,
                seats=step.seats,
                turn=turn,
                stakes_minor=step.stakes_minor,
            )
        case LookAtHole() | RevealHole():
            peek = isinstance(step, LookAtHole)
            return rules.HoleCalled(
                table_id=table_id,
                round_id=round_id,
                shoe_id=draw.shoe_id,
                purpose=rules.HOLE_PURPOSE_PEEK if peek else rules.HOLE_PURPOSE_REVEAL,
                up_card=game.dealer[0],
            )
        case Turn():
            return rules.ActionCalled(
                table_id=table_id,
                round_id=round_id,
                turn=turn,
                seat=step.spot.seat,
                hand=step.spot.hand,
                actions=[_ACTIONS[action] for action in step.actions],
                max_double_minor=step.max_double_minor,
                split_minor=step.split_minor,
                advice=_ADVICE[step.advice],
            )
        case _:
            assert_never(step)


def _side_bets(
    one: Blackjack, game: Round, table_id: str, round_id: str
) -> Sequence[rules.SideBetDecided]:
    """Every side bet that lies at a seat, once for each seat and kind (BJ-13)."""
    places = sorted({(bet.seat, bet.bet) for bet in one.bets.values() if bet.bet in SIDE_BETS})
    return [
        rules.SideBetDecided(
            table_id=table_id,
            round_id=round_id,
            seat=seat,
            bet=bet,
            line=_side_bet(game, seat, bet, round_id).line,
        )
        for seat, bet in places
    ]


def _side_bet(game: Round, seat: int, bet: str, round_id: str) -> Judged:
    if seat not in game.seats:
        raise InvariantViolated(f"{round_id}: {bet} at seat {seat}, which has no main bet")
    first, second = game.seats[seat].hands[0].cards
    if bet == "perfect_pairs":
        return perfect_pairs(first, second)
    return twenty_one_plus_3(first, second, game.dealer[0])
