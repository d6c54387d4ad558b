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
from services.rules.domain.blackjack_plays import Kind, Play, play_again

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
    plays: list[Play] = field(default_factory=list[Play])
    """All that happened since the seal, in order."""
    question: bytes = b""
    """The last question to seats, or about the hole card, as it was told."""
    lines: dict[str, str] = field(default_factory=dict[str, str])
    """The side bets that were decided, by seat and bet, each with its line."""
    insured: bool = False
    """Whether a stake of insurance is reserved."""
    corrected: bool = False
    """Whether a card was corrected: from then on the round is where its plays bring it."""
    expected: list[Spot] = field(default_factory=list[Spot])
    """Of a corrected round: the spots that are called cards and have not got them."""
    unplayed: list[int] = field(default_factory=list[int])
    """Of a corrected round: places of cards that the dealer need not have drawn."""
    contradiction: str = ""
    """Of a corrected round: why what was played cannot have been; empty: it can."""
    contradiction_told: bool = False


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
    | rules.PlayContradicted
)
"""What a round of blackjack is told."""


def follow(one: Blackjack, body: Told) -> None:
    """Fold one event of the round."""
    before = len(one.plays), one.insured
    try:
        _follow(one, body)
    except NotPossible as fault:
        one.fault = one.fault or str(fault)
    if one.corrected and before != (len(one.plays), one.insured):
        play_corrected(one)


def correct(one: Blackjack, index: int, card: str) -> None:
    """A card that lies open is another one."""
    one.plays = [
        play._replace(card=card) if play.card and play.place == index else play
        for play in one.plays
    ]
    one.corrected = True
    one.contradiction_told = False
    play_corrected(one)


def play_corrected(one: Blackjack) -> None:
    """Play a corrected round again, with the cards as they are known now."""
    if one.game is None:
        return
    mains = [(number, seat.main_minor) for number, seat in one.game.seats.items()]
    try:
        played = play_again(one.options, mains, one.plays, insured=one.insured)
    except NotPossible as fault:
        one.contradiction = str(fault)
        return
    one.contradiction = ""
    one.game, one.expected, one.unplayed = played.game, played.expected, played.unplayed


def recall(one: Blackjack) -> None:
    """What was asked is not asked any more."""
    one.asked = False
    one.spot = None


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
                one.plays.append(Play(Kind.LOOK, blackjack=body.blackjack))
        case table.ActionTaken():
            action = _PLAIN.get(body.action)
            if action is not None and body.turn == one.turn:
                _act(one, body.seat, action)
        case rules.HoleCalled():
            one.asked = True
            one.question = as_told(body)
        case rules.InsuranceOffered():
            one.turn = body.turn
            one.asked = True
            one.question = as_told(body)
        case rules.ActionCalled():
            one.turn = body.turn
            one.spot = Spot(body.seat, body.hand)
            one.asked = True
            one.question = as_told(body)
        case rules.SideBetDecided():
            one.side_bets_decided = True
            one.lines[f"{body.seat} {body.bet}"] = body.line
        case rules.PlayContradicted():
            one.contradiction_told = True
        case _:
            assert_never(body)


def _reserved(one: Blackjack, stage: int, bet: bet_pb2.Bet) -> None:
    seat = seat_of(bet.position) or 0
    match stage:
        case bet_pb2.STAGE_UNSPECIFIED:
            one.bets[bet.bet_id] = SeatBet(bet.bet, seat, bet.stake_minor)
        case bet_pb2.STAGE_PLAY if bet.bet in _STAKED:
            _act(one, seat, _STAKED[bet.bet])
        case bet_pb2.STAGE_INSURANCE:
            one.insured = True
        case _:
            pass


def _sealed(one: Blackjack, body: wallet.StakesSealed) -> None:
    """Only seats with a main bet are dealt (BJ-2)."""
    if body.stage == bet_pb2.STAGE_INSURANCE:
        if one.game is not None:
            one.game.insurance_over = True
            one.plays.append(Play(Kind.INSURED))
            if one.question.startswith(_OFFER):  # A corrected round may ask something else by now.
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
        one.plays.append(Play(Kind.TURNED, spot, card.card, card.index))
        if not one.corrected:
            blackjack.open_hole(one.game, card.card)
    else:
        one.plays.append(Play(Kind.CARD, spot, card.card, card.index))
        if not one.corrected:
            blackjack.take_card(one.game, spot, card.card)


def _act(one: Blackjack, seat: int, action: Action) -> None:
    if one.game is None or one.spot is None or one.spot.seat != seat:
        raise NotPossible(f"seat {seat} acts out of turn")
    one.plays.append(Play(Kind.ACTION, one.spot, action=action))
    if not one.corrected:
        blackjack.act(one.game, one.spot, action)
    one.spot = None
    one.asked = False


def as_told(body: Message) -> bytes:
    """A question, so that it can be held against another one."""
    name = str(body.DESCRIPTOR.full_name)
    return name.encode() + b"\0" + body.SerializeToString(deterministic=True)


_OFFER = str(rules.InsuranceOffered.DESCRIPTOR.full_name).encode()


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


def hand_of(spot: Spot) -> rules.Hand.ValueType:
    """The `sabot.rules.v1.Hand` of a spot."""
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
    if is_dealt(one, one.game) and (one.corrected or not one.side_bets_decided):
        answers.extend(side_bets(one, one.game, table_id, round_id))
    step = blackjack.next_step(one.game)
    if isinstance(step, Over):
        result = rules.Result(blackjack=result_of(one.game))
        answers.append(rules.RoundResolved(table_id=table_id, round_id=round_id, result=result))
    elif not suspended:
        answers.append(
            call_for(
                one,
                one.game,
                step,
                rules.DrawCalled(
                    table_id=table_id, round_id=round_id, shoe_id=shoe_id, called_before=called
                ),
            )
        )
    return answers


def call_for(
    one: Blackjack,
    game: Round,
    step: Draw | OfferInsurance | LookAtHole | Turn | RevealHole,
    draw: rules.DrawCalled,
) -> Message:
    """The call that asks for a step, under the next turn's number. `draw`: a call for cards that
    names everything but the cards."""
    table_id, round_id, turn = draw.table_id, draw.round_id, one.turn + 1
    match step:
        case Draw():
            draw.hands.extend(hand_of(spot) for spot in step.spots)
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


def is_dealt(one: Blackjack, game: Round) -> bool:
    """Whether every card of the first deal has come."""
    came = sum(play.kind is Kind.CARD for play in one.plays)
    return bool(game.seats) and came >= len(blackjack.first_deal(game))


def side_bets(
    one: Blackjack, game: Round, table_id: str, round_id: str
) -> Sequence[rules.SideBetDecided]:
    """Every side bet that lies at a seat, once for each seat and kind (BJ-13); of a corrected round
    those that are decided otherwise now."""
    places = sorted({(bet.seat, bet.bet) for bet in one.bets.values() if bet.bet in SIDE_BETS})
    decided = [
        rules.SideBetDecided(
            table_id=table_id,
            round_id=round_id,
            seat=seat,
            bet=bet,
            line=_side_bet(one, game, seat, bet, round_id).line,
        )
        for seat, bet in places
    ]
    return [body for body in decided if one.lines.get(f"{body.seat} {body.bet}") != body.line]


def _side_bet(one: Blackjack, game: Round, seat: int, bet: str, round_id: str) -> Judged:
    if seat not in game.seats:
        raise InvariantViolated(f"{round_id}: {bet} at seat {seat}, which has no main bet")
    spot = Spot(seat, 1)
    first, second, *_ = (
        play.card for play in one.plays if play.kind is Kind.CARD and play.spot == spot
    )
    if bet == "perfect_pairs":
        return perfect_pairs(first, second)
    return twenty_one_plus_3(first, second, game.dealer[0])
