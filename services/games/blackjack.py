"""Blackjack: what a hand is worth, what may be done with it, and what happens next in a round.

`next_step` is the whole course of a round (rules BJ-2 to BJ-7 and BJ-13): given the cards and the
actions so far, the one thing that comes next. Whoever folds a round calls `take_card`, `open_hole`
and `act` as these things happen, and asks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from services.games.blackjack_strategy import Advice, advice
from services.games.cards import RANKS, rank_of

SEATS = 7
"""Seats of a table, 1 from the dealer's left (rule BJ-2)."""
DEALER_STANDS = 17
"""The dealer stands on every 17, soft too (rule BJ-5)."""
BEST = 21
FIRST_CARDS = 2
"""Cards of every hand before it is played."""
MAX_ROUND_CARDS = 137
"""More than seven seats can take from eight decks (rule BJ-15): fourteen hands, after splits, of at
most 20 points and one card more, made of all aces, twos and threes and then fours, and the
dealer's of at most 16 points and one more."""
SOFT_ACE = 10
"""What one ace adds to its 1 where that does not pass 21 (rule BJ-1)."""

_VALUES = {rank: min(place, 10) for place, rank in enumerate(RANKS, start=1)}


class Total(NamedTuple):
    """What a hand comes to."""

    points: int
    soft: bool
    """Whether an ace in it counts 11."""


class Peek(Enum):
    """When the dealer looks at the hole card before the seats act (rule BJ-4)."""

    ACE_ONLY = 1
    BOTH = 2
    NONE = 3


class Action(Enum):
    """What may be done with a hand."""

    HIT = 1
    STAND = 2
    DOUBLE = 3
    SPLIT = 4


class Options(NamedTuple):
    """What a rule set of blackjack configures."""

    peek: Peek = Peek.ACE_ONLY
    doubles: bool = True
    one_card_on_split_aces: bool = True
    second_card_later: bool = False
    """No hole card lies on the table: the dealer's second card is drawn once the seats have acted.
    Only where nobody looks at it (`Peek.NONE`), so that a round comes to the same either way."""


class Spot(NamedTuple):
    """Where a card goes."""

    seat: int
    """1 to 7; 0: the dealer."""
    hand: int
    """1, or 2 for the second hand after a split; of the dealer: 1 lies open, 2 is the hole card."""


DEALER = Spot(0, 1)
HOLE = Spot(0, 2)


# ---- hands -------------------------------------------------------------------------------------


def value(card: str) -> int:
    """Ace 1, two to nine their face value, tens and faces 10 (rule BJ-1)."""
    return _VALUES[rank_of(card)]


def total(cards: Sequence[str]) -> Total:
    """The better of its totals: an ace counts 11 while that does not pass 21 (rule BJ-1)."""
    low = sum(map(value, cards))
    soft = low + SOFT_ACE <= BEST and any(rank_of(card) == "A" for card in cards)
    return Total(low + SOFT_ACE if soft else low, soft)


def is_bust(cards: Sequence[str]) -> bool:
    """Whether a hand is over 21."""
    return total(cards).points > BEST


def is_blackjack(cards: Sequence[str], *, split: bool = False) -> bool:
    """Ace and ten-value as the first two cards of a hand that is not one of two (BJ-1, BJ-7)."""
    return len(cards) == FIRST_CARDS and not split and total(cards).points == BEST


def may_be_split(cards: Sequence[str]) -> bool:
    """Whether these are two cards of equal value: king and queen too (rule BJ-7, D23)."""
    return len(cards) == FIRST_CARDS and value(cards[0]) == value(cards[1])


def insurance_minor(main_minor: int) -> int:
    """The stake of insurance: half the main bet, rounded down (rule BJ-3); 0: none is offered."""
    return main_minor // 2


def dealer_draws(dealer: Sequence[str]) -> bool:
    """Whether the dealer must take another card while some hand is in play (rule BJ-5)."""
    return total(dealer).points < DEALER_STANDS


def peeks(peek: Peek, up_card: str) -> bool:
    """Whether the dealer looks at the hole card behind this one (rule BJ-4)."""
    match peek:
        case Peek.ACE_ONLY:
            return rank_of(up_card) == "A"
        case Peek.BOTH:
            return value(up_card) in {1, 10}
        case Peek.NONE:
            return False


# ---- a round -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Hand:
    """A hand of a seat."""

    cards: list[str] = field(default_factory=list[str])
    owed: int = FIRST_CARDS
    """How many cards it shall have by what was done so far."""
    split: bool = False
    """Whether it is one of two after a split."""
    doubled: bool = False
    stood: bool = False


@dataclass(slots=True)
class Seat:
    """A seat that is dealt."""

    main_minor: int
    """All main bets at it: the first stake."""
    hands: list[Hand] = field(default_factory=lambda: [Hand()])
    """One, or two after a split."""


@dataclass(slots=True)
class Round:
    """A round, as far as it is played."""

    options: Options
    seats: dict[int, Seat]
    """The seats with a main bet, ascending."""
    dealer: list[str] = field(default_factory=list[str])
    """The dealer's open cards: the first, the hole card once it is revealed, then those drawn."""
    hole_dealt: bool = False
    hole_open: bool = False
    """The dealer's second card lies open."""
    insurance_over: bool = False
    """Nobody can be insured any more: offered and sealed, or never offered."""
    peeked: bool | None = None
    """What a look at the hole card told: a blackjack or not; None: nobody looked."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Cards are dealt to these spots, in this order."""

    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class OfferInsurance:
    """Insurance is offered to these seats."""

    seats: tuple[int, ...]
    stakes_minor: tuple[int, ...]
    """Of each, in the same order."""


@dataclass(frozen=True, slots=True)
class LookAtHole:
    """The dealer looks whether the hole card makes a blackjack."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A hand has to act."""

    spot: Spot
    actions: tuple[Action, ...]
    max_double_minor: int
    """The greatest further stake of a double; 0 where it is not allowed."""
    split_minor: int
    """The further stake of a split; 0 where it is not allowed."""
    advice: Advice


@dataclass(frozen=True, slots=True)
class RevealHole:
    """The hole card is turned over."""


@dataclass(frozen=True, slots=True)
class Over:
    """The round is decided."""


Step = Draw | OfferInsurance | LookAtHole | Turn | RevealHole | Over


def next_step(one: Round) -> Step:
    """What comes next in a round of which nothing is outstanding: every card that was called has
    come, and whoever was asked has answered. In the order of rule BJ-13."""
    if not one.seats:
        return Over()
    if not one.dealer:
        return Draw(first_deal(one))
    missing = _missing(one)
    if missing:
        return Draw(missing)
    up_card = one.dealer[0]
    if not one.insurance_over:
        insurable = insurable_seats(one)
        if insurable:
            stakes = (insurance_minor(one.seats[seat].main_minor) for seat in insurable)
            return OfferInsurance(insurable, tuple(stakes))
    if one.peeked is None and not one.hole_open and peeks(one.options.peek, up_card):
        return LookAtHole()
    if not one.peeked:
        for spot in _spots(one):
            if _acts(one.options, _hand(one, spot)):
                return _turn(one, spot)
    if not one.hole_open:
        return Draw((DEALER,)) if one.options.second_card_later else RevealHole()
    return Draw((DEALER,)) if _in_contest(one) and dealer_draws(one.dealer) else Over()


def first_deal(one: Round) -> tuple[Spot, ...]:
    """One card to each seat, one to the dealer, a second to each seat, the hole card (BJ-2)."""
    each = tuple(Spot(seat, 1) for seat in one.seats)
    hole = () if one.options.second_card_later else (HOLE,)
    return (*each, DEALER, *each, *hole)


def insurable_seats(one: Round) -> tuple[int, ...]:
    """The seats that insurance is offered to at the dealer's first card (rule BJ-3)."""
    if rank_of(one.dealer[0]) != "A":
        return ()
    return tuple(seat for seat, who in one.seats.items() if insurance_minor(who.main_minor))


def legal_actions(options: Options, hand: Hand) -> tuple[Action, ...]:
    """What may be done with a hand; nothing where it takes no action (BJ-5 to BJ-7)."""
    if not _acts(options, hand):
        return ()
    actions = [Action.HIT, Action.STAND]
    if len(hand.cards) == FIRST_CARDS and not hand.split:
        if options.doubles:
            actions.append(Action.DOUBLE)
        if may_be_split(hand.cards):
            actions.append(Action.SPLIT)
    return tuple(actions)


def _turn(one: Round, spot: Spot) -> Turn:
    hand, stake = _hand(one, spot), one.seats[spot.seat].main_minor
    actions = legal_actions(one.options, hand)
    points, soft = total(hand.cards)
    return Turn(
        spot,
        actions,
        max_double_minor=stake if Action.DOUBLE in actions else 0,
        split_minor=stake if Action.SPLIT in actions else 0,
        advice=advice(points, soft=soft, dealer=value(one.dealer[0])),
    )


def _acts(options: Options, hand: Hand) -> bool:
    """Whether a hand that has all its cards must act: a 21 stands by itself, a blackjack and a bust
    hand are over, a double and a split ace get one card (BJ-5, BJ-6, BJ-7)."""
    if hand.stood or hand.doubled or total(hand.cards).points >= BEST:
        return False
    one_card = hand.split and options.one_card_on_split_aces and rank_of(hand.cards[0]) == "A"
    return not one_card


def _in_contest(one: Round) -> bool:
    """Whether a hand remains that is neither bust nor a blackjack (rule BJ-5)."""
    hands = [_hand(one, spot) for spot in _spots(one)]
    return any(
        not is_bust(hand.cards) and not is_blackjack(hand.cards, split=hand.split) for hand in hands
    )


def _spots(one: Round) -> tuple[Spot, ...]:
    """Every hand of every seat in the order of play."""
    return tuple(
        Spot(seat, number)
        for seat, who in one.seats.items()
        for number in range(1, len(who.hands) + 1)
    )


def _missing(one: Round) -> tuple[Spot, ...]:
    """The hands that are owed a card: after a split both get theirs at once (rule BJ-7)."""
    return tuple(spot for spot in _spots(one) if len((hand := _hand(one, spot)).cards) < hand.owed)


def _hand(one: Round, spot: Spot) -> Hand:
    return one.seats[spot.seat].hands[spot.hand - 1]


# ---- what happens ------------------------------------------------------------------------------


class NotPossible(ValueError):
    """A card or an action that does not fit the round as it stands."""


def take_card(one: Round, spot: Spot, card: str) -> None:
    """A card lies at a spot; `card` is not looked at for a hole card, which lies face down.
    Raises NotPossible."""
    if spot == HOLE:
        if one.hole_dealt:
            raise NotPossible("there is a hole card already")
        one.hole_dealt = True
    elif spot == DEALER:
        if one.dealer and not one.hole_open:
            if not one.options.second_card_later:
                raise NotPossible("the dealer draws before the hole card is open")
            one.hole_open = True
        one.dealer.append(card)
    else:
        hand = _found(one, spot)
        if len(hand.cards) >= hand.owed:
            raise NotPossible(f"seat {spot.seat} gets a card that it is not owed")
        hand.cards.append(card)


def open_hole(one: Round, card: str) -> None:
    """The hole card is turned over. Raises NotPossible, also where it contradicts a look at it."""
    if not one.hole_dealt or one.hole_open or not one.dealer:
        raise NotPossible("there is no hole card to turn over")
    one.dealer.append(card)
    one.hole_open = True
    if one.peeked is not None and one.peeked != is_blackjack(one.dealer):
        raise NotPossible(f"the hole card {card} is not what the look at it told")


def act(one: Round, spot: Spot, action: Action) -> None:
    """A hand acts; the stake of a double or a split is reserved. Raises NotPossible."""
    hand = _found(one, spot)
    if len(hand.cards) < hand.owed or action not in legal_actions(one.options, hand):
        raise NotPossible(f"seat {spot.seat}, hand {spot.hand} may not {action.name.lower()}")
    match action:
        case Action.HIT:
            hand.owed += 1
        case Action.STAND:
            hand.stood = True
        case Action.DOUBLE:
            hand.doubled = True
            hand.owed += 1
        case Action.SPLIT:
            first, second = hand.cards
            one.seats[spot.seat].hands = [Hand([first], split=True), Hand([second], split=True)]


def _found(one: Round, spot: Spot) -> Hand:
    seat = one.seats.get(spot.seat)
    if seat is None or not 1 <= spot.hand <= len(seat.hands):
        raise NotPossible(f"seat {spot.seat} has no hand {spot.hand}")
    return seat.hands[spot.hand - 1]
