"""Who deals a case: seals a shoe that begins as the case says, and opens what is called from it.

It answers what the cores ask for, as the custodian of a fleet does; only its order is no secret.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import assert_never

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.shoe.v1 import events_pb2 as shoes
from services.games.baccarat import burn_count
from services.games.blackjack import is_blackjack
from services.games.cards import pack, rank_of
from services.games.sicbo import DICE
from services.kernel.event import Position
from services.shoe.domain.commitments import SALT_BYTES, commitment
from services.shoe.domain.state import TossKind
from services.shoe.domain.wanted import (
    CardsWanted,
    LookWanted,
    RevealWanted,
    SealWanted,
    TossWanted,
    Wanted,
)

SALT = bytes(SALT_BYTES)
"""Of every card: nothing here is to be hidden."""
SEALED_ORDER = b"no secret"
KEY_ID = "conformance"
SHOWN = "AS"
"""How a shoe of baccarat begins, where the case does not say: an ace burns one card."""
STANDING = (("TJQK", "6789"), ("2", "4"), ("3", "3"), ("A", "5"))
"""Ranks of which two make a hand that takes no third card (rules BAC-5 to BAC-7)."""


class ImpossibleCards(Exception):
    """There is no shoe that begins like this."""


class Croupier:
    """Deals one case.

    - cards: those of the case, in dealing order.
    - decks: as by the rule set; 0: no shoe.
    - shown: the first card of a shoe that begins with a burn (rule BAC-2); empty: it does not.
    - rounds_before: rounds of baccarat dealt before the case's cards, four cards each.
    - number, dice: what the wheel or the dice show.
    """

    def __init__(
        self,
        cards: Sequence[str],
        decks: int,
        *,
        shown: str = "",
        rounds_before: int = 0,
        number: int | None = None,
        dice: tuple[int, ...] = (),
    ) -> None:
        left = Counter(pack(decks))
        for card in (*cards, *([shown] if shown else [])):
            left[card] -= 1
            if left[card] < 0:
                raise ImpossibleCards(f"{decks} decks hold no further {card}")
        start = [shown, *_taken(left, burn_count(shown))] if shown else []
        before = _rounds_of_four(left, rounds_before)
        self.begins = len(start) + len(before)
        """Where the case's cards begin."""
        self.ends = self.begins + len(cards)
        """Where they end."""
        self.order = (*start, *before, *cards, *left.elements())
        self._number = number
        self._dice = dice
        self._tossed = number is None and not dice
        self._next = self.begins

    # ---- what the case has ---------------------------------------------------------------------

    def has(self, wish: Wanted) -> bool:
        """Whether what is asked for is among what the case gives."""
        match wish:
            case CardsWanted():
                return not wish.round_id or wish.first + wish.count <= self.ends
            case TossWanted():
                return not self._tossed and (wish.kind is TossKind.SPIN or len(self._dice) == DICE)
            case SealWanted() | RevealWanted() | LookWanted():
                return True
            case _:
                assert_never(wish)

    def is_last(self, wish: Wanted) -> bool:
        """Whether nothing of the case is left behind what is asked for."""
        if isinstance(wish, CardsWanted):
            return wish.first + wish.count >= self.ends
        return isinstance(wish, TossWanted)

    def unused(self) -> bool:
        """Whether the case has something that nobody has asked for."""
        return self._next < self.ends or not self._tossed

    def left(self) -> str:
        """What the case has left, in words."""
        cards = self.order[self._next : self.ends]
        if cards:
            return f"{' '.join(cards)} left"
        return "nothing left" if self._tossed else "the spin or the dice left"

    # ---- what is told --------------------------------------------------------------------------

    def told(self, wish: Wanted) -> Message | None:
        """The input that a wish asks for; None where a case has no need of it."""
        match wish:
            case SealWanted():
                return self._seal(wish)
            case CardsWanted():
                self._next = max(self._next, wish.first + wish.count)
                return shoes.OpenCards(
                    table_id=wish.table_id,
                    shoe_id=wish.shoe_id,
                    round_id=wish.round_id,
                    cards=[
                        shoes.Card(index=index, card=self.order[index], salt=SALT)
                        for index in range(wish.first, wish.first + wish.count)
                    ],
                    source=shoes.CARD_SOURCE_VIRTUAL,
                    asked_by=_position(wish.asked_by),
                )
            case LookWanted():
                return shoes.CheckHole(
                    table_id=wish.table_id,
                    shoe_id=wish.shoe_id,
                    round_id=wish.round_id,
                    index=wish.index,
                    blackjack=is_blackjack((wish.up_card, self.order[wish.index])),
                    source=shoes.CARD_SOURCE_VIRTUAL,
                    asked_by=_position(wish.asked_by),
                )
            case TossWanted():
                return self._toss(wish)
            case RevealWanted():
                return None
            case _:
                assert_never(wish)

    def _seal(self, wish: SealWanted) -> shoes.SealShoe:
        return shoes.SealShoe(
            table_id=wish.table_id,
            shoe_id=wish.shoe_id,
            number=wish.number,
            decks=wish.decks,
            commitments=b"".join(
                commitment(SALT, wish.shoe_id, index, card) for index, card in enumerate(self.order)
            ),
            sealed_order=SEALED_ORDER,
            key_id=KEY_ID,
            asked_by=_position(wish.asked_by),
        )

    def _toss(self, wish: TossWanted) -> shoes.RecordSpin | shoes.RecordDice:
        self._tossed = True
        if wish.kind is TossKind.SPIN:
            return shoes.RecordSpin(
                table_id=wish.table_id,
                round_id=wish.round_id,
                attempt=wish.attempt,
                number=self._number or 0,
                source=shoes.CARD_SOURCE_VIRTUAL,
                asked_by=_position(wish.asked_by),
            )
        return shoes.RecordDice(
            table_id=wish.table_id,
            round_id=wish.round_id,
            attempt=wish.attempt,
            dice=self._dice,
            source=shoes.CARD_SOURCE_VIRTUAL,
            asked_by=_position(wish.asked_by),
        )


@cache
def _commitment(shoe_id: str, index: int, card: str) -> bytes:
    """The same in every case: each has a first shoe of the one table."""
    return commitment(SALT, shoe_id, index, card)


def _taken(left: Counter[str], count: int) -> list[str]:
    """So many cards of those left."""
    cards = list(left.elements())[:count]
    left.subtract(cards)
    return cards


def _rounds_of_four(left: Counter[str], rounds: int) -> list[str]:
    """The cards of so many rounds of baccarat in which nobody draws, taken from those left: every
    hand comes to six or more with two cards."""
    hands = _standing_hands(left, 2 * rounds)
    dealt: list[str] = []
    for player, banker in zip(hands[::2], hands[1::2], strict=True):
        dealt += [player[0], banker[0], player[1], banker[1]]
    return dealt


def _standing_hands(left: Counter[str], count: int) -> list[tuple[str, str]]:
    hands: list[tuple[str, str]] = []
    for ranks, others in STANDING if count else ():
        ones = [card for card in left.elements() if rank_of(card) in ranks]
        twos = [card for card in left.elements() if rank_of(card) in others]
        if ranks == others:
            ones, twos = ones[::2], ones[1::2]
        for hand in list(zip(ones, twos, strict=False))[: count - len(hands)]:
            left.subtract(hand)
            hands.append(hand)
    if len(hands) < count:
        raise ImpossibleCards(f"a shoe has no {count // 2} rounds of four cards")
    return hands


def _position(position: Position) -> entry_pb2.Position:
    return entry_pb2.Position(
        segment=position.segment, sequence=position.sequence, index=position.index
    )
