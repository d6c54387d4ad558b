"""A round of blackjack between the pure machine and the messages that tell of it."""

from __future__ import annotations

from collections.abc import Sequence

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from services.games.bets import ResultUnusable
from services.games.blackjack import (
    BEST,
    FIRST_CARDS,
    SEATS,
    Options,
    Peek,
    Round,
    dealer_draws,
    is_blackjack,
    is_bust,
    may_be_split,
    peeks,
    total,
)
from services.games.blackjack_bets import Decided, DecidedSeat
from services.games.cards import is_card, rank_of

_PEEKS = {
    rule_set_pb2.PEEK_ACE_ONLY: Peek.ACE_ONLY,
    rule_set_pb2.PEEK_BOTH: Peek.BOTH,
    rule_set_pb2.PEEK_NONE: Peek.NONE,
}
PEEKS_BACK = {peek: number for number, peek in _PEEKS.items()}


def options_of(rule_set: rule_set_pb2.RuleSet) -> Options:
    """What a rule set of blackjack configures."""
    told = rule_set.blackjack
    peek = _PEEKS.get(told.peek, Peek.ACE_ONLY)  # No table opens with another one.
    return Options(peek, told.doubles, told.one_card_on_split_aces)


def result_of(one: Round) -> rules.BlackjackResult:
    """How a round ended."""
    return rules.BlackjackResult(
        seats=[
            rules.BlackjackSeat(
                seat=number,
                hands=[
                    rules.BlackjackHand(cards=hand.cards, split=hand.split, doubled=hand.doubled)
                    for hand in seat.hands
                ],
            )
            for number, seat in one.seats.items()
        ],
        dealer_cards=one.dealer,
    )


def decided_of(told: rules.BlackjackResult, options: Options) -> Decided:
    """The cards of a result, if a round by these rules can have ended so. Raises ResultUnusable."""
    numbers = [seat.seat for seat in told.seats]
    if numbers != sorted(frozenset(numbers)) or any(not 1 <= one <= SEATS for one in numbers):
        raise ResultUnusable(f"the seats {numbers} are not seats in order")
    if not told.seats:
        if told.dealer_cards:
            raise ResultUnusable("the dealer has cards although nobody was dealt")
        return Decided({}, ())
    dealer = _known(told.dealer_cards)
    seats = {seat.seat: _seat(seat, options) for seat in told.seats}
    if is_blackjack(dealer) and peeks(options.peek, dealer[0]):
        for number, seat in seats.items():
            if seat.doubled or seat.is_split or len(seat.hands[0]) > FIRST_CARDS:
                raise ResultUnusable(f"seat {number} played although the dealer had a blackjack")
    _check_dealer(dealer, seats)
    return Decided(seats, dealer)


def _known(cards: Sequence[str]) -> tuple[str, ...]:
    """The cards of a hand: at least two, and each one that exists."""
    if len(cards) < FIRST_CARDS or not all(map(is_card, cards)):
        raise ResultUnusable(f"{', '.join(cards) or 'nothing'} is no hand of blackjack")
    return tuple(cards)


def _seat(told: rules.BlackjackSeat, options: Options) -> DecidedSeat:
    where = f"seat {told.seat}"
    hands = [_known(hand.cards) for hand in told.hands]
    split = len(hands) == 2
    if not 1 <= len(hands) <= 2 or any(hand.split != split for hand in told.hands):
        raise ResultUnusable(f"{where} has {len(hands)} hands, and they do not say so")
    if split and not may_be_split((hands[0][0], hands[1][0])):
        raise ResultUnusable(f"{where} split two cards of different values")
    for cards in hands:
        if any(total(cards[:count]).points >= BEST for count in range(FIRST_CARDS, len(cards))):
            raise ResultUnusable(f"{where} drew on after 21: {', '.join(cards)}")
        if (
            split
            and options.one_card_on_split_aces
            and rank_of(cards[0]) == "A"
            and len(cards) > FIRST_CARDS
        ):
            raise ResultUnusable(f"{where} drew more than one card to a split ace")
    doubled = any(hand.doubled for hand in told.hands)
    if doubled and (split or not options.doubles or len(hands[0]) != FIRST_CARDS + 1):
        raise ResultUnusable(f"{where} cannot have doubled {', '.join(hands[0])}")
    return DecidedSeat(tuple(hands), doubled)


def _check_dealer(dealer: tuple[str, ...], seats: dict[int, DecidedSeat]) -> None:
    """The dealer draws to 17 if a hand remains that is neither bust nor a blackjack (BJ-5)."""
    in_contest = any(
        not is_bust(cards) and not is_blackjack(cards, split=seat.is_split)
        for seat in seats.values()
        for cards in seat.hands
    )
    drawn = range(FIRST_CARDS, len(dealer))
    too_many = any(not in_contest or not dealer_draws(dealer[:count]) for count in drawn)
    if too_many or (in_contest and dealer_draws(dealer)):
        raise ResultUnusable(f"the dealer cannot have ended with {', '.join(dealer)}")
