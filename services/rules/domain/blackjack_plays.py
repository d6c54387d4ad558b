"""What happened in a round of blackjack, thing by thing, so that it can be played again with other
cards after a correction.

Played again, every card must come where the rules call it, every action at its turn and allowed:
then the round stands as it was dealt, with the right cards. Otherwise what was done cannot have
been done, and the round cannot go on. Two things are nobody's decision and are forgiven: cards that
the dealer need not have drawn are not played, and an offer of insurance that nobody took need not
have been made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from services.games import blackjack
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
    Step,
    Turn,
)


class Kind(IntEnum):
    """What can happen."""

    CARD = 1
    """A card lies at a spot; the hole card face down."""
    LOOK = 2
    """The hole card was looked at."""
    INSURED = 3
    """Nobody can be insured any more."""
    TURNED = 4
    """The hole card lies open."""
    ACTION = 5
    """A hand acted."""


class Play(NamedTuple):
    """One thing that happened."""

    kind: Kind
    spot: Spot = DEALER
    card: str = ""
    place: int = 0
    """The card's place in the shoe."""
    blackjack: bool = False
    """What a look told."""
    action: Action = Action.STAND


@dataclass(slots=True)
class Played:
    """Where a round stands after some plays."""

    game: Round
    expected: list[Spot] = field(default_factory=list[Spot])
    """Spots that are called cards and have not got them."""
    unplayed: list[int] = field(default_factory=list[int])
    """The places of cards that the dealer need not have drawn."""

    @property
    def step(self) -> Step:
        """What comes next."""
        return Draw(tuple(self.expected)) if self.expected else blackjack.next_step(self.game)


def play_again(
    options: Options, mains: Iterable[tuple[int, int]], plays: Sequence[Play], *, insured: bool
) -> Played:
    """Play a round again: `mains`: the main bets by seat. Raises NotPossible."""
    one = Played(Round(options, {seat: Seat(stake) for seat, stake in mains}))
    for play in plays:
        _again(one, play, insured=insured)
    if insured and one.game.dealer and not blackjack.insurable_seats(one.game):
        raise NotPossible("insurance was taken, and the dealer does not show an ace")
    return one


def _again(one: Played, play: Play, *, insured: bool) -> None:
    game, step = one.game, one.step
    match play.kind:
        case Kind.CARD:
            _card(one, play, step)
        case Kind.LOOK:
            if not isinstance(step, LookAtHole):
                raise NotPossible("the hole card was looked at when it was not to be")
            game.peeked = play.blackjack
        case Kind.INSURED:
            if not isinstance(step, OfferInsurance) and insured:
                raise NotPossible("insurance was taken when none was to be offered")
            game.insurance_over = True
        case Kind.TURNED:
            if not isinstance(step, RevealHole):
                raise NotPossible("the hole card was turned over before its time")
            blackjack.open_hole(game, play.card)
        case Kind.ACTION:
            if not isinstance(step, Turn) or step.spot != play.spot:
                raise NotPossible(f"seat {play.spot.seat} acted and had no turn")
            blackjack.act(game, play.spot, play.action)


def _card(one: Played, play: Play, step: Step) -> None:
    spare = play.spot == DEALER and one.game.hole_open and isinstance(step, Over)
    if spare:
        one.unplayed.append(play.place)
        return
    if not isinstance(step, Draw) or step.spots[0] != play.spot:
        where = "the dealer" if play.spot in (DEALER, HOLE) else f"seat {play.spot.seat}"
        raise NotPossible(f"{where} got a card that is not called")
    one.expected = list(step.spots[1:])
    blackjack.take_card(one.game, play.spot, play.card)
